"""Whole programs that draw: samplers, games, generative models."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random


def _normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


class Env(NamedTuple):
    pos: jax.Array
    vel: jax.Array | float
    t: jax.Array | int


def particle_filter_resampling_schemes():
    def program(seed):
        k = random.key(seed)
        n = 53

        def step(c, t):
            x, k = c
            k, a, b, d = random.split(k, 4)
            x = 0.9 * x + 0.5 * random.normal(a, (n,))
            y = jnp.sin(t * 0.3)
            lw = -0.5 * (x - y) ** 2 / 0.2
            w = jax.nn.softmax(lw)
            ess = 1 / jnp.sum(w * w)
            u = (jnp.arange(n) + random.uniform(b)) / n
            i = jnp.clip(jnp.searchsorted(jnp.cumsum(w), u), 0, n - 1)
            j = random.categorical(d, lw, shape=(n,))
            x2 = jnp.where(ess < n / 2, x[i], x)
            return ((x2, k), (jnp.round(ess, 2), x2.mean(), i[:5], j[:5]))

        return lax.scan(step, (jnp.zeros(n), k), jnp.arange(7.0))

    return jax.jit(program)(np.int32(3))


def hmc_with_dual_averaging():
    def program(x0):
        lp = lambda x: -0.5 * jnp.sum(x**2 / jnp.array([1.0, 0.25, 4.0])) - 0.1 * jnp.sum(x**4)
        g = jax.grad(lp)

        def leap(x, p, e):
            p = p + 0.5 * e * g(x)

            def b(i, c):
                x, p = c
                x = x + e * p
                return (x, p + e * g(x) * jnp.where(i < 4, 1.0, 0.5))

            return lax.fori_loop(0, 5, b, (x, p))

        def step(c, k):
            x, le, H, leb, t = c
            k1, k2 = random.split(k)
            p = random.normal(k1, (3,))
            xn, pn = leap(x, p, jnp.exp(le))
            d = lp(xn) - 0.5 * pn @ pn - lp(x) + 0.5 * p @ p
            a = jnp.minimum(1.0, jnp.exp(d))
            acc = random.uniform(k2) < a
            H = (1 - 1 / (t + 10)) * H + (0.8 - a) / (t + 10)
            le = jnp.log(1.0) - jnp.sqrt(t) / 0.05 * H * 0.1
            eta = t ** (-0.75)
            return ((jnp.where(acc, xn, x), le, H, eta * le + (1 - eta) * leb, t + 1), (x, a, acc, le))

        return lax.scan(step, (x0, jnp.log(0.3), 0.0, 0.0, 1.0), random.split(random.key(1), 11))

    return jax.jit(program)(_normal(16, 3))


def parallel_tempering():
    def program(seed):
        b = jnp.array([1.0, 0.6, 0.3, 0.1])
        lp = lambda x: jnp.logaddexp(-4 * (x - 2) ** 2, -4 * (x + 2) ** 2)

        def step(c, k):
            x, sw = c
            ks = random.split(k, 5)
            pr = x + jax.vmap(random.normal)(ks[:4])
            ok = jnp.log(jax.vmap(lambda k: random.uniform(random.fold_in(k, 1)))(ks[:4])) < b * (lp(pr) - lp(x))
            x = jnp.where(ok, pr, x)
            i = random.randint(ks[4], (), 0, 3)
            d = (b[i] - b[i + 1]) * (lp(x[i + 1]) - lp(x[i]))
            do = jnp.log(random.uniform(random.fold_in(ks[4], 9))) < d
            x = jnp.where(do, x.at[i].set(x[i + 1]).at[i + 1].set(x[i]), x)
            return ((x, sw.at[i].add(do)), (x[0], ok))

        return lax.scan(step, (jnp.zeros(4), jnp.zeros(3, jnp.int32)), random.split(random.key(seed), 29))

    return jax.jit(program)(np.int32(5))


def smc_tempering_and_mala():
    def program(x0):
        lp = lambda x: -jnp.sum((x**2 - 1) ** 2) - 0.1 * x @ x
        n = 17

        def mala(x, k, b):
            g = jax.grad(lambda x: b * lp(x))
            k1, k2 = random.split(k)
            e = 0.1
            y = x + e * g(x) + jnp.sqrt(2 * e) * random.normal(k1, x.shape)
            q = lambda a, b_: -jnp.sum((b_ - a - e * g(a)) ** 2) / (4 * e)
            al = b * (lp(y) - lp(x)) + q(y, x) - q(x, y)
            return (jnp.where(jnp.log(random.uniform(k2)) < al, y, x), jnp.minimum(al, 0))

        def st(c, bk):
            x, lz, b0 = c
            b, k = bk
            w = (b - b0) * jax.vmap(lp)(x)
            lz = lz + jax.nn.logsumexp(w) - jnp.log(n)
            k1, k2 = random.split(k)
            i = random.choice(k1, n, (n,), p=jax.nn.softmax(w))
            x, a = jax.vmap(mala, (0, 0, None))(x[i], random.split(k2, n), b)
            return ((x, lz, b), (a.mean(), i))

        return lax.scan(
            st,
            (x0 + random.normal(random.key(0), (n, 3)), 0.0, 0.0),
            (jnp.linspace(0.1, 1, 7), random.split(random.key(1), 7)),
        )

    return jax.jit(program)(_normal(17, 3))


def bandits_ucb_thompson_exp3():
    def program(s):
        mu = jnp.array([0.2, 0.5, 0.7, 0.4])

        def st(c, k):
            n, r, a, b, w = c
            ks = random.split(k, 5)
            t = n.sum() + 1
            u = jnp.argmax(
                jnp.where(n > 0, r / jnp.maximum(n, 1) + jnp.sqrt(2 * jnp.log(t) / jnp.maximum(n, 1)), jnp.inf)
            )
            ru = random.bernoulli(ks[0], mu[u])
            th = random.beta(ks[1], a, b)
            v = th.argmax()
            rv = random.bernoulli(ks[2], mu[v])
            p = 0.9 * w / w.sum() + 0.1 / 4
            z = random.choice(ks[3], 4, p=p)
            rz = random.bernoulli(ks[4], mu[z])
            w = w.at[z].mul(jnp.exp(0.1 * rz / p[z] / 4))
            return ((n.at[u].add(1), r.at[u].add(ru), a.at[v].add(rv), b.at[v].add(1 - rv), w), (u, v, z))

        return lax.scan(
            st,
            (jnp.zeros(4, int), jnp.zeros(4), jnp.ones(4), jnp.ones(4), jnp.ones(4)),
            random.split(random.fold_in(random.key(0), s), 23),
        )

    return jax.jit(program)(np.int32(1))


def diffusion_ddim_and_langevin():
    def program(x):
        b = jnp.linspace(0.001, 0.2, 13)
        ab = jnp.cumprod(1 - b)
        eps = lambda x, t: x * jnp.sqrt(1 - ab[t]) + 0.1 * jnp.sin(3 * x)

        def ddpm(c, t):
            x, k = c
            k, s = random.split(k)
            z = jnp.where(t > 0, random.normal(s, x.shape), 0)
            x = (x - b[t] / jnp.sqrt(1 - ab[t]) * eps(x, t)) / jnp.sqrt(1 - b[t]) + jnp.sqrt(b[t]) * z
            return ((x, k), x.std())

        (y, _), s = lax.scan(ddpm, (x, random.key(0)), jnp.arange(12, -1, -1))

        def ddim(x, ts):
            t, p = ts
            e = eps(x, t)
            x0 = (x - jnp.sqrt(1 - ab[t]) * e) / jnp.sqrt(ab[t])
            a = jnp.where(p >= 0, ab[p], 1.0)
            return (jnp.sqrt(a) * jnp.clip(x0, -2, 2) + jnp.sqrt(1 - a) * e, x0)

        ts = jnp.arange(12, -1, -3)
        z, tr = lax.scan(ddim, x, (ts, jnp.append(ts[1:], -1)))
        lan = lax.fori_loop(
            0,
            9,
            lambda i, c: (
                c
                + 0.05 * jax.grad(lambda x: -jnp.sum(x**2 / 2 + jnp.cos(2 * x)))(c)
                + jnp.sqrt(0.1) * random.normal(random.fold_in(random.key(5), i), c.shape)
            ),
            x,
        )
        return (y, s, z, tr, lan, ab)

    return jax.jit(program)(_normal(18, 9))


def monte_carlo_tree_search():
    def program(pr):
        A = 3
        N = 20

        def sim(c, k):
            ch, vis, val, nn = c

            def sel(s):
                node, path, d, _ = s
                q = jnp.where(vis[ch[node]] > 0, val[ch[node]] / jnp.maximum(vis[ch[node]], 1), 0.0)
                u = q + 1.2 * pr.ravel()[(node * A + jnp.arange(A)) % 20] * jnp.sqrt(vis[node] + 1) / (
                    1 + jnp.where(ch[node] >= 0, vis[ch[node]], 0)
                )
                a = jnp.argmax(u)
                return (
                    jnp.where(ch[node, a] >= 0, ch[node, a], node),
                    path.at[d].set(node),
                    d + 1,
                    jnp.where(ch[node, a] >= 0, -1, a),
                )

            node, path, d, a = lax.while_loop(lambda s: (s[3] < 0) & (s[2] < 8), sel, (0, jnp.full(10, -1), 0, -1))
            ch = ch.at[node, a].set(nn)
            path = path.at[d].set(nn)
            v = jnp.tanh(random.normal(k))
            vis = vis.at[path].add(jnp.where(path >= 0, 1, 0))
            val = val.at[path].add(jnp.where(path >= 0, v, 0.0))
            return ((ch, vis, val, nn + 1), (node, a, d))

        return lax.scan(
            sim, (jnp.full((N, A), -1), jnp.zeros(N, int), jnp.zeros(N), 1), random.split(random.key(2), 15)
        )

    return jax.jit(program)(_normal(19, 5, 4))


def dqn_replay_and_targets():
    def program(S, A):
        W = jnp.sin(jnp.arange(12.0)).reshape(3, 4)[:, :3]
        buf = {"s": jnp.zeros((8, 3)), "a": jnp.zeros(8, jnp.int32), "r": jnp.zeros(8), "i": 0}

        def push(b, x):
            s, a = x
            i = b["i"] % 8
            return (
                {"s": b["s"].at[i].set(s), "a": b["a"].at[i].set(a), "r": b["r"].at[i].set(s.sum()), "i": b["i"] + 1},
                i,
            )

        buf, ix = lax.scan(push, buf, (S, A))
        k = random.key(0)
        j = random.randint(k, (5,), 0, jnp.minimum(buf["i"], 8))

        def loss(W, T):
            q = jnp.take_along_axis(buf["s"][j] @ W, buf["a"][j][:, None], 1)[:, 0]
            nq = buf["s"][(j + 1) % 8] @ T
            d = buf["r"][j] + 0.9 * nq[jnp.arange(5), (buf["s"][(j + 1) % 8] @ W).argmax(1)] - q
            return (jnp.where(jnp.abs(d) < 1, 0.5 * d * d, jnp.abs(d) - 0.5).mean(), d)

        (l, d), g = jax.value_and_grad(loss, has_aux=True)(W, W * 0.9)
        eps = jnp.where(random.uniform(k, (5,)) < 0.3, random.randint(k, (5,), 0, 3), (buf["s"][j] @ W).argmax(1))
        pr = jnp.abs(d) + 0.01
        isw = (5 * pr / pr.sum()) ** (-0.5)
        return (buf, ix, l, g, eps, isw / isw.max(), jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, W, W * 2))

    return jax.jit(program)(_normal(20, 11, 3), np.array([0, 1, 2, 1, 0, 2, 2, 1, 0, 1, 2], "int32"))


def ppo_loss_on_vectorised_environment():
    def program(W):

        def estep(e, a, k):
            v = 0.9 * e.vel + 0.1 * (a - 0.5)
            p = e.pos + v
            done = (jnp.abs(p) > 1) | (e.t >= 6)
            r = -(p**2)
            ne = Env(p, v, e.t + 1)
            fresh = Env(random.uniform(k, (), minval=-0.5, maxval=0.5), 0.0, 0)
            return (jax.tree.map(lambda a, b: jnp.where(done, a, b), fresh, ne), r, done)

        feats = lambda e: jnp.stack([e.pos, e.vel, e.pos**2, jnp.ones_like(e.pos)], -1)

        def roll(c, k):
            e = c
            ks = random.split(k, 5)
            lg = feats(e) @ lax.stop_gradient(W)
            a = random.categorical(ks[0], lg, axis=-1)
            e2, r, d = jax.vmap(estep)(e, a.astype(jnp.float32), random.split(ks[1], 7))
            return (e2, (feats(e), a, r, d, jnp.take_along_axis(jax.nn.log_softmax(lg), a[:, None], -1)[:, 0]))

        e0 = Env(jnp.linspace(-0.5, 0.5, 7), jnp.zeros(7), jnp.zeros(7, jnp.int32))
        eT, (F, A, Rw, D, LP) = lax.scan(roll, e0, random.split(random.key(0), 9))
        V = -(F[..., 0] ** 2)

        def gae(c, x):
            a, vn = c
            r, v, d = x
            de = r + 0.9 * vn * (1 - d) - v
            a = de + 0.81 * (1 - d) * a
            return ((a, v), a)

        _, Ad = lax.scan(gae, (jnp.zeros(7), -(eT.pos**2)), (Rw, V, D.astype(jnp.float32)), reverse=True)
        Ad = (Ad - Ad.mean()) / (Ad.std() + 1e-08)

        def loss(W):
            lg = jax.nn.log_softmax(F @ W)
            lp = jnp.take_along_axis(lg, A[..., None], -1)[..., 0]
            r = jnp.exp(lp - LP)
            return -jnp.mean(jnp.minimum(r * Ad, jnp.clip(r, 0.8, 1.2) * Ad)) + 0.01 * jnp.sum(jnp.exp(lg) * lg) / 63

        v, g = jax.value_and_grad(loss)(W + 0.05)
        return (v, g, Ad, A, D, eT)

    return jax.jit(program)(_normal(21, 4, 2) * 0.3)


def gan_and_vae_steps():
    def program(x):
        k = random.key(1)
        n = lambda i, *s: random.normal(random.fold_in(k, i), s) * 0.5
        G = {"a": n(0, 2, 5), "b": n(1, 5, 4)}
        D = {"a": n(2, 4, 5), "b": n(3, 5, 1)}
        gen = lambda G, z: jnp.tanh(z @ G["a"]) @ G["b"]
        dis = lambda D, x: (jax.nn.leaky_relu(x @ D["a"], 0.2) @ D["b"])[:, 0]
        z = n(4, 6, 2)
        ld = lambda D: jnp.mean(jax.nn.softplus(-dis(D, x)) + jax.nn.softplus(dis(D, gen(G, z))))
        e = random.uniform(random.fold_in(k, 5), (6, 1))
        xi = e * x + (1 - e) * gen(G, z)
        gp = lambda D: jnp.mean(
            (jnp.linalg.norm(jax.vmap(jax.grad(lambda x: dis(D, x[None])[0]))(xi), axis=1) - 1) ** 2
        )
        gD = jax.grad(lambda D: ld(D) + gp(D))(D)
        gG = jax.grad(lambda G: jnp.mean(jax.nn.softplus(-dis(D, gen(G, z)))))(G)
        mu, lv = jnp.split(x @ D["a"][:, :4], 2, -1)
        zz = mu + jnp.exp(lv / 2) * n(6, 6, 2)
        rec = gen(G, zz)
        kl = -0.5 * jnp.sum(1 + lv - mu**2 - jnp.exp(lv), -1)
        bce = jnp.maximum(rec, 0) - rec * jax.nn.sigmoid(x) + jnp.log1p(jnp.exp(-jnp.abs(rec)))
        gs = jax.nn.softmax((rec + random.gumbel(random.fold_in(k, 7), rec.shape)) / 0.5)
        hard = jax.nn.one_hot(gs.argmax(-1), 4)
        st = hard + gs - lax.stop_gradient(gs)
        cb = jnp.linspace(-1, 1, 7)[:, None] * jnp.ones(4)
        i = ((rec[:, None] - cb) ** 2).sum(-1).argmin(1)
        vq = rec + lax.stop_gradient(cb[i] - rec)
        return (gD, gG, kl, bce.sum(-1), st, i, vq, ld(D), gp(D))

    return jax.jit(program)(_normal(22, 6, 4))


def random_splitting_patterns():
    def program(x):
        k = random.key(42)
        k, s = random.split(k)
        ks = random.split(k, (2, 3))
        a = jax.vmap(jax.vmap(lambda k: random.uniform(k, (2,))))(ks)
        b = lax.scan(lambda k, _: (lambda q: (q[0], random.normal(q[1])))(random.split(k)), s, None, length=4)[1]
        old = random.PRNGKey(7)
        c = random.normal(old, (3,))
        d = random.key_data(random.wrap_key_data(old))
        e = random.permutation(old, x, axis=1, independent=True)
        f = lax.while_loop(
            lambda c: c[1] < 0.9,
            lambda c: (lambda q: (q[0], random.uniform(q[1]), c[2] + 1))(random.split(c[0])),
            (k, 0.0, 0),
        )
        g = jnp.stack([k, s])[::-1]
        h = jax.vmap(random.bits)(g)
        i = jnp.where(jnp.array([True, False]), g, jnp.stack([s, s]))
        j = random.fold_in(k, jnp.uint32(2**31 + 5))
        cond = lax.cond(a.sum() > 3, lambda k: random.split(k, 2), lambda k: jnp.stack([k, k]), k)
        return (
            a,
            b,
            c,
            d,
            e,
            f,
            h,
            random.key_data(i),
            j,
            cond,
            random.choice(k, x, (2,), axis=1, replace=False),
            random.choice(k, 5, (3,), p=jnp.array([0.1, 0.2, 0.3, 0.2, 0.2]), replace=False),
            random.categorical(k, x, axis=0),
            random.randint(k, (5,), 0, jnp.array([1, 10, 100, 1000, 2**31 - 1])),
            k.shape == (),
            ks.dtype == k.dtype,
            str(k.dtype),
        )

    return program(_normal(23, 3, 4))
