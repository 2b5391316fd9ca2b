"""Whole programs of economists, biologists, roboticists and geometers; some in double precision."""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.scipy.optimize
import jax.scipy.spatial.transform
import numpy as np
from jax import lax, random


def _double(f):
    @functools.wraps(f)
    def run():
        with jax.enable_x64(True):
            return f()

    return run


def black_scholes_greeks():
    def call(s, k, t, r, v):
        d1 = (jnp.log(s / k) + (r + v**2 / 2) * t) / (v * jnp.sqrt(t))
        return s * jax.scipy.stats.norm.cdf(d1) - k * jnp.exp(-r * t) * jax.scipy.stats.norm.cdf(d1 - v * jnp.sqrt(t))

    s = jnp.linspace(80, 120, 9)
    args = (100.0, 0.5, 0.02, 0.25)
    g = jax.vmap(jax.grad(call, argnums=(0, 2, 3, 4)), (0, None, None, None, None))(s, *args)
    gamma = jax.vmap(jax.grad(jax.grad(call)), (0, None, None, None, None))(s, *args)
    price = jax.vmap(lambda s: call(s, *args))(s)

    def implied(p, s):
        def newton(v, _):
            return v - (call(s, 100.0, 0.5, 0.02, v) - p) / jax.grad(call, 4)(s, 100.0, 0.5, 0.02, v), None

        return lax.scan(newton, 0.4, None, length=8)[0]

    return price, g, gamma, jax.vmap(implied)(price, s)


def american_option_by_regression():
    n, steps = 64, 10
    z = random.normal(random.key(0), (steps, n))
    s = 100 * jnp.exp(jnp.cumsum(-0.02 / 10 + 0.2 * jnp.sqrt(0.1) * z, 0))
    pay = jnp.maximum(100 - s, 0)

    def back(v, sp):
        s, p = sp
        v = v * jnp.exp(-0.005)
        X = jnp.stack([jnp.ones_like(s), s / 100, (s / 100) ** 2], 1)
        m = (p > 0)[:, None]
        A = (X * m).T @ X + jnp.eye(3)
        cont = X @ jnp.linalg.solve(A, (X * m).T @ v)
        return jnp.where((p > 0) & (p > cont), p, v), cont

    v, cont = lax.scan(back, pay[-1], (s[:-1], pay[:-1]), reverse=True)
    return v.mean(), cont[3]


def value_iteration_and_growth():
    k = jnp.linspace(0.1, 5, 41)
    c = k[:, None] ** 0.3 + 0.9 * k[:, None] - k[None]
    u = jnp.where(c > 0, jnp.log(jnp.where(c > 0, c, 1)), -jnp.inf)

    def bell(s):
        v, _, i = s
        return (u + 0.95 * v).max(1), v, i + 1

    v, _, i = jax.jit(lambda v: lax.while_loop(lambda s: jnp.max(jnp.abs(s[0] - s[1])) > 1e-4, bell, (v, v + 1, 0)))(
        jnp.zeros(41)
    )
    pol = (u + 0.95 * v).argmax(1)
    path = lax.scan(lambda i, _: (pol[i], k[i]), 2, None, length=30)[1]
    return v, pol, path


def sir_model_fitted():
    def simulate(th):
        beta, gam = jnp.exp(th)

        def step(s, _):
            S, I, R = s
            n, r = beta * S * I * 0.1, gam * I * 0.1
            return (S - n, I + n - r, R + r), I

        return lax.scan(step, (0.99, 0.01, 0.0), None, length=200)[1][::10]

    data = simulate(jnp.log(jnp.array([1.5, 0.4])))
    f = lambda th: jnp.sum((simulate(th) - data) ** 2)
    r = jax.scipy.optimize.minimize(f, jnp.log(jnp.array([1.0, 0.3])), method="BFGS", tol=1e-6)
    return data, jnp.round(jnp.exp(r.x), 2), jax.hessian(f)(jnp.log(jnp.array([1.5, 0.4])))


def phylogenetic_likelihood():
    rng = np.random.default_rng(17)
    children = jnp.array([[0, 1], [2, 3], [5, 6], [4, 7]])
    tips = jax.nn.one_hot(jnp.asarray(rng.integers(0, 4, (5, 33))), 4)

    def ll(logt, kappa):
        Q = jnp.array([[0, 1, kappa, 1], [1, 0, 1, kappa], [kappa, 1, 0, 1], [1, kappa, 1, 0]]) / (kappa + 2)
        Q = Q - jnp.diag(Q.sum(1))
        P = jax.vmap(lambda t: jax.scipy.linalg.expm(Q * jnp.exp(t)))(logt)
        L = jnp.zeros((9, 33, 4)).at[:5].set(tips)

        def visit(L, ic):
            i, c = ic
            m = jnp.prod(jnp.einsum("cij,csj->csi", P[c], L[c]), 0)
            return L.at[i].set(m), None

        L, _ = lax.scan(visit, L, (jnp.arange(5, 9), children))
        return jnp.log(L[-1].mean(-1)).sum()

    return jax.value_and_grad(ll, (0, 1))(jnp.linspace(-2, -1, 9), 2.0)


