"""Whole programs over graphs, grammars, codes and tokens: integers, tables and masks."""

import dataclasses
import typing as tp
from functools import partial

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax import lax


@jtu.register_pytree_with_keys_class
class Graphs:
    """A batch of graphs, padded by one that is empty."""

    fields = ("nodes", "edges", "senders", "receivers", "n_node", "n_edge")

    def __init__(self, **kw):
        self.__dict__.update({f: kw.get(f) for f in self.fields})

    def tree_flatten_with_keys(self):
        return [(jtu.GetAttrKey(f), getattr(self, f)) for f in self.fields], None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(**dict(zip(cls.fields, children)))

    def replace(self, **kw):
        return type(self)(**{**self.__dict__, **kw})


def pairs_of_bytes_merged(text="the theatre thaws then the thin thistles thicken there", merges=12, room=64):
    """Byte-pair encoding in integers: counts by a dense table and by sorting, merging by scans."""
    data = np.frombuffer(text.encode(), np.uint8)
    ids = jnp.full(room, -1, jnp.int32).at[: len(data)].set(data.astype(np.int32) - 97 + 0)
    ids = jnp.where((ids < 0) & (jnp.arange(room) < len(data)), 26, ids)
    V = 27 + merges

    def count(ids):
        a, b = ids[:-1], ids[1:]
        ok = (a >= 0) & (b >= 0)
        return jnp.zeros((V, V), jnp.int32).at[jnp.where(ok, a, V), jnp.where(ok, b, V)].add(1, mode="drop")

    def count_by_sorting(ids):
        code = jnp.where((ids[:-1] >= 0) & (ids[1:] >= 0), ids[:-1] * V + ids[1:], jnp.iinfo(jnp.int32).max)
        values, counts = jnp.unique(code, return_counts=True, size=room, fill_value=-1)
        return jnp.max(jnp.where((values >= 0) & (values < V * V), counts, 0))

    def merge(ids, pair, new):
        def step(skip, x):
            cur, nxt = x
            hit = jnp.logical_and(~skip, (cur == pair[0]) & (nxt == pair[1]))
            return hit, jnp.where(skip, -2, jnp.where(hit, new, cur))

        _, out = lax.scan(step, jnp.bool_(False), (ids, jnp.concatenate([ids[1:], jnp.array([-1])])))
        keep = out > -2
        order = jnp.argsort(~keep, stable=True)
        return jnp.where(jnp.arange(room) < keep.sum(), out[order], -1)

    @jax.jit
    def train(ids):
        def body(ids, new):
            c = count(ids)
            flat = jnp.argmax(c)
            pair = jnp.stack(jnp.unravel_index(flat, c.shape))
            return merge(ids, pair, new), (pair, c.max(), count_by_sorting(ids), (ids >= 0).sum())

        return lax.scan(body, ids, jnp.arange(27, V))

    final, (pairs, best, again, lengths) = train(ids)

    def expand(token):
        stack = jnp.full(32, -1).at[0].set(token)

        def body(s):
            t = s["stack"][s["top"]]
            leaf = t < 27
            pair = pairs[jnp.maximum(t - 27, 0)]
            out = lax.cond(leaf, lambda o: o.at[s["n"]].set(t), lambda o: o, s["out"])
            stack = jnp.where(leaf, s["stack"], s["stack"].at[s["top"]].set(pair[1]).at[s["top"] + 1].set(pair[0]))
            return dict(stack=stack, top=s["top"] + jnp.where(leaf, -1, 1), out=out, n=s["n"] + leaf)

        return lax.while_loop(lambda s: s["top"] >= 0, body, dict(stack=stack, top=0, out=jnp.full(32, -1), n=0))["out"]

    back = jax.vmap(expand)(final)
    crc = lax.fori_loop(
        0, room, lambda i, h: (h ^ final[i].astype(jnp.uint32)) * jnp.uint32(16777619), jnp.uint32(2166136261)
    )
    return final, pairs, best, again, lengths, back[:5], crc, jnp.packbits(final > 26), jnp.bitwise_count(crc)


