"""Whole programs over graphs, grammars, codes and tokens: integers, tables and masks."""

import dataclasses
import typing as tp
from functools import partial

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax import lax
from jax.experimental import sparse
from jax.ops import segment_max, segment_min, segment_prod, segment_sum


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


def messages_over_padded_graphs(sizes=(4, 7, 3), width=5, seed=0):
    rng = np.random.default_rng(seed)
    n_node = np.array([*sizes, 2])
    n_edge = np.array([2 * s for s in sizes] + [5])
    offsets = np.repeat(np.cumsum(n_node) - n_node, n_edge)
    draw = lambda: (rng.integers(0, 1 << 30, n_edge.sum()) % np.repeat(n_node, n_edge) + offsets).astype(np.int32)
    N, E = int(n_node.sum()), int(n_edge.sum())
    g = Graphs(
        nodes={
            "h": jnp.asarray(rng.normal(size=(N, width)), jnp.float32),
            "kind": jnp.asarray(rng.integers(0, 3, N), jnp.uint8),
        },
        edges=jnp.asarray(rng.normal(size=(E, 2)), jnp.float32),
        senders=draw(),
        receivers=draw(),
        n_node=n_node,
        n_edge=n_edge,
    )
    mats = [
        jnp.asarray(rng.normal(size=s) / 3, jnp.float32)
        for s in [(2 * width + 2, width), (3 * width, width), (3, width), (width,)]
    ]

    def layer(params, g):
        wm, wu, emb, att = params
        h = g.nodes["h"] + emb[g.nodes["kind"]]
        m = jax.nn.leaky_relu(jnp.concatenate([h[g.senders], h[g.receivers], g.edges], axis=1) @ wm)
        score = m @ att
        top = segment_max(score, g.receivers, N)
        w = jnp.exp(score - top[g.receivers])
        w = w / jnp.maximum(segment_sum(w, g.receivers, N)[g.receivers], 1e-9)
        mean = segment_sum(w[:, None] * m, g.receivers, num_segments=N)
        low = segment_min(m, g.receivers, N)
        low = jnp.where(jnp.isfinite(low), low, 0)
        h = jnp.tanh(jnp.concatenate([h, mean, low], -1) @ wu)
        return g.replace(nodes={**g.nodes, "h": h})

    owner = jnp.repeat(jnp.arange(len(n_node)), jnp.asarray(n_node), total_repeat_length=N)
    mask = owner < len(sizes)

    @jax.jit
    def readout(params, g):
        for p in params:
            g = layer(p, g)
        pooled = segment_sum(jnp.where(mask[:, None], g.nodes["h"], 0), owner, len(n_node), indices_are_sorted=True)
        counts = segment_sum(jnp.ones(N), owner, len(n_node))
        return (pooled / counts[:, None])[: len(sizes)], g

    loss = lambda params: jnp.sum(readout(params, g)[0] ** 2)
    value, grads = jax.value_and_grad(loss)([mats, mats])
    degree = jnp.zeros(N, jnp.int32).at[g.receivers].add(1)
    # PageRank and its sensitivities; Laplacian by BCOO; components by label propagation
    P = sparse.BCOO(
        (1.0 / jnp.maximum(jnp.bincount(g.senders, length=N), 1)[g.senders], jnp.stack([g.receivers, g.senders], 1)),
        shape=(N, N),
    )

    def rank(d):
        def body(s):
            r, _, i = s
            new = d * (P @ r) + (1 - d * jnp.sum(P @ r)) / N
            return new, jnp.abs(new - r).sum(), i + 1

        return lax.while_loop(lambda s: (s[1] > 1e-6) & (s[2] < 60), body, (jnp.full(N, 1 / N), jnp.inf, 0))

    r, err, it = rank(0.85)
    dr = jax.jvp(lambda d: rank(d)[0], (0.85,), (1.0,))[1]

    def spread(labels):
        m = jnp.minimum(labels, segment_min(labels[g.senders], g.receivers, N))
        return jnp.minimum(m, jnp.full_like(m, N).at[g.senders].min(m[g.receivers]))

    labels = lax.while_loop(
        lambda c: jnp.any(c[0] != c[1]), lambda c: (spread(c[0]), c[0]), (jnp.arange(N), jnp.full(N, -1))
    )[0]
    dense = P.todense()
    paths = lax.reduce(jnp.linalg.matrix_power(dense, 3), 0.0, lax.add, (0,))
    prods = segment_prod(jnp.arange(1.0, E + 1) / E, g.senders, N)
    keys = np.array([jtu.keystr(k) for k, _ in jtu.tree_leaves_with_path(g)])
    return readout([mats, mats], g)[0], value, grads, degree, r, it, err < 1e-6, dr, labels, paths, prods, keys