def iterative_closest_point():
    rng = np.random.default_rng(17)
    a = jnp.asarray(rng.normal(size=(23, 3)), jnp.float32)
    rot = jax.scipy.spatial.transform.Rotation.from_euler("xyz", jnp.array([0.1, -0.2, 0.15])).as_matrix()
    b = a @ rot.T + jnp.array([0.1, 0.2, -0.1])

    def step(p, _):
        d = ((p[:, None] - b) ** 2).sum(-1)
        q = b[d.argmin(1)]
        mp, mq = p.mean(0), q.mean(0)
        U, S, Vt = jnp.linalg.svd((p - mp).T @ (q - mq))
        D = jnp.diag(jnp.array([1, 1, jnp.sign(jnp.linalg.det(Vt.T @ U.T))]))
        R = Vt.T @ D @ U.T
        return (p - mp) @ R.T + mq, (d.min(1).mean(), R)

    return lax.scan(step, a, None, length=4)


def robot_arm_inverse_kinematics():
    lengths = jnp.array([1.0, 0.8, 0.5])

    def fk(q):
        a = jnp.cumsum(q)
        return jnp.array([jnp.sum(lengths * jnp.cos(a)), jnp.sum(lengths * jnp.sin(a))])

    target = jnp.array([1.2, 0.9])

    def step(s):
        q, i = s
        J = jax.jacobian(fk)(q)
        e = target - fk(q)
        return q + J.T @ jnp.linalg.solve(J @ J.T + 1e-3 * jnp.eye(2), e), i + 1

    q, n = lax.while_loop(
        lambda s: (jnp.linalg.norm(target - fk(s[0])) > 1e-5) & (s[1] < 100), step, (jnp.array([0.3, 0.3, 0.3]), 0)
    )
    M = jax.vmap(jax.jacfwd(fk))(jnp.linspace(0, 1, 5)[:, None] * q)
    return q, n, M, jnp.linalg.svd(M, compute_uv=False)


@_double
def double_precision_orbits():
    def kepler(M, e):
        E = M + e * jnp.sin(M)
        for _ in range(6):
            E = E - (E - e * jnp.sin(E) - M) / (1 - e * jnp.cos(E))
        return E

    M = jnp.linspace(0, 2 * jnp.pi, 17)
    E = kepler(M, 0.6)
    s = jnp.array([1.0, 0, 0, 1.1])
    f = lambda s: jnp.concatenate([s[2:], -s[:2] / jnp.linalg.norm(s[:2]) ** 3])

    def rk4(s, _):
        k1 = f(s)
        k2 = f(s + 0.005 * k1)
        k3 = f(s + 0.005 * k2)
        k4 = f(s + 0.01 * k3)
        s = s + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return s, 0.5 * s[2:] @ s[2:] - 1 / jnp.linalg.norm(s[:2])

    stm = jax.jacobian(lambda s: lax.scan(rk4, s, None, length=50)[0])(s)
    return E, lax.scan(rk4, s, None, length=101), stm, jax.vmap(jax.grad(kepler), (0, None))(M, 0.6)


@_double
def double_precision_linear_algebra():
    rng = np.random.default_rng(17)
    A = jnp.asarray(rng.normal(size=(13, 13)))
    S = A @ A.T + jnp.eye(13)
    b = jnp.asarray(rng.normal(size=(13, 2)))
    w, V = jnp.linalg.eigh(S)
    lu, piv = jax.scipy.linalg.lu_factor(A)
    ev = jnp.linalg.eigvals(A)
    q, r = jnp.linalg.qr(A)
    x64 = jnp.arange(5)
    return (
        jnp.linalg.inv(S),
        w,
        jnp.abs(V),
        jax.scipy.linalg.lu_solve((lu, piv), b),
        jnp.sort(jnp.abs(ev)),
        jnp.abs(r),
        jax.scipy.linalg.expm(A / 5),
        jax.scipy.linalg.sqrtm(S).real,
        x64,
        x64 / 2,
        jnp.float32(3) * x64,
        jax.grad(lambda A: jnp.linalg.slogdet(A)[1])(A),
        jax.jvp(jnp.linalg.pinv, (A[:, :5],), (A[:, 5:10],))[1],
        jnp.linalg.matrix_power(A / 3, 5),
    )