def a_grammar_inside_and_outside(n=6, S=4, V=5):
    """CYK with dynamic slices; expected counts as gradients; the best tree by another semiring."""
    key = jax.random.key(9)
    k1, k2, k3 = jax.random.split(key, 3)
    rules = jax.nn.log_softmax(jax.random.normal(k1, (S, S * S)), -1).reshape(S, S, S)
    emit = jax.nn.log_softmax(jax.random.normal(k2, (S, V)))
    words = jax.random.randint(k3, (n,), 0, V)

    def chart(rules, emit, plus):
        table = jnp.full((n, n + 1, S), -1e9)
        table = table.at[jnp.arange(n), jnp.arange(n) + 1].set(emit[:, words].T)
        for span in range(2, n + 1):

            def cell(i, span=span, table=table):
                lower = lax.dynamic_slice(table, (i, i + 1, 0), (1, span - 1, S))[0]
                right = lax.dynamic_index_in_dim(table, i + span, axis=1, keepdims=False)
                right = lax.dynamic_slice_in_dim(right, i + 1, span - 1)
                scores = lower[:, None, :, None] + right[:, None, None, :] + rules[None]
                return plus(scores.transpose(1, 0, 2, 3).reshape(S, -1))

            starts = jnp.arange(n - span + 1)
            table = table.at[starts, starts + span].set(jax.vmap(cell)(starts))
        return table[0, n]

    lse = partial(jax.scipy.special.logsumexp, axis=1)
    inside = lambda r, e: lse(chart(r, e, lse)[None])[0]
    z, (counts, words_counts) = jax.value_and_grad(inside, argnums=(0, 1))(rules, emit)
    best, tree = jax.value_and_grad(lambda r, e: jnp.max(chart(r, e, lambda s: s.max(1))), (0, 1))(rules, emit)
    entropy = z - jnp.vdot(counts, rules) - jnp.vdot(words_counts, emit)
    eh = jax.jvp(jax.grad(lambda r: inside(r, emit)), (rules,), (rules,))[1]
    return z, counts, words_counts, best, tree, entropy, eh.sum((1, 2)), jnp.round(counts.sum(), 3)


class Board(tp.NamedTuple):
    me: jax.Array
    you: jax.Array
    turn: jax.Array


def _queens(n):
    full = jnp.uint32((1 << n) - 1)

    def body(s):
        sp, cols, lower, right, free, count = s
        top = free[sp]
        bit = top & (~top + jnp.uint32(1))
        free = free.at[sp].set(top ^ bit)
        c, l, r = cols[sp] | bit, ((lower[sp] | bit) << 1) & full, (right[sp] | bit) >> 1
        empty, complete = top == 0, c == full
        push = ~empty & ~complete
        nsp = jnp.where(empty, sp - 1, jnp.where(push, sp + 1, sp))
        at = jnp.where(push, sp + 1, n + 1)
        put = lambda a, v: a.at[at].set(v, mode="drop")
        return (
            nsp,
            put(cols, c),
            put(lower, l),
            put(right, r),
            put(free, ~(c | l | r) & full),
            count + (~empty & complete),
        )

    z = jnp.zeros(n + 1, jnp.uint32)
    start = (0, z, z, z, z.at[0].set(full), 0)
    return lax.while_loop(lambda s: s[0] >= 0, body, start)[-1]


