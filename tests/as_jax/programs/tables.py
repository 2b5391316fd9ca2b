"""Whole programs of tables and codes: fields, stacks, rings, arrays that index themselves."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def _f(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype("float32")


def _i(lo, hi, *shape, seed=0, dt="int32"):
    return np.random.default_rng([seed, *shape]).integers(lo, hi, shape).astype(dt)


def codes_over_fields_of_bits(n=7):
    """Reed and Solomon's remainders by tables of logarithms; elimination over GF(2) by xor."""
    exp, log, v = np.zeros(512, "int32"), np.zeros(256, "int32"), 1
    for i in range(255):
        exp[i], log[v] = v, i
        v = (v << 1) ^ (0x11D if v & 128 else 0)
    exp[255:510] = exp[:255]
    E, L = jnp.asarray(exp), jnp.asarray(log)

    def mul(a, b):
        return jnp.where((a == 0) | (b == 0), 0, E[L[a] + L[b]])

    @jax.jit
    def prog(A, m):
        gen = jnp.array([1])
        for i in range(4):
            gen = jnp.append(gen, 0) ^ jnp.append(jnp.zeros(1, int), mul(gen, E[i]))

        def shift(rem, d):
            fb = d ^ rem[0]
            return jnp.append(rem[1:], 0) ^ mul(gen[1:], fb), fb

        def eliminate(k, s):
            M, r = s
            col = M[:, k] * (jnp.arange(n) >= r)
            p = jnp.argmax(col)
            sw = M.at[r].set(M[p]).at[p].set(M[r])
            sw = jnp.where(((jnp.arange(n) != r) & (sw[:, k] == 1))[:, None], sw ^ sw[r], sw)
            return jnp.where(col.max() > 0, sw, M), r + (col.max() > 0)

        syndrome = jax.vmap(lambda r: lax.scan(lambda s, d: (mul(s, r) ^ d, None), 0, m)[0])
        parities = A.sum(1) & 1, jnp.bitwise_xor.reduce(A, axis=1), lax.reduce_xor(A, (0,))
        base64 = jnp.stack([(m >> s) & 63 for s in (18, 12, 6, 0)], 1)
        remainder = lax.scan(shift, jnp.zeros(4, int), m)
        return gen, remainder, lax.fori_loop(0, n, eliminate, (A, 0)), syndrome(E[:4]), parities, base64

    return prog(_i(0, 2, n, n + 3, dt="uint8"), _i(0, 256, n))


def a_stack_machine_and_automata(n=3):
    """A switch for each instruction, rule 110, Collatz's lengths, divisors, a Turing machine."""

    def collatz(k):
        def step(s):
            return lax.cond(s[0] % 2 == 0, lambda v: v // 2, lambda v: 3 * v + 1, s[0]), s[1] + 1

        return lax.while_loop(lambda s: (s[0] != 1) & (s[1] < 200), step, (k + 1, 0))

    def euclid(a, b):
        return lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0]

    write, move, state = (
        jnp.array([[1, 1], [1, 0], [0, 1]]),
        jnp.array([[1, -1], [-1, 1], [1, -1]]),
        jnp.eye(3, 2, dtype=int),
    )

    def turing(s):
        tape, at, q, k = s
        bit = tape[at % 16]
        return tape.at[at % 16].set(write[q, bit]), at + move[q, bit], (q + state[q, bit]) % 4, k + 1

    @jax.jit
    def prog(code, x):
        def step(s, op):
            stack, top = s
            a, b = stack[(top - 1) % 8], stack[(top - 2) % 8]
            both = lambda v: (stack.at[(top - 2) % 8].set(v), jnp.maximum(top - 1, 1))
            cases = [
                lambda: (stack.at[top % 8].set(x[top % n]), top + 1),
                lambda: both(a + b),
                lambda: both(a * b),
                lambda: (stack.at[(top - 1) % 8].set(jnp.sin(a)), top),
                lambda: (stack.at[top % 8].set(a), jnp.minimum(top + 1, 7)),
                lambda: both(jnp.maximum(a, b)),
            ]
            return lax.switch(op, cases), top

        machine = lax.scan(step, (jnp.zeros(8), jnp.int32(1)), code)
        rule = lambda c, _: ((0b01101110 >> (jnp.roll(c, 1) * 4 + c * 2 + jnp.roll(c, -1))) & 1, c.sum())
        cells = lax.scan(rule, code % 2, length=9)
        divisors = jax.vmap(euclid)(code * 12, code[::-1] * 18)
        tape = lax.while_loop(lambda s: (s[2] != 3) & (s[3] < 40), turing, (jnp.zeros(16, int), 8, 0, 0))
        return machine, cells, jax.vmap(collatz)(code * 5), divisors, tape

    return prog(_i(0, 6, 12 * n), _f(n))


@jax.tree_util.register_pytree_node_class
class _Ring:
    def __init__(self, buffer, head):
        self.buffer, self.head = buffer, head

    def tree_flatten(self):
        return (self.buffer, self.head), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)

    def push(self, v):
        return _Ring(self.buffer.at[self.head % self.buffer.shape[0]].set(v), self.head + 1)

    def window(self):
        return jnp.roll(self.buffer, -(self.head % self.buffer.shape[0]))


