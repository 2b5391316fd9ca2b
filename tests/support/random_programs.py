"""Random well-typed programs, small and full of views, reductions and shared values.

One seed is one program. Values stay of moderate size, so that what a test compares are indices
and guards, not the growth of rounding errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.core.program import Program
from rune.core.types import ArrayType
from tests.support.lowering import number, program_of

Choice = Callable[["_Maker"], Any]


class _Maker:
    """The values so far, and the source of randomness."""

    def __init__(self, seed: int, values: list[Any]) -> None:
        self.rng = np.random.default_rng(seed)
        self.values = values

    def pick(self, ndim: int | None = None) -> Any:
        """Some f32 value, recent ones more often; of rank `ndim` at least."""
        fit = [v for v in self.values if v.type.dtype == dtypes.f32]
        fit = [v for v in fit if ndim is None or v.type.ndim >= ndim] or fit
        return fit[-1 - int(self.rng.integers(min(len(fit), 6)))]

    def ranked(self) -> Any:
        """A value of rank at least 1."""
        operand = self.pick(1)
        return operand if operand.type.ndim else ops.broadcast(operand, shape=(3,), axes=())

    def axis(self, x: Any) -> int:
        """An axis of x."""
        return int(self.rng.integers(x.type.ndim))

    def below(self, high: int) -> int:
        """An integer in 0..high-1."""
        return int(self.rng.integers(high))


def _like(m: _Maker, x: Any) -> Any:
    """Another value with the shape of x."""
    fit = [v for v in m.values if v.type.shape == x.type.shape and v.type.dtype == dtypes.f32]
    return fit[m.below(len(fit))] if fit else x


def _unary(m: _Maker) -> Any:
    op = (ops.neg, ops.abs, ops.tanh, ops.logistic, ops.sin, ops.floor)[m.below(6)]
    return op(m.pick())


def _exponential(m: _Maker) -> Any:
    return ops.exp(ops.tanh(m.pick()))


def _binary(m: _Maker) -> Any:
    x = m.pick()
    op = (ops.add, ops.sub, ops.max, ops.min, ops.mul)[m.below(5)]
    y = number(m.rng.normal()) if m.below(4) == 0 else _like(m, x)
    return ops.tanh(op(x, y)) if op is ops.mul else op(x, y)


def _select(m: _Maker) -> Any:
    x = m.pick()
    y = _like(m, x)
    return ops.select(ops.lt(x, y), x, ops.mul(y, number(0.5)))


def _reduce(m: _Maker) -> Any:
    x = m.ranked()
    axes = tuple(sorted({m.axis(x), m.axis(x)}))
    op = (ops.reduce_sum, ops.reduce_max, ops.reduce_min)[m.below(3)]
    if op is not ops.reduce_sum and 0 in x.type.shape:
        op = ops.reduce_sum
    out = op(x, axes=axes)
    return ops.expand_axes(out, x.type.shape, axes) if m.below(2) else out


def _row_sum(m: _Maker) -> Any:
    x = m.ranked()
    axes = (x.type.ndim - 1,)
    e = ops.exp(ops.tanh(x))
    return ops.div(e, ops.expand_axes(ops.reduce_sum(e, axes=axes), x.type.shape, axes))


def _reshape(m: _Maker) -> Any:
    x = m.ranked()
    count = int(np.prod(x.type.shape))
    divisors = [d for d in range(1, count + 1) if count % d == 0]
    if not divisors:
        return x
    d = divisors[m.below(len(divisors))]
    shape = ((d, count // d), (count,), (1, d, count // d))[m.below(3)]
    return ops.reshape(x, shape=shape)


def _transpose(m: _Maker) -> Any:
    x = m.ranked()
    return ops.transpose(x, permutation=tuple(int(p) for p in m.rng.permutation(x.type.ndim)))


def _broadcast(m: _Maker) -> Any:
    x = m.pick()
    if x.type.ndim > 2:
        return x
    axes = tuple(range(1, 1 + x.type.ndim))
    return ops.broadcast(x, shape=(2 + m.below(3), *x.type.shape), axes=axes)


def _slice(m: _Maker) -> Any:
    x = m.ranked()
    start, limit, stride = [], [], []
    for d in x.type.shape:
        a, b = sorted((m.below(d + 1), m.below(d + 1)))
        start.append(a if m.below(2) else 0)
        limit.append(b if m.below(2) and b > start[-1] else d)
        stride.append(1 + m.below(2))
    return ops.slice_(x, start=tuple(start), limit=tuple(limit), stride=tuple(stride))


def _pad(m: _Maker) -> Any:
    x = m.ranked()
    gap = tuple(m.below(2) * m.below(2) for _ in x.type.shape)
    widths = [tuple(m.below(4) - (1 if d > 2 else 0) for d in x.type.shape) for _ in range(2)]
    return ops.pad(x, number(0.5), low=widths[0], high=widths[1], interior=gap)


def _reverse(m: _Maker) -> Any:
    x = m.ranked()
    return ops.reverse(x, axes=(m.axis(x),))


def _concatenate(m: _Maker) -> Any:
    x = m.ranked()
    axis = m.axis(x)
    parts = [x, _like(m, x), ops.neg(x)][: 2 + m.below(2)]
    if m.below(2) and x.type.shape[axis] > 1:
        limit = tuple(1 if i == axis else d for i, d in enumerate(x.type.shape))
        zeros = (0,) * x.type.ndim
        parts.append(ops.slice_(x, start=zeros, limit=limit, stride=(1,) * x.type.ndim))
    return ops.concatenate(*parts, axis=axis)


def _dot(m: _Maker) -> Any:
    x = m.ranked()
    y = m.ranked()
    sizes = enumerate(x.type.shape), list(enumerate(y.type.shape))
    pairs = [(i, j) for i, d in sizes[0] for j, e in sizes[1] if d == e]
    numbers = (((), ()), ((), ()))
    if pairs:
        i, j = pairs[m.below(len(pairs))]
        numbers = (((i,), (j,)), ((), ()))
    if x.type.ndim + y.type.ndim - 2 * bool(pairs) > 4:
        return x
    return ops.tanh(ops.dot_general(x, y, dimension_numbers=numbers))


def _cumulative(m: _Maker) -> Any:
    x = m.ranked()
    op = ops.cumsum if m.below(2) else ops.cummax
    return op(x, axis=m.axis(x), reverse=bool(m.below(2)))


def _positions(m: _Maker) -> Any:
    x = m.ranked()
    i = ops.iota(shape=x.type.shape, axis=m.axis(x), dtype=dtypes.i32)
    first = ops.lt(i, number(m.below(4), dtypes.i32))
    return ops.select(first, x, ops.convert(i, dtype=dtypes.f32))


def _indices(m: _Maker, count: int) -> Any:
    """[count, 1] integers, some of them out of bounds."""
    i = ops.iota(shape=(count, 1), axis=0, dtype=dtypes.i32)
    return ops.sub(ops.mul(i, number(1 + m.below(3), dtypes.i32)), number(m.below(3), dtypes.i32))


def _rows(x: Any) -> tuple[ops.IndexDims, tuple[int, ...]]:
    dims = ops.IndexDims(tuple(range(1, x.type.ndim)), (0,), (0,))
    return dims, (1, *x.type.shape[1:])


def _gather(m: _Maker) -> Any:
    x = m.ranked()
    if x.type.shape[0] == 0:
        return x
    dims, sizes = _rows(x)
    mode = ("clip", "fill")[m.below(2)]
    at = _indices(m, 2 + m.below(3))
    return ops.gather(x, at, number(-1), dims=dims, slice_sizes=sizes, mode=mode)


def _scatter(m: _Maker) -> Any:
    x = m.ranked()
    if x.type.shape[0] == 0:
        return x
    dims, sizes = _rows(x)
    count = 2 + m.below(3)
    updates = ops.broadcast(
        ops.reduce_sum(x, axes=(0,)), shape=(count, *x.type.shape[1:]), axes=tuple(range(1, x.type.ndim))
    )
    op = (ops.scatter, ops.scatter_add, ops.scatter_min, ops.scatter_max)[m.below(4)]
    mode = ("clip", "fill")[m.below(2)]
    return op(x, _indices(m, count), updates, dims=dims, slice_sizes=sizes, mode=mode)


def _window(m: _Maker) -> Any:
    x = m.ranked()
    starts = [number(m.below(5) - 1, dtypes.i32) for _ in x.type.shape]
    sizes = tuple(max(d - m.below(3), min(d, 1)) for d in x.type.shape)
    part = ops.dynamic_slice(x, *starts, sizes=sizes)
    if m.below(2):
        return part
    return ops.dynamic_update_slice(x, ops.neg(part), *starts)


CHOICES: tuple[Choice, ...] = (
    _unary,
    _unary,
    _exponential,
    _exponential,
    _binary,
    _binary,
    _binary,
    _select,
    _reduce,
    _reduce,
    _row_sum,
    _reshape,
    _transpose,
    _broadcast,
    _slice,
    _pad,
    _reverse,
    _concatenate,
    _dot,
    _cumulative,
    _positions,
    _gather,
    _scatter,
    _window,
)
LARGEST = 3000  # elements of one value


def random_program(seed: int, length: int = 12, types: tuple[ArrayType, ...] = ()) -> Program:
    """A program of about `length` operations."""
    rng = np.random.default_rng(seed)
    shapes = [(3, 4), (4,), (2, 3, 4), (6, 4), (5,), (1, 4), (3, 1), (12,)]
    count = 1 + int(rng.integers(3))
    argument_shapes = [shapes[int(k)] for k in rng.integers(len(shapes), size=count)]
    types = types or tuple(ArrayType(shape, dtypes.f32) for shape in argument_shapes)

    def function(*inputs: Any) -> list[Any]:
        maker = _Maker(seed, list(inputs))
        for _ in range(length):
            value = CHOICES[maker.below(len(CHOICES))](maker)
            if np.prod(value.type.shape) <= LARGEST:
                maker.values.append(value)
        last = maker.values[-1]
        others = [maker.values[maker.below(len(maker.values))] for _ in range(maker.below(3))]
        return [last, *others]

    return program_of(function, *types)
