"""Whole programs of people who train models."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jax.flatten_util import ravel_pytree


class Params(NamedTuple):
    w: Any
    b: Any


def lstm_language_model():
    V, H, T, B = 11, 13, 9, 5
    k = random.split(random.key(0), 4)
    p = {
        "emb": random.normal(k[0], (V, H)) * 0.3,
        "cell": Params(random.normal(k[1], (2 * H, 4 * H)) * 0.2, jnp.zeros(4 * H)),
        "out": Params(random.normal(k[2], (H, V)) * 0.2, jnp.zeros(V)),
    }
    tok = random.randint(k[3], (B, T + 1), 0, V)

    def cell(p, c, x):
        h, s = c
        i, f, g, o = jnp.split(jnp.concatenate([h, x], -1) @ p.w + p.b, 4, axis=-1)
        s = jax.nn.sigmoid(f + 1) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(s)
        return (h, s), h

    def loss(p):
        x = p["emb"][tok[:, :-1]].swapaxes(0, 1)
        z = jnp.zeros((B, H))
        _, hs = lax.scan(functools.partial(cell, p["cell"]), (z, z), x, unroll=2)
        logits = hs @ p["out"].w + p["out"].b
        lp = jax.nn.log_softmax(logits)
        return -jnp.take_along_axis(lp, tok[:, 1:].T[..., None], -1).mean()

    def clip(g, m):
        n = jnp.sqrt(sum(jnp.vdot(x, x) for x in jax.tree.leaves(g)))
        return jax.tree.map(lambda x: x * jnp.minimum(1.0, m / n), g)

    @jax.jit
    def step(p, m, v, t):
        l, g = jax.value_and_grad(loss)(p)
        g = clip(g, 1.0)
        m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
        v = jax.tree.map(lambda a, b: 0.99 * a + 0.01 * b**2, v, g)
        p = jax.tree.map(lambda p, m, v: p - 0.01 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.99**t)) + 1e-8), p, m, v)
        return p, m, v, l

    m = v = jax.tree.map(jnp.zeros_like, p)
    out = []
    for t in range(1, 9):
        p, m, v, l = step(p, m, v, t)
        out.append(l)
    return out, p["out"]


def _norm(x, g):
    return x * lax.rsqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-6) * g


def _rope(x, pos):
    f = 1.0 / 100 ** (jnp.arange(0, x.shape[-1], 2) / x.shape[-1])
    a = pos[:, None] * f
    x1, x2 = x[..., ::2], x[..., 1::2]
    c, s = jnp.cos(a)[:, None], jnp.sin(a)[:, None]
    return jnp.stack([x1 * c - x2 * s, x1 * s + x2 * c], -1).reshape(x.shape)


def transformer_with_kv_cache():
    D, Hh, L, V, T = 16, 4, 2, 19, 12
    ks = iter(random.split(random.PRNGKey(3), 40))
    mk = lambda *s: random.normal(next(ks), s) * 0.2
    layers = [
        dict(qkv=mk(D, 3 * D), o=mk(D, D), up=mk(D, 4 * D), down=mk(4 * D, D), g1=jnp.ones(D), g2=jnp.ones(D))
        for _ in range(L)
    ]
    p = dict(emb=mk(V, D), layers=jax.tree.map(lambda *x: jnp.stack(x), *layers))

    def full(p, tok):
        x = p["emb"][tok]
        pos = jnp.arange(len(tok))

        def layer(x, q):
            h = _norm(x, q["g1"])
            qq, kk, vv = (y.reshape(-1, Hh, D // Hh) for y in jnp.split(h @ q["qkv"], 3, -1))
            qq, kk = _rope(qq, pos), _rope(kk, pos)
            s = jnp.einsum("qhd,khd->hqk", qq, kk) / jnp.sqrt(D // Hh)
            s = jnp.where(pos[:, None] >= pos, s, -jnp.inf)
            x = x + jnp.einsum("hqk,khd->qhd", jax.nn.softmax(s), vv).reshape(-1, D) @ q["o"]
            return x + jax.nn.gelu(_norm(x, q["g2"]) @ q["up"]) @ q["down"], None

        x, _ = lax.scan(layer, x, p["layers"])
        return x @ p["emb"].T

    def decode(p, first, n):
        K = jnp.zeros((L, T, Hh, D // Hh))
        toks = jnp.zeros(T, jnp.int32).at[0].set(first)

        def one(i, s):
            toks, K, Vc = s
            x = p["emb"][toks[i]][None]

            def layer(x, z):
                q, k_c, v_c = z
                h = _norm(x, q["g1"])
                qq, kk, vv = (y.reshape(-1, Hh, D // Hh) for y in jnp.split(h @ q["qkv"], 3, -1))
                qq, kk = _rope(qq, i[None]), _rope(kk, i[None])
                k_c = lax.dynamic_update_slice(k_c, kk, (i, 0, 0))
                v_c = lax.dynamic_update_slice_in_dim(v_c, vv, i, 0)
                s = jnp.einsum("qhd,khd->hqk", qq, k_c) / jnp.sqrt(D // Hh)
                s = jnp.where(jnp.arange(T) <= i, s, -jnp.inf)
                x = x + jnp.einsum("hqk,khd->qhd", jax.nn.softmax(s), v_c).reshape(-1, D) @ q["o"]
                return x + jax.nn.gelu(_norm(x, q["g2"]) @ q["up"]) @ q["down"], (k_c, v_c)

            x, (K, Vc) = lax.scan(layer, x, (p["layers"], K, Vc))
            nxt = jnp.argmax(x[0] @ p["emb"].T).astype(jnp.int32)
            return lax.cond(i + 1 < T, lambda t: t.at[i + 1].set(nxt), lambda t: t, toks), K, Vc

        return lax.fori_loop(0, n, one, (toks, K, K))[0]

    toks = jax.jit(decode, static_argnums=2)(p, 3, T)
    logits = jax.jit(full)(p, toks)
    return (
        toks,
        logits.argmax(-1),
        logits,
        jax.grad(lambda p: jnp.mean(full(p, toks)[:-1][jnp.arange(T - 1), toks[1:]]))(p)["layers"]["qkv"],
    )


def convolutional_network_batchnorm():
    k = random.split(random.key(1), 5)
    x = random.normal(k[0], (6, 13, 15, 3))
    y = jnp.array([0, 1, 2, 1, 0, 2])
    p = [
        random.normal(k[1], (3, 3, 3, 8)) * 0.3,
        random.normal(k[2], (3, 3, 8, 12)) * 0.2,
        random.normal(k[3], (12, 3)) * 0.3,
    ]

    def bn(h):
        m, v = h.mean((0, 1, 2)), h.var((0, 1, 2))
        return (h - m) / jnp.sqrt(v + 1e-5)

    def f(p, x):
        dn = ("NHWC", "HWIO", "NHWC")
        h = jax.nn.relu(bn(lax.conv_general_dilated(x, p[0], (2, 1), "SAME", dimension_numbers=dn)))
        h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        h = jax.nn.silu(
            bn(lax.conv_general_dilated(h, p[1], (1, 1), ((1, 0), (2, 1)), rhs_dilation=(1, 2), dimension_numbers=dn))
        )
        h = lax.reduce_window(h, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "SAME") / 4
        return h.mean((1, 2)) @ p[2]

    def loss(p):
        l = f(p, x)
        return -jnp.sum(jax.nn.one_hot(y, 3) * jax.nn.log_softmax(l)) / 6, l

    (v, l), g = jax.jit(jax.value_and_grad(loss, has_aux=True))(p)
    return v, l, g


def model_agnostic_meta_learning():
    def net(p, x):
        for W, b in p[:-1]:
            x = jnp.tanh(x @ W + b)
        return x @ p[-1][0] + p[-1][1]

    k = random.split(random.key(2), 3)
    p = [(random.normal(kk, s) / jnp.sqrt(s[0]), jnp.zeros(s[1])) for kk, s in zip(k, [(1, 7), (7, 7), (7, 1)])]
    loss = lambda p, x, y: jnp.mean((net(p, x) - y) ** 2)

    def inner(p, x, y):
        g = jax.grad(loss)(p, x, y)
        return jax.tree.map(lambda a, b: a - 0.1 * b, p, g)

    def outer(p, xs, ys, xq, yq):
        def task(x, y, x2, y2):
            q = p
            for _ in range(2):
                q = inner(q, x, y)
            return loss(q, x2, y2)

        return jax.vmap(task)(xs, ys, xq, yq).mean()

    xs = random.uniform(random.key(5), (4, 6, 1), minval=-3, maxval=3)
    amp = jnp.linspace(0.5, 2, 4)[:, None, None]
    return jax.jit(jax.value_and_grad(outer))(p, xs, amp * jnp.sin(xs), xs + 0.1, amp * jnp.sin(xs + 0.1))


def deep_equilibrium_implicit():
    rng = np.random.default_rng(7)

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f, a, x0):
        def cond(c):
            return jnp.linalg.norm(c[0] - c[1]) > 1e-6

        return lax.while_loop(cond, lambda c: (c[1], f(a, c[1])), (x0, f(a, x0)))[1]

    def fwd(f, a, x0):
        x = fixed_point(f, a, x0)
        return x, (a, x)

    def rev(f, res, ct):
        a, x = res
        _, vjp_a = jax.vjp(lambda a: f(a, x), a)
        (u,) = vjp_a(fixed_point(lambda p, u: p[2] + jax.vjp(lambda x: f(p[0], x), p[1])[1](u)[0], (a, x, ct), ct))
        return u, jnp.zeros_like(x)

    fixed_point.defvjp(fwd, rev)
    W = jnp.asarray(rng.normal(size=(6, 6)), jnp.float32) * 0.15
    x = jnp.linspace(-1, 1, 6)
    f = lambda a, z: jnp.tanh(a[0] @ z + a[1])
    L = lambda a: jnp.sum(fixed_point(f, a, jnp.zeros(6)) ** 2)
    v, g = jax.jit(jax.value_and_grad(L))((W, x))
    return v, g, jax.vmap(jax.grad(L), ((None, 0),))((W, jnp.stack([x, -x, x**2])))


def graph_attention():
    rng = np.random.default_rng(7)
    n, e = 17, 53
    s = jnp.asarray(rng.integers(0, n, e))
    r = jnp.asarray(rng.integers(0, n - 2, e))
    x = jnp.asarray(rng.normal(size=(n, 6)), jnp.float32)
    W, a = jnp.asarray(rng.normal(size=(6, 4)), jnp.float32), jnp.asarray(rng.normal(size=8), jnp.float32)

    def f(W, a):
        h = x @ W
        z = jax.nn.leaky_relu(jnp.concatenate([h[s], h[r]], 1) @ a, 0.2)
        z = jnp.exp(z - jax.ops.segment_max(z, r, n)[r])
        z = z / jax.ops.segment_sum(z, r, num_segments=n)[r]
        o = jax.ops.segment_sum(z[:, None] * h[s], r, n)
        return jax.nn.elu(o)

    return (
        f(W, a),
        jax.grad(lambda W, a: jnp.sum(f(W, a) ** 2), (0, 1))(W, a),
        jax.ops.segment_min(x, jnp.arange(n) // 4, 6),
        jax.ops.segment_prod(x[:, 0], jnp.arange(n) // 3),
    )


def normalizing_flow():
    k = random.split(random.key(4), 8)
    p = [(random.normal(a, (2, 9)) * 0.5, random.normal(b, (9, 4)) * 0.3) for a, b in zip(k[:4], k[4:])]

    def couple(x, q, flip):
        a, b = jnp.split(x, 2)
        if flip:
            a, b = b, a
        s, t = jnp.split(jnp.tanh(jnp.concatenate([a, a**2]) @ q[0]) @ q[1], 2)
        b = b * jnp.exp(s[:1]) + t[:1]
        return (jnp.concatenate([b, a]) if flip else jnp.concatenate([a, b])), s[0]

    def logp(p, x):
        ld = 0.0
        for i, q in enumerate(p):
            x, s = couple(x, q, i % 2)
            ld += s
        return jax.scipy.stats.norm.logpdf(x).sum() + ld, x

    xs = random.normal(random.key(8), (23, 2)) * jnp.array([2.0, 0.5])
    J = jax.vmap(lambda x: jnp.linalg.slogdet(jax.jacobian(lambda x: logp(p, x)[1])(x))[1])(xs)
    lp, z = jax.vmap(logp, (None, 0))(p, xs)
    g = jax.grad(lambda p: -jax.vmap(logp, (None, 0))(p, xs)[0].mean())(p)
    return lp, z, J, g


def diffusion_sampling():
    T = 20
    beta = jnp.linspace(1e-3, 0.2, T)
    ab = jnp.cumprod(1 - beta)
    p = random.normal(random.key(1), (3, 16)), random.normal(random.key(2), (16, 2)) * 0.1

    def eps(p, x, t):
        return jax.nn.swish(jnp.append(x, t / T) @ p[0]) @ p[1]

    def loss(p, x0, key):
        a, b = random.split(key)
        t = random.randint(a, (len(x0),), 0, T)
        n = random.normal(b, x0.shape)
        xt = jnp.sqrt(ab[t])[:, None] * x0 + jnp.sqrt(1 - ab[t])[:, None] * n
        return jnp.mean((jax.vmap(eps, (None, 0, 0))(p, xt, t) - n) ** 2)

    x0 = jnp.stack([jnp.cos(jnp.arange(31.0)), jnp.sin(jnp.arange(31.0))], 1)
    g = jax.jit(jax.grad(loss))(p, x0, random.key(3))

    def denoise(x, tk):
        t, k = tk
        m = (x - beta[t] / jnp.sqrt(1 - ab[t]) * jax.vmap(eps, (None, 0, None))(p, x, t)) / jnp.sqrt(1 - beta[t])
        return m + jnp.where(t > 0, jnp.sqrt(beta[t]), 0) * random.normal(k, x.shape), jnp.linalg.norm(m, axis=1)

    return g, lax.scan(
        denoise, random.normal(random.key(5), (7, 2)), (jnp.arange(T)[::-1], random.split(random.key(6), T))
    )


def reinforcement_learning_gae():
    def env(s, a, key):
        x, v = s
        v = jnp.clip(v + 0.05 * (a - 1) - 0.01 * jnp.cos(3 * x), -0.3, 0.3)
        x = x + v
        done = (x > 1.0) | (x < -1.5)
        r = jnp.where(done, 10.0, -1.0) * jnp.sign(x)
        x = jnp.where(done, random.uniform(key, (), minval=-0.6, maxval=-0.4), x)
        return (x, jnp.where(done, 0.0, v)), r, done

    W = random.normal(random.key(0), (2, 3)), random.normal(random.key(1), (2,))

    def rollout(W, key):
        def step(c, k):
            s = c
            o = jnp.stack(s)
            a = random.categorical(k, o @ W[0])
            s2, r, d = env(s, a, k)
            return s2, (o, a, r, d, o @ W[1])

        return lax.scan(step, (-0.5, 0.0), random.split(key, 60))

    (x, v), (o, a, r, d, val) = jax.vmap(rollout, (None, 0))(W, random.split(random.key(3), 4))
    last = jnp.stack([x, v], -1) @ W[1]

    def gae(r, d, v, last):
        def back(c, t):
            adv, nxt = c
            r, d, v = t
            delta = r + 0.99 * nxt * (1 - d) - v
            adv = delta + 0.99 * 0.95 * (1 - d) * adv
            return (adv, v), adv

        return lax.scan(back, (0.0, last), (r, d, v), reverse=True)[1]

    adv = jax.vmap(gae)(r, d, val, last)

    def ppo(W):
        lp = jax.nn.log_softmax(o @ W[0])
        lpa = jnp.take_along_axis(lp, a[..., None], -1).squeeze(-1)
        ratio = jnp.exp(lpa - lax.stop_gradient(lpa))
        ent = -jnp.sum(jnp.exp(lp) * lp, -1).mean()
        A = (adv - adv.mean()) / (adv.std() + 1e-8)
        return -jnp.minimum(ratio * A, jnp.clip(ratio, 0.8, 1.2) * A).mean() - 0.01 * ent

    return a, d, adv, jax.jit(jax.value_and_grad(ppo))(W)


def second_order_optimiser():
    rng = np.random.default_rng(7)
    x = jnp.asarray(rng.normal(size=(40, 3)), jnp.float32)
    y = jnp.sin(x.sum(1))
    p = {"a": jnp.asarray(rng.normal(size=(3, 5)), jnp.float32), "c": jnp.asarray(rng.normal(size=5), jnp.float32)}
    flat, unravel = ravel_pytree(p)
    res = lambda w: jnp.tanh(x @ unravel(w)["a"]) @ unravel(w)["c"] - y

    @jax.jit
    def lm(w, lam):
        r, J = res(w), jax.jacfwd(res)(w)
        d = jnp.linalg.solve(J.T @ J + lam * jnp.eye(len(w)), -J.T @ r)
        better = jnp.sum(res(w + d) ** 2) < jnp.sum(r**2)
        return jax.tree.map(lambda a, b: jnp.where(better, a, b), (w + d, lam / 3), (w, lam * 4))

    lam, losses = 30.0, []
    for _ in range(3):
        flat, lam = lm(flat, lam)
        losses.append(jnp.sum(res(flat) ** 2))
    gnvp = jax.jvp(res, (flat,), (jnp.ones_like(flat),))[1]
    return losses, lam, jax.vjp(res, flat)[1](gnvp)[0]


def vae_with_quantisation():
    k = random.split(random.key(12), 4)
    code = random.normal(k[0], (7, 3))
    We, Wd = random.normal(k[1], (5, 3)), random.normal(k[2], (3, 5))
    x = random.normal(k[3], (21, 5))

    def f(We, Wd, code):
        z = x @ We
        d = ((z[:, None] - code) ** 2).sum(-1)
        i = d.argmin(1)
        q = code[i]
        st = z + lax.stop_gradient(q - z)
        return jnp.mean((st @ Wd - x) ** 2) + jnp.mean((lax.stop_gradient(z) - q) ** 2) + 0.25 * jnp.mean(
            (z - lax.stop_gradient(q)) ** 2
        ), i

    return jax.value_and_grad(f, (0, 1, 2), has_aux=True)(We, Wd, code)


def contrastive_and_triplet():
    rng = np.random.default_rng(7)
    a, b = (jnp.asarray(rng.normal(size=(9, 6)), jnp.float32) for _ in range(2))

    def nce(a, b, logt):
        a, b = (v / jnp.linalg.norm(v, axis=1, keepdims=True) for v in (a, b))
        s = jnp.exp(logt) * a @ b.T
        l = jnp.arange(9)
        return -(jax.nn.log_softmax(s)[l, l] + jax.nn.log_softmax(s.T)[l, l]).mean() / 2

    g = jax.grad(nce, (0, 1, 2))(a, b, 0.5)
    sim = a @ a.T
    lab = jnp.arange(9) % 3
    pos = jnp.where((lab[:, None] == lab) & ~jnp.eye(9, dtype=bool), sim, jnp.inf).min(1)
    neg = jnp.where(lab[:, None] != lab, sim, -jnp.inf).max(1)
    return g, pos, neg, jax.nn.relu(neg - pos + 0.2).mean()


def dropout_and_ensembles():
    p = random.normal(random.key(0), (4, 6, 6)) * 0.5

    def f(w, key, x, train):
        h = jnp.tanh(x @ w)
        keep = random.bernoulli(key, 0.7, h.shape)
        return lax.cond(train, lambda h: jnp.where(keep, h / 0.7, 0), lambda h: h, h)

    x = random.normal(random.key(1), (5, 6))
    e = jax.jit(jax.vmap(f, (0, 0, None, None)), static_argnums=())
    tr, ev = e(p, random.split(random.key(2), 4), x, True), e(p, random.split(random.key(2), 4), x, False)
    each = jax.vmap(jax.grad(lambda w, k, x: f(w, k, x, True).sum()), (0, 0, None))(
        p, random.split(random.key(3), 4), x
    )
    return tr, ev, tr.var(0), each
