"""Whole programs of people who measure, simulate and estimate."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random


def _normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def baum_welch_in_logarithms():
    S, V, T, N = 3, 5, 29, 4
    obs = np.random.default_rng(1).integers(0, V, (N, T))
    lengths = jnp.array([29, 17, 23, 8])
    k = random.split(random.key(2), 3)
    start, move, emit = (
        jnp.log(random.dirichlet(q, jnp.ones(s[-1]) * 3, s[:-1])) for q, s in zip(k, ((S,), (S, S), (S, V)))
    )

    def forward_backward(params, obs, length):
        start, move, emit = params
        e = jnp.where(jnp.arange(T)[:, None] < length, emit[:, obs].T, 0.0)
        live = jnp.arange(1, T) < length

        def forward(a, x):
            b, ok = x
            new = jax.nn.logsumexp(a[:, None] + move, 0) + b
            a = jnp.where(ok, new, a)
            return a, a

        def backward(a, x):
            b, ok = x
            a = jnp.where(ok, jax.nn.logsumexp(move + b + a, 1), a)
            return a, a

        a0 = start + e[0]
        last, alpha = lax.scan(forward, a0, (e[1:], live))
        _, beta = lax.scan(backward, jnp.zeros(S), (e[1:], live), reverse=True)
        alpha = jnp.concatenate([a0[None], alpha])
        beta = jnp.concatenate([beta, jnp.zeros((1, S))])
        ll = jax.nn.logsumexp(last)
        gamma = jnp.where(jnp.arange(T)[:, None] < length, jnp.exp(alpha + beta - ll), 0)
        xi = alpha[:-1, :, None] + move + (e[1:] + beta[1:])[:, None] - ll
        return ll, gamma, jnp.sum(jnp.exp(jnp.where(live[:, None, None], xi, -jnp.inf)), 0)

    @jax.jit
    def em(params):
        ll, gamma, xi = jax.vmap(forward_backward, (None, 0, 0))(params, obs, lengths)
        counts = jax.ops.segment_sum(gamma.reshape(-1, S), obs.reshape(-1), V).T
        norm = lambda c: jnp.log((c + 0.1) / (c + 0.1).sum(-1, keepdims=True))
        return (norm(gamma[:, 0].sum(0)), norm(xi.sum(0)), norm(counts)), ll.sum()

    params, lls = (start, move, emit), []
    for _ in range(6):
        params, ll = em(params)
        lls.append(ll)
    score = jax.grad(lambda p: sum(forward_backward(p, obs[i], lengths[i])[0] for i in range(2)))(params)
    return params, lls, score


def spherical_harmonics_and_rotations():
    LMAX = 4
    theta = jnp.array([0.3, 1.1, 2.0, 2.9, 1.57])
    phi = jnp.array([0.1, 2.2, -1.3, 3.0, 0.7])

    def legendre(x):
        s = jnp.sqrt(1 - x * x)
        P = {(0, 0): jnp.ones_like(x)}
        for m in range(LMAX + 1):
            if m:
                P[m, m] = -(2 * m - 1) * s * P[m - 1, m - 1]
            if m < LMAX:
                P[m + 1, m] = (2 * m + 1) * x * P[m, m]
            for l in range(m + 2, LMAX + 1):
                P[l, m] = ((2 * l - 1) * x * P[l - 1, m] - (l + m - 1) * P[l - 2, m]) / (l - m)
        return P

    def real(theta, phi):
        P, out = legendre(jnp.cos(theta)), []
        for l in range(LMAX + 1):
            for m in range(-l, l + 1):
                n = math.sqrt((2 * l + 1) / (4 * math.pi) * math.factorial(l - abs(m)) / math.factorial(l + abs(m)))
                wave = jnp.cos(m * phi) if m >= 0 else jnp.sin(-m * phi)
                out.append(n * (math.sqrt(2) if m else 1) * P[l, abs(m)] * wave)
        return jnp.stack(out)

    l = jnp.array([0, 1, 2, 3, 4, 4])
    m = jnp.array([0, 1, -2, 3, 0, -4])
    names = jax.vmap(lambda l, m: jax.scipy.special.sph_harm_y(jnp.full(5, l), jnp.full(5, m), theta, phi, n_max=4))(
        l, m
    )
    slopes = jax.jacfwd(real, argnums=(0, 1))(theta[2], phi[2])
    x, w = np.polynomial.legendre.leggauss(7)
    grid = jax.vmap(lambda z: jax.vmap(lambda a: real(jnp.arccos(z), a))(jnp.arange(11) * 2 * jnp.pi / 11))(
        jnp.asarray(x, jnp.float32)
    )
    gram = jnp.einsum("zai,zaj,z->ij", grid, grid, jnp.asarray(w, jnp.float32)) * 2 * jnp.pi / 11
    return real(theta, phi), names.real, names.imag, slopes, jnp.round(gram, 3) + 0.0


def sparse_components_by_coordinates():
    n, d, k = 47, 13, 3
    X = _normal(5, n, d) @ (np.eye(d, dtype="float32") + 0.3 * _normal(6, d, d))
    X = jnp.asarray(X - X.mean(0))
    shrink = lambda x, t: jnp.sign(x) * jnp.maximum(jnp.abs(x) - t, 0)

    def lasso(G, c, b):
        def sweep(_, b):
            def one(j, b):
                r = c[j] - G[j] @ b + G[j, j] * b[j]
                return b.at[j].set(shrink(r, 2.0) / (G[j, j] + 0.5))

            return lax.fori_loop(0, d, one, b)

        return lax.fori_loop(0, 4, sweep, b)

    @jax.jit
    def step(V, _):
        U, _ = jnp.linalg.qr(X @ V)
        sign = jnp.sign(jnp.sum(U * (X @ V), 0))
        U = U * jnp.where(sign == 0, 1, sign)
        B = jax.vmap(lasso, (None, 1, 1), 1)(X.T @ X, X.T @ U, V)
        V = B / jnp.maximum(jnp.linalg.norm(B, axis=0), 1e-6)
        return V, (jnp.sum(jnp.abs(X - U @ (U.T @ X))), jnp.count_nonzero(jnp.abs(B) > 1e-4, axis=0))

    V0 = jnp.eye(d, k) + 0.1
    V, (loss, counts) = lax.scan(step, V0, length=9)
    s = jnp.linalg.svd(X, compute_uv=False)
    return V, loss, counts, s, jnp.cumsum(s**2) / jnp.sum(s**2)


def optimal_transport_by_sinkhorn():
    n, m, eps = 19, 23, 0.3
    x, y = _normal(7, n, 2), _normal(8, m, 2) * 0.5 + 1
    a = jax.nn.softmax(jnp.asarray(_normal(9, n)))
    b = jnp.full(m, 1 / m)
    cost = lambda x: jnp.sum((x[:, None] - y) ** 2, -1)

    def potentials(C):
        soft = lambda z, axis: -eps * jax.nn.logsumexp(z / eps, axis)

        def body(c):
            f, g, k, _ = c
            f = soft(g - C, 1) + eps * jnp.log(a)
            new = soft(f[:, None] - C, 0) + eps * jnp.log(b)
            return f, new, k + 1, jnp.max(jnp.abs(new - g))

        return lax.while_loop(lambda c: (c[3] > 1e-5) & (c[2] < 300), body, (jnp.zeros(n), jnp.zeros(m), 0, jnp.inf))

    def plan(f, g, C):
        return jnp.exp((f[:, None] + g - C) / eps)

    @jax.custom_vjp
    def distance(x):
        C = cost(x)
        f, g, _, _ = potentials(C)
        return f @ a + g @ b

    def forward(x):
        f, g, _, _ = potentials(cost(x))
        return f @ a + g @ b, (x, plan(f, g, cost(x)))

    distance.defvjp(forward, lambda r, t: (jax.vjp(cost, r[0])[1](t * r[1])[0],))

    @jax.jit
    def unrolled(x):
        C = cost(x)

        def step(fg, _):
            f = -eps * jax.nn.logsumexp((fg[1] - C) / eps, 1) + eps * jnp.log(a)
            g = -eps * jax.nn.logsumexp((f[:, None] - C) / eps, 0) + eps * jnp.log(b)
            return (f, g), None

        (f, g), _ = lax.scan(jax.checkpoint(step), (jnp.zeros(n), jnp.zeros(m)), length=150)
        return f @ a + g @ b

    f, g, _, _ = jax.jit(potentials)(cost(x))
    P = plan(f, g, cost(x))
    flowed = lax.fori_loop(0, 5, lambda _, z: z - 2.0 * jax.grad(distance)(z), jnp.asarray(x))
    return P, P.sum(0), jax.grad(distance)(x), jax.grad(unrolled)(x), flowed


def _ry(t):
    return jnp.array([[jnp.cos(t / 2), -jnp.sin(t / 2)], [jnp.sin(t / 2), jnp.cos(t / 2)]]).astype(jnp.complex64)


def _rz(t):
    return jnp.diag(jnp.exp(jnp.array([-0.5j, 0.5j]) * t))


def noisy_quantum_channels():
    """Density matrices of three qubits under gates, damping and a measurement."""
    Q = 3
    H = jnp.array([[1, 1], [1, -1]], jnp.complex64) / jnp.sqrt(2)
    CZ = jnp.diag(jnp.array([1, 1, 1, -1], jnp.complex64)).reshape(2, 2, 2, 2)

    def one(rho, u, q):
        rho = jnp.moveaxis(jnp.tensordot(u, rho, (1, q)), 0, q)
        return jnp.moveaxis(jnp.tensordot(rho, u.conj(), (Q + q, 1)), -1, Q + q)

    def two(rho, u, p, q):
        rho = jnp.moveaxis(jnp.tensordot(u, rho, ((2, 3), (p, q))), (0, 1), (p, q))
        return jnp.moveaxis(jnp.tensordot(rho, u.conj(), ((Q + p, Q + q), (2, 3))), (-2, -1), (Q + p, Q + q))

    def damp(rho, g, q):
        K0 = jnp.array([[1, 0], [0, jnp.sqrt(1 - g)]]).astype(jnp.complex64)
        K1 = jnp.array([[0, jnp.sqrt(g)], [0, 0]]).astype(jnp.complex64)
        return one(rho, K0, q) + one(rho, K1, q)

    def circuit(angles, g):
        rho = jnp.zeros((2,) * (2 * Q), jnp.complex64).at[(0,) * (2 * Q)].set(1)
        for q in range(Q):
            rho = one(rho, H, q)

        def layer(rho, a):
            for q in range(Q):
                rho = one(rho, _rz(a[q, 1]) @ _ry(a[q, 0]), q)
            for q in range(Q - 1):
                rho = two(rho, CZ, q, q + 1)
            for q in range(Q):
                rho = damp(rho, g, q)
            return rho, jnp.trace(rho.reshape(2**Q, -1)).real

        rho, traces = lax.scan(layer, rho, angles)
        return rho.reshape(2**Q, 2**Q), traces

    z = np.array([1 - 2 * (i >> 2 & 1) for i in range(8)], "float32")

    def energy(angles, g):
        rho, _ = circuit(angles, g)
        return jnp.sum(jnp.diag(rho).real * z) + jnp.sum(jnp.abs(rho) ** 2)

    angles = jnp.asarray(_normal(10, 2, Q, 2))
    rho, traces = jax.jit(circuit)(angles, 0.1)
    v, g = jax.jit(jax.value_and_grad(energy, (0, 1)))(angles, 0.1)
    shift = lambda s: jax.vmap(energy, (None, 0))(angles.at[0, 0, 0].add(s), jnp.array([0.0, 0.1]))
    shots = random.categorical(random.key(0), jnp.log(jnp.clip(jnp.diag(rho).real, 1e-9)), shape=(41,))
    return (
        rho,
        traces,
        v,
        g,
        (shift(jnp.pi / 2) - shift(-jnp.pi / 2)) / 2,
        jnp.linalg.eigvalsh(rho),
        jnp.bincount(shots, length=8),
    )


def ising_by_metropolis_and_clusters():
    L, T = 17, 2.3
    even = (jnp.add.outer(jnp.arange(L + 1), jnp.arange(L + 1)) % 2)[:L, :L] == 0

    def sum_of_neighbours(s):
        return sum(jnp.roll(s, k, a) for k in (1, -1) for a in (0, 1))

    def energy(s):
        return -jnp.sum(s * (jnp.roll(s, 1, 0) + jnp.roll(s, 1, 1)), dtype=jnp.int32)

    def sweep(s, key):
        def half(s, mask, key):
            cost = 2 * s * sum_of_neighbours(s)
            accept = random.uniform(key, s.shape) < jnp.exp(-cost / T)
            return jnp.where(mask & accept, -s, s)

        a, b = random.split(key)
        s = half(half(s, even, a), ~even, b)
        return s, (energy(s), jnp.sum(s, dtype=jnp.int32))

    s0 = random.rademacher(random.key(1), (L, L), jnp.int8)
    s, (e, m) = jax.jit(lambda s, k: lax.scan(sweep, s, random.split(k, 31)))(s0, random.key(2))

    def labels(s, key):
        bond = [random.uniform(random.fold_in(key, a), s.shape) < 1 - jnp.exp(-2 / T) for a in (0, 1)]
        linked = [b & (s == jnp.roll(s, -1, a)) for a, b in enumerate(bond)]

        def body(c):
            lab, _ = c
            new = lab
            for a, link in enumerate(linked):
                ahead = jnp.where(link, jnp.roll(new, -1, a), L * L)
                new = jnp.minimum(new, ahead)
                behind = jnp.where(jnp.roll(link, 1, a), jnp.roll(new, 1, a), L * L)
                new = jnp.minimum(new, behind)
            return new, jnp.any(new != lab)

        return lax.while_loop(lambda c: c[1], body, (jnp.arange(L * L).reshape(L, L), True))[0]

    lab = jax.jit(labels)(s, random.key(3))
    flip = random.bernoulli(random.key(4), 0.5, (L * L,))[lab]
    ladder = jax.vmap(lambda q: lax.scan(sweep, s0, random.split(q, 5))[1])(random.split(random.key(5), 3))
    return s, e, m, lab, jnp.where(flip, -s, s), jnp.bincount(lab.ravel(), length=L * L).max(), ladder


def radon_and_filtered_backprojection():
    N, A = 31, 23
    yy, xx = np.mgrid[-1 : 1 : N * 1j, -1 : 1 : N * 1j]
    image = ((xx / 0.7) ** 2 + (yy / 0.9) ** 2 < 1) * 1.0 - 0.6 * ((xx - 0.2) ** 2 + (yy + 0.1) ** 2 < 0.09)
    image = jnp.asarray(image, jnp.float32)
    angles = jnp.arange(A) * jnp.pi / A + 0.01

    def rotated(image, t):
        c, s = jnp.cos(t), jnp.sin(t)
        p = jnp.stack([c * yy + s * xx, -s * yy + c * xx]).astype(jnp.float32)
        return jax.scipy.ndimage.map_coordinates(image, (p + 1) * (N - 1) / 2, order=1, mode="constant")

    radon = jax.jit(lambda im: jax.vmap(lambda t: rotated(im, t).sum(0))(angles))
    sino = radon(image)
    size = 64
    ramp = jnp.abs(jnp.fft.rfftfreq(size)) * 2
    filtered = jnp.fft.irfft(jnp.fft.rfft(sino, size, axis=-1) * ramp, size, axis=-1)[:, :N]

    def smear(row, t):
        at = (-jnp.sin(t) * yy + jnp.cos(t) * xx + 1) * (N - 1) / 2
        return jnp.interp(at.astype(jnp.float32), jnp.arange(N, dtype=jnp.float32), row, left=0, right=0)

    back = jnp.sum(jax.vmap(smear)(filtered, angles), 0) * jnp.pi / (2 * A)
    adjoint = jax.linear_transpose(radon, image)(sino)[0]

    def sirt(x, _):
        x = jnp.maximum(x + 0.02 * jax.vjp(radon, x)[1](sino - radon(x))[0] / N, 0)
        return x, jnp.mean((radon(x) - sino) ** 2)

    x, errors = lax.scan(sirt, jnp.zeros_like(image), length=9)
    return sino, filtered, back, adjoint, x, errors


def mel_spectrogram_and_cepstra():
    rate, n, hop, mels = 4000, 200, 77, 13
    t = np.arange(2003) / rate
    x = jnp.asarray(np.sin(2 * np.pi * (300 * t + 400 * t**2)) + 0.1 * _normal(11, 2003), jnp.float32)
    hz = lambda m: 700 * (10 ** (m / 2595) - 1)
    mel = lambda f: 2595 * np.log10(1 + f / 700)
    edges = hz(np.linspace(mel(50.0), mel(1900.0), mels + 2)).astype("float32")
    f = jnp.fft.rfftfreq(256, 1 / rate)
    up = (f - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - f) / (edges[2:] - edges[1:-1])[:, None]
    bank = jnp.maximum(0, jnp.minimum(up, down))

    def features(x):
        y = jnp.append(x[0], x[1:] - 0.97 * x[:-1])
        y = jnp.pad(y, (n // 2, n // 2), mode="reflect")
        frames = y[jnp.arange(1 + (y.size - n) // hop)[:, None] * hop + jnp.arange(n)]
        power = jnp.abs(jnp.fft.rfft(frames * jnp.hanning(n), 256)) ** 2 / n
        db = 10 * jnp.log10(jnp.maximum(power @ bank.T, 1e-6))
        cep = jax.scipy.fft.dct(db, norm="ortho", axis=-1)[:, :7]
        lifted = cep * (1 + 11 * jnp.sin(jnp.pi * jnp.arange(7) / 22))
        pad = jnp.pad(lifted, ((2, 2), (0, 0)), mode="edge")
        delta = (
            sum(k * (pad[2 + k : lifted.shape[0] + 2 + k] - pad[2 - k : lifted.shape[0] + 2 - k]) for k in (1, 2)) / 10
        )
        return power, db, lifted, delta

    power, db, lifted, delta = jax.jit(features)(x)
    centroid = power @ f / power.sum(-1)
    zero = jnp.mean(jnp.signbit(x[:2000]).reshape(-1, 40)[:, 1:] != jnp.signbit(x[:2000]).reshape(-1, 40)[:, :-1], -1)
    slope = jax.grad(lambda x: jnp.mean(features(x)[1]))(x)
    corr = jnp.correlate(x[:301], x[:301], "full")[300:]
    return db, lifted, delta, centroid, zero, slope, jnp.argmax(corr[5:60]) + 5