def pairs_of_bytes_merged(text="the theatre thaws then the thin thistles thicken there", merges=12, room=64):
    """Byte-pair encoding in integers: counts by a dense table and by sorting, merging by scans."""
    data = np.frombuffer(text.encode(), dtype=np.uint8)
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

        def cond(s):
            return s["top"] >= 0

        def body(s):
            t = s["stack"][s["top"]]
            leaf = t < 27
            pair = pairs[jnp.maximum(t - 27, 0)]
            out = lax.cond(leaf, lambda o: o.at[s["n"]].set(t), lambda o: o, s["out"])
            stack = jnp.where(leaf, s["stack"], s["stack"].at[s["top"]].set(pair[1]).at[s["top"] + 1].set(pair[0]))
            return dict(stack=stack, top=s["top"] + jnp.where(leaf, -1, 1), out=out, n=s["n"] + leaf)

        return lax.while_loop(cond, body, dict(stack=stack, top=0, out=jnp.full(32, -1), n=0))["out"]

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
                left = lax.dynamic_slice(table, (i, i + 1, 0), (1, span - 1, S))[0]
                right = lax.dynamic_index_in_dim(table, i + span, axis=1, keepdims=False)
                right = lax.dynamic_slice_in_dim(right, i + 1, span - 1)
                scores = left[:, None, :, None] + right[:, None, None, :] + rules[None]
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


