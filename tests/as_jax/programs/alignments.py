"""Whole programs that align, decode and write: ties, beams that end, mixed lists, far positions."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def _normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def affine_gaps_with_traceback():
    """Gotoh's three matrices by scans over rows; a loop follows moves in uint8 back."""
    a = jnp.array([0, 1, 2, 3, 3, 1, 0, 2, 2], jnp.uint8)
    b = jnp.array([0, 2, 3, 3, 1, 1, 2], jnp.int8)
    NEG = -1e9
    sub = jnp.where(jnp.eye(4, dtype=bool), 2, -1)

    def row(carry, ai):
        M, X, Y = carry
        s = sub[ai][b]
        prev = jnp.stack([M, X, Y])
        diag = prev[:, :-1].max(0) + s
        dm = prev[:, :-1].argmax(0).astype(jnp.uint8)
        Xn = jnp.maximum(M - 3, X - 1)
        xm = jnp.where(M - 3 >= X - 1, jnp.uint8(0), jnp.uint8(1))
        Mn = jnp.concatenate([jnp.array([NEG]), diag])

        def col(y, m):
            yn = jnp.maximum(m - 3, y - 1)
            return yn, (yn, (m - 3 < y - 1).astype(jnp.uint8) * 2)

        _, (Yn, ym) = lax.scan(col, NEG, Mn[:-1])
        Yn = jnp.concatenate([jnp.array([NEG]), Yn])
        return (Mn, Xn, Yn), (Mn, Xn, Yn, dm, xm, ym)

    n = b.shape[0]
    init = (
        jnp.concatenate([jnp.zeros(1), jnp.full(n, NEG)]),
        jnp.full(n + 1, NEG),
        jnp.concatenate([jnp.array([NEG]), -3.0 - jnp.arange(n)]),
    )
    last, rows = lax.scan(row, init, a)
    Ms, Xs, Ys, dm, xm, ym = rows
    k = jnp.argmax(jnp.stack([l[-1] for l in last]))

    def body(c):
        i, j, k, t, path = c
        path = path.at[t].set(jnp.stack([i, j, k]))
        return lax.switch(
            k,
            [
                lambda: (i - 1, j - 1, dm[i - 1, j - 1].astype(int), t + 1, path),
                lambda: (i - 1, j, xm[i - 1, j].astype(int), t + 1, path),
                lambda: (i, j - 1, ym[i - 1, j - 1].astype(int), t + 1, path),
            ],
        )

    out = lax.while_loop(lambda c: (c[0] > 0) & (c[1] > 0), body, (9, 7, k, 0, -jnp.ones((16, 3), int)))
    return {"rows": rows, "out": out, "k": k, "last": last}


def _logits():
    return jnp.array(_normal(1, 4, 13) * 3).at[1].set(-jnp.inf).at[1, 5].set(0.0).at[2, 3:].set(-jnp.inf).at[3].set(0.0)


def tokens_by_every_rule():
    """Top-k, top-p, min-p and typical sets, choices, penalties, softmax of nothing."""
    L = _logits()
    keys = jax.random.split(jax.random.key(9), 4)

    def topp(l, p):
        s = jnp.sort(l)[::-1]
        c = jnp.cumsum(jax.nn.softmax(s))
        k = jnp.sum(c < p)
        return jnp.where(l < s[k], -jnp.inf, l)

    topk = lambda l, k: jnp.where(l < lax.top_k(l, k)[0][-1:], jnp.finfo(l.dtype).min, l)
    typ = lambda l: jnp.abs(-jax.nn.log_softmax(l) - jnp.nansum(-jax.nn.softmax(l) * jax.nn.log_softmax(l)))
    out: dict = {
        "tp": jax.vmap(topp, (0, None))(L, 0.7),
        "tk": jax.vmap(lambda l: topk(l, 3))(L),
        "ty": jax.vmap(typ)(L),
        "cat": jax.vmap(jax.random.categorical)(keys, L),
        "catn": jax.random.categorical(keys[0], L, axis=-1, shape=(6, 4)),
        "cat0": jax.random.categorical(keys[1], L, axis=0),
        "gum": jax.random.gumbel(keys[0], (5,)),
        "minp": jnp.where(jax.nn.softmax(L) >= 0.1 * jax.nn.softmax(L).max(-1, keepdims=True), L, -jnp.inf),
        "ent": -jnp.sum(jax.scipy.special.xlogy(jax.nn.softmax(L), jax.nn.softmax(L)), -1),
        "ent2": jax.scipy.special.entr(jax.nn.softmax(L)).sum(-1),
        "kl": jax.scipy.special.rel_entr(jax.nn.softmax(L[0]), jax.nn.softmax(L[2])).sum(),
        "choice": jax.random.choice(keys[2], 13, (5,), replace=False, p=jax.nn.softmax(L[0])),
        "choice2": jax.random.choice(keys[2], L[0], (5,), p=jax.nn.softmax(L[0])),
        "choice3": jax.random.choice(keys[2], L, (2,), axis=1, replace=False),
    }

    hist = jnp.array([3, 3, 1, 12, 12])
    out["pen"] = (lambda s: L[0].at[hist].set(jnp.where(s > 0, s / 1.2, s * 1.2)))(L[0][hist])
    out["cnt"] = L[0] - 0.5 * jnp.zeros(13).at[hist].add(1)
    out["ban"] = L[0].at[jnp.array([1, 99, -1])].set(-jnp.inf)
    likelihoods = lambda l: jnp.take_along_axis(jax.nn.log_softmax(l), jnp.array([[1], [5], [0], [12]]), 1)
    outside = jnp.take_along_axis(L, jnp.array([[13], [-14], [0], [5]]), 1)
    out["ce"] = likelihoods(L), outside, jax.grad(lambda l: -jnp.sum(likelihoods(l)))(L)
    out["sm"] = (
        jax.nn.softmax(jnp.full((2, 3), -jnp.inf)),
        jax.nn.log_softmax(jnp.full((2, 3), -jnp.inf)),
        jax.nn.softmax(L, axis=(0, 1)),
        jax.nn.softmax(L, where=L > 0),
        jax.nn.softmax(jnp.zeros((2, 0))),
        jax.nn.logsumexp(L, axis=1, where=L > 1e3),
        jax.nn.one_hot(jnp.array([-1, 0, 13]), 13),
        jax.nn.one_hot(jnp.array([1.0, 2.5]), 4),
        jax.nn.one_hot(2, 4, dtype=bool, axis=0),
    )
    return out


