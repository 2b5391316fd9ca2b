"""Whole programs that pair, decode and encipher: checks, marriages, forests, curves, segments."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def _f(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype("float32")


def _i(lo, hi, *shape, seed=0, dt="int32"):
    return np.random.default_rng([seed, *shape]).integers(lo, hi, shape).astype(dt)


def parity_checks_by_min_sum(n=41):
    """Messages of a sparse code: the two smallest of a row, signs by products, packed bits."""

    @jax.jit
    def decode(checks, llr):
        def step(m, _):
            total = llr + (m * checks).sum(0)
            v = jnp.where(checks > 0, total - m, jnp.inf)
            sign = jnp.where(v < 0, -1.0, 1.0)
            two = -lax.top_k(-jnp.abs(v), 2)[0]
            is_least = jnp.arange(n) == jnp.argmin(jnp.abs(v), 1)[:, None]
            least = jnp.where(is_least, two[:, 1:], two[:, :1])
            signs = jnp.prod(jnp.where(checks > 0, sign, 1.0), 1, keepdims=True) * sign
            m = jnp.where((checks > 0) & jnp.isfinite(least), 0.75 * signs * least, 0.0)
            return m, (total < 0).astype(jnp.uint8)

        m, bits = lax.scan(step, jnp.zeros(checks.shape), None, length=7)
        packed = jnp.packbits(bits, axis=1)
        return m, packed, (checks @ bits[-1].astype(int)) % 2, jnp.unpackbits(packed, axis=1, count=n)

    return decode((_i(0, 5, 20, n) == 0).astype("int32"), _f(n))


def stable_marriages(n=31):
    """Gale and Shapley in int16: a while_loop that drops what is written past the end."""

    @jax.jit
    def marry(wishes, ranks):
        def propose(state):
            wife_of, husband, following, k = state
            m = jnp.argmax(husband < 0)
            w = wishes[m, following[m]]
            rival = wife_of[w]
            better = (rival < 0) | (ranks[w, m] < ranks[w, rival])
            free = husband.at[jnp.where(rival < 0, n, rival)].set(-1, mode="drop").at[m].set(w)
            wife_of = wife_of.at[w].set(jnp.where(better, m, rival).astype(jnp.int16))
            return wife_of, jnp.where(better, free, husband), following.at[m].add(1), k + 1

        nobody = jnp.full(n, -1, jnp.int16)
        state = nobody, nobody, jnp.zeros(n, jnp.uint8), 0
        return lax.while_loop(lambda s: (s[1] < 0).any() & (s[3] < n * n), propose, state)

    wishes = np.argsort(_f(n, n), 1).astype("int16")
    return marry(wishes, np.argsort(np.argsort(_f(n, n, seed=1), 1), 1).astype("int16"))


def a_forest_by_cheapest_edges(n=61, m=257):
    """Boruvka's rounds: least edges of segments among ties, labels that spread, sets of a size."""

    @jax.jit
    def forest(a, b, w):
        order = jnp.argsort(jnp.argsort(w, stable=True))

        def spread(_, label, chosen):
            low = jnp.where(chosen, jnp.minimum(label[a], label[b]), n)
            return label.at[a].min(low).at[b].min(low)

        def widen(state):
            label, chosen, _ = state
            key = jnp.where(label[a] != label[b], order, m)
            ends = jax.ops.segment_min(key, label[a], n), jax.ops.segment_min(key, label[b], n)
            best = jnp.minimum(*ends)
            hit = (key < m) & ((best[label[a]] == key) | (best[label[b]] == key))
            chosen = chosen | hit
            label = lax.fori_loop(0, n, lambda i, s: spread(i, s, chosen), jnp.arange(n))
            return label, chosen, hit.any()

        label, chosen, _ = lax.while_loop(lambda s: s[2], widen, (jnp.arange(n), jnp.zeros(m, bool), True))
        sets = jnp.unique(label, size=9, fill_value=-1, return_counts=True)
        return label, chosen, jnp.where(chosen, w, 0).sum(), sets

    return forest(_i(0, n, m), _i(0, n, m, seed=1), np.round(np.abs(_f(m)) * 9))