def boards_of_bits(n=6, plies=9):
    """Queens by a stack of bit masks; four in a row in 64 bits; perft by scans of switches."""

    def queens(n):
        full = jnp.uint32((1 << n) - 1)

        def body(s):
            sp, cols, left, right, free, found = s
            top = free[sp]
            bit = top & (~top + jnp.uint32(1))
            free = free.at[sp].set(top ^ bit)
            c, l, r = cols[sp] | bit, ((left[sp] | bit) << 1) & full, (right[sp] | bit) >> 1
            empty, whole = top == 0, c == full
            push = ~empty & ~whole
            nsp = jnp.where(empty, sp - 1, jnp.where(push, sp + 1, sp))
            at = jnp.where(push, sp + 1, n + 1)
            put = lambda a, v: a.at[at].set(v, mode="drop")
            return (
                nsp,
                put(cols, c),
                put(left, l),
                put(right, r),
                put(free, ~(c | l | r) & full),
                found + (~empty & whole),
            )

        z = jnp.zeros(n + 1, jnp.uint32)
        start = (0, z, z, z, z.at[0].set(full), 0)
        return lax.while_loop(lambda s: s[0] >= 0, body, start)[-1]

    counts = jnp.stack([jax.jit(queens, static_argnums=0)(k) for k in (4, 5, n)])
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

    def huffman(freq):
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

    depth = huffman(hist)
    bits = jnp.unpackbits(coded[0].view(jnp.uint8), axis=-1, bitorder="little")
    psnr = 10 * jnp.log10(255**2 / jnp.mean((back[0] - planes[0]) ** 2))
    delta = jnp.diff(coded[1][:, 0], prepend=coded[1][:1, 0])
    wide = lax.bitcast_convert_type(coded[0][0].reshape(16, 4), jnp.int32)
    cast = (back[0].clip(0, 255).astype(jnp.uint8) - image, (image + jnp.uint8(200)) >> 1, image // jnp.uint8(7) % 3)
    return coded, back, lengths, hist, depth, jnp.vdot(hist, depth), bits.sum(1), psnr, delta, wide, cast


def beams_with_a_cache_and_a_trie(V=11, beam=3, steps=6, width=8):
    """Beams that a trie restrains, a ring of keys and values, a draft that is verified."""
    ks = jax.random.split(jax.random.PRNGKey(12), 5)
    emb, wq, wk, wv = (jax.random.normal(k, s) / 2 for k, s in zip(ks, [(V, width)] + [(width, width)] * 3))
    words = [[1, 2, 3], [1, 2, 4, 5], [6, 7], [6, 8, 9, 10]]
    trie = np.full((16, V), -1, np.int32)
    n = 1
    for w in words:
        at = 0
        for t in w:
            if trie[at, t] < 0:
                trie[at, t], n = n, n + 1
            at = trie[at, t]
        trie[at, 0] = 0
    trie = jnp.asarray(trie)

    def model(cache, pos, token):
        x = emb[token]
        cache = jax.tree.map(
            lambda c, v: lax.dynamic_update_slice(c, v[None], (pos % 4, 0)), cache, {"k": x @ wk, "v": x @ wv}
        )
        live = jnp.arange(4) <= pos
        a = jax.nn.softmax(jnp.where(live, cache["k"] @ (x @ wq) / width**0.5, jnp.finfo(jnp.float32).min))
        return cache, jax.nn.log_softmax((x + a @ cache["v"]) @ emb.T)

    @partial(jax.jit, static_argnames=["constrained"])
    def search(constrained=True):
        zero = {"k": jnp.zeros((beam, 4, width)), "v": jnp.zeros((beam, 4, width))}
        state = (
            zero,
            jnp.zeros(beam, jnp.int32),
            jnp.where(jnp.arange(beam) > 0, -jnp.inf, 0.0),
            jnp.zeros(beam, jnp.int32),
            jnp.zeros((beam, steps), jnp.int32),
        )

        def step(s, pos):
            cache, token, score, node, seq = s
            cache, lp = jax.vmap(model, in_axes=({"k": 0, "v": 0}, None, 0))(cache, pos, token)
            if constrained:
                lp = jnp.where(trie[node] >= 0, lp, -jnp.inf)
            total = (score[:, None] + lp).reshape(-1)
            score, flat = lax.top_k(total, beam)
            parent, token = jnp.divmod(flat, V)
            cache, node, seq = jax.tree.map(lambda a: a[parent], (cache, node, seq))
            return (cache, token.astype(jnp.int32), score, trie[node, token], seq.at[:, pos].set(token)), (
                score,
                parent,
            )

        return lax.scan(step, state, jnp.arange(steps))

    (_, _, score, node, seq), trace = search()
    free = search(constrained=False)[0][4]
    # speculative sampling: accepted while u < p / q, then one more of the remainder
    p = jax.nn.softmax(jax.random.normal(ks[3], (4, V)) * 2)
    q = jax.nn.softmax(jax.random.normal(ks[4], (4, V)))

    def verify(key):
        ku, kd, kr = jax.random.split(key, 3)
        draft = jax.random.categorical(kd, jnp.log(q), axis=-1)
        i = jnp.arange(4)
        ok = jax.random.uniform(ku, (4,)) < p[i, draft] / q[i, draft]
        accepted = jnp.cumprod(ok).sum()
        j = jnp.minimum(accepted, 3)
        rest = jnp.maximum(p[j] - q[j], 0)
        probs = jnp.where(accepted < 4, rest / rest.sum(), p[3])
        return accepted, jnp.where(i < accepted, draft, -1), jax.random.choice(kr, V, p=probs)

    many = jax.vmap(verify)(jax.random.split(jax.random.key(1), 50))
    nucleus = jnp.sort(p, axis=-1, descending=True).cumsum(-1)
    cut = jax.vmap(partial(jnp.searchsorted, side="right"), (0, None))(nucleus, 0.8)
    return seq, score, node, trace, free, many, cut, jnp.bincount(many[0], length=5)