def boards_of_bits(n=6, plies=9):
    """Queens by a stack of bit masks; four in a row in 64 bits; perft by scans of switches."""

    counts = jnp.stack([jax.jit(_queens, static_argnums=0)(k) for k in (4, 5, n)])
    with jax.enable_x64(True):
        top = jnp.uint64(sum(1 << (7 * c + 6) for c in range(7)))

        def won(b):
            dirs = jnp.array([1, 6, 7, 8], jnp.uint64)
            m = b & (b >> dirs)
            return jnp.any(m & (m >> (2 * dirs)) != 0)

        def play(s: Board, col):
            mask = s.me | s.you
            bottom = jnp.uint64(1) << (jnp.uint64(7) * col.astype(jnp.uint64))
            move = (mask + bottom) & ~mask & (jnp.uint64(127) << (jnp.uint64(7) * col.astype(jnp.uint64)))
            legal = (move & top) == 0
            me = jnp.where(legal, s.me | move, s.me)
            return jax.tree.map(partial(jnp.where, legal), Board(s.you, me, s.turn + 1), s), (
                won(me),
                legal,
                lax.population_count(me),
            )

        start = Board(jnp.uint64(0), jnp.uint64(0), jnp.int32(0))
        games = jax.random.randint(jax.random.key(2), (5, 4 * plies), 0, 7)
        ends, (wins, legal, stones) = jax.jit(jax.vmap(lambda g: lax.scan(play, start, g)))(games)
        first = jnp.where(wins.any(1), jnp.argmax(wins, 1), -1)
        planes = (ends.me[:, None] >> jnp.arange(49, dtype=jnp.uint64)) & 1
        mixed = (ends.me * jnp.uint64(0x9E3779B97F4A7C15)) >> 40

    def turtle(s, op):
        step = lambda d: lambda s: s.at[:2].add(jnp.array(d) * s[2])
        return lax.switch(
            op, [step((0, 1)), step((1, 0)), step((0, -1)), lambda s: s.at[2].multiply(-1), lambda s: s // 2], s
        ), s[0]

    walk = lax.scan(turtle, jnp.array([0, 0, 1]), jnp.asarray([0, 0, 1, 1, 3, 0, 4, 7, -3, 2]))
    return counts, ends, first, legal.sum(), stones[:, -1], planes, mixed, walk


@dataclasses.dataclass
class Codec:
    quality: int
    table: np.ndarray

    def scale(self):
        q = 5000 // self.quality if self.quality < 50 else 200 - 2 * self.quality
        return np.clip((self.table * q + 50) // 100, 1, 255).astype(np.uint8)


def _huffman(freq):
    k = len(freq)
    w = jnp.where(freq > 0, freq, jnp.iinfo(jnp.int32).max // 4).astype(jnp.int32)
    group = jnp.arange(k)

    def join(_, s):
        w, group, depth = s
        a = jnp.argmin(w)
        wa = w[a]
        w2 = w.at[a].set(jnp.iinfo(jnp.int32).max // 2)
        b = jnp.argmin(w2)
        ok = w2[b] < jnp.iinfo(jnp.int32).max // 4
        depth = depth + jnp.where(ok & ((group == a) | (group == b)), 1, 0)
        group = jnp.where(ok & (group == b), a, group)
        return jnp.where(ok, w2.at[a].set(wa + w2[b]).at[b].set(jnp.iinfo(jnp.int32).max // 2), w), group, depth

    return lax.fori_loop(0, k - 1, join, (w, group, jnp.zeros(k, jnp.int32)))[2]


def a_picture_code(h=16, w=24, quality=35):
    """Blocks, cosines, zigzag, int8, run lengths, Huffman lengths, and back."""
    base = np.add.outer(np.arange(8), np.arange(8)) * 7 + 16
    q = jnp.asarray(Codec(quality, base).scale())
    yy, xx = jnp.mgrid[:h, :w]
    image = (
        (127 + 80 * jnp.sin(xx / 3.0) * jnp.cos(yy / 4.0) + 20 * ((xx // 5 + yy // 3) % 2))
        .clip(0, 255)
        .astype(jnp.uint8)
    )
    rgb = jnp.stack([image, image[::-1], 255 - image], -1)
    M = jnp.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
    ycc = rgb.astype(jnp.float32) @ M.T + jnp.array([0, 128.0, 128.0])
    blocks = lambda p: p.reshape(p.shape[0] // 8, 8, -1, 8).swapaxes(1, 2).reshape(-1, 8, 8)
    zig = np.array(sorted(range(64), key=lambda k: (k // 8 + k % 8, (k // 8 if (k // 8 + k % 8) % 2 else k % 8))))

    @jax.jit
    def encode(plane):
        b = blocks(plane) - 128
        d = jax.scipy.fft.dctn(b, axes=(1, 2), norm="ortho")
        coded = jnp.round(d / q).clip(-127, 127).astype(jnp.int8)
        return coded.reshape(-1, 64)[:, zig]

    @jax.jit
    def decode(coded):
        d = jnp.zeros_like(coded).at[:, zig].set(coded).reshape(-1, 8, 8).astype(jnp.float32) * q
        b = jax.scipy.fft.idctn(d, axes=(1, 2), norm="ortho") + 128
        return b.reshape(h // 8, w // 8, 8, 8).swapaxes(1, 2).reshape(h, w)

    planes = [ycc[..., 0], ycc[..., 1]]
    coded = [encode(p) for p in planes]
    back = [decode(c) for c in coded]
    sym = jnp.concatenate(coded).ravel()

    def runs(block):
        def f(run, v):
            return jnp.where(v == 0, run + 1, 0), jnp.where(v == 0, -1, run)

        return lax.scan(f, 0, block)[1]

    lengths = jax.vmap(runs)(coded[0])
    size = jnp.where(sym == 0, 0, 8 - lax.clz(jnp.abs(sym).astype(jnp.uint8)).astype(jnp.int32))
    hist = jnp.bincount(size, length=8)

    depth = _huffman(hist)
    bits = jnp.unpackbits(coded[0].view(jnp.uint8), axis=-1, bitorder="little")
    psnr = 10 * jnp.log10(255**2 / jnp.mean((back[0] - planes[0]) ** 2))
    delta = jnp.diff(coded[1][:, 0], prepend=coded[1][:1, 0])
    wide = lax.bitcast_convert_type(coded[0][0].reshape(16, 4), jnp.int32)
    cast = (back[0].clip(0, 255).astype(jnp.uint8) - image, (image + jnp.uint8(200)) >> 1, image // jnp.uint8(7) % 3)
    return coded, back, lengths, hist, depth, jnp.vdot(hist, depth), bits.sum(1), psnr, delta, wide, cast