def a_cipher_of_words(n=257):
    """ChaCha's quarter rounds in nested loops, bytes of words, Speck in 16 bits, a checksum."""
    columns = np.arange(16).reshape(4, 4)
    diagonals = np.stack([np.roll(row, -k) for k, row in enumerate(columns)])
    places = np.concatenate([columns.T, diagonals.T])
    words = np.array([0x61707865, 0x3320646E, 0x79622D32, 0x6B206574], "uint32")

    def turn(x, by):
        return (x << by) | (x >> (32 - by))

    def quarter(s, place):
        a, b, c, d = place
        for x, y, z, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s = s.at[x].add(s[y])
            s = s.at[z].set(turn(s[z] ^ s[x], jnp.uint32(by)))
        return s

    @jax.jit
    def encipher(key, text):
        def block(count):
            tail = jnp.array([0, 9, 0xFFFFFFFF], jnp.uint32)
            start = jnp.concatenate([words, key, count[None], tail])
            twice = lambda _, s: lax.fori_loop(0, 8, lambda i, s: quarter(s, jnp.asarray(places)[i]), s)
            return start + lax.fori_loop(0, 10, twice, start)

        stream = jax.vmap(block)(jnp.arange(5, dtype=jnp.uint32))

        def round_of_speck(pair, k):
            x, y = pair
            x = (((x >> 7) | (x << 9)) + y) ^ k
            return (x, ((y << 2) | (y >> 14)) ^ x), x ^ y

        def divide(c, byte):
            c = c ^ (byte.astype(jnp.uint16) << 8)
            polynomial = jnp.uint16(0x1021)
            return lax.fori_loop(0, 8, lambda _, c: jnp.where(c & 0x8000, (c << 1) ^ polynomial, c << 1), c), None

        halves = jnp.arange(9, dtype=jnp.uint16), jnp.arange(9, dtype=jnp.uint16)[::-1] * 7777
        speck = lax.scan(round_of_speck, halves, key.astype(jnp.uint16))
        cipher_text = text ^ lax.bitcast_convert_type(stream, jnp.uint8).reshape(-1)[:n]
        counts = lax.population_count(stream), jnp.bitwise_count(text), text.sum(), text.mean()
        shifted = jnp.left_shift(text, 9), jnp.right_shift(text.astype(jnp.int8), 3)
        return stream, cipher_text, speck, lax.scan(divide, jnp.uint16(0xFFFF), text)[0], counts, shifted

    return encipher(_i(0, 2**32, 8, dt="uint32"), _i(0, 256, n, dt="uint8"))


def points_of_an_elliptic_curve(prime=10_007):
    """Multiples of a point by doubling in uint32; inverses by powers; the point at infinity."""

    def mul(a, b):
        return (a * b) % prime

    def inverse(a):
        def step(i, s):
            return jnp.where((prime - 2) >> i & 1, mul(s[0], s[1]), s[0]), mul(s[1], s[1])

        return lax.fori_loop(0, 14, step, (jnp.ones_like(a), a))[0]

    def add(p, q):
        (x1, y1, at_infinity), (x2, y2, is_q_infinite) = p, q
        same, opposite = (x1 == x2) & (y1 == y2), (x1 == x2) & ((y1 + y2) % prime == 0)
        rise = jnp.where(same, 3 * mul(x1, x1) + 2, y2 + prime - y1) % prime
        slope = mul(rise, inverse(jnp.where(same, 2 * y1, x2 + prime - x1) % prime))
        x = (mul(slope, slope) + 2 * prime - x1 - x2) % prime
        y = (mul(slope, (x1 + prime - x) % prime) + prime - y1) % prime
        infinite = jnp.where(at_infinity, is_q_infinite, jnp.where(is_q_infinite, at_infinity, opposite))
        ends = ((x1, x2, x), (y1, y2, y))
        return *(jnp.where(at_infinity, b, jnp.where(is_q_infinite, a, c)) for a, b, c in ends), infinite

    def multiple(n):
        def step(i, s):
            return jax.tree.map(lambda a, b: jnp.where(n >> i & 1, a, b), add(*s), s[0]), add(s[1], s[1])

        zero, one = jnp.uint32(0), jnp.uint32(1)
        start = (zero, zero, jnp.bool_(True)), (one, jnp.uint32(5), jnp.bool_(False))
        return lax.fori_loop(0, 14, step, start)[0]

    n = _i(1, 9000, 31, dt="uint32")
    return jax.jit(jax.vmap(multiple))(n), jnp.gcd(n, jnp.uint32(360)), jnp.uint32(5) - n, jnp.lcm(n, jnp.uint32(12))


