"""Steps of much work: products, convolutions, sorts, scatters, scans, transforms, attention.

Each splits a value into operands of a shape that suits it, so that short programs exercise the ways
in which compilers and libraries divide work: blocks, panels, tiles, parts, chunks. Operands within
a step may be larger than the named values of a program.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.fuzzing.maker import TAME, Maker
from tests.fuzzing.rules_views import Made, Rule

SIDES = (1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 23, 31, 32, 33, 47, 48, 49, 63, 64, 65, 97)
LENGTHS = (1, 2, 3, 7, 8, 13, 16, 17, 31, 33, 63, 65, 127, 129, 130, 255, 257, 300, 513)
LINES = (2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 22, 25, 30, 31, 32, 49, 60, 64, 67, 74, 96, 101, 128)
CELLS = 20_000  # of an operand within a step


def formed(x: str, shape: Sequence[int]) -> str:
    """The elements of a value, repeated to fill this shape."""
    return f"rnp.resize({x}, {tuple(shape)})"


def _fits(*shapes: Sequence[int]) -> bool:
    return all(math.prod(s) <= CELLS for s in shapes)


def _floating(m: Maker, least: int = 0) -> str | None:
    x = m.pick(least, "f")
    return x if x is not None and m.envs[0][x].size else None


def _numeric(m: Maker) -> str | None:
    x = m.pick(0, "iuf")
    return x if x is not None and m.envs[0][x].size else None


def _narrowed(m: Maker, x: str) -> str:
    """Small numbers, and of narrow floats signs alone: long sums of others are not exact."""
    if m.dtype(x).itemsize < 4 and m.kind(x) == "f":
        return f"rnp.sign({x})"
    return f"rnp.clip({x}, {0 if m.kind(x) == 'u' else -5}, 5)" if m.largest(x) > TAME else x


# --- products -------------------------------------------------------------------------------------


def product(m: Maker) -> Made:
    """Batched or not, sides in any order, long and short sums."""
    x, y = _numeric(m), _numeric(m)
    if x is None or y is None:
        return None
    rows, columns, length = m.choose(SIDES), m.choose(SIDES), m.choose(LENGTHS)
    batch: tuple[int, ...] = m.choose([(), (), (2,), (3,), (2, 3)])
    lhs, rhs = (*batch, rows, length), (*batch[m.below(2) if batch else 0 :], length, columns)
    if not _fits(lhs, rhs, (*batch, rows, columns)):
        return None
    a, b = formed(_narrowed(m, x), _turned(m, lhs, swap := m.below(2))), ""
    a = f"{a}.swapaxes(-1, -2)" if swap else a
    b = formed(_narrowed(m, y), _turned(m, rhs, swap := m.below(2)))
    b = f"{b}.swapaxes(-1, -2)" if swap else b
    return _brought_back(m, f"{a} @ {b}")


def _turned(m: Maker, shape: tuple[int, ...], swap: int) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if swap else shape


def _brought_back(m: Maker, text: str) -> str:
    """The value itself, or reduced to small numbers by an epilogue that may join the kernel."""
    bounded_text = f"rnp.tanh({text})" if m.values == "smooth" else f"({text}) % 7"
    return m.choose([text, f"rnp.clip({text}, 0, 5)", bounded_text, f"rnp.sum({text}, -1)", f"-({text})"])


STRIDED = (
    ("abk,ck->acb", "a b k", "c k"),
    ("akb,kc->cab", "a k b", "k c"),
    ("akbl,kcl->abc", "a k b l", "k c l"),
    ("kab,kcb->bac", "k a b", "k c b"),
    ("abk,kb->ab", "a b k", "k b"),
    ("ak,bk->ab", "a k", "b k"),
    ("kal,lkb->ba", "k a l", "l k b"),
)


def strided_product(m: Maker) -> Made:
    """Axes of both sides in between each other."""
    x, y = _numeric(m), _numeric(m)
    if x is None or y is None:
        return None
    subscripts, first, second = m.choose(STRIDED)
    sizes = {letter: m.choose(SIDES[:16]) for letter in "abckl"}
    shapes = [tuple(sizes[letter] for letter in side.split()) for side in (first, second)]
    out = [sizes[letter] for letter in subscripts.split("->")[1]]
    if not _fits(*shapes, out):
        return None
    a, b = (formed(_narrowed(m, v), shape) for v, shape in zip((x, y), shapes))
    return _brought_back(m, f"rnp.einsum('{subscripts}', {a}, {b})")


# --- convolutions ---------------------------------------------------------------------------------


def convolution(m: Maker) -> Made:
    """A convolution over one to three axes, with groups of features or batches, in any layout."""
    x, y = _floating(m), _floating(m)
    if x is None or y is None or m.dtype(x) != m.dtype(y):
        return None
    rank, groups = m.choose([1, 1, 2, 2, 3]), m.choose([1, 1, 1, 2, 3])
    batch, inputs, outputs = m.choose([1, 2, 3]) * groups, m.choose([1, 2, 5]), m.choose([1, 2, 3]) * groups
    space = tuple(m.choose({1: [5, 16, 33, 65], 2: [3, 7, 10], 3: [2, 4, 5]}[rank]) for _ in range(rank))
    window = tuple(1 + m.below({1: 9, 2: 4, 3: 3}[rank]) for _ in range(rank))
    by_batch = groups > 1 and m.chance(0.4)
    lhs = (batch, inputs * (1 if by_batch else groups), *space)
    rhs = (outputs, inputs, *window)
    names = "HWD"[:rank]
    layouts = [(f"NC{names}", f"OI{names}", f"NC{names}"), (f"N{names}C", f"{names}IO", f"N{names}C")]
    layouts.append((f"C{names}N", f"I{names}O", f"{names}NC"))
    spec = m.choose(layouts)
    dims = [dict(zip(f"NC{names}", lhs)), dict(zip(f"OI{names}", rhs))]
    a, b = (formed(_narrowed(m, v), [d[c] for c in s]) for v, d, s in zip((x, y), dims, spec))
    steps, gaps, apart = (tuple(m.choose([1, 1, 2, 3]) for _ in range(rank)) for _ in range(3))
    padding = tuple((m.below(4) - 1, m.below(4)) for _ in range(rank))
    how = f"{'batch' if by_batch else 'feature'}_group_count={groups}"
    return _brought_back(m, f"lax.conv_general_dilated({a}, {b}, {steps}, {padding}, {gaps}, {apart}, {spec}, {how})")


def windowed(m: Maker) -> Made:
    x = _numeric(m)
    if x is None or m.dtype(x).itemsize < 4:
        return None
    length = m.choose(LENGTHS[4:])
    shape = m.choose([(length,), (3, length), (length, 2)])
    window = tuple(1 + m.below(min(d, 9)) for d in shape)
    steps, widths = tuple(1 + m.below(3) for _ in shape), tuple((m.below(4), m.below(4)) for _ in shape)
    name, start = m.choose([("add", "0"), ("max", "-9"), ("min", "9")])
    start = f"rnp.asarray({abs(int(start)) if m.kind(x) == 'u' else start}, {x}.dtype)"
    return f"lax.reduce_window({formed(x, shape)}, {start}, lax.{name}, {window}, {steps}, {widths})"


# --- along one axis -------------------------------------------------------------------------------


def _rows(m: Maker) -> tuple[tuple[int, ...], int]:
    """A shape with a long axis, and which one that is."""
    length, other_size = m.choose(LENGTHS), m.choose([1, 2, 3, 5])
    return m.choose(
        [((length,), 0), ((other_size, length), 1), ((length, other_size), 0), ((2, length, other_size), 1)]
    )


def ordered(m: Maker) -> Made:
    x = m.pick(0, "biuf")
    if x is None or not m.envs[0][x].size:
        return None
    shape, axis = _rows(m)
    a = formed(x, shape)
    texts = [f"rnp.sort({a}, {axis})", f"rnp.argsort({a}, {axis}, stable=True)"]
    if m.kind(x) != "b":
        texts += [f"rnp.argsort({a}, {axis}, stable=True, descending=True)", f"-rnp.sort(-{a}, {axis})"]
    return m.choose(texts)


def ordered_together(m: Maker) -> Made:
    """Two keys, and what goes with them."""
    x, y = _numeric(m), m.pick(0, "biuf")
    if x is None or y is None or not m.envs[0][y].size:
        return None
    shape, axis = _rows(m)
    places = f"rnp.broadcast_to(rnp.arange({shape[-1]}), {shape})"
    return f"lax.sort(({formed(x, shape)}, {formed(y, shape)}, {places}), {axis}, num_keys=2)[1:]", 2


def largest(m: Maker) -> Made:
    x = m.pick(0, "iuf")
    if x is None or not m.envs[0][x].size:
        return None
    shape, _ = _rows(m)
    return f"lax.top_k({formed(x, shape)}, {1 + m.below(shape[-1])})", 2


def running(m: Maker) -> Made:
    x = _numeric(m)
    if x is None:
        return None
    shape, axis = _rows(m)
    a, back = formed(_narrowed(m, x), shape), m.choose(["", ", reverse=True"])
    if m.chance(0.15) and m.values != "smooth":
        return f"lax.cumprod(rnp.sign({a}), {axis}{back})"
    name = m.choose(["cumsum", "cumsum", "cummax", "cummin"])
    wide = a if m.kind(x) == "f" else f"{a}.astype(rnp.int32)"
    return _brought_back(m, f"lax.{name}({wide}, {axis}{back})")


def reduced(m: Maker) -> Made:
    x = m.pick(0, "iuf")
    if x is None or not m.envs[0][x].size:
        return None
    shape, axis = _rows(m)
    a = formed(_narrowed(m, x), shape)
    name = m.choose(["sum", "sum", "max", "min", "argmax", "argmin", "any"])
    around = m.choose(["", "", "-"])
    return f"rnp.{name}({around if m.kind(x) != 'u' else ''}{a}, {m.choose([axis, axis, 'None'])})"


def changed_at(m: Maker) -> Made:
    """Many changes of few rows, some outside."""
    x, y, at = _numeric(m), _numeric(m), m.pick(0, "i")
    if x is None or y is None or at is None or not m.envs[0][at].size:
        return None
    rows, count, width = m.choose([1, 2, 5, 17, 64]), m.choose(LENGTHS), m.choose([(), (1,), (3,)])
    ways = ["add", "add", "max", "min"] if m.values != "smooth" else ["add"]
    places = f"{formed(at, (count,))} * {m.choose([1, 3])} + rnp.arange({count}) % {m.choose([1, 2, 5])}"
    places = f"({places}) % {rows}" if m.chance(0.6) else places
    updates = f"{formed(_narrowed(m, y), (count, *width))}.astype({x}.dtype)"
    return f"{formed(_narrowed(m, x), (rows, *width))}.at[{places}].{m.choose(ways)}({updates})"


def read_at(m: Maker) -> Made:
    x, at = m.pick(0, "biuf"), m.pick(0, "i")
    if x is None or at is None or not m.envs[0][x].size or not m.envs[0][at].size:
        return None
    rows, count = m.choose([1, 2, 5, 17, 64]), m.choose(LENGTHS)
    return f"{formed(x, (rows, m.choose([1, 3])))}[{formed(at, (count,))} % {rows}]"


# --- what rounds ----------------------------------------------------------------------------------


def transformed(m: Maker) -> Made:
    """Fourier transforms, of real and of complex numbers, forth and back, along any axes."""
    x = _floating(m)
    if x is None or m.dtype(x).itemsize < 4:
        return None
    n, other_size = m.choose(LINES), m.choose([1, 2, 3, 17])
    shape, axis = m.choose([((n,), 0), ((other_size, n), 1), ((n, other_size), 0), ((2, n, other_size), 1)])
    a = formed(x, shape)
    texts = [f"rnp.fft.fft({a}, axis={axis})", f"rnp.fft.ifft({a} - 1j * {a}[::-1], axis={axis})"]
    texts += [f"rnp.fft.rfft({a}, axis={axis})", f"rnp.fft.irfft({a} + 1j * {a}[::-1], axis={axis})"]
    texts += [f"rnp.fft.fft2({formed(x, (m.choose(LINES[:20]), n))})"]
    text = m.choose(texts)
    return f"{text} / {n}" if "irfft" in text else f"({text}).{m.choose(['real', 'imag'])} / {n}"


def attention(m: Maker) -> Made:
    """Queries, keys and values of one, two or three values; heads that share keys."""
    x, y, z = _floating(m), _floating(m), _floating(m)
    if x is None or y is None or z is None or any(m.dtype(v).name != "float32" for v in (x, y, z)):
        return None  # the softmax is one of f32, whatever the dtype
    heads, heads_of_group, depth = m.choose([1, 2, 4]), m.choose([1, 2]), m.choose([1, 3, 8, 16, 17])
    heads *= heads_of_group
    queries, keys = m.choose([1, 2, 7, 16, 33]), m.choose([1, 3, 16, 31, 33, 65])
    q, k = formed(x, (2, queries, heads, depth)), formed(y, (2, keys, heads // heads_of_group, depth))
    v = formed(z, (2, keys, heads // heads_of_group, depth))
    how = m.choose(["", ", is_causal=True", ", local_window_size=3"])
    return f"rune.nn.dot_product_attention(rnp.tanh({q}), rnp.tanh({k}), {v}{how})"


def stacked_up(m: Maker) -> Made:
    """Factors of well-conditioned matrices, several side by side."""
    x = _floating(m)
    if x is None or m.dtype(x).itemsize < 4:
        return None
    n, lanes = m.choose([1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 33]), m.choose([(), (1,), (3,), (17,)])
    a = f"rnp.tanh({formed(x, (*lanes, n, n))})"
    good = f"(lambda a: a @ a.swapaxes(-1, -2) / {n} + 2 * rnp.eye({n}, dtype=a.dtype))({a})"
    right = f"rnp.tanh({formed(x, (*lanes, n, m.choose([1, 2, 5, 17])))})"
    texts = [f"rnp.linalg.cholesky({good})", f"rnp.linalg.inv({good})", f"rnp.linalg.solve({good}, {right})"]
    texts += [f"rnp.abs(rnp.linalg.qr({good})[1])", f"rnp.linalg.eigvalsh({good})"]
    texts += [f"rnp.linalg.svd({good}, compute_uv=False)", f"rnp.linalg.slogdet({good})[1]"]
    return m.choose(texts)


# --- in bodies ------------------------------------------------------------------------------------


def in_body(m: Maker) -> Made:
    """Work within a loop, a branch or lanes, over a carry of one shape."""
    x = _floating(m)
    if x is None:
        return None
    n, k = m.choose([3, 5, 8, 17, 33]), m.choose([1, 2, 7, 33])
    a, dtype = formed(x, (n, k)), f"{x}.dtype"
    signs = "rnp.tanh" if m.values == "smooth" else "rnp.sign"
    steps = [
        "rnp.sort(s, 0)",
        f"lax.cumsum({signs}(s), 0)",
        f"{signs}(s @ s.T) @ s",
        f"s.at[rnp.arange(40) * (i + 1) % {n}].add({signs}(rnp.resize(s, (40, {k}))))",
        f"rnp.resize(lax.top_k(s.T, 1)[0], ({n}, {k})) + s",
        f"s.at[i % {n}].set(s[(i + 1) % {n}])",
        "s + rnp.max(s, 0, keepdims=True)",
        f"lax.dynamic_update_slice(s, s[:1], (i * 2 % {n}, 0))",
    ]
    one = m.choose(steps)
    if m.chance(0.5):
        one = f"(lambda s: {m.choose(steps)})({one})"
    bounded_text = f"rnp.tanh({one})" if m.values == "smooth" else f"rnp.clip({one}, -5, 5)"
    body = f"{bounded_text}.astype({dtype})"
    return m.choose(
        [
            f"lax.fori_loop(0, {m.choose([1, 2, 5])}, lambda i, s: {body}, {a})",
            f"lax.scan(lambda s, i: ({body}, rnp.sum(s)), {a}, rnp.arange(3))[0]",
            f"rune.vmap(lambda s, i: {body}, in_axes=(1, 0))({formed(x, (n, 3, k))}, rnp.arange(3))",
            f"lax.cond(rnp.sum({x}) > 0, lambda s: (lambda i: {body})(1), lambda s: s * 2, {a})",
            f"lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, (lambda i, s: {body})(*c)), "
            f"(rnp.int32(0), {a}))[1]",
        ]
    )


WHOLE: tuple[Rule, ...] = (
    *(product, product, strided_product, convolution, windowed, ordered, ordered_together, largest),
    *(running, running, reduced, changed_at, changed_at, read_at, in_body, in_body),
)
SMOOTH: tuple[Rule, ...] = (
    *(product, strided_product, convolution, transformed, transformed, transformed, attention, attention),
    *(stacked_up, stacked_up, running, reduced, changed_at, in_body),
)
