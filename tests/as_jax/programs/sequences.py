"""Whole programs over sequences: filters, losses, decoders, tables of dynamic programming."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random


def _normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def kalman_information_filter():
    def program(ys, A):
        Q, H, Rm = (0.1 * jnp.eye(2), jnp.array([[1.0, 0.0], [0.5, 1.0]]), 0.3 * jnp.eye(2))

        def step(c, y):
            m, P, ll = c
            m = A @ m
            P = A @ P @ A.T + Q
            S = H @ P @ H.T + Rm
            K = jnp.linalg.solve(S, H @ P).T
            r = y - H @ m
            ll = ll - 0.5 * (r @ jnp.linalg.solve(S, r) + jnp.linalg.slogdet(S)[1] + 2 * jnp.log(2 * jnp.pi))
            P = (jnp.eye(2) - K @ H) @ P @ (jnp.eye(2) - K @ H).T + K @ Rm @ K.T
            m = m + K @ r
            return ((m, P, ll), (m, P, K, r))

        (m, P, ll), tr = lax.scan(step, (jnp.zeros(2), jnp.eye(2), 0.0), ys)

        def back(c, x):
            ms, Ps = c
            mf, Pf = x
            Pp = A @ Pf @ A.T + Q
            G = jnp.linalg.solve(Pp, A @ Pf).T
            ms = mf + G @ (ms - A @ mf)
            Ps = Pf + G @ (Ps - Pp) @ G.T
            return ((ms, Ps), (ms, Ps))

        _, sm = lax.scan(back, (m, P), (tr[0][:-1], tr[1][:-1]), reverse=True)
        return (ll, tr, sm)

    return jax.jit(program)(_normal(1, 13, 2), np.array([[0.9, 0.1], [-0.2, 0.8]], "float32"))


def ctc_loss_by_hand():
    def program(logits, labels):
        lp = jax.nn.log_softmax(logits, -1)
        L = labels.shape[0]
        ext = jnp.zeros(2 * L + 1, int).at[1::2].set(labels)
        ninf = -1e30
        skip = jnp.concatenate([jnp.zeros(2, bool), (ext[2:] != ext[:-2]) & (ext[2:] != 0)])
        a0 = jnp.full(2 * L + 1, ninf).at[0].set(lp[0, 0]).at[1].set(lp[0, ext[1]])

        def step(a, l):
            s1 = jnp.concatenate([jnp.array([ninf]), a[:-1]])
            s2 = jnp.where(skip, jnp.concatenate([jnp.full(2, ninf), a[:-2]]), ninf)
            a = jax.nn.logsumexp(jnp.stack([a, s1, s2]), 0) + l[ext]
            return (a, a)

        a, tr = lax.scan(step, a0, lp[1:])
        return (-jnp.logaddexp(a[-1], a[-2]), jnp.exp(tr - jax.nn.logsumexp(tr, 1, keepdims=True)))

    return jax.jit(program)(_normal(2, 11, 5), np.array([1, 3, 3, 2], "int32"))


def hmm_forward_backward_and_viterbi():
    def program(le, lt, lpi):
        lt = jax.nn.log_softmax(lt, 1)
        lpi = jax.nn.log_softmax(lpi)

        def fwd(a, e):
            a = jax.nn.logsumexp(a[:, None] + lt, 0) + e
            return (a, a)

        a0 = lpi + le[0]
        aT, al = lax.scan(fwd, a0, le[1:])
        al = jnp.vstack([a0, al])

        def bwd(b, e):
            nb = jax.nn.logsumexp(lt + (e + b)[None], 1)
            return (nb, nb)

        _, be = lax.scan(bwd, jnp.zeros(4), le[1:], reverse=True)
        be = jnp.vstack([be, jnp.zeros(4)])
        g = jax.nn.softmax(al + be, -1)
        xi = jax.vmap(lambda a, e, b: jax.nn.softmax((a[:, None] + lt + (e + b)[None]).ravel()).reshape(4, 4))(
            al[:-1], le[1:], be[1:]
        )

        def vit(d, e):
            s = d[:, None] + lt
            return (s.max(0) + e, s.argmax(0))

        d, ptr = lax.scan(vit, a0, le[1:])
        last = d.argmax()
        _, path = lax.scan(lambda s, p: (p[s], p[s]), last, ptr, reverse=True)
        return (jax.nn.logsumexp(aT), g, xi.sum(0), jnp.append(path, last), d)

    return jax.jit(program)(_normal(3, 7, 4), _normal(4, 4, 4), _normal(5, 4))


def transformer_rotary_cache():
    def program(x, Wqkv, Wo):
        T, D = x.shape
        H = 2
        hd = D // H
        fr = 1 / 10000 ** (jnp.arange(0, hd, 2) / hd)

        def rope(v, p):
            a = p[..., None] * fr
            a = a[:, None] if v.ndim == 3 else a
            v1, v2 = (v[..., ::2], v[..., 1::2])
            return jnp.stack([v1 * jnp.cos(a) - v2 * jnp.sin(a), v1 * jnp.sin(a) + v2 * jnp.cos(a)], -1).reshape(
                v.shape
            )

        q, k, v = jnp.einsum("td,sde->ste", x, Wqkv).reshape(3, T, H, hd)
        p = jnp.arange(T)
        qr, kr = (rope(q, p), rope(k, p))
        lg = jnp.einsum("thd,shd->hts", qr, kr) / jnp.sqrt(hd)
        lg = jnp.where(jnp.tril(jnp.ones((T, T), bool)), lg, jnp.finfo(lg.dtype).min)
        full = jnp.einsum("hts,shd->thd", jax.nn.softmax(lg), v).reshape(T, D) @ Wo

        def dec(c, t):
            K, V = c
            qkv = jnp.einsum("d,sde->se", x[t], Wqkv).reshape(3, H, hd)
            qt, kt = (rope(qkv[0][None], t[None])[0], rope(qkv[1][None], t[None])[0])
            K = lax.dynamic_update_slice(K, kt[None], (t, 0, 0))
            V = lax.dynamic_update_index_in_dim(V, qkv[2], t, 0)
            s = jnp.where(jnp.arange(T) <= t, jnp.einsum("hd,shd->hs", qt, K) / jnp.sqrt(hd), -jnp.inf)
            return ((K, V), jnp.einsum("hs,shd->hd", jax.nn.softmax(s), V).reshape(D) @ Wo)

        (K, V), inc = lax.scan(dec, (jnp.zeros((T, H, hd)), jnp.zeros((T, H, hd))), p)
        return (full, inc, K, jax.nn.dot_product_attention(q[None], k[None], v[None], is_causal=True))

    return jax.jit(program)(_normal(6, 6, 8), _normal(7, 3, 8, 8) * 0.3, _normal(8, 8, 8) * 0.3)


def beam_search_with_lengths():
    def program(T):
        B, V, L = (3, 6, 7)
        lp = jax.nn.log_softmax(jnp.vstack([T, T[:1]]))

        def st(c, t):
            tok, sc, done, hist = c
            n = lp[tok % 6]
            n = jnp.where(done[:, None], jnp.where(jnp.arange(V) == 0, 0.0, -jnp.inf), n)
            s = sc[:, None] + n
            v, i = lax.top_k(s.ravel(), B)
            src, t2 = (i // V, i % V)
            hist = hist[src].at[:, t].set(t2)
            done = done[src] | (t2 == 0)
            return ((t2, v, done, hist), (src, v))

        c, tr = lax.scan(
            st,
            (jnp.ones(B, int), jnp.array([0.0, -jnp.inf, -jnp.inf]), jnp.zeros(B, bool), jnp.zeros((B, L), int)),
            jnp.arange(L),
        )
        ln = jnp.where((c[3] == 0).any(1), (c[3] == 0).argmax(1), L)
        p = jax.nn.softmax(T[0])
        o = jnp.argsort(-p)
        cs = jnp.cumsum(p[o])
        nucleus = jnp.zeros(6, bool).at[o].set(cs - p[o] < 0.7)
        kth = jnp.sort(T, 1)[:, -3][:, None]
        return (
            c,
            tr,
            ln,
            c[1] / ((5 + ln) / 6) ** 0.6,
            nucleus,
            jnp.where(T < kth, -jnp.inf, T),
            random.categorical(random.key(1), jnp.where(T < kth, -jnp.inf, T), axis=1),
        )

    return jax.jit(program)(_normal(9, 5, 6))


def gru_and_lstm_cells_bidirectional():
    def program(x, W):
        k = random.split(random.key(0), 6)
        P = [random.normal(q, s) * 0.4 for q, s in zip(k, [(3, 15), (5, 15), (3, 20), (5, 20)])]

        def gru(h, x):
            a, b = (x @ P[0], h @ P[1])
            z = jax.nn.sigmoid(a[:5] + b[:5])
            r = jax.nn.sigmoid(a[5:10] + b[5:10])
            n = jnp.tanh(a[10:] + r * b[10:])
            h = (1 - z) * n + z * h
            return (h, h)

        def lstm(c, x):
            h, c = c
            i, f, g, o = jnp.split(x @ P[2] + h @ P[3], 4)
            c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return ((h, c), h)

        _, f = lax.scan(gru, jnp.zeros(5), x.T)
        _, b = lax.scan(gru, jnp.zeros(5), x.T, reverse=True)
        s, l = lax.scan(lstm, (jnp.zeros(5),) * 2, x.T, unroll=2)
        at = jax.nn.softmax(f @ W.T @ W @ b.T / jnp.sqrt(5.0))
        return (f, b, s, l, at @ l, jnp.concatenate([f, b], -1).max(0))

    return jax.jit(program)(_normal(10, 3, 7), _normal(11, 4, 5) * 0.5)


def edit_knapsack_lcs_by_scan():
    def program(a, b):
        n = b.shape[0]

        def row(prev, x):
            i, ai = x

            def cell(before, y):
                up, diag, bj = y
                v = jnp.minimum(jnp.minimum(up, before) + 1, diag + (ai != bj))
                return (v, v)

            _, r = lax.scan(cell, i + 1, (prev[1:], prev[:-1], b))
            r = jnp.concatenate([i[None] + 1, r])
            return (r, r)

        d, T = lax.scan(row, jnp.arange(n + 1), (jnp.arange(a.shape[0]), a))
        cap = 20

        def kn(v, x):
            w, p = x
            c = jnp.where(jnp.arange(cap + 1) >= w, jnp.roll(v, w) + p, -1)
            return (jnp.maximum(v, c), c > v)

        best, take = lax.scan(kn, jnp.zeros(cap + 1, jnp.int32), (a[:10], b))

        def back(c, x):
            t, w = x
            k = t[c]
            return (c - jnp.where(k, w, 0), k)

        _, items = lax.scan(back, best.argmax(), (take, a[:10]), reverse=True)
        inc = lax.fori_loop(
            0,
            11,
            lambda i, L: L.at[i].set(1 + jnp.max(jnp.where((jnp.arange(11) < i) & (a < a[i]), L, 0))),
            jnp.zeros(11, int),
        )
        return (
            d[-1],
            T,
            best,
            items,
            inc,
            jnp.bincount(a, length=11),
            jnp.unique(a, size=8, fill_value=-1, return_counts=True),
        )

    return jax.jit(program)(
        np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], "int32"), np.array([2, 7, 1, 8, 2, 8, 1, 8, 2, 8], "int32")
    )


def time_series_filters():
    def program(x):
        ew = lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (jnp.full(21, 0.8), 0.2 * x))[1]

        def hw(c, y):
            l, t = c
            l2 = 0.5 * y + 0.5 * (l + t)
            return ((l2, 0.3 * (l2 - l) + 0.7 * t), l + t)

        _, f = lax.scan(hw, (x[0], 0.0), x)
        ac = jax.vmap(lambda k: jnp.sum(jnp.where(jnp.arange(21) >= k, (x - x.mean()) * jnp.roll(x - x.mean(), k), 0)))(
            jnp.arange(6)
        )
        ac = ac / ac[0]

        def lev(c, k):
            a, e = c
            r = (
                ac[k]
                - jnp.sum(jnp.where((jnp.arange(6) >= 1) & (jnp.arange(6) < k), a * ac[(k - jnp.arange(6)) % 6], 0))
            ) / e
            b = a - jnp.where((jnp.arange(6) >= 1) & (jnp.arange(6) < k), r * a[(k - jnp.arange(6)) % 6], 0)
            return ((b.at[k].set(r), e * (1 - r * r)), r)

        _, pac = lax.scan(lev, (jnp.zeros(6), 1.0), jnp.arange(1, 6))
        med = jnp.median(x[jnp.clip(jnp.arange(21)[:, None] + jnp.arange(-2, 3), 0, 20)], 1)
        mx = lax.reduce_window(x, -jnp.inf, lax.max, (5,), (1,), "SAME")
        ms = lax.reduce_window(x, 0.0, lax.add, (4,), (1,), [(3, 0)]) / 4
        D = jnp.diff(jnp.eye(21), 2, axis=0)
        hp = jnp.linalg.solve(jnp.eye(21) + 10 * D.T @ D, x)
        dd = lax.scan(lambda m, v: (jnp.maximum(m, v), jnp.maximum(m, v) - v), -jnp.inf, jnp.cumsum(x))[1]

        def garch(h, r):
            h = 0.1 + 0.1 * r * r + 0.8 * h
            return (h, h)

        return (
            ew,
            f,
            ac,
            pac,
            med,
            mx,
            ms,
            hp,
            dd.max(),
            lax.scan(garch, 1.0, x)[1],
            jnp.quantile(x, jnp.linspace(0, 1, 6)),
            lax.cummax(x) - lax.cummin(x, reverse=True),
        )

    return jax.jit(program)(_normal(12, 21))


def sorts_of_short_rows_within_loops():
    def program(x):

        def st(c, t):
            s = jnp.sort(c)
            i = jnp.argsort(-c)
            v, k = lax.top_k(c, 3)
            m = jnp.median(c)
            r = jnp.argsort(i)
            return (s[::-1] * 0.7 + jnp.sin(c[i]) * 0.3 + m, (v, k, i, r, jnp.quantile(c, 0.3)))

        y, t = lax.scan(st, x, jnp.arange(5))
        u = jnp.unique(jnp.round(x), size=6, return_counts=True, fill_value=jnp.nan)
        h = jnp.sort(jnp.array([jnp.nan, 1.0, -jnp.inf, -0.0, 0.0, jnp.nan, 3.0]))
        ks = lax.sort((jnp.array([2, 1, 2, 1, 2, 1, 0, 0, 3]), x, jnp.arange(9)), num_keys=2)
        return (
            y,
            t,
            u,
            h,
            ks,
            jnp.sort(jnp.array([3, 1, 2], jnp.uint8)),
            jnp.sort(jnp.array([True, False, True])),
            jnp.sort(x.astype(jnp.bfloat16)),
            jnp.sort(x.reshape(3, 3), 0),
            jnp.argsort(x.reshape(3, 3), 1, descending=True),
            lax.top_k(jnp.array([1, 1, 2, 2, -(2**31)], jnp.int32), 4),
            jnp.sort(x[:4] + 1j * x[4:8]),
            jnp.searchsorted(jnp.sort(x), x[::2]),
        )

    return jax.jit(program)(_normal(13, 9))


def ragged_with_masks():
    def program(X, n, W):
        m = jnp.arange(5) < n[:, None]
        s = jnp.where(m, X, 0).sum(1)
        mean = s / jnp.maximum(n, 1)
        mx = jnp.where(m, X, -jnp.inf).max(1)
        mx = jnp.where(n > 0, mx, 0)
        sm = jax.nn.softmax(X, where=m, axis=-1)
        lse = jax.nn.logsumexp(X, axis=1, where=m)
        last = jnp.take_along_axis(X, jnp.maximum(n - 1, 0)[:, None], 1)[:, 0]
        off = jnp.cumsum(n) - n
        flat = jnp.zeros(20).at[jnp.where(m, off[:, None] + jnp.arange(5), 20)].set(X, mode="drop")
        seg = jnp.repeat(jnp.arange(7), n, total_repeat_length=20)
        back = jax.ops.segment_sum(flat, seg, 7)
        v = jnp.var(X, axis=1, where=m | (n < 1)[:, None])
        rev = jnp.where(m, jnp.take_along_axis(X, (n[:, None] - 1 - jnp.arange(5)) % 5, 1), X)
        h = lax.scan(
            lambda c, x: (jnp.where(x[1][:, None], jnp.tanh(c + x[0][:, None] * W[0]), c), c.sum(1)),
            jnp.zeros((7, 3)),
            (X.T, m.T),
        )
        return (
            mean,
            mx,
            sm,
            jnp.where(n > 0, lse, 0),
            last,
            flat,
            seg,
            back,
            v,
            rev,
            h,
            jnp.std(X, where=m),
            jax.nn.log_softmax(X, where=m, axis=1)[m.argmax(0)[0]],
        )

    return jax.jit(program)(_normal(14, 7, 5), np.array([2, 0, 5, 3, 1, 4, 2], "int32"), _normal(15, 5, 3))
