"""Whole programs of statisticians."""

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax, random


def gaussian_process_regression():
    rng = np.random.default_rng(3)
    x = jnp.asarray(rng.uniform(-3, 3, 37), jnp.float32)
    y = jnp.sin(2 * x) + 0.1 * jnp.cos(5 * x)
    grid = jnp.linspace(-4, 4, 53)

    def kernel(theta, a, b):
        r = (a[:, None] - b[None, :]) / jnp.exp(theta["scale"])
        return jnp.exp(2 * theta["amplitude"]) * (1 + jnp.sqrt(3.0) * jnp.abs(r)) * jnp.exp(-jnp.sqrt(3.0) * jnp.abs(r))

    def negative_log_likelihood(theta):
        k = kernel(theta, x, x) + (jnp.exp(2 * theta["noise"]) + 1e-6) * jnp.eye(len(x))
        l = jsp.linalg.cholesky(k, lower=True)
        alpha = jsp.linalg.cho_solve((l, True), y)
        return 0.5 * y @ alpha + jnp.log(jnp.diag(l)).sum() + 0.5 * len(x) * jnp.log(2 * jnp.pi)

    theta = {"scale": jnp.array(0.0), "amplitude": jnp.array(0.0), "noise": jnp.array(-1.0)}

    @jax.jit
    def step(theta, _):
        value, g = jax.value_and_grad(negative_log_likelihood)(theta)
        return jax.tree.map(lambda p, q: p - 0.01 * q, theta, g), value

    theta, losses = lax.scan(step, theta, None, length=8)
    k = kernel(theta, x, x) + (jnp.exp(2 * theta["noise"]) + 1e-6) * jnp.eye(len(x))
    ks = kernel(theta, grid, x)
    mean = ks @ jnp.linalg.solve(k, y)
    v = jsp.linalg.solve_triangular(jnp.linalg.cholesky(k), ks.T, lower=True)
    return theta, losses, mean, jnp.exp(2 * theta["amplitude"]) - (v**2).sum(0)


def kalman_filter_and_smoother():
    rng = np.random.default_rng(3)
    dt = 0.1
    A = jnp.array([[1.0, dt], [0.0, 1.0]])
    H = jnp.array([[1.0, 0.0]])
    Q = 0.01 * jnp.eye(2)
    R = jnp.array([[0.25]])
    ys = jnp.asarray(np.cumsum(rng.normal(size=101)) * 0.1, jnp.float32)[:, None]

    def forward(carry, y):
        m, P = carry
        mp, Pp = A @ m, A @ P @ A.T + Q
        S = H @ Pp @ H.T + R
        K = jnp.linalg.solve(S, H @ Pp).T
        m = mp + K @ (y - H @ mp)
        P = Pp - K @ S @ K.T
        ll = jsp.stats.multivariate_normal.logpdf(y, H @ mp, S)
        return (m, P), (m, P, mp, Pp, ll)

    def backward(carry, inp):
        ms, Ps = carry
        m, P, mp, Pp = inp
        G = jnp.linalg.solve(Pp, A @ P).T
        ms = m + G @ (ms - mp)
        Ps = P + G @ (Ps - Pp) @ G.T
        return (ms, Ps), (ms, Ps)

    last, (m, P, mp, Pp, ll) = lax.scan(forward, (jnp.zeros(2), jnp.eye(2)), ys)
    _, (sm, sP) = lax.scan(backward, last, (m[:-1], P[:-1], mp[1:], Pp[1:]), reverse=True)
    return ll.sum(), sm, sP