def filters_in_a_ring(n=17):
    """A ring buffer class as a carry: dots, medians, sorts of the last five; derivatives."""

    def run(x, w):
        def step(ring, v):
            ring = ring.push(v)
            return ring, (ring.window() @ w, jnp.median(ring.buffer), jnp.sort(ring.window()))

        ring, (dots, medians, orders) = lax.scan(step, _Ring(jnp.zeros(5), 0), x)

        def season(c, v):
            level, trend, s, t = c
            after = 0.5 * (v - s[t % 3]) + 0.5 * (level + trend)
            trend = 0.1 * (after - level) + 0.9 * trend
            return (after, trend, s.at[t % 3].set(0.3 * (v - after) + 0.7 * s[t % 3]), t + 1), after + trend

        forecasts = lax.scan(season, (x[0], 0.0, jnp.zeros(3), 0), x)[1]
        return (dots**2).sum() + (medians * forecasts).sum(), (ring, orders, forecasts)

    return jax.jit(jax.value_and_grad(run, (0, 1), has_aux=True))(_f(n), _f(5))


def text_in_fewer_bits(n=31):
    """Huffman's merges, matches of a window, suffixes by doubling, moves to the front."""

    @jax.jit
    def prog(s):
        N = s.size

        def merge(c, _):
            weight, parent, new = c
            i = jnp.argmin(weight)
            w1, weight = weight[i], weight.at[i].set(10**8)
            j = jnp.argmin(weight)
            w2, weight = weight[j], weight.at[j].set(10**8)
            ok = w2 < 10**8
            parent = jnp.where(ok, parent.at[jnp.array([i, j])].set(new), parent)
            return (jnp.where(ok, weight.at[new].set(w1 + w2), weight), parent, new + ok), (i, j)

        counts = jnp.bincount(s, length=128)
        weight = jnp.full(256, 10**8).at[:128].set(jnp.where(counts > 0, counts, 10**8))
        (_, parent, _), pairs = lax.scan(merge, (weight, jnp.full(256, -1), 128), length=5)
        up = lambda k: lax.while_loop(lambda c: parent[c[0]] >= 0, lambda c: (parent[c[0]], c[1] + 1), (k, 0))[1]
        windows = jnp.append(s, jnp.full(8, -1))[jnp.arange(N)[:, None] + jnp.arange(8)]
        equal = jnp.cumprod(windows[:, None] == windows, axis=-1).sum(-1)
        equal = jnp.where(jnp.arange(N) < jnp.arange(N)[:, None], equal, 0)

        def double(t, r):
            behind = jnp.append(r, jnp.full(N, -1))[jnp.arange(N) + (1 << t)]
            o = jnp.lexsort((behind, r))
            a = jnp.stack([r, behind])[:, o]
            new = jnp.append(False, (a[:, 1:] != a[:, :-1]).any(0))
            return jnp.zeros(N, r.dtype).at[o].set(jnp.cumsum(new).astype(r.dtype))

        suffixes = jnp.argsort(lax.fori_loop(0, 7, double, s), stable=True)
        last = s[(suffixes - 1) % N]

        def front(t, c):
            p = jnp.argmax(t == c)
            order = jnp.arange(128)
            return jnp.where(order == 0, c, jnp.where(order <= p, jnp.roll(t, 1), t)), p

        runs = jnp.cumsum(jnp.append(True, last[1:] != last[:-1])) - 1
        lengths = jax.ops.segment_sum(jnp.ones(N, int), runs, N)
        moves = lax.scan(front, jnp.arange(128, dtype=s.dtype), last)[1]
        return pairs, jax.vmap(up)(jnp.arange(97, 103)), equal.max(1), equal.argmax(1), suffixes, moves, lengths

    return prog(_i(97, 103, 3 * n))