def ragged_rows_of_every_length(n=257):
    """Segments of 0 to 130 rows: softmaxes, sums that restart, medians, derivatives of maxima."""
    lengths = np.array([0, 5, 1, 0, 17, 130, 3, 101, 0], "int32")

    @jax.jit
    def of_segments(x):
        segment = jnp.repeat(jnp.arange(9), lengths, total_repeat_length=n)
        starts = jnp.cumsum(lengths) - lengths
        place = jnp.arange(n) - starts[segment]

        def softmax(x):
            e = jnp.exp(x - lax.stop_gradient(jax.ops.segment_max(x, segment, 9))[segment])
            return e / jax.ops.segment_sum(e, segment, 9)[segment]

        def anew(a, b):
            return jnp.where(b[1], b[0], a[0] + b[0]), a[1] | b[1]

        def median(start, length):
            window = lax.dynamic_slice(jnp.pad(x[:, 0], (0, 130)), (start,), (130,))
            values = jnp.sort(jnp.where(jnp.arange(130) < length, window, jnp.inf))
            return jnp.where(length > 0, values[length // 2], 0)

        def loss(x):
            highest = jax.ops.segment_max(x, segment, 9)[jnp.array([1, 2, 4])]
            return (softmax(x) * jnp.cos(x)).sum() + (highest**2).sum()

        sums = lax.associative_scan(anew, (x, jnp.broadcast_to((place == 0)[:, None], x.shape)))[0]
        grouped = lax.ragged_dot(x, jnp.arange(108.0).reshape(9, 3, 4) / 50, lengths)
        counts = jax.ops.segment_sum(jnp.ones(n, jnp.int8), segment, 9)
        return sums, grouped, jax.vmap(median)(starts, lengths), jax.grad(loss)(x), softmax(x), counts

    return of_segments(_f(n, 3))


def dates_before_and_after(n=257):
    """Gregorian dates of day numbers of both signs: floors, remainders, casts that wrap or clip."""

    @jax.jit
    def civil(days):
        z = days + 719_468
        era = jnp.where(z >= 0, z, z - 146_096) // 146_097
        of_era = z - era * 146_097
        year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
        of_year = of_era - (365 * year + year // 4 - year // 100)
        month = (5 * of_year + 2) // 153
        weekday = (days + 4) % 7
        date = year + era * 400 + (month >= 10), jnp.where(month < 10, month + 3, month - 9)
        towards_zero = lax.div(days, jnp.int32(-7)), lax.rem(days, jnp.int32(-7)), jnp.fmod(days, 7)
        short = days.astype(jnp.int8), days.astype(jnp.uint16)
        return date, jnp.divmod(days, -7), towards_zero, short, jnp.bincount(weekday, length=7)

    return civil(_i(-800_000, 800_000, n))


def isotonic_levels(n=67):
    """Pools of neighbours that fall: a while_loop in a fori_loop, by lanes; repeats of a length."""

    @jax.jit
    @jax.vmap
    def pooled(y):
        def falls(state):
            s, w, k = state
            return (k > 1) & (s[k - 2] / jnp.maximum(w[k - 2], 1) >= s[k - 1] / jnp.maximum(w[k - 1], 1))

        def pool(state):
            s, w, k = state
            return s.at[k - 2].add(s[k - 1]), w.at[k - 2].add(w[k - 1]), k - 1

        def append(i, state):
            s, w, k = state
            return lax.while_loop(falls, pool, (s.at[k].set(y[i]), w.at[k].set(1.0), k + 1))

        s, w, k = lax.fori_loop(0, n, append, (jnp.zeros(n), jnp.zeros(n), 0))
        counts = jnp.where(jnp.arange(n) < k, w, 0).astype(int)
        return jnp.repeat(s / jnp.maximum(w, 1), counts, total_repeat_length=n), k

    y = np.arange(n, dtype="float32") / 10 + _f(n)
    return pooled(np.stack([y, -y, np.sort(y), y * 0]))
