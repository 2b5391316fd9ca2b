"""Whole programs of chemists and physicists, in older style: `np` is jax's, `onp` NumPy's."""

import collections
import itertools
import math
from functools import reduce

import jax
import jax.numpy as np
import numpy as onp
from jax import config, custom_jvp, custom_vjp, grad, jacfwd, jit, jvp, lax, linearize, vmap
from jax import random as jrandom
from jax.experimental.ode import odeint
from jax.scipy import linalg as jsl
from jax.scipy.special import gammaln, i0e, i1e

f32 = np.float32


def _boys(t):
    safe = np.where(t < 1e-8, 1.0, t)
    return np.where(t < 1e-8, 1 - t / 3, 0.5 * np.sqrt(np.pi / safe) * jax.scipy.special.erf(np.sqrt(safe)))


def _overlap(a, b, A, B):
    p = a + b
    return (np.pi / p) ** 1.5 * np.exp(-a * b / p * np.sum((A - B) ** 2))


def _kinetic(a, b, A, B):
    q, r2 = a * b / (a + b), np.sum((A - B) ** 2)
    return q * (3 - 2 * q * r2) * _overlap(a, b, A, B)


def _nuclear(C):
    def g(a, b, A, B):
        p = a + b
        P = (a * A + b * B) / p
        return -2 * np.pi / p * np.exp(-a * b / p * np.sum((A - B) ** 2)) * _boys(p * np.sum((P - C) ** 2))

    return g


def _repulsion(a, b, c, d, A, B, C, D):
    p, q = a + b, c + d
    P, Q = (a * A + b * B) / p, (c * C + d * D) / q
    e = np.exp(-a * b / p * np.sum((A - B) ** 2) - c * d / q * np.sum((C - D) ** 2))
    return 2 * np.pi**2.5 / (p * q * np.sqrt(p + q)) * e * _boys(p * q / (p + q) * np.sum((P - Q) ** 2))


def hartree_fock_of_two_atoms(R=1.4, order=3):
    """Gaussian integrals, self-consistent fields in a while_loop, forces; in double precision."""
    with jax.enable_x64(True):
        alpha = np.array([0.168856, 0.623913, 3.42525][:order])
        coef = np.array([0.444635, 0.535328, 0.154329][:order])
        Z = onp.array([1.0, 1.0])

        def prim(f):
            # contract over every primitive of every function
            def contracted(*centres):
                n = len(centres)
                cs = [coef * (2 * alpha / np.pi) ** 0.75] * n
                ix = [np.arange(order)] * n
                grid = np.meshgrid(*ix, indexing="ij")
                val = np.vectorize(lambda *i: f(*[alpha[j] for j in i], *centres))(*grid)
                return np.einsum(val, list(range(n)), *itertools.chain(*([c, [k]] for k, c in enumerate(cs))), [])

            return contracted

        def energy(xyz):
            n = 2
            pairs = onp.array(list(itertools.product(range(n), repeat=2)))
            two = lambda f: vmap(lambda ij: prim(f)(xyz[ij[0]], xyz[ij[1]]))(pairs).reshape(n, n)
            S, H = two(_overlap), two(_kinetic) + sum(z * two(_nuclear(xyz[k])) for k, z in enumerate(Z))
            quads = onp.array(list(itertools.product(range(n), repeat=4)))
            G = lax.map(lambda i: prim(_repulsion)(*[xyz[k] for k in i]), np.asarray(quads)).reshape((n,) * 4)
            s, U = np.linalg.eigh(S)
            X = U @ np.diag(s**-0.5) @ U.T

            def fock(D):
                return H + np.einsum("ijkl,kl->ij", G, D) - 0.5 * np.einsum("ikjl,kl->ij", G, D)

            def density(F):
                e, C = np.linalg.eigh(X.T @ F @ X)
                C = X @ C[:, :1]
                return 2 * C @ C.T, e

            def cond(c):
                D, old, i = c
                return (np.linalg.norm(D - old) > 1e-9) & (i < 30)

            def body(c):
                D, _, i = c
                return density(fock(D))[0], D, i + 1

            D, _, it = lax.while_loop(cond, body, (np.zeros((n, n)), np.ones((n, n)), 0))
            D = lax.stop_gradient(D)
            F = fock(D)
            nn = Z[0] * Z[1] / np.linalg.norm(xyz[0] - xyz[1])
            return 0.5 * np.sum(D * (H + F)) + nn, (it, density(F)[1], S)

        xyz = np.array([[0.0, 0.0, 0.0], [R, 0.0, 0.0]])
        (e, aux), pull = jit(jax.value_and_grad(energy, has_aux=True))(xyz)
        return e, aux, np.round(pull, 9) + 0.0


