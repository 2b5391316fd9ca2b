"""Whole programs of people who build networks of newer kinds."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random


def _normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def _join(a, b):
    return a[0] * b[0], b[0] * a[1] + b[1]


def _read(p, u, h, c):
    return jnp.einsum("bldn,bln->bld", h, c) + p["skip"] * u


def selective_scan_as_mamba():
    """The recurrence in parallel, in chunks and step by step, with gradients of each."""
    B, L, D, N = 2, 37, 7, 3
    k = random.split(random.key(3), 6)
    p = {
        "A": -jnp.exp(random.normal(k[0], (D, N)) * 0.3),
        "wB": random.normal(k[1], (D, N)) * 0.4,
        "wC": random.normal(k[2], (D, N)) * 0.4,
        "dt": random.normal(k[3], (D,)),
        "conv": random.normal(k[4], (4, 1, D)) * 0.5,
        "skip": jnp.ones(D),
    }
    x = random.normal(k[5], (B, L, D))

    def prepared(p, x):
        u = lax.conv_general_dilated(
            x, p["conv"], (1,), ((3, 0),), dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=D
        )
        u = jax.nn.silu(u)
        dt = jax.nn.softplus(u + p["dt"])
        decay = jnp.exp(dt[..., None] * p["A"])
        drive = (dt * u)[..., None] * jnp.einsum("bld,dn->bln", u, p["wB"])[:, :, None, :]
        return u, decay, drive, jnp.einsum("bld,dn->bln", u, p["wC"])

    def parallel(p, x):
        u, decay, drive, c = prepared(p, x)
        return _read(p, u, lax.associative_scan(_join, (decay, drive), axis=1)[1], c)

    def stepwise(p, x):
        u, decay, drive, c = prepared(p, x)

        def step(h, ad):
            h = ad[0] * h + ad[1]
            return h, h

        _, h = lax.scan(step, jnp.zeros((B, D, N)), (decay.swapaxes(0, 1), drive.swapaxes(0, 1)), unroll=5)
        return _read(p, u, h.swapaxes(0, 1), c)

    def chunked(p, x, size=8):
        u, decay, drive, c = prepared(p, x)
        pad = -L % size
        a = jnp.pad(decay, ((0, 0), (0, pad), (0, 0), (0, 0)), constant_values=1)
        d = jnp.pad(drive, ((0, 0), (0, pad), (0, 0), (0, 0)))
        a, d = (t.reshape(B, -1, size, D, N).swapaxes(0, 1) for t in (a, d))

        @jax.checkpoint
        def chunk(h, ad):
            a, d = lax.associative_scan(_join, ad, axis=1)
            hs = a * h[:, None] + d
            return hs[:, -1], hs

        _, h = lax.scan(chunk, jnp.zeros((B, D, N)), (a, d))
        h = h.swapaxes(0, 1).reshape(B, -1, D, N)[:, :L]
        return _read(p, u, h, c)

    def loss(f):
        return jax.jit(jax.value_and_grad(lambda p: jnp.mean(jnp.tanh(f(p, x)) ** 2)))

    return [f(p, x) for f in (parallel, stepwise, chunked)], [loss(f)(p) for f in (parallel, stepwise, chunked)]


def mixture_of_experts_with_capacity():
    T, D, E, H, K, CAP = 53, 11, 5, 13, 2, 19
    k = random.split(random.key(11), 4)
    p = {
        "gate": random.normal(k[0], (D, E)) * 0.5,
        "up": random.normal(k[1], (E, D, H)) * 0.3,
        "down": random.normal(k[2], (E, H, D)) * 0.3,
    }
    x = random.normal(k[3], (T, D))

    def layer(p, x):
        probs = jax.nn.softmax(x @ p["gate"])
        weight, expert = lax.top_k(probs, K)
        weight = weight / weight.sum(-1, keepdims=True)
        hot = jax.nn.one_hot(expert.T.reshape(-1), E, dtype=jnp.int32)
        rank = ((jnp.cumsum(hot, 0) - 1) * hot).sum(-1)
        keep = rank < CAP
        slot = jnp.where(keep, expert.T.reshape(-1) * CAP + rank, E * CAP)
        rows = jnp.zeros((E * CAP, D)).at[slot].set(jnp.tile(x, (K, 1)), mode="drop")
        y = jax.nn.gelu(jnp.einsum("ecd,edh->ech", rows.reshape(E, CAP, D), p["up"]))
        y = jnp.einsum("ech,ehd->ecd", y, p["down"]).reshape(-1, D)
        out = y.at[slot].get(mode="fill", fill_value=0) * weight.T.reshape(-1, 1)
        load = hot.sum(0) / hot.sum()
        return (
            out.reshape(K, T, D).sum(0),
            E * jnp.sum(load * probs.mean(0)),
            keep.sum(),
            jnp.bincount(slot, length=E * CAP + 1),
        )

    def by_groups(p, x):
        expert = jnp.argmax(x @ p["gate"], -1)
        order = jnp.argsort(expert, stable=True)
        sizes = jnp.bincount(expert, length=E).astype(jnp.int32)
        y = lax.ragged_dot(x[order], p["up"], sizes)
        y = lax.ragged_dot(jax.nn.relu(y), p["down"], sizes)
        return jnp.zeros_like(x).at[order].set(y), sizes

    def loss(p):
        y, balance, _, _ = layer(p, x)
        return jnp.mean((y - x) ** 2) + 0.01 * balance

    out = layer(p, x)
    return out, by_groups(p, x), jax.jit(jax.value_and_grad(loss))(p)


def hash_grid_encoding():
    LEVELS, SIZE, F = 4, 2**9, 2
    primes = np.array([1, 2654435761, 805459861], np.uint32)
    key = random.key(5)
    table = random.uniform(key, (LEVELS, SIZE, F), minval=-0.1, maxval=0.1)
    points = random.uniform(random.fold_in(key, 1), (61, 3))
    corners = np.stack(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij"), -1).reshape(8, 3).astype(np.uint32)

    def level(table, resolution, x):
        at = x * resolution
        low = jnp.floor(at)
        part = at - low
        cell = low.astype(jnp.uint32) + corners
        hashed = cell * primes
        index = (hashed[:, 0] ^ hashed[:, 1] ^ hashed[:, 2]) % SIZE
        weight = jnp.prod(jnp.where(corners == 1, part, 1 - part), -1)
        return weight @ table[index], index

    resolutions = jnp.array([4.0, 7.0, 13.0, 23.0])
    encode = jax.vmap(jax.vmap(level, (0, 0, None)), (None, None, 0))

    def field(table, x):
        return jnp.tanh(encode(table, resolutions, x)[0].reshape(x.shape[0], -1)).sum(-1)

    def loss(table):
        return jnp.mean((field(table, points) - jnp.sin(7 * points[:, 0])) ** 2)

    @jax.jit
    def step(table, _):
        l, g = jax.value_and_grad(loss)(table)
        return table - 0.5 * g, l

    trained, losses = lax.scan(step, table, None, length=7)
    normals = jax.vmap(jax.grad(lambda x: field(trained, x[None])[0]))(points[:5])
    return encode(table, resolutions, points)[1], trained, losses, normals


def attention_over_edges_by_segments():
    N, E, D, H = 23, 79, 9, 3
    rng = np.random.default_rng(8)
    src, dst = (rng.integers(0, N, E).astype("int32") for _ in range(2))
    dst[dst == 4] = 5  # a node that nothing reaches
    x, w, a = _normal(1, N, D), _normal(2, D, H * D) * 0.3, _normal(3, 2, H, D)

    def softmax(score, segments):
        top = jax.ops.segment_max(score, segments, N)
        e = jnp.exp(score - top[segments])
        return e / jax.ops.segment_sum(e, segments, N)[segments]

    def layer(w, a, x):
        h = (x @ w).reshape(N, H, D)
        score = jnp.einsum("nhd,hd->nh", h, a[0])[src] + jnp.einsum("nhd,hd->nh", h, a[1])[dst]
        alpha = softmax(jax.nn.leaky_relu(score, 0.2), dst)
        return jax.ops.segment_sum(alpha[..., None] * h[src], dst, N), alpha

    def pooled(w, a, x):
        y, _ = layer(w, a, x)
        graph = jnp.arange(N) // 9
        mean = jax.ops.segment_sum(y, graph, 3) / jax.ops.segment_sum(jnp.ones(N), graph, 3)[:, None, None]
        low = jax.ops.segment_min(y, graph, 4, indices_are_sorted=True)
        return mean, low

    def loss(w, a, x):
        mean, low = pooled(w, a, x)
        return jnp.sum(mean**2) + jnp.sum(jnp.tanh(low[:3]))

    grads = jax.jit(jax.grad(loss, (0, 1, 2)))(w, a, x)
    _, hvp = jax.jvp(jax.grad(loss), (w, a, x), (w, jnp.zeros_like(a), jnp.ones_like(x)))
    return layer(w, a, x), pooled(w, a, x), jax.ops.segment_prod(jnp.tanh(x), dst[:N] // 4, 6), grads, hvp


def quantised_adapter_layers():
    """Rows of int8 with scales, blocks of four bits, and a low-rank part that learns."""
    I, O, R, BLOCK = 45, 17, 3, 15
    w, x, y = _normal(4, O, I), _normal(5, 29, I), _normal(6, 29, O)

    def to_int8(w):
        scale = jnp.max(jnp.abs(w), -1, keepdims=True) / 127
        return jnp.clip(jnp.round(w / scale), -127, 127).astype(jnp.int8), scale

    levels = jnp.array(np.sort(np.tanh(np.linspace(-1.5, 1.5, 16))), jnp.float32)

    def to_four_bits(w):
        blocks = w.reshape(-1, BLOCK)
        top = jnp.abs(blocks).max(-1, keepdims=True)
        code = jnp.argmin(jnp.abs(blocks[..., None] / top[..., None] - levels), -1).astype(jnp.uint8).reshape(-1)
        code = jnp.pad(code, (0, code.size % 2))
        return code[::2] << 4 | code[1::2], top

    def from_four_bits(packed, top):
        code = jnp.stack([packed >> 4, packed & 0xF], -1).reshape(-1)[: w.size]
        return (levels[code].reshape(-1, BLOCK) * top).reshape(w.shape)

    q, scale = to_int8(w)
    packed, top = to_four_bits(w)
    qx, sx = to_int8(x)
    total = lax.dot_general(qx, q, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32)

    @jax.custom_vjp
    def rounded(x):
        return jnp.round(x)

    rounded.defvjp(lambda x: (jnp.round(x), None), lambda _, g: (g,))

    def loss(lora, base):
        a, b = lora
        out = x @ base.T + (x @ a.T) @ b.T * 0.5
        return jnp.mean((rounded(out * 8) / 8 - y) ** 2)

    lora, value = (_normal(7, R, I) * 0.1, jnp.zeros((O, R))), jnp.inf
    step = jax.jit(jax.value_and_grad(loss))
    for _ in range(5):
        value, g = step(lora, from_four_bits(packed, top))
        lora = jax.tree.map(lambda p, d: p - 0.3 * d, lora, g)
    return q, scale, packed, top, total, total * sx * scale.T, value, lora


def sampling_with_nucleus_and_penalties():
    V, T, B = 31, 19, 3
    emb, out = jnp.asarray(_normal(9, V, 12)), _normal(10, 12, V)

    def logits_of(h):
        return jnp.tanh(h) @ out * 1.7

    def filtered(logits, top_k, top_p, minimum):
        kth = lax.top_k(logits, top_k)[0][..., -1:]
        logits = jnp.where(logits < kth, -jnp.inf, logits)
        order = jnp.argsort(-logits, -1)
        ranked = jnp.take_along_axis(jax.nn.softmax(logits), order, -1)
        drop = jnp.cumsum(ranked, -1) - ranked > top_p
        drop = jnp.put_along_axis(jnp.zeros_like(drop), order, drop, -1, inplace=False)
        probs = jax.nn.softmax(jnp.where(drop, -jnp.inf, logits))
        return jnp.where(
            probs < minimum * probs.max(-1, keepdims=True), -jnp.inf, logits + jnp.where(drop, -jnp.inf, 0)
        )

    @functools.partial(jax.jit, static_argnames=("top_k",))
    def generate(key, prompt, top_k=7, top_p=0.8, temperature=0.9):
        tokens = jnp.full((B, T), -1).at[:, 0].set(prompt)
        h = emb[prompt]
        counts = jax.nn.one_hot(prompt, V, dtype=jnp.int32)

        def body(c):
            t, key, h, tokens, counts, done = c
            key, sub = random.split(key)
            logits = logits_of(h)
            logits = jnp.where(counts > 0, jnp.where(logits > 0, logits / 1.3, logits * 1.3), logits) - 0.1 * counts
            token = random.categorical(sub, filtered(logits / temperature, top_k, top_p, 0.02))
            token = jnp.where(done, 0, token)
            tokens = lax.dynamic_update_slice_in_dim(tokens, token[:, None], t, 1)
            h = 0.6 * h + emb[token]
            return t + 1, key, h, tokens, counts.at[jnp.arange(B), token].add(1), done | (token == 3)

        c = lax.while_loop(lambda c: (c[0] < T) & ~c[5].all(), body, (1, key, h, tokens, counts, jnp.zeros(B, bool)))
        return c[0], c[3], c[4], c[5]

    prompt = jnp.array([2, 5, 30])
    return [generate(random.key(s), prompt) for s in (0, 1)], generate(random.key(2), prompt, top_k=31, top_p=1.0)


def local_attention_in_windows():
    B, L, H, D, W = 2, 41, 2, 5, 7
    q, k, v = (_normal(s, B, L, H, D) for s in (11, 12, 13))
    slopes = 2.0 ** -jnp.arange(1, H + 1)

    def masked(q, k, v):
        i, j = jnp.arange(L)[:, None], jnp.arange(L)
        near = (i - j >= 0) & (i - j < W)
        bias = jnp.where(near, -slopes[:, None, None] * (i - j), -jnp.inf)
        s = jnp.einsum("blhd,bmhd->bhlm", q, k) / np.sqrt(D) + bias
        return jnp.einsum("bhlm,bmhd->blhd", jax.nn.softmax(s), v)

    def windowed(q, k, v):
        at = jnp.arange(L)[:, None] - jnp.arange(W)
        kk, vv = (jnp.take(t, at, axis=1, mode="clip") for t in (k, v))
        s = jnp.einsum("blhd,blwhd->bhlw", q, kk) / np.sqrt(D) - slopes[:, None, None] * jnp.arange(W)
        p = jax.nn.softmax(s, where=at >= 0, axis=-1)
        return jnp.einsum("bhlw,blwhd->blhd", p, vv)

    def streamed(q, k, v):
        def block(carry, kv):
            m, z, acc, j = carry
            kj, vj = kv
            gap = jnp.arange(L) - j
            s = jnp.einsum("blhd,bhd->bhl", q, kj) / np.sqrt(D) - slopes[:, None] * gap
            s = jnp.where((gap >= 0) & (gap < W), s, -1e30)
            top = jnp.maximum(m, s)
            old, new = jnp.exp(m - top), jnp.exp(s - top) * (s > -1e29)
            acc = acc * old[..., None] + new[..., None] * vj[:, :, None]
            return (top, z * old + new, acc, j + 1), None

        start = (jnp.full((B, H, L), -1e30), jnp.zeros((B, H, L)), jnp.zeros((B, H, L, D)), 0)
        (_, z, acc, _), _ = lax.scan(block, start, (k.swapaxes(0, 1), v.swapaxes(0, 1)))
        return (acc / z[..., None]).swapaxes(1, 2)

    ways = (masked, windowed, streamed)
    library = jax.nn.dot_product_attention(q, k, v, is_causal=True, local_window_size=(W - 1, 0))
    weigh = lambda f: jax.grad(lambda *a: jnp.sum(jnp.sin(f(*a))), (0, 1, 2))
    return [f(q, k, v) for f in ways], library, [jax.jit(weigh(f))(q, k, v) for f in ways]


def spiking_neurons_with_surrogate_slopes():
    N, T, K = 17, 43, 4
    rng = np.random.default_rng(14)
    w, r, out = _normal(15, 9, N) * 0.6, _normal(16, N, N) * 0.15, _normal(17, N, K) * 0.4
    spikes = (rng.random((T, 5, 9)) < 0.3).astype("float32")
    labels = jnp.array([0, 3, 1, 2, 3])

    @jax.custom_jvp
    def fire(v):
        return (v > 0).astype(v.dtype)

    fire.defjvps(lambda t, ans, v: t / (1 + 5 * jnp.abs(v)) ** 2)

    def run(p, spikes):
        w, r, out = p

        def step(c, x):
            v, a, s, o = c
            v = 0.9 * v * (1 - s) + x @ w + s @ r
            s = fire(v - 1 - 0.2 * a)
            a = 0.95 * a + s
            o = 0.8 * o + s @ out
            return (v, a, s, o), (s, o)

        zero = jnp.zeros((5, N))
        _, (s, o) = lax.scan(step, (zero, zero, zero, jnp.zeros((5, K))), spikes)
        return s, o

    def loss(p):
        s, o = run(p, spikes)
        nll = -jax.nn.log_softmax(o.max(0))[jnp.arange(5), labels].mean()
        return nll + 1e-2 * jnp.mean(s.sum(0) ** 2), s.sum((0, 1))

    p = (w, r, out)
    (value, counts), g = jax.jit(jax.value_and_grad(loss, has_aux=True))(p)
    lanes = jax.vmap(lambda k: run((w * k, r, out), spikes)[0].sum())(jnp.array([0.5, 1.0, 1.5]))
    return value, counts, g, lanes
