"""Whole programs about records: sketches, codes of pictures, trees, folds, packed integers."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def sketches_of_a_stream(n=4097):
    """A Bloom filter, counts, distinct keys, a signature and a sample, from one hash."""
    keys = jnp.array(np.random.default_rng(0).integers(0, 2**32 - 1, n, dtype=np.uint32))

    def mix(x, seed):
        x = (x ^ jnp.uint32(seed)) * jnp.uint32(0xCC9E2D51)
        x = ((x << 15) | (x >> 17)) * jnp.uint32(0x1B873593)
        x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
        return x ^ (x >> 13)

    bloom = jnp.zeros(1023, bool)
    for seed in range(3):
        bloom = bloom.at[mix(keys[:129], seed) % 1023].set(True)
    hits = jnp.all(jnp.stack([bloom[mix(keys, seed) % 1023] for seed in range(3)]), 0)
    counts = jnp.stack([jnp.zeros(257, jnp.int32).at[mix(keys % 50, s) % 257].add(1) for s in range(5)])
    queries = jnp.arange(50, dtype=jnp.uint32)
    least = jnp.min(jnp.stack([counts[s][mix(queries, s) % 257] for s in range(5)]), 0)
    mixed = mix(keys, 7)
    registers = jnp.zeros(64, jnp.uint8).at[mixed >> 26].max((lax.clz((mixed << 6) | 0x20) + 1).astype(jnp.uint8))
    bits = (keys[:, None] >> jnp.arange(32, dtype=jnp.uint32)) & 1

    def sample(i, chosen):
        place = (mix(jnp.uint32(i), 3) % (i + 1).astype(jnp.uint32)).astype(jnp.int32)
        early = chosen.at[i % 31].set(keys[i])
        return jnp.where(i < 31, early, lax.cond(place < 31, lambda c: c.at[place].set(keys[i]), lambda c: c, chosen))

    distinct = 0.709 * 64**2 / jnp.sum(2.0 ** -registers.astype(jnp.float32))
    return (
        jnp.packbits(bloom), hits.sum(), least, registers, distinct,
        jnp.min(jnp.stack([mix(keys, s) for s in range(9)]), 1), jnp.sum(jnp.where(bits, 1, -1), 0) > 0,
        lax.fori_loop(0, n, sample, jnp.zeros(31, jnp.uint32)),
    )  # fmt: skip


def a_picture_in_blocks(height=63, width=65):
    """Blocks of cosines in int8, runs of zeros along the zigzag, and the way back."""
    picture = jnp.array(np.random.default_rng(1).normal(size=(height, width)) * 50, jnp.float32)
    k = jnp.arange(8)
    cosines = jnp.cos(jnp.pi * (2 * k[None] + 1) * k[:, None] / 16) / 2
    cosines = cosines * jnp.where(k[:, None] == 0, 1 / jnp.sqrt(2), 1)
    steps = 10 + 2 * (k[:, None] + k)
    along = sorted(range(64), key=lambda i: (i // 8 + i % 8, i // 8 if (i // 8 + i % 8) % 2 else i % 8))

    @jax.jit
    def encode(picture):
        blocks = jnp.pad(picture, ((0, 1), (0, 7)), mode="edge").reshape(8, 8, 9, 8).transpose(0, 2, 1, 3)
        return jnp.round(jnp.einsum("ij,abjk,lk->abil", cosines, blocks, cosines) / steps).astype(jnp.int8)

    def runs(values):
        def step(zeros, value):
            return jnp.where(value == 0, zeros + 1, 0), jnp.where(value != 0, zeros, -1)

        return lax.scan(step, 0, values)[1]

    levels = encode(picture)
    words = levels.reshape(8, 9, 64)[..., np.array(along)]
    blocks = jnp.einsum("ji,abjk,kl->abil", cosines, levels.astype(jnp.float32) * steps, cosines)
    decoded = blocks.transpose(0, 2, 1, 3).reshape(64, 72)[:height, :width]
    means = jnp.diff(words[..., 0].reshape(-1).astype(jnp.int32), prepend=0)
    return levels, jax.vmap(jax.vmap(runs))(words), means, decoded, jnp.mean((decoded - picture) ** 2)


def boosted_trees(n=257, features=5, bins=16):
    """Histograms of gradients by node, feature and bin; the best split by running sums."""
    rng = np.random.default_rng(2)
    x, target = jnp.array(rng.normal(size=(n, features)), jnp.float32), jnp.array(rng.integers(0, 2, n), jnp.float32)
    edges = jnp.quantile(x, jnp.linspace(0, 1, bins + 1)[1:-1], axis=0)
    binned = jax.vmap(lambda column, e: jnp.searchsorted(e, column), (1, 1), 1)(x, edges)

    def grow(scores):
        p = jax.nn.sigmoid(scores)
        slope, curvature = p - target, p * (1 - p)
        node, splits = jnp.zeros(n, jnp.int32), []
        for depth in range(3):
            empty = jnp.zeros((2**depth, features, bins))
            at = node[:, None], jnp.arange(features), binned
            below = jnp.cumsum(empty.at[at].add(slope[:, None]), 2)
            weight = jnp.cumsum(empty.at[at].add(curvature[:, None]), 2)
            above, other = below[..., -1:] - below, weight[..., -1:] - weight
            gain = below**2 / (weight + 1) + above**2 / (other + 1)
            best = jnp.argmax((gain - gain[..., -1:]).reshape(2**depth, -1), 1)
            feature, threshold = best // bins, best % bins
            value = jnp.take_along_axis(binned, feature[node][:, None], 1)[:, 0]
            node = node * 2 + (value > threshold[node])
            splits.append((feature, threshold))
        sums = jax.ops.segment_sum(slope, node, 8), jax.ops.segment_sum(curvature, node, 8)
        return -sums[0] / (sums[1] + 1), node, splits

    scores, trees = jnp.zeros(n), []
    for _ in range(3):
        values, node, splits = jax.jit(grow)(scores)
        scores = scores + 0.3 * values[node]
        trees.append((values, splits))
    return scores, trees, jnp.mean((scores > 0) == (target == 1))


def a_chain_that_folds(n=33):
    """Pairs of letters by diagonals of a table, distances of words by a scan in a scan."""
    letters = jnp.array(np.random.default_rng(3).integers(0, 4, n))
    fits = letters[:, None] + letters == 3

    def diagonal(k, table):
        i = jnp.arange(n)
        j, after = jnp.minimum(i + k, n - 1), jnp.minimum(i + 1, n - 1)
        inner = jnp.where(k >= 2, table[after, j - 1], 0) + (fits[i, j] & (k > 3))
        best = jnp.maximum(jnp.maximum(table[after, j], table[i, j - 1]), inner)

        def divide(t, best):
            middle = jnp.minimum(i + t, n - 1)
            both = table[i, middle] + table[jnp.minimum(middle + 1, n - 1), j]
            return jnp.where(t < k, jnp.maximum(best, both), best)

        best = lax.fori_loop(0, n, divide, best)
        return table.at[i, j].set(jnp.where(i + k < n, best, table[i, j]))

    def distances(a, b):
        def row(above, letter):
            costs = jnp.minimum(above[1:] + 1, above[:-1] + (b != letter))

            def step(before, cost):
                cost = jnp.minimum(before + 1, cost)
                return cost, cost

            _, values = lax.scan(step, above[0] + 1, costs)
            values = jnp.concatenate([above[:1] + 1, values])
            return values, values[-1]

        return lax.scan(row, jnp.arange(len(b) + 1), a)

    return lax.fori_loop(1, n, diagonal, jnp.zeros((n, n), jnp.int32)), jax.jit(distances)(letters, letters[5:22])


def integers_in_half_a_byte(rows=31, columns=66):
    """Weights of four bits in pairs, products in int32, runs of digits and a checksum of bytes."""
    rng = np.random.default_rng(4)
    q, x = jnp.array(rng.integers(-8, 8, (rows, columns)), jnp.int8), rng.normal(size=(columns, 5)).astype(np.float32)
    text = jnp.array(rng.integers(0, 256, 257), jnp.uint8)

    @jax.jit
    def pack(q):
        return ((q[:, 1::2].astype(jnp.uint8) << 4) | (q[:, ::2].astype(jnp.uint8) & 0xF)).astype(jnp.uint8)

    @jax.jit
    def unpack(packed):
        low, high = (packed << 4).astype(jnp.int8) >> 4, packed.astype(jnp.int8) >> 4
        return jnp.stack([low, high], -1).reshape(rows, -1)

    scale = jnp.max(jnp.abs(x), 0, keepdims=True) / 127
    levels = jnp.clip(jnp.round(x / scale), -128, 127).astype(jnp.int8)
    product = lax.dot_general(unpack(pack(q)), levels, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
    is_digit = (text >= 48) & (text < 58)

    def number(value, symbol):
        letter, counts = symbol
        value = jnp.where(counts, value * 10 + (letter - 48).astype(jnp.int32), 0)
        return value, value

    def checksum(c, letter):
        def step(_, c):
            return jnp.where(c & 1, (c >> 1) ^ jnp.uint32(0xEDB88320), c >> 1)

        return lax.fori_loop(0, 8, step, c ^ letter.astype(jnp.uint32)), None

    return {
        "packed": pack(q), "same": (unpack(pack(q)) == q).all(), "product": product, "scaled": product * scale,
        "wraps": lax.dot(unpack(pack(q)), levels), "int4": q.astype(jnp.int4).astype(jnp.int8),
        "words": lax.bitcast_convert_type(pack(q).reshape(-1)[:1020].reshape(-1, 4), jnp.uint32),
        "numbers": lax.scan(number, jnp.int32(0), (text, is_digit))[1],
        "checksum": ~lax.scan(checksum, jnp.uint32(0xFFFFFFFF), text)[0],
        "counts": jnp.zeros(256, jnp.uint16).at[text].add(1), "differences": jnp.diff(text), "negative": -text,
        "powers": jnp.uint8(3) ** text, "zeros": lax.clz(text), "upper": jnp.unpackbits(text[:33], bitorder="little"),
    }  # fmt: skip
