"""Random programs that share many values: diagonals, axes that occur twice, sums of sums.

Their values are whole numbers that wrap, so that every executor agrees to the last bit, and any
value may also be a result. One seed is one program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.core.program import Program
from tests.support.lowering import i32, number, program_of

LARGEST = 2000  # elements of one value
SHAPES = ((3, 3), (4, 4), (2, 3, 3), (5, 5, 2), (4,), (1, 4), (4, 1), (3, 5), (2, 2, 2, 2))


class _Maker:
    """The values so far, and the source of randomness."""

    def __init__(self, seed: int, values: list[Any]) -> None:
        self.rng = np.random.default_rng(seed)
        self.values = values

    def below(self, high: int) -> int:
        """An integer in 0..high-1."""
        return int(self.rng.integers(high))

    def pick(self, ndim: int = 0) -> Any:
        """Some value, recent ones more often; of rank `ndim` at least, if there is one."""
        fit = [v for v in self.values if v.type.ndim >= ndim] or self.values
        return fit[-1 - self.below(min(len(fit), 6))]

    def ranked(self) -> Any:
        """A value of rank at least 1."""
        operand = self.pick(1)
        return operand if operand.type.ndim else ops.broadcast(operand, shape=(3,), axes=())

    def axis(self, x: Any) -> int:
        """An axis of x."""
        return self.below(x.type.ndim)

    def like(self, x: Any) -> Any:
        """A value with the shape of x."""
        fit = [v for v in self.values if v.type.shape == x.type.shape]
        return fit[self.below(len(fit))] if fit else x


def _number(m: _Maker) -> Any:
    return number(m.below(7) - 3, dtypes.i32)


def _unary(m: _Maker) -> Any:
    x = m.pick()
    return (ops.neg(x), ops.abs(x), ops.mul(x, _number(m)), ops.add(x, _number(m)))[m.below(4)]


def _binary(m: _Maker) -> Any:
    x = m.pick()
    op = (ops.add, ops.sub, ops.mul, ops.max, ops.min)[m.below(5)]
    return op(x, m.like(x))


def _select(m: _Maker) -> Any:
    x = m.pick()
    y = m.like(x)
    return ops.select(ops.lt(x, y), ops.mul(x, _number(m)), y)


def _reduced(m: _Maker, x: Any) -> Any:
    op = (ops.reduce_sum, ops.reduce_sum, ops.reduce_max, ops.reduce_min)[m.below(4)]
    return op(x, axes=tuple(sorted({m.axis(x), m.axis(x)})))


def _reduce(m: _Maker) -> Any:
    return _reduced(m, m.ranked())


def _reduce_again(m: _Maker) -> Any:
    once = _reduced(m, m.ranked())
    m.values.append(once)
    return _reduced(m, once) if once.type.ndim else once


def _spread(m: _Maker) -> Any:
    """Each element minus a reduction of its row, its column or the whole array."""
    x = m.ranked()
    axes = tuple(sorted({m.axis(x), m.axis(x)}))
    return ops.sub(x, ops.expand_axes(ops.reduce_max(x, axes=axes), x.type.shape, axes))


def _square(m: _Maker) -> Any:
    """Every pair of elements of a row; or a matrix combined with its transpose."""
    x = m.ranked()
    if x.type.ndim > 1:
        numbers = (((x.type.ndim - 1,), (x.type.ndim - 1,)), ((), ()))
        return ops.dot_general(x, x, dimension_numbers=numbers)
    shape = (*x.type.shape, *x.type.shape)
    rows, columns = (ops.broadcast(x, shape=shape, axes=(axis,)) for axis in (0, 1))
    return ops.sub(rows, ops.mul(columns, _number(m)))


def _cut(x: Any, first: int, second: int) -> Any:
    """x cut so that two of its axes are equally long."""
    size = min(x.type.shape[first], x.type.shape[second])
    limit = tuple(size if a in (first, second) else d for a, d in enumerate(x.type.shape))
    ndim = x.type.ndim
    return ops.slice_(x, start=(0,) * ndim, limit=limit, stride=(1,) * ndim)


def _pair(m: _Maker) -> tuple[Any, tuple[int, int]] | None:
    """A value and two of its axes."""
    x = m.pick(2)
    if x.type.ndim < 2:
        return None
    first, second = (int(a) for a in m.rng.permutation(x.type.ndim)[:2])
    return _cut(x, first, second), (first, second)


def _diagonal(m: _Maker) -> Any:
    """Elements [i, i] of two axes, as a strided slice of the flattened value."""
    pair = _pair(m)
    if pair is None:
        return m.pick()
    x, (first, second) = pair
    others = tuple(a for a in range(x.type.ndim) if a not in (first, second))
    x = ops.transpose(x, permutation=(first, second, *others))
    size, _, *inner = x.type.shape
    flat = ops.reshape(x, shape=(size * size, *inner))
    inner_strides = (1,) * len(inner)
    return ops.slice_(flat, start=(0,) * flat.type.ndim, limit=flat.type.shape, stride=(size + 1, *inner_strides))


def _gathered_diagonal(m: _Maker) -> Any:
    """Elements [i, i] of two axes, read by their positions."""
    pair = _pair(m)
    if pair is None:
        return m.pick()
    x, both = pair
    size = x.type.shape[both[0]]
    i = ops.iota(shape=(size, 1), axis=0, dtype=dtypes.i32)
    places = tuple(sorted(both))
    offsets = tuple(range(1, x.type.ndim - 1))
    dims = ops.IndexDims(offsets, places, places)
    sizes = tuple(1 if a in places else d for a, d in enumerate(x.type.shape))
    at = ops.concatenate(i, i, axis=1)
    return ops.gather(x, at, number(-1, dtypes.i32), dims=dims, slice_sizes=sizes, mode="clip")


def _on_the_diagonal(m: _Maker) -> Any:
    """One value on the diagonal of two axes, another one off it."""
    x = m.pick(2)
    if x.type.ndim < 2:
        return x
    i, j = (ops.iota(shape=x.type.shape, axis=axis, dtype=dtypes.i32) for axis in (0, 1))
    return ops.select(ops.eq(i, j), x, m.like(x))


def _transpose(m: _Maker) -> Any:
    x = m.ranked()
    return ops.transpose(x, permutation=tuple(int(p) for p in m.rng.permutation(x.type.ndim)))


def _reshape(m: _Maker) -> Any:
    x = m.ranked()
    count = int(np.prod(x.type.shape))
    divisors = [d for d in range(1, count + 1) if count % d == 0]
    d = divisors[m.below(len(divisors))]
    return ops.reshape(x, shape=((d, count // d), (count,))[m.below(2)])


def _broadcast(m: _Maker) -> Any:
    x = m.pick()
    if x.type.ndim > 2:
        return x
    front = m.below(2)
    axes = tuple(range(front, front + x.type.ndim))
    size = x.type.shape[0] if x.type.ndim else 3
    shape = (size, *x.type.shape) if front else (*x.type.shape, size)
    return ops.broadcast(x, shape=shape, axes=axes)


def _slice(m: _Maker) -> Any:
    x = m.ranked()
    start = tuple(m.below(d) * m.below(2) for d in x.type.shape)
    stride = tuple(1 + m.below(2) for _ in x.type.shape)
    return ops.slice_(x, start=start, limit=x.type.shape, stride=stride)


def _reverse(m: _Maker) -> Any:
    x = m.ranked()
    return ops.reverse(x, axes=(m.axis(x),))


def _concatenate(m: _Maker) -> Any:
    x = m.ranked()
    return ops.concatenate(x, m.like(x), axis=m.axis(x))


CHOICES: tuple[Callable[[_Maker], Any], ...] = (
    _unary,
    _unary,
    _binary,
    _binary,
    _select,
    _reduce,
    _reduce,
    _reduce_again,
    _reduce_again,
    _spread,
    _square,
    _square,
    _diagonal,
    _diagonal,
    _gathered_diagonal,
    _on_the_diagonal,
    _transpose,
    _transpose,
    _reshape,
    _broadcast,
    _slice,
    _reverse,
    _concatenate,
)


def random_shared(seed: int, length: int = 12, results: float = 1.0) -> Program:
    """A program of about `length` operations that returns `results` of all its values."""
    rng = np.random.default_rng(seed)
    types = [i32(*SHAPES[int(k)]) for k in rng.integers(len(SHAPES), size=1 + rng.integers(2))]

    def function(*inputs: Any) -> list[Any]:
        maker = _Maker(seed, list(inputs))
        for _ in range(length):
            value = CHOICES[maker.below(len(CHOICES))](maker)
            if np.prod(value.type.shape) <= LARGEST:
                maker.values.append(value)
        *others, last = maker.values
        return [*(v for v in others if maker.rng.random() < results), last]

    return program_of(function, *types)