def arrays_that_index_themselves(n=33):
    """Updates with positions and values from one array; sorts by keys that are computed twice."""

    @jax.jit
    def prog(k, x):
        i = k % n

        def swap(c, t):
            j = (t * 7 + 3) % n
            return c.at[t].set(c[j]).at[j].set(c[t]), c[j]

        def sink(q, c):
            def exchange(s):
                at, c = s
                return at - 1, c.at[at].set(c[at - 1]).at[at - 1].set(c[at])

            return lax.while_loop(lambda s: (s[0] > 0) & (s[1][s[0] - 1] > s[1][s[0]]), exchange, (q, c))[1]

        updates = [
            k.at[i].add(k[::-1]),
            x.at[i].add(jnp.sin(x) * 3),
            x.at[jnp.argsort(jnp.tanh(x + 1) * 2)].set(jnp.arange(1.0 * n)),
            x.at[i].max(x[i] ** 2).at[::2].min(0.5),
            x.at[1:].add(x[:-1]).at[:-1].multiply(x[1:]),
            lax.dynamic_update_slice(x, x[: (n + 1) // 2] * 2, (k[0] % n,)),
            jnp.zeros((5, 7), int).at[k % 5, (k // 5) % 7].add(1),
            jnp.zeros((5, 7)).at[(k % 5)[:, None], jnp.arange(7)].add(x[:, None] * jnp.arange(7.0)),
            jnp.zeros(n, jnp.int8).at[i].add(jnp.int8(100)),
            jnp.zeros(n, bool).at[i].max(x > 0),
        ]
        orders = [
            lax.sort((jnp.sin(x) * 2 + 1, jnp.arange(n), k), num_keys=1),
            jnp.argsort((x * 8).astype(jnp.int8) // 3, stable=True),
            jnp.cumsum(x[jnp.argsort(k)])[jnp.argsort(jnp.argsort(k))],
            lax.top_k(jnp.abs(x) * 3 - x, 9),
            jnp.nonzero((k % 3 == 0) & (x > 0), size=n, fill_value=n)[0],
        ]
        return updates, orders, lax.scan(swap, x, jnp.arange(n)), lax.fori_loop(1, n, sink, k % 50)

    return prog(_i(0, 5000, n), _f(n))


def products_of_what_repeats(n=7):
    """Operands that are broadcast, turned, cut and padded, and cotangents that are one number."""

    @jax.jit
    def prog(x, w, b):
        rows = jnp.broadcast_to(x[:, None, :], (n, 4, 3))
        turned = jnp.broadcast_to(b[:1], (6, n)).T[::-1][: (n + 1) // 2] @ jnp.broadcast_to(w[0], (6, 2))
        framed = jnp.pad(jnp.broadcast_to(x[0], (n, 3)), ((0, 0), (1, 1))) @ jnp.broadcast_to(w[:1], (5, 2))
        kernel = jnp.tile(w.T[:, None], (1, 3, 1))
        images = functools.partial(lax.conv_general_dilated, window_strides=(1,), padding="SAME")
        return (
            jnp.einsum("abc,cd->abd", rows, w),
            jnp.einsum("abc,abd->acd", rows, jnp.broadcast_to(b, (n, 4, 2))),
            turned,
            framed,
            jnp.pad(jnp.broadcast_to(x[0], (n, 3)), ((1, 2), (0, 0))) @ w,
            jnp.matmul(jnp.broadcast_to(x[:3], (n, 3, 3)), jnp.broadcast_to(w, (n, 3, 2))),
            jax.grad(lambda w: jnp.tanh(x @ w).sum() + (jnp.broadcast_to(b, (n, 2)) * (x @ w)).sum())(w),
            jax.grad(lambda k: images(jnp.broadcast_to(x[:1, None], (2, 3, 3)), k).sum())(kernel),
            jax.grad(lambda x: (images(x[None], jnp.ones((2, n, 2))) * 3).sum())(x),
            jnp.outer(jnp.full(n, b[0]), jnp.full(3, b[1])) @ w,
        )

    return prog(_f(n, 3), _f(3, 2), _f(2))


def factors_of_updates(n=7):
    """A Cholesky factor updated column after column, triangles from the right, and slopes."""

    def run(B, v):
        A = B @ B.T + n * jnp.eye(n)
        L = jnp.linalg.cholesky(A)

        def update(k, c):
            L, v = c
            r = jnp.sqrt(L[k, k] ** 2 + v[k] ** 2)
            cos, sin = r / L[k, k], v[k] / L[k, k]
            col = jnp.where(jnp.arange(n) > k, (L[:, k] + sin * v) / cos, L[:, k]).at[k].set(r)
            return L.at[:, k].set(col), jnp.where(jnp.arange(n) > k, cos * v - sin * col, v)

        after, _ = lax.fori_loop(0, n, update, (L, v))
        right = lax.linalg.triangular_solve(L, B, left_side=False, lower=True, transpose_a=True)
        x = jax.scipy.linalg.cho_solve((after, True), v)
        return x @ v + (right * B).sum() + 2 * jnp.log(jnp.diag(after)).sum(), (after, right, x)

    return jax.jit(jax.value_and_grad(run, (0, 1), has_aux=True))(_f(n, n) / n**0.5, _f(n))


def recurrences_in_parallel(n=7):
    """Affine maps, rotations and tropical products by associative_scan, both ways."""

    def run(A, b):
        affine = lambda l, r: (r[0] @ l[0], jnp.einsum("nij,nj->ni", r[0], l[1]) + r[1])
        tropical = lambda a, b: (a[..., :, None] + b[..., None, :, :]).max(-2)
        once = lax.scan(lambda c, ab: (ab[0] @ c + ab[1],) * 2, jnp.zeros(2), (A, b))[1]
        phases = lax.associative_scan(jnp.multiply, jnp.exp(1j * b[:, 0]), reverse=True)
        outs = (
            lax.associative_scan(affine, (A, b))[1],
            once,
            lax.associative_scan(lambda a, b: b @ a, A, reverse=True),
            lax.associative_scan(tropical, A),
            lax.associative_scan(jnp.maximum, b, axis=1, reverse=True),
            phases.real * phases.imag,
        )
        return sum((o**2).sum() for o in outs), outs

    return jax.jit(jax.value_and_grad(run, (0, 1), has_aux=True))(_f(n, 2, 2) * 0.6, _f(n, 2))