def bundle_adjustment():
    rng = np.random.default_rng(17)
    P = jnp.asarray(rng.normal(size=(12, 3)), jnp.float32) + jnp.array([0, 0, 6.0])
    cams = jnp.array([[0.0, 0, 0, 0, 0, 0], [0.1, -0.1, 0.05, 0.5, 0, 0.1], [-0.1, 0.2, 0, -0.5, 0.1, 0]])

    def rodrigues(w):
        t = jnp.sqrt(w @ w + 1e-12)
        k = w / t
        K = jnp.array([[0, -k[2], k[1]], [k[2], 0, -k[0]], [-k[1], k[0], 0]])
        return jnp.eye(3) + jnp.sin(t) * K + (1 - jnp.cos(t)) * K @ K

    def project(c, P):
        X = P @ rodrigues(c[:3]).T + c[3:]
        return X[:, :2] / X[:, 2:]

    obs = jax.vmap(project, (0, None))(cams, P)

    def res(x):
        c, p = x[:18].reshape(3, 6), x[18:].reshape(12, 3)
        return (jax.vmap(project, (0, None))(c, p) - obs).ravel()

    x = jnp.concatenate([cams.ravel(), P.ravel()]) + 0.01
    J = jax.jacrev(res)(x)
    g = jax.grad(lambda x: 0.5 * jnp.sum(res(x) ** 2))(x)
    return res(x), J, J.T @ res(x) - g < 1e-4


def queue_by_events():
    def step(s, k):
        t, free, waits = s
        a, b = random.split(k)
        t = t + random.exponential(a)
        start = jnp.maximum(t, free.min())
        srv = free.argmin()
        return (t, free.at[srv].set(start + random.exponential(b) * 1.8), waits + (start > t)), start - t

    (t, free, n), w = lax.scan(step, (0.0, jnp.zeros(2), 0), random.split(random.PRNGKey(8), 80))
    return t, free, n, w, jnp.quantile(w, jnp.array([0.5, 0.95]))


def reaction_by_tau_leaping():
    def step(s, k):
        rate = jnp.array([2.0, 0.1, 0.05]) * jnp.array([1.0, s[0], s[0] * s[1]])
        n = jnp.minimum(random.poisson(k, rate * 0.1), 5)
        return jnp.maximum(s + n @ jnp.array([[1, 0], [-1, 1], [0, -1]]), 0), s

    return lax.scan(step, jnp.array([10, 2]), random.split(random.key(6), 50))


@functools.partial(jax.tree_util.register_dataclass, data_fields=["position", "velocity"], meta_fields=["name"])
@dataclass
class _Body:
    position: jax.Array
    velocity: jax.Array
    name: str = "ball"


def bouncing_balls_as_dataclasses():
    def step(b, _):
        p, v = b.position + 0.02 * b.velocity, b.velocity + jnp.array([0, -9.8]) * 0.02
        hit = (p < 0) | (p > jnp.array([3.0, 10.0]))
        v = jnp.where(hit, -0.9 * v, v)
        b = _Body(jnp.clip(p, 0, jnp.array([3.0, 10.0])), v)
        return b, b.position

    start = _Body(jnp.array([[0.5, 2.0], [1.5, 4.0]]), jnp.array([[1.0, 0], [-2.0, 1.0]]))
    return lax.scan(step, start, None, length=100), jax.jacfwd(
        lambda v: lax.scan(step, _Body(start.position, v), None, length=20)[0].position
    )(start.velocity)


def soft_body_with_switch():
    rng = np.random.default_rng(17)
    kinds = jnp.asarray(rng.integers(0, 3, 31))
    x = jnp.asarray(rng.normal(size=31), jnp.float32)
    fs = [lambda x: x**2, lambda x: jnp.sin(x), lambda x: jnp.where(x > 0, jnp.log1p(x), 0.0)]
    f = lambda k, x: lax.switch(k, fs, x)
    a = jax.vmap(f)(kinds, x)
    g = jax.vmap(jax.grad(f, 1))(kinds, x)
    h = lax.map(lambda t: f(*t), (kinds, x), batch_size=8)
    idx = lax.while_loop(lambda s: s < 5, lambda s: s + lax.cond(s % 2 == 0, lambda: 1, lambda: 2), 0)
    return a, g, h, idx, jnp.select([x < -0.5, x < 0.5], [x, x**2], 9.0), jax.lax.clamp(-0.5, x, 0.5)