def drafts_and_beams():
    """Tokens of a draft, accepted or drawn again, and beams that end at different lengths."""
    L = _logits()

    def spec(key, p, q):
        k1, k2, k3 = jax.random.split(key, 3)
        x = jax.random.categorical(k1, jnp.log(q))
        ok = jax.random.uniform(k2) < p[x] / q[x]
        r = jnp.maximum(p - q, 0)
        r = r / r.sum()
        y = jax.random.categorical(k3, jnp.log(r))
        return jnp.where(ok, x, y), ok

    drafts = jax.vmap(spec, (0, None, None))(
        jax.random.split(jax.random.key(1), 9), jax.nn.softmax(L[0]), jax.nn.softmax(L[0][::-1])
    )
    tr = jnp.array(_normal(5, 13, 13))

    def beam(K=3, T=5, EOS=2):
        def step(c, _):
            toks, sc, done, t = c
            lp = jax.nn.log_softmax(tr[toks[:, t]])
            lp = jnp.where(done[:, None], jnp.where(jnp.arange(13) == EOS, 0.0, -jnp.inf), lp)
            tot = sc[:, None] + lp
            s, i = lax.top_k(tot.ravel(), K)
            b, w = jnp.divmod(i, 13)
            toks = toks[b].at[:, t + 1].set(w)
            return (toks, s, done[b] | (w == EOS), t + 1), (s, b, w)

        return lax.scan(
            step,
            (jnp.zeros((K, T + 1), jnp.int32), jnp.array([0.0] + [-jnp.inf] * (K - 1)), jnp.zeros(K, bool), 0),
            None,
            length=T,
        )

    return {"spec": drafts, "beam": jax.jit(beam)()}


def lists_of_numbers_beside_data():
    """The dtypes of lists that mix Python numbers, NumPy scalars and arrays."""
    scalars = {
        "f16": np.float16(1),
        "bf16": jnp.bfloat16(1),
        "array16": jnp.float16(1),
        "i8": np.int8(1),
        "u8": jnp.uint8(1),
        "i64": np.int64(3),
        "f64": np.float64(1),
        "bool": np.bool_(True),
        "int": 2,
        "float": 2.0,
        "complex": 1j,
    }
    pairs = {f"{a} {b}": jnp.array([x, y]) for a, x in scalars.items() for b, y in scalars.items()}
    nested = {name: jnp.array([[x, 1], [2, 3.0]]) for name, x in scalars.items()}
    rows = {name: jnp.array([np.ones(1, np.int8), [x]]) for name, x in scalars.items()}
    return pairs, nested, rows


def writes_past_both_ends():
    """put, put_along_axis, bincount and .at at positions outside the array, in each mode."""
    x = jnp.arange(5.0)
    numbers = jnp.array([10.0, 20.0, 30.0])
    positions = [(0, 1, 9), (0, 4, 9), (0, -1, 2), (0, -9, 1), (-9, 0, 1), (9, 4, 1), (-6, 1, 2)]
    puts = {
        f"{mode} {at}": jnp.put(x, jnp.array(at), numbers, mode=mode, inplace=False)
        for mode in (None, "clip", "wrap")
        for at in positions
    }
    far = jnp.array([0, 7, -7, 2, 2])
    return (
        puts,
        [jnp.put_along_axis(x, far, 9.0, 0, inplace=False, mode=mode) for mode in (None, "clip")],
        [x.at[far].add(1.0, mode=mode) for mode in (None, "clip", "drop")],
        jax.ops.segment_sum(x, far, 5),
        jnp.bincount(jnp.array([9, -1, 1]), length=4),
        jnp.unravel_index(jnp.array([13, -1, -20]), (3, 4)),
        jnp.repeat(x, jnp.array([1, 0, 2, 1, 0]), total_repeat_length=7),
    )
