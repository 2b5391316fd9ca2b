"""The meaning of every primitive, written a second time with Python scalars and plain loops.

`WHOLE` gives the meanings of arrays, element by element where that is readable; those of numbers
are in meanings_of_scalars.py. Nothing here calls the code under test.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from rune import dtypes
from tests.ops.meanings_of_scalars import OF_COMPLEX, SCALAR, elementwise, plain, typed
from tests.random.plain import OF_KEYS


def _each(shape: tuple[int, ...], dtype: np.dtype, element: Callable[..., Any]) -> np.ndarray:
    out = np.empty(shape, dtype)
    for at in np.ndindex(*shape):
        out[at] = element(at)
    return out


def _broadcast(x: np.ndarray, *, shape: tuple, axes: tuple) -> np.ndarray:
    def element(at: tuple) -> Any:
        return x[tuple(0 if d == 1 else at[a] for d, a in zip(x.shape, axes))]

    return _each(shape, x.dtype, element)


def _reshape(x: np.ndarray, *, shape: tuple) -> np.ndarray:
    out = np.empty(shape, x.dtype)
    for source, target in zip(np.ndindex(*x.shape), np.ndindex(*shape)):
        out[target] = x[source]
    return out


def _transpose(x: np.ndarray, *, permutation: tuple) -> np.ndarray:
    out = np.empty([x.shape[p] for p in permutation], x.dtype)
    for at in np.ndindex(*x.shape):
        out[tuple(at[p] for p in permutation)] = x[at]
    return out


def _slice(x: np.ndarray, *, start: tuple, limit: tuple, stride: tuple) -> np.ndarray:
    shape = tuple(len(range(*bounds)) for bounds in zip(start, limit, stride))
    return _each(shape, x.dtype, lambda at: x[tuple(s + i * k for s, i, k in zip(start, at, stride))])


def _pad(x: np.ndarray, value: np.ndarray, *, low: tuple, high: tuple, interior: tuple) -> Any:
    spread = [d + max(d - 1, 0) * g for d, g in zip(x.shape, interior)]
    shape = tuple(lo + n + hi for lo, n, hi in zip(low, spread, high))
    out = np.full(shape, value, x.dtype)
    for at in np.ndindex(*x.shape):
        target = tuple(lo + i * (g + 1) for lo, i, g in zip(low, at, interior))
        if all(0 <= t < n for t, n in zip(target, shape)):
            out[target] = x[at]
    return out


def _reverse(x: np.ndarray, *, axes: tuple) -> np.ndarray:
    def element(at: tuple) -> Any:
        return x[tuple(d - 1 - i if a in axes else i for a, (i, d) in enumerate(zip(at, x.shape)))]

    return _each(x.shape, x.dtype, element)


def _concatenate(*xs: np.ndarray, axis: int) -> np.ndarray:
    shape = list(xs[0].shape)
    shape[axis] = sum(x.shape[axis] for x in xs)
    out, start = np.empty(shape, xs[0].dtype), 0
    for x in xs:
        for at in np.ndindex(*x.shape):
            out[(*at[:axis], at[axis] + start, *at[axis + 1 :])] = x[at]
        start += x.shape[axis]
    return out


def _reduce(combine: Callable[[Any, Any], Any], *initial: Any) -> Callable[..., np.ndarray]:
    def meaning(x: np.ndarray, *, axes: tuple) -> np.ndarray:
        shape = tuple(d for i, d in enumerate(x.shape) if i not in axes)
        groups: dict[tuple, list] = {at: [] for at in np.ndindex(*shape)}
        for at in np.ndindex(*x.shape):
            groups[tuple(p for i, p in enumerate(at) if i not in axes)].append(plain(x[at]))

        def element(at: tuple) -> np.ndarray:
            return typed(functools.reduce(combine, groups[at], *initial), x.dtype)

        return _each(shape, x.dtype, element)

    return meaning


def _parts(x: Any) -> tuple[Any, Any]:
    """The sort key of a number: the real part, then the imaginary part."""
    return plain(x).real, plain(x).imag


def _arg(better: Callable[[Any, Any], bool]) -> Callable[..., np.ndarray]:
    def meaning(x: np.ndarray, *, axis: int, dtype: np.dtype) -> np.ndarray:
        rows = np.moveaxis(x, axis, -1)
        out = np.zeros(rows.shape[:-1], dtype)
        for at in np.ndindex(*out.shape):
            best = 0
            for i in range(rows.shape[-1]):
                best = i if better(_parts(rows[at][i]), _parts(rows[at][best])) else best
            out[at] = best
        return out

    return meaning


def _cumulative(combine: Callable[[Any, Any], Any]) -> Callable[..., np.ndarray]:
    def meaning(x: np.ndarray, *, axis: int, reverse: bool) -> np.ndarray:
        rows = np.moveaxis(x[...], axis, -1)
        out = np.empty_like(rows)
        for at in np.ndindex(*rows.shape[:-1]):
            row = rows[at][::-1] if reverse else rows[at]
            total = list(itertools.accumulate(map(plain, row), combine))
            totals = total[::-1] if reverse else total
            out[at] = [typed(t, x.dtype) for t in totals]
        return np.moveaxis(out, -1, axis)

    return meaning


def _dot_general(a: np.ndarray, b: np.ndarray, *, dimension_numbers: Any) -> np.ndarray:
    (ca, cb), (ba, bb) = dimension_numbers
    names = iter("abcdefghijklmnop")
    of_a, of_b = [next(names) for _ in a.shape], [next(names) for _ in b.shape]
    for i, j in zip((*ca, *ba), (*cb, *bb)):
        of_b[j] = of_a[i]
    free_a = [n for i, n in enumerate(of_a) if i not in (*ca, *ba)]
    free_b = [n for j, n in enumerate(of_b) if j not in (*cb, *bb)]
    out = "".join([of_a[i] for i in ba] + free_a + free_b)
    wide = np.complex128 if a.dtype in dtypes.COMPLEX else np.float64
    wide = np.int64 if a.dtype in dtypes.INTEGER else wide
    subscripts = f"{''.join(of_a)},{''.join(of_b)}->{out}"
    return np.asarray(np.einsum(subscripts, a.astype(wide), b.astype(wide)))


def _window(at: tuple, i: np.ndarray, x: np.ndarray, dims: Any, sizes: tuple, mode: str) -> Any:
    """The operand element for position `at` of the result, None if its window is outside."""
    batch = tuple(p for axis, p in enumerate(at) if axis not in dims.offset)
    dropped_axes = {*dims.collapsed, *dims.operand_batching}
    offsets = iter([at[axis] for axis in dims.offset])
    position = [0 if axis in dropped_axes else next(offsets) for axis in range(x.ndim)]
    for axis, source in zip(dims.operand_batching, dims.indices_batching):
        position[axis] += batch[source]
    for number, axis in enumerate(dims.start_map):
        start, last = int(i[(*batch, number)]), x.shape[axis] - sizes[axis]
        if mode == "fill" and not 0 <= start <= last:
            return None
        position[axis] += min(max(start, 0), last)
    return tuple(position)


def _gather(x: np.ndarray, i: np.ndarray, fill: np.ndarray, *, dims: Any, slice_sizes: tuple, mode: str) -> np.ndarray:
    dropped_axes = {*dims.collapsed, *dims.operand_batching}
    window = iter([s for a, s in enumerate(slice_sizes) if a not in dropped_axes])
    batch = iter(i.shape[:-1])
    rank = i.ndim - 1 + x.ndim - len(dropped_axes)
    shape = tuple(next(window) if a in dims.offset else next(batch) for a in range(rank))

    def element(at: tuple) -> Any:
        position = _window(at, i, x, dims, slice_sizes, mode)
        return fill if position is None else x[position]

    return _each(shape, x.dtype, element)


def _scatter(combine: Callable[[Any, Any], Any]) -> Callable[..., np.ndarray]:
    def meaning(x: np.ndarray, i: np.ndarray, u: np.ndarray, *, dims: Any, slice_sizes: tuple, mode: str) -> np.ndarray:
        out = x.copy()
        for at in np.ndindex(*u.shape):
            position = _window(at, i, x, dims, slice_sizes, mode)
            if position is not None:
                out[position] = typed(combine(plain(out[position]), plain(u[at])), x.dtype)
        return out

    return meaning


def _clamped(x: np.ndarray, starts: tuple, sizes: tuple) -> tuple[int, ...]:
    return tuple(min(max(int(s), 0), d - n) for s, d, n in zip(starts, x.shape, sizes))


def _dynamic_slice(x: np.ndarray, *starts: np.ndarray, sizes: tuple) -> np.ndarray:
    first = _clamped(x, starts, sizes)
    return _each(sizes, x.dtype, lambda at: x[tuple(f + i for f, i in zip(first, at))])


def _dynamic_update_slice(x: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> np.ndarray:
    out, first = x.copy(), _clamped(x, starts, update.shape)
    for at in np.ndindex(*update.shape):
        out[tuple(f + i for f, i in zip(first, at))] = update[at]
    return out


def _convert(x: np.ndarray, *, dtype: np.dtype) -> np.ndarray:
    def element(at: tuple) -> np.ndarray:
        value = plain(x[at])
        if dtype == dtypes.bool_:
            return np.array(value != 0)
        if dtype in dtypes.INTEGER and isinstance(value, float):
            width = {dtypes.i4: 4, dtypes.u4: 4}.get(dtype, dtype.itemsize * 8)
            below = 1 << (width - 1) if dtype in dtypes.SIGNED else 0
            low, high = -below, (1 << width) - 1 - below
            return typed(0 if math.isnan(value) else min(max(value, low), high), dtype)
        return typed(value, dtype)

    return _each(x.shape, dtype, element)


def _bitcast(x: np.ndarray, *, dtype: np.dtype) -> np.ndarray:
    return np.frombuffer(x.tobytes(), dtype).reshape(x.shape)


def _shear(x: np.ndarray, *, axes: tuple, strides: tuple, dilations: tuple) -> np.ndarray:
    first = x.ndim - len(axes)
    shape = list(x.shape)
    for n, (axis, s, d) in enumerate(zip(axes, strides, dilations, strict=True)):
        shape[axis] = len(range(0, x.shape[axis] - (x.shape[first + n] - 1) * d, s))

    def element(at: tuple) -> Any:
        where = list(at)
        for n, (axis, s, d) in enumerate(zip(axes, strides, dilations, strict=True)):
            where[axis] = at[axis] * s + at[first + n] * d
        return x[tuple(where)]

    return _each(tuple(shape), x.dtype, element)


def _conv_general_dilated(
    x: np.ndarray,
    w: np.ndarray,
    *,
    strides: tuple,
    padding: tuple,
    lhs_dilation: tuple,
    rhs_dilation: tuple,
    specs: tuple,
    groups: tuple,
) -> np.ndarray:
    """Sums over (feature, position in the kernel), one element of the result after another."""
    x, w = x.transpose(specs[0]), w.transpose(specs[1])
    (batches, _), (outs, ins), sizes = x.shape[:2], w.shape[:2], w.shape[2:]
    wholes = [(n - 1) * d + 1 + lo + hi for n, d, (lo, hi) in zip(x.shape[2:], lhs_dilation, padding, strict=True)]
    counts = [
        len(range(0, n - (k - 1) * d, s)) for n, k, d, s in zip(wholes, sizes, rhs_dilation, strides, strict=True)
    ]

    def place(at: tuple, k: tuple) -> tuple | None:
        results = []
        for o, i, s, d, gap, (lo, _), n in zip(
            at, k, strides, rhs_dilation, lhs_dilation, padding, x.shape[2:], strict=True
        ):
            inside, remainder = divmod(o * s + i * d - lo, gap)
            if remainder or not 0 <= inside < n:
                return None
            results.append(inside)
        return tuple(results)

    def element(at: tuple) -> Any:
        n, o, *where = at
        group = o // (outs // max(groups))
        batch = n + (group * (batches // groups[1]) if groups[1] > 1 else 0)
        first = group * ins if groups[0] > 1 else 0
        total = 0
        for c in range(ins):
            for k in np.ndindex(*sizes):
                source = place(tuple(where), k)
                if source is not None:
                    total = total + plain(x[(batch, first + c, *source)]) * plain(w[(o, c, *k)])
        return typed(total, x.dtype)

    results = _each((batches // groups[1], outs, *counts), x.dtype, element)
    return results.transpose(np.argsort(specs[2]))


def _reduce_window(
    x: np.ndarray,
    *,
    combine: str,
    window: tuple,
    strides: tuple,
    padding: tuple,
    base_dilation: tuple,
    window_dilation: tuple,
) -> np.ndarray:
    """The elements that a window holds, combined in order; those of padding do not count."""
    fold: Callable[[Any, Any], Any] = {
        "add": operator.add,
        "mul": operator.mul,
        "max": max,
        "min": min,
        "and": operator.and_,
        "or": operator.or_,
    }[combine]
    counts = [
        len(range(0, (n - 1) * b + 1 + lo + hi - (k - 1) * d, s))
        for n, k, s, (lo, hi), b, d in zip(
            x.shape, window, strides, padding, base_dilation, window_dilation, strict=True
        )
    ]
    info = ml_dtypes.iinfo(x.dtype) if x.dtype in dtypes.INTEGER else None
    empty = {
        "add": 0,
        "mul": 1,
        "and": -1,
        "or": 0,
        "max": info.min if info else -math.inf,
        "min": info.max if info else math.inf,
    }[combine]

    def element(at: tuple) -> Any:
        elements = []
        for k in np.ndindex(*window):
            places = [
                divmod(o * s + i * d - lo, b)
                for o, i, s, d, (lo, _), b in zip(at, k, strides, window_dilation, padding, base_dilation, strict=True)
            ]
            if all(remainder == 0 and 0 <= p < n for (p, remainder), n in zip(places, x.shape, strict=True)):
                elements.append(plain(x[tuple(p for p, _ in places)]))
        return typed(functools.reduce(fold, elements) if elements else empty, x.dtype)

    return _each(tuple(counts), x.dtype, element)


WHOLE: dict[str, Callable[..., np.ndarray]] = {
    "broadcast": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "pad": _pad,
    "reverse": _reverse,
    "concatenate": _concatenate,
    "reduce_sum": _reduce(operator.add, 0),
    "reduce_prod": _reduce(operator.mul, 1),
    "reduce_max": _reduce(max),
    "reduce_min": _reduce(min),
    "reduce_and": _reduce(operator.and_, -1),
    "reduce_or": _reduce(operator.or_, 0),
    "argmax": _arg(operator.gt),
    "argmin": _arg(operator.lt),
    "cumsum": _cumulative(operator.add),
    "cumprod": _cumulative(operator.mul),
    "cummax": _cumulative(max),
    "cummin": _cumulative(min),
    "dot_general": _dot_general,
    "gather": _gather,
    "shear": _shear,
    "conv_general_dilated": _conv_general_dilated,
    "reduce_window": _reduce_window,
    "scatter": _scatter(lambda old, new: new),
    "scatter_add": _scatter(operator.add),
    "scatter_mul": _scatter(operator.mul),
    "scatter_min": _scatter(min),
    "scatter_max": _scatter(max),
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "convert": _convert,
    "bitcast": _bitcast,
    "iota": lambda *, shape, axis, dtype: _each(shape, dtype, lambda at: at[axis]),
    "size": lambda *, size, dtype: np.array(size, dtype),
    "stop_gradient": lambda x: x,
    **OF_KEYS,
    "popcount": lambda x: _each(x.shape, x.dtype, lambda at: _bits(x, at).count("1")),
    "clz": lambda x: _each(x.shape, x.dtype, lambda at: len(_bits(x, at).split("1")[0])),
    "nextafter": lambda a, b: _each(a.shape, a.dtype, lambda at: _next(a[at], b[at])),
}


def _bits(x: np.ndarray, at: tuple) -> str:
    width = {dtypes.i4: 4, dtypes.u4: 4}.get(x.dtype, x.dtype.itemsize * 8)
    return f"{int(x[at]) % (1 << width):0{width}b}"


def _next(a: Any, b: Any) -> Any:
    """One step of the bits of a, for the nonzero numbers of the samples."""
    if a == b:
        return a
    bits = np.asarray(a).view(f"i{a.dtype.itemsize}")
    is_away = (b > a) == (a > 0)
    return (bits + np.array(1 if is_away else -1, bits.dtype)).view(a.dtype)


def meaning(name: str, arrays: list[np.ndarray], dtype: np.dtype, params: Mapping) -> np.ndarray:
    """The result that a primitive should have."""
    if name in WHOLE:
        return WHOLE[name](*arrays, **params)
    complex_ = any(a.dtype in dtypes.COMPLEX for a in arrays)
    table = OF_COMPLEX if complex_ and name in OF_COMPLEX else SCALAR
    if name not in table:
        raise AssertionError(f"{name}: no meaning; add a line to tests/ops/meanings.py")
    return elementwise(table[name], arrays, dtype, params)