def hidden_markov_model():
    rng = np.random.default_rng(3)
    n, k = 61, 5
    obs = jnp.asarray(rng.integers(0, 7, n))

    def lp(params):
        log_a = jax.nn.log_softmax(params["a"], axis=1)
        log_b = jax.nn.log_softmax(params["b"], axis=1)
        log_pi = jax.nn.log_softmax(params["pi"])

        def step(alpha, o):
            alpha = jax.nn.logsumexp(alpha[:, None] + log_a, axis=0) + log_b[:, o]
            return alpha, alpha

        first = log_pi + log_b[:, obs[0]]
        last, _ = lax.scan(step, first, obs[1:])
        return jax.nn.logsumexp(last)

    def viterbi(params):
        log_a = jax.nn.log_softmax(params["a"], axis=1)
        log_b = jax.nn.log_softmax(params["b"], axis=1)

        def step(d, o):
            s = d[:, None] + log_a
            return s.max(0) + log_b[:, o], s.argmax(0)

        d, back = lax.scan(step, jax.nn.log_softmax(params["pi"]) + log_b[:, obs[0]], obs[1:])
        end = d.argmax()

        def trace(z, b):
            return b[z], z

        first, path = lax.scan(trace, end, back, reverse=True)
        return jnp.append(first, path), d.max()

    params = {
        "a": jnp.asarray(rng.normal(size=(k, k)), jnp.float32),
        "b": jnp.asarray(rng.normal(size=(k, 7)), jnp.float32),
        "pi": jnp.zeros(k),
    }
    value, g = jax.jit(jax.value_and_grad(lp))(params)
    return value, g, jax.jit(viterbi)(params)


def mixture_by_expectation_maximisation():
    rng = np.random.default_rng(3)
    x = jnp.asarray(np.concatenate([rng.normal(m, 0.5, (43, 2)) for m in (-2, 0, 3)]), jnp.float32)

    def step(state, _):
        pi, mu, cov = state
        logp = jax.vmap(lambda p, m, c: jnp.log(p) + jsp.stats.multivariate_normal.logpdf(x, m, c))(pi, mu, cov)
        r = jax.nn.softmax(logp, axis=0)
        nk = r.sum(1)
        mu = (r @ x) / nk[:, None]
        d = x[None] - mu[:, None]
        cov = jnp.einsum("kn,kni,knj->kij", r, d, d) / nk[:, None, None] + 1e-4 * jnp.eye(2)
        return (nk / nk.sum(), mu, cov), jax.nn.logsumexp(logp, axis=0).sum()

    start = jnp.ones(3) / 3, jnp.array([[-1.0, 0], [0, 1], [1, 0]]), jnp.broadcast_to(jnp.eye(2), (3, 2, 2))
    return lax.scan(step, start, None, length=20)


def metropolis_hastings():
    def logp(x):
        return -0.5 * (x[0] ** 2 + 5 * (x[1] - x[0] ** 2) ** 2)

    def step(state, key):
        x, lp, n = state
        k1, k2 = random.split(key)
        y = x + 0.4 * random.normal(k1, x.shape)
        lq = logp(y)
        ok = jnp.log(random.uniform(k2)) < lq - lp
        x, lp = jnp.where(ok, y, x), jnp.where(ok, lq, lp)
        return (x, lp, n + ok), x

    def chain(key):
        x0 = jnp.zeros(2)
        return lax.scan(step, (x0, logp(x0), 0), random.split(key, 40))

    return jax.jit(jax.vmap(chain))(random.split(random.PRNGKey(5), 7))


def hamiltonian_monte_carlo():
    cov = jnp.array([[2.0, 0.9], [0.9, 1.0]])
    prec = jnp.linalg.inv(cov)

    def U(q):
        return 0.5 * q @ prec @ q

    def leapfrog(q, p, eps, n):
        p = p - 0.5 * eps * jax.grad(U)(q)

        def body(i, qp):
            q, p = qp
            q = q + eps * p
            p = p - eps * jax.grad(U)(q)
            return q, p

        q, p = lax.fori_loop(0, n - 1, body, (q, p))
        q = q + eps * p
        return q, -(p - 0.5 * eps * jax.grad(U)(q))

    @jax.jit
    def sample(q, key):
        a, b, c = random.split(key, 3)
        p = random.normal(a, (2,))
        n = random.randint(c, (), 2, 9)
        q1, p1 = leapfrog(q, p, 0.3, n)
        dH = U(q) + 0.5 * p @ p - U(q1) - 0.5 * p1 @ p1
        accept = random.bernoulli(b, jnp.minimum(1.0, jnp.exp(dH)))
        return lax.select(accept, q1, q), (q, accept, n)

    return lax.scan(sample, jnp.array([1.0, -1.0]), random.split(random.key(11), 15))


