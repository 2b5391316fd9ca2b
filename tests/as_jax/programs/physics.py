"""Whole programs of physicists and engineers."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.ode import odeint


def dormand_prince_adaptive():
    def f(t, y):
        return jnp.array([y[1], (1 - y[0] ** 2) * y[1] * 3 - y[0]])

    c = np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
    a = [
        [],
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
    e = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40], np.float32)

    def solve(y0, t1):
        def cond(s):
            return (s[0] < t1) & (s[3] < 500)

        def body(s):
            t, y, h, n = s
            h = jnp.minimum(h, t1 - t)
            k = []
            for i in range(7):
                k.append(f(t + c[i] * h, y + h * sum((w * q for w, q in zip(a[i], k)), jnp.zeros_like(y))))
            y1 = y + h * sum(w * q for w, q in zip(a[6], k))
            err = jnp.sqrt(jnp.mean((h * jnp.tensordot(e, jnp.stack(k), 1) / (1e-4 + 1e-4 * jnp.abs(y))) ** 2))
            ok = err <= 1
            fac = jnp.clip(0.9 * err ** (-0.2), 0.2, 5.0)
            return jnp.where(ok, t + h, t), jnp.where(ok, y1, y), h * fac, n + 1

        return lax.while_loop(cond, body, (0.0, y0, 0.01, 0))

    t, y, h, n = jax.jit(jax.vmap(solve, (0, None)))(jnp.array([[1.0, 0.0], [2.0, 1.0], [0.1, -0.1]]), 4.0)
    return t, y


def heat_equation_implicit():
    n = 101
    dx, dt = 1 / (n - 1), 1e-3
    r = dt / dx**2
    lower = jnp.full(n, -r).at[0].set(0).at[-1].set(0)
    upper = jnp.full(n, -r).at[-1].set(0).at[0].set(0)
    diag = jnp.full(n, 1 + 2 * r).at[jnp.array([0, -1])].set(1.0)

    def step(u, _):
        u = lax.linalg.tridiagonal_solve(lower, diag, upper, u[:, None])[:, 0]
        return u, u.max()

    u0 = jnp.sin(jnp.pi * jnp.linspace(0, 1, n))
    return lax.scan(step, u0, None, length=31)


def navier_stokes_pseudo_spectral():
    n = 33
    k = jnp.fft.fftfreq(n, 1 / n)
    kx, ky = jnp.meshgrid(k, k, indexing="ij")
    k2 = kx**2 + ky**2
    inv = jnp.where(k2 == 0, 0, 1 / jnp.where(k2 == 0, 1, k2))
    mask = (jnp.abs(kx) < n / 3) & (jnp.abs(ky) < n / 3)

    def rhs(w):
        psi = w * inv
        u, v = jnp.fft.ifft2(1j * ky * psi).real, -jnp.fft.ifft2(1j * kx * psi).real
        wx, wy = jnp.fft.ifft2(1j * kx * w).real, jnp.fft.ifft2(1j * ky * w).real
        return -jnp.fft.fft2(u * wx + v * wy) * mask - 1e-2 * k2 * w

    @jax.jit
    def run(w):
        def step(w, _):
            k1 = rhs(w)
            k2_ = rhs(w + 0.01 * k1)
            return w + 0.005 * (k1 + k2_), jnp.sum(jnp.abs(w) ** 2)

        return lax.scan(step, w, None, length=10)

    x = jnp.linspace(0, 2 * jnp.pi, n, endpoint=False)
    w0 = jnp.sin(x)[:, None] * jnp.cos(2 * x)[None] + 0.3 * jnp.cos(3 * x)[:, None]
    w, e = run(jnp.fft.fft2(w0))
    return jnp.fft.ifft2(w).real, e


def n_body_with_energy_gradient():
    rng = np.random.default_rng(5)
    pos = jnp.asarray(rng.normal(size=(9, 3)), jnp.float32)
    mass = jnp.linspace(0.5, 1.5, 9)

    def energy(x):
        d = x[:, None] - x[None]
        r2 = (d**2).sum(-1) + 0.01
        return -0.5 * jnp.sum(jnp.where(jnp.eye(9, dtype=bool), 0, mass[:, None] * mass / jnp.sqrt(r2)))

    force = lambda x: -jax.grad(energy)(x) / mass[:, None]

    def step(state, _):
        x, v, a = state
        v = v + 0.005 * a
        x = x + 0.01 * v
        a = force(x)
        v = v + 0.005 * a
        return (x, v, a), energy(x) + 0.5 * jnp.sum(mass[:, None] * v**2)

    return lax.scan(step, (pos, jnp.zeros_like(pos), force(pos)), None, length=30)


def lennard_jones_neighbours():
    rng = np.random.default_rng(5)
    n, box = 27, 6.0
    g = jnp.stack(jnp.meshgrid(*[jnp.arange(3.0)] * 3, indexing="ij"), -1).reshape(-1, 3) * 2 + 0.3

    def disp(a, b):
        d = a - b
        return d - box * jnp.round(d / box)

    def pair(r2):
        s = 1 / r2**3
        return 4 * (s**2 - s)

    def energy(x):
        d = jax.vmap(jax.vmap(disp, (None, 0)), (0, None))(x, x)
        r2 = (d**2).sum(-1)
        m = (r2 > 0) & (r2 < 6.25)
        return 0.5 * jnp.where(m, pair(jnp.where(m, r2, 1.0)), 0).sum()

    def neighbours(x):
        d = jax.vmap(jax.vmap(disp, (None, 0)), (0, None))(x, x)
        r2 = (d**2).sum(-1) + jnp.eye(n) * 1e6
        _, i = lax.top_k(-r2, 6)
        return jnp.sort(i, -1)

    x = g + 0.1 * jnp.asarray(rng.normal(size=g.shape), jnp.float32)
    e, f = jax.value_and_grad(energy)(x)
    hvp = jax.jvp(jax.grad(energy), (x,), (jnp.ones_like(x).at[0].set(0.0),))[1]
    return e, f, neighbours(x), hvp, jnp.histogram(jnp.sqrt((x**2).sum(1)), bins=7)


def quantum_circuit():
    rng = np.random.default_rng(5)
    n = 4
    cnot = jnp.eye(4, dtype=jnp.complex64)[jnp.array([0, 1, 3, 2])].reshape(2, 2, 2, 2)

    def rx(t):
        c, s = jnp.cos(t / 2), jnp.sin(t / 2)
        return jnp.array([[c, -1j * s], [-1j * s, c]])

    def apply(state, gate, q):
        state = jnp.tensordot(gate, state, [[1], [q]])
        return jnp.moveaxis(state, 0, q)

    def apply2(state, gate, a, b):
        state = jnp.tensordot(gate, state, [[2, 3], [a, b]])
        return jnp.moveaxis(state, [0, 1], [a, b])

    def expectation(t):
        s = jnp.zeros((2,) * n, jnp.complex64).at[(0,) * n].set(1)
        for layer in t:
            for q in range(n):
                s = apply(s, rx(layer[q]), q)
            for q in range(n - 1):
                s = apply2(s, cnot, q, q + 1)
        p = jnp.abs(s) ** 2
        return p[0].sum() - p[1].sum()

    t = jnp.asarray(rng.uniform(0, 3, (2, n)), jnp.float32)
    v, g = jax.jit(jax.value_and_grad(expectation))(t)
    return v, g, jax.hessian(expectation)(t)


def schroedinger_split_step():
    n = 129
    x = jnp.linspace(-10, 10, n, endpoint=False)
    k = 2 * jnp.pi * jnp.fft.fftfreq(n, 20 / n)
    psi = jnp.exp(-((x + 3) ** 2) + 2j * x)
    V = 0.5 * x**2

    def step(psi, _):
        psi = jnp.exp(-0.5j * 0.01 * V) * psi
        psi = jnp.fft.ifft(jnp.exp(-0.5j * 0.01 * k**2) * jnp.fft.fft(psi))
        psi = jnp.exp(-0.5j * 0.01 * V) * psi
        p = jnp.abs(psi) ** 2
        return psi, (p.sum(), (p * x).sum() / p.sum())

    return lax.scan(step, psi, None, length=40)


def eigenmodes_of_a_membrane():
    n = 11
    d = jnp.diag(jnp.full(n, 2.0)) - jnp.eye(n, k=1) - jnp.eye(n, k=-1)
    L = jnp.kron(d, jnp.eye(n)) + jnp.kron(jnp.eye(n), d)
    w = jnp.linalg.eigvalsh(L)

    def lowest(stiff):
        return jnp.linalg.eigh(L * stiff[:, None] * stiff[None])[0][0]

    return w, jax.grad(lowest)(jnp.linspace(0.9, 1.1, n * n))


def ray_marching():
    def sdf(p):
        sphere = jnp.linalg.norm(p - jnp.array([0.0, 0, 3])) - 1
        box = jnp.linalg.norm(jnp.maximum(jnp.abs(p - jnp.array([1.5, 0, 4])) - 0.5, 0))
        plane = p[1] + 1
        return jnp.minimum(jnp.minimum(sphere, box), plane)

    def march(d):
        def cond(s):
            t, i, h = s
            return (i < 64) & (h > 1e-3) & (t < 20)

        def body(s):
            t, i, _ = s
            h = sdf(d * t)
            return t + h, i + 1, h

        return lax.while_loop(cond, body, (0.0, 0, jnp.inf))

    ys, xs = jnp.mgrid[-1:1:13j, -1:1:17j]
    d = jnp.stack([xs, -ys, jnp.ones_like(xs)], -1)
    d = d / jnp.linalg.norm(d, axis=-1, keepdims=True)
    t, i, h = jax.jit(jax.vmap(jax.vmap(march)))(d)
    hit = (t < 20) & (h <= 1e-3)
    nrm = jax.vmap(jax.vmap(jax.grad(sdf)))(d * t[..., None])
    shade = jnp.where(hit, jnp.clip((nrm * jnp.array([0.5, 0.8, -0.3])).sum(-1), 0, 1), 0)
    return hit, jnp.where(hit, t, 0), shade


def neural_ode_adjoint():
    rng = np.random.default_rng(5)
    W = jnp.asarray(rng.normal(size=(2, 2)), jnp.float32) * 0.5

    def f(y, t, W):
        return jnp.tanh(W @ y) * jnp.cos(t)

    def loss(W):
        ys = odeint(f, jnp.array([1.0, -1.0]), jnp.linspace(0.0, 2.0, 5), W, rtol=1e-5, atol=1e-5)
        return jnp.sum(ys**2), ys

    (v, ys), g = jax.value_and_grad(loss, has_aux=True)(W)
    return v, ys, g


def lattice_boltzmann():
    nx, ny = 15, 11
    c = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])
    w = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
    opp = jnp.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
    X, Y = jnp.meshgrid(jnp.arange(nx), jnp.arange(ny), indexing="ij")
    solid = (X - 5) ** 2 + (Y - 5) ** 2 < 4

    def eq(rho, u):
        cu = jnp.einsum("qd,xyd->xyq", c, u)
        return rho[..., None] * w * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * (u**2).sum(-1, keepdims=True))

    def step(f, _):
        rho = f.sum(-1)
        u = jnp.einsum("xyq,qd->xyd", f, c) / rho[..., None]
        f = f - (f - eq(rho, u)) / 0.6
        f = jnp.where(solid[..., None], f[..., opp], f)
        f = jnp.stack([jnp.roll(f[..., q], (int(c[q, 0]), int(c[q, 1])), (0, 1)) for q in range(9)], -1)
        return f, jnp.sqrt((u**2).sum(-1)).mean()

    u0 = jnp.zeros((nx, ny, 2)).at[..., 0].set(0.1)
    return lax.scan(step, eq(jnp.ones((nx, ny)), u0), None, length=12)


def pendulum_control_by_lqr():
    def dyn(x, u):
        th, om = x
        return jnp.array([th + 0.05 * om, om + 0.05 * (9.8 * jnp.sin(th) - 0.1 * om + u[0])])

    A, B = jax.jacfwd(dyn, (0, 1))(jnp.zeros(2), jnp.zeros(1))
    Q, R = jnp.diag(jnp.array([10.0, 1.0])), jnp.eye(1)

    def riccati(P, _):
        K = jnp.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        return Q + A.T @ P @ (A - B @ K), K

    P, Ks = lax.scan(riccati, Q, None, length=50)

    def roll(x, K):
        u = -K @ x
        return dyn(x, u), (x, u)

    return P, lax.scan(roll, jnp.array([0.4, 0.0]), Ks[::-1])


def finite_elements_sparse_assembly():
    n = 20
    nodes = jnp.linspace(0, 1, n + 1) ** 1.3
    elems = jnp.stack([jnp.arange(n), jnp.arange(1, n + 1)], 1)

    def local(e):
        h = nodes[e[1]] - nodes[e[0]]
        return jnp.array([[1, -1], [-1, 1]]) / h, jnp.array([h, h]) / 2

    k, f = jax.vmap(local)(elems)
    K = jnp.zeros((n + 1, n + 1)).at[elems[:, :, None], elems[:, None, :]].add(k)
    F = jax.ops.segment_sum(f.ravel(), elems.ravel(), n + 1)
    free = jnp.arange(1, n)
    u = jnp.zeros(n + 1).at[free].set(jnp.linalg.solve(K[jnp.ix_(free, free)], F[free]))
    cg, _ = jax.scipy.sparse.linalg.cg(lambda v: K[1:n, 1:n] @ v, F[1:n], tol=1e-7)
    return u, cg


def wave_equation_inversion():
    n, T = 61, 80

    def simulate(c):
        def step(s, t):
            u, up = s
            lap = jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)
            un = 2 * u - up + (c * 0.5) ** 2 * lap
            un = un.at[30].add(jnp.exp(-(((t - 20) / 6.0) ** 2))).at[0].set(0).at[-1].set(0)
            return (un, u), un[jnp.array([5, 45])]

        return lax.scan(jax.checkpoint(step), (jnp.zeros(n), jnp.zeros(n)), jnp.arange(T))[1]

    true = jnp.ones(n).at[40:50].set(0.8)
    data = simulate(true)
    loss = lambda c: jnp.mean((simulate(c) - data) ** 2)
    v, g = jax.jit(jax.value_and_grad(loss))(jnp.ones(n))
    return data, v, g