@custom_jvp
def kepler(M, e):
    """The eccentric anomaly, by Halley's steps; its derivative is implicit."""

    def step(_, E):
        f, f1, f2 = E - e * np.sin(E) - M, 1 - e * np.cos(E), e * np.sin(E)
        return E - 2 * f * f1 / (2 * f1 * f1 - f * f2)

    return lax.fori_loop(0, 8, step, M + 0.85 * e * np.sign(np.sin(M)))


kepler.defjvps(lambda t, E, M, e: t / (1 - e * np.cos(E)), lambda t, E, M, e: t * np.sin(E) / (1 - e * np.cos(E)))


def transits_of_a_planet(n=33):
    """Light curves with limb darkening, fitted by Gauss-Newton; Kepler's equation."""
    t = np.linspace(-0.2, 0.3, n)

    def position(p, t):
        M = 2 * np.pi * t / p["period"] + 1.1
        E = kepler(M, p["ecc"])
        x = p["a"] * (np.cos(E) - p["ecc"])
        y = p["a"] * np.sqrt(1 - p["ecc"] ** 2) * np.sin(E)
        w = p["w"]
        return x * np.cos(w) - y * np.sin(w), (x * np.sin(w) + y * np.cos(w)) * np.cos(p["inc"])

    def flux(p, t):
        x, y = position(p, t)
        z = np.hypot(x, y)
        k = p["k"]
        k1 = np.arccos(np.clip((1 - k * k + z * z) / (2 * np.where(z > 0, z, 1)), -1 + 1e-6, 1 - 1e-6))
        k0 = np.arccos(np.clip((k * k + z * z - 1) / (2 * k * np.where(z > 0, z, 1)), -1 + 1e-6, 1 - 1e-6))
        lens = (k * k * k0 + k1 - np.sqrt(np.maximum(4 * z * z - (1 + z * z - k * k) ** 2, 1e-12)) / 2) / np.pi
        blocked = np.select([z > 1 + k, z <= 1 - k, z <= k - 1], [0.0, k * k, 1.0], default=lens)
        mu = np.sqrt(np.clip(1 - z * z, 1e-3, None))
        return 1 - blocked * (1 - p["u"][0] * (1 - mu) - p["u"][1] * (1 - mu) ** 2)

    truth = dict(period=3.0, ecc=0.2, a=4.0, w=0.47, inc=1.45, k=0.12, u=np.array([0.3, 0.2]))
    noise = 1e-4 * jrandom.normal(jrandom.PRNGKey(0), (n,))
    y = flux(truth, t) + noise
    names = ["k", "a", "w"]

    def residual(v):
        return (flux({**truth, **dict(zip(names, v))}, t) - y) / 1e-2

    @jit
    def gauss_newton(v, lam):
        r, lin = linearize(residual, v)
        J = vmap(lin, out_axes=-1)(np.eye(len(names)))
        A = J.T @ J
        step = np.linalg.solve(A + lam * np.diag(np.diagonal(A)) + 1e-6 * np.eye(3), -J.T @ r)
        new = v + step
        better = np.sum(residual(new) ** 2) < np.sum(r**2)
        return np.where(better, new, v), lam * np.where(better, 0.3, 4.0), np.sum(r**2)

    v, lam, hist = np.array([0.1, 4.2, 0.5]), 1e-2, []
    for _ in range(4):
        v, lam, chi = gauss_newton(v, lam)
        hist.append(chi)
    d = grad(lambda e: kepler(2.0, e) + kepler(-1.0, e) ** 2)(0.3)
    d2 = jacfwd(grad(lambda M, e: kepler(M, e), argnums=1), argnums=(0, 1))(1.3, 0.4)
    table = vmap(vmap(kepler, (None, 0)), (0, None))(np.linspace(0, 6, 5), np.array([0.0, 0.3, 0.9]))
    return y, v, np.stack(hist)[:2], d, d2, table, jit(vmap(grad(kepler), in_axes=(0, None)))(np.arange(4.0), 0.5)