def particle_filter():
    rng = np.random.default_rng(3)
    ys = jnp.asarray(rng.normal(size=19), jnp.float32)
    N = 131

    def systematic(key, w):
        u = (jnp.arange(N) + random.uniform(key)) / N
        return jnp.searchsorted(jnp.cumsum(w), u).clip(0, N - 1)

    def step(carry, y):
        x, key = carry
        key, a, b = random.split(key, 3)
        x = 0.5 * x + 25 * x / (1 + x**2) + random.normal(a, (N,))
        logw = jsp.stats.norm.logpdf(y, x**2 / 20, 1.0)
        z = jsp.special.logsumexp(logw) - jnp.log(N)
        w = jnp.exp(logw - logw.max())
        w = w / w.sum()
        est = (w * x).sum()
        return (x[systematic(b, w)], key), (z, est, 1 / (w**2).sum())

    return lax.scan(step, (random.normal(random.key(0), (N,)), random.key(1)), ys[:3])[1]


def bayesian_logistic_laplace():
    rng = np.random.default_rng(3)
    X = jnp.asarray(rng.normal(size=(71, 4)), jnp.float32)
    w = jnp.array([1.0, -2.0, 0.5, 0.0])
    y = (jax.nn.sigmoid(X @ w) > 0.5).astype(jnp.float32)

    def loss(b):
        z = X @ b
        return jnp.sum(jnp.logaddexp(0.0, z) - y * z) + 0.5 * b @ b

    def newton(b, _):
        g, h = jax.grad(loss)(b), jax.hessian(loss)(b)
        return b - jnp.linalg.solve(h, g), loss(b)

    b, losses = lax.scan(newton, jnp.zeros(4), jnp.arange(8))
    h = jax.jacfwd(jax.jacrev(loss))(b)
    return b, losses, jnp.sqrt(jnp.diag(jnp.linalg.inv(h))), jnp.linalg.slogdet(h)


def bootstrap_intervals():
    rng = np.random.default_rng(3)
    x = jnp.asarray(rng.exponential(size=49), jnp.float32)

    def one(key):
        i = random.randint(key, (49,), 0, 49)
        return jnp.array([x[i].mean(), jnp.median(x[i]), x[i].std(ddof=1)])

    s = jax.vmap(one)(random.split(random.key(9), 101))
    return jnp.percentile(s, jnp.array([2.5, 50, 97.5]), axis=0), jnp.cov(s.T), jnp.corrcoef(s, rowvar=False)


def histogram_of_draws():
    k = random.split(random.key(4), 6)
    g = random.gamma(k[0], 2.5, (301,))
    b = random.beta(k[1], 0.7, 1.3, (301,))
    d = random.dirichlet(k[2], jnp.array([0.5, 1.0, 3.0]), (11,))
    p = random.poisson(k[3], jnp.array([0.1, 3.0, 8.0]), (57, 3))
    c = random.categorical(k[4], jnp.log(jnp.array([0.1, 0.6, 0.3])), shape=(101,))
    s = random.choice(k[5], 29, (13,), replace=False)
    return (
        jnp.histogram(g, bins=13),
        jnp.histogram(b, bins=7, range=(0.0, 1.0)),
        d,
        p.sum(0),
        jnp.bincount(c, length=3),
        s,
    )


def ar_model_by_least_squares():
    rng = np.random.default_rng(3)
    x = np.zeros(211, np.float32)
    e = rng.normal(size=211)
    for t in range(2, 211):
        x[t] = 0.6 * x[t - 1] - 0.3 * x[t - 2] + e[t]
    x = jnp.asarray(x)
    X = jnp.stack([x[1:-1], x[:-2], jnp.ones(209)], 1)
    coefficients, residual, rank, s = jnp.linalg.lstsq(X, x[2:])
    acf = jnp.correlate(x - x.mean(), x - x.mean(), mode="full")[210:230] / jnp.sum((x - x.mean()) ** 2)
    return coefficients, residual, rank, s, acf