def kuramoto_sivashinsky_in_double_precision(n=32, steps=11):
    """Exponential time differencing with contour integrals; Lyapunov exponents by QR."""
    with jax.enable_x64(True):
        L, h = 22.0, 0.25
        x = L * np.arange(n) / n
        k = np.fft.rfftfreq(n, d=L / n) * 2 * np.pi
        lin = k**2 - k**4
        E, E2 = np.exp(h * lin), np.exp(h * lin / 2)
        roots = np.exp(1j * np.pi * (np.arange(1, 17) - 0.5) / 16)
        LR = h * lin[:, None] + roots[None, :]
        mean = lambda f: h * np.real(np.mean(f, axis=1))
        Q = mean((np.exp(LR / 2) - 1) / LR)
        f1 = mean((-4 - LR + np.exp(LR) * (4 - 3 * LR + LR**2)) / LR**3)
        f2 = mean((2 + LR + np.exp(LR) * (-2 + LR)) / LR**3)
        f3 = mean((-4 - 3 * LR - LR**2 + np.exp(LR) * (4 - LR)) / LR**3)
        g = -0.5j * k * (np.abs(k) < 2 / 3 * np.max(np.abs(k)))

        def N(v):
            return g * np.fft.rfft(np.fft.irfft(v, n) ** 2)

        def step(v, _=None):
            Nv = N(v)
            a = E2 * v + Q * Nv
            Na = N(a)
            b = E2 * v + Q * Na
            Nb = N(b)
            c = E2 * a + Q * (2 * Nb - Nv)
            v = E * v + Nv * f1 + 2 * (Na + Nb) * f2 + N(c) * f3
            return v, np.fft.irfft(v, n)

        u0 = np.cos(2 * np.pi * x / L) * (1 + np.sin(2 * np.pi * x / L))
        v, path = jit(lambda v: lax.scan(step, v, None, length=steps))(np.fft.rfft(u0))
        real_step = lambda u: np.fft.irfft(step(np.fft.rfft(u))[0], n)

        def lyapunov(c, _):
            u, V = c
            W = vmap(lambda t: jvp(real_step, (u,), (t,))[1], in_axes=1, out_axes=1)(V)
            V, R = np.linalg.qr(W)
            d = np.sign(np.diagonal(R))
            return (real_step(u), V * d), np.log(np.abs(np.diag(R)))

        (_, V), logs = lax.scan(lyapunov, (path[-1], np.eye(n, 3)), None, steps)
        sens = grad(lambda u: np.sum(lax.fori_loop(0, 3, lambda i, u: real_step(u), u) ** 2))(u0)
        spectrum = np.abs(np.fft.fftshift(np.fft.fft(path, axis=1), axes=1)).mean(0)
        return path, np.abs(V), logs, sens, spectrum, np.sum(np.abs(v) ** 2)


def water_over_an_uneven_bed(n=24, m=18, steps=9):
    """Shallow water: HLL fluxes, wet and dry cells, dict carries, boundaries by switch."""
    yy, xx = np.mgrid[0:m, 0:n]
    bed = 0.4 * np.exp(-((xx - n / 2.0) ** 2 + (yy - m / 3) ** 2) / 9.0)
    h0 = np.where(xx < n // 4, 1.0, 0.3) - np.minimum(bed, 0.29)
    state = {"h": h0, "hu": np.zeros_like(h0), "hv": np.zeros_like(h0), "t": 0.0}
    G = 9.81

    def pad(q, kind, axis, sign):
        widths = [(0, 0), (0, 0)]
        widths[axis] = (1, 1)
        wall = lambda q: np.pad(q, widths, mode="edge") * np.pad(np.ones_like(q), widths, constant_values=sign)
        return lax.switch(
            kind, [lambda q: np.pad(q, widths, mode="wrap"), lambda q: np.pad(q, widths, "edge"), wall], q
        )

    def flux(h, hu, hv):
        u = np.where(h > 1e-4, hu / np.maximum(h, 1e-4), 0.0)
        return np.stack([hu, hu * u + 0.5 * G * h * h, hv * u]), u

    def sweep(q, kind, axis, dt):
        h, hu, hv = pad(q[0], kind, axis, 1), pad(q[1], kind, axis, -1), pad(q[2], kind, axis, 1)
        west = [lax.slice_in_dim(a, 0, -1, axis=axis) for a in (h, hu, hv)]
        east = [lax.slice_in_dim(a, 1, None, axis=axis) for a in (h, hu, hv)]
        (FL, uL), (FR, uR) = flux(*west), flux(*east)
        cL, cR = (np.sqrt(G * np.maximum(s[0], 0)) for s in (west, east))
        sL, sR = np.minimum(uL - cL, uR - cR), np.maximum(uL + cL, uR + cR)
        qL, qR = np.stack(west), np.stack(east)
        mid = (sR * FL - sL * FR + sL * sR * (qR - qL)) / np.where(sR - sL > 1e-6, sR - sL, 1)
        F = np.where(sL >= 0, FL, np.where(sR <= 0, FR, mid))
        return np.stack(q) - dt * np.diff(F, axis=1 + axis)

    def step(s, kind):
        c = np.sqrt(G * np.maximum(s["h"], 0)) + np.abs(s["hu"]) / np.maximum(s["h"], 1e-2)
        dt = np.minimum(0.4 / np.maximum(c.max(), 1e-3), 0.1)
        q = sweep((s["h"], s["hu"], s["hv"]), kind, 1, dt)
        r = sweep((q[0], q[2], q[1]), kind, 0, dt)
        gy, gx = np.gradient(bed)
        h = np.maximum(r[0], 0)
        return {"h": h, "hu": r[2] - dt * G * h * gx, "hv": r[1] - dt * G * h * gy, "t": s["t"] + dt}

    run = jit(lambda s, kinds: lax.scan(lambda s, k: (n := step(s, k), (n["h"].sum(), n["t"])), s, kinds))
    out, (mass, times) = run(state, np.arange(steps) % 3)
    probes = jax.scipy.ndimage.map_coordinates(
        out["h"], [np.array([2.5, 7.1, 30.0]), np.array([3.3, 0.2, -4.0])], order=1, mode="nearest"
    )
    wet = lax.reduce_window((out["h"] > 0.5).astype(np.int32), 0, lax.add, (3, 3), (2, 2), "SAME")
    f = lambda amp: step({**state, "h": h0 * amp}, 2)["h"].std()
    return out, mass, times, probes, wet, grad(f)(1.0), jvp(f, (1.1,), (1.0,))


def _angle(a, b, c):
    u, v = a - b, c - b
    return np.arctan2(np.linalg.norm(np.cross(u, v)), np.dot(u, v))


def _torsion(a, b, c, d):
    b1, b2, b3 = b - a, c - b, d - c
    n1, n2 = np.cross(b1, b2), np.cross(b2, b3)
    m1 = np.cross(n1, b2 / np.linalg.norm(b2))
    return np.arctan2(m1 @ n2, n1 @ n2)


def _shake(x, ref):
    def one(_, x):
        d = x[1:] - x[:-1]
        d0 = ref[1:] - ref[:-1]
        lam = (np.sum(d * d, -1) - 1.0) / (4 * np.sum(d * d0, -1))
        move = (0.5 * lam)[:, None] * d0
        return x.at[:-1].add(move).at[1:].add(-move)

    return lax.fori_loop(0, 5, one, x)


def a_polymer_and_its_forces(n=9, steps=12):
    """Bonds, angles, dihedrals by index tables; SHAKE; Langevin; a custom_vjp that clips forces."""
    Bonded = collections.namedtuple("Bonded", "pairs angles torsions")
    chain = Bonded(
        onp.c_[0 : n - 1, 1:n], onp.c_[0 : n - 2, 1 : n - 1, 2:n], onp.c_[0 : n - 3, 1 : n - 2, 2 : n - 1, 3:n]
    )

    @custom_vjp
    def clip_force(x):
        return x

    clip_force.defvjp(
        lambda x: (x, None), lambda _, g: (g * np.minimum(1, 20 / (np.linalg.norm(g, axis=-1, keepdims=True) + 1e-9)),)
    )

    def energy(x, box=None):
        x = clip_force(x)
        r = np.linalg.norm(x[chain.pairs[:, 0]] - x[chain.pairs[:, 1]], axis=-1)
        th = vmap(lambda i: _angle(*x[i]))(chain.angles)
        ph = vmap(lambda i: _torsion(*x[i]))(chain.torsions)
        i, j = onp.triu_indices(n, 3)
        d = x[i] - x[j]
        if box is not None:
            d = d - box * np.round(d / box)
        s6 = (0.8 / np.maximum(np.sum(d * d, -1), 0.3)) ** 3
        e = {
            "bond": 50 * np.sum((r - 1) ** 2),
            "angle": 5 * np.sum((th - 1.9) ** 2),
            "torsion": np.sum(1 + np.cos(3 * ph)),
            "lj": np.sum(s6**2 - s6),
        }
        return reduce(lambda a, b: a + b, e.values()), e

    force = lambda x: -grad(lambda x: energy(x, 6.0)[0])(x)

    @jit
    def langevin(carry, key):
        x, v = carry
        c = np.exp(-0.1)
        v = v + 0.01 * force(x)
        new = _shake(x + 0.02 * v, x)
        v = c * (new - x) / 0.02 + np.sqrt(1 - c * c) * jrandom.normal(key, v.shape)
        return (new, v), (energy(new)[0], np.linalg.norm(new[0] - new[-1]))

    z = np.arange(n) * 0.8
    x0 = np.stack([z, 0.6 * (np.arange(n) % 2), 0.3 * np.sin(np.arange(n) * 1.0)], 1)
    (x, v), (es, ree) = lax.scan(langevin, (x0, np.zeros_like(x0)), jrandom.split(jrandom.key(5), steps))
    quiet = lambda x: jax.hessian(lambda y: energy(y.reshape(n, 3))[1]["bond"])(x.ravel())
    w = np.linalg.eigvalsh(quiet(x0))
    return x0, x[:2], es[:4], ree[:4], energy(x0), force(x0), w[-5:], np.allclose(w[: n // 2], 0, atol=1e-2)


def reactions_by_odeint(n=7):
    """A stiff network with args as a tree, its slopes, a flow in polar form, exponentials."""

    def rhs(y, t, p):
        a, b, c = y["a"], y["b"], y["c"]
        r1, r2, r3 = p["k"][0] * a, p["k"][1] * b * c, p["k"][2] * b**2
        drive = p["amp"] * np.sin(t)
        return {"a": -r1 + r2 + drive * 0, "b": r1 - r2 - r3, "c": r3}

    y0 = {"a": np.array(1.0), "b": np.array(0.0), "c": np.array(0.0)}
    p = {"k": np.array([0.04, 10.0, 3.0]), "amp": 0.1}
    ts = np.linspace(0.0, 3.0, n)
    ys = odeint(rhs, y0, ts, p, rtol=1e-5, atol=1e-6)
    # the variational equation, for the slope in one rate
    dp = {"k": np.array([0.0, 1000.0, 0.0]), "amp": 0.0}
    both = lambda s, t: jvp(lambda y, p: rhs(y, t, p), (s[0], p), (s[1], dp))
    g = odeint(both, (y0, jax.tree.map(np.zeros_like, y0)), ts, rtol=1e-5, atol=1e-6)[1]

    def hopf(z, t, mu):
        return mu * z - z * np.abs(z) ** 2 + 1j * z

    z = odeint(
        lambda s, t, mu: np.stack([hopf(s[0] + 1j * s[1], t, mu).real, hopf(s[0] + 1j * s[1], t, mu).imag]),
        np.array([0.1, 0.0]),
        ts,
        1.0,
    )
    A = onp.array([[0.0, 1.0], [-2.0, -0.3]], f32)
    exact = vmap(lambda t: jsl.expm(A * t) @ np.array([1.0, 0.0]))(ts)
    num = odeint(lambda y, t: np.dot(A, y), np.array([1.0, 0.0]), ts)
    fre, dfre = jsl.expm_frechet(A, onp.eye(2, dtype=f32))
    von_mises = lambda k, x: k * np.cos(x) - np.log(2 * np.pi * i0e(k)) - k
    ratio = vmap(grad(von_mises))(np.array([0.5, 2.0, 30.0]), np.array([0.1, 0.2, 0.3]))
    poisson = vmap(lambda k: k * np.log(3.0) - 3.0 - gammaln(k + 1.0))(np.arange(5))
    return (
        ys,
        g,
        z,
        np.abs(exact - num) < 1e-3,
        exact,
        fre,
        dfre,
        ratio,
        i1e(2.0) / i0e(2.0),
        poisson,
        math.pi * ts.dtype.itemsize,
        config.jax_enable_x64,
    )