def ranks_and_tests():
    rng = np.random.default_rng(3)
    a = jnp.asarray(rng.integers(0, 9, 41), jnp.float32)
    b = jnp.asarray(rng.integers(2, 12, 33), jnp.float32)
    both = jnp.concatenate([a, b])
    r = jsp.stats.rankdata(both)
    u = r[:41].sum() - 41 * 42 / 2
    t = (a.mean() - b.mean()) / jnp.sqrt(a.var(ddof=1) / 41 + b.var(ddof=1) / 33)
    p = 2 * jsp.stats.norm.sf(jnp.abs(t))
    chi = jsp.stats.chi2.cdf(jnp.array([0.1, 3.0, 9.0]), 3)
    return r, u, t, p, chi, jsp.stats.mode(both), jnp.unique(both, return_counts=True, size=15, fill_value=-1)


def gibbs_sampling_of_ising():
    n = 12

    def sweep(spins, key):
        def site(s, ik):
            i, k = ik
            r, c = i // n, i % n
            h = s[(r + 1) % n, c] + s[(r - 1) % n, c] + s[r, (c + 1) % n] + s[r, (c - 1) % n]
            up = random.uniform(k) < jax.nn.sigmoid(2 * 0.4 * h)
            return s.at[r, c].set(jnp.where(up, 1, -1)), None

        s, _ = lax.scan(site, spins, (jnp.arange(n * n), random.split(key, n * n)))
        return s, jnp.abs(s.mean())

    return lax.scan(sweep, jnp.ones((n, n), jnp.int32), random.split(random.key(2), 5))


def variational_inference():
    rng = np.random.default_rng(3)
    X = jnp.asarray(rng.normal(size=(30, 3)), jnp.float32)
    y = X @ jnp.array([0.5, -1.0, 2.0]) + 0.1

    def elbo(params, key):
        mu, rho = params
        eps = random.normal(key, (8, 4))
        s = jax.nn.softplus(rho)
        w = mu + s * eps
        ll = jax.vmap(lambda w: jsp.stats.norm.logpdf(y, X @ w[:3] + w[3], 0.5).sum())(w)
        kl = jnp.sum(jnp.log(1 / s) + (s**2 + mu**2 - 1) / 2)
        return ll.mean() - kl

    @jax.jit
    def step(params, key):
        v, g = jax.value_and_grad(elbo)(params, key)
        return jax.tree_util.tree_map(lambda p, g: p + 0.002 * g, params, g), v

    params = (jnp.zeros(4), jnp.full(4, -1.0))
    out = []
    for key in random.split(random.PRNGKey(1), 12):
        params, v = step(params, key)
        out.append(v)
    return params, out


def conditional_random_field():
    rng = np.random.default_rng(3)
    T, K = 17, 4
    e = jnp.asarray(rng.normal(size=(3, T, K)), jnp.float32)
    tags = jnp.asarray(rng.integers(0, K, (3, T)))
    lens = jnp.array([17, 5, 11])

    def nll(trans, e, tags, n):
        mask = jnp.arange(T) < n

        def step(a, inp):
            e_t, m = inp
            b = jax.nn.logsumexp(a[:, None] + trans, 0) + e_t
            return jnp.where(m, b, a), None

        a, _ = lax.scan(step, e[0], (e[1:], mask[1:]))
        score = jnp.where(mask, jnp.take_along_axis(e, tags[:, None], 1)[:, 0], 0).sum()
        score += (trans[tags[:-1], tags[1:]] * mask[1:]).sum()
        return jax.nn.logsumexp(a) - score

    trans = jnp.asarray(rng.normal(size=(K, K)), jnp.float32)
    f = jax.vmap(jax.value_and_grad(nll, argnums=(0, 1)), in_axes=(None, 0, 0, 0))
    return jax.jit(f)(trans, e, tags, lens)
