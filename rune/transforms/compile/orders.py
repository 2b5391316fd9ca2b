"""Sums and products of floats in NumPy's order, and the arrays for which that order is known.

NumPy adds up the numbers of a row in eight partial sums, and adds rows one after another; which of
the two depends on the layout of an array in memory. So it must be known which values of a program
NumPy would have as dense rows in C order: their order is known, and can be written out.
Products and running sums always go from the first to the last.

Source: the pairwise sum of numpy/_core/src/umath/loops_utils.h.src, of at most 128 numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from functools import partial, reduce
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program, Var
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.ops.family import is_copied, zeros_like
from rune.ops.memory import in_memory

Combine: TypeAlias = Callable[[Array, Array], Array]

MOST_IN_A_ROW = 128  # numbers that NumPy adds up in one block
MOST_STEPS = 16  # the most numbers, or rows, that are written out one after another
_PARTIAL = 8  # partial sums of a row
_ELEMENTWISE = frozenset({"comparison", "selection", "arithmetic", "rounding", "bits", "transcendental"})
_ALONG_AXES = frozenset({"reduction", "cumulative"})
_FLOATS = frozenset({dtypes.f32, dtypes.f64})


def contiguous_values(program: Program) -> frozenset[Var]:
    """The values that NumPy has in C order, without gaps, if the inputs are."""
    values = _Layouts(set(program.inputs), set(program.inputs), set())
    for equation in program.equations:
        if _is_contiguous(equation, values):
            values.plain.update(equation.results)
        if _is_ordered(equation, values):
            values.ordered.update(equation.results)
        if equation.primitive.name in ("broadcast", "iota"):
            values.spread.update(equation.results)
    return frozenset(values.plain)


class _Layouts(NamedTuple):
    """The values so far, by their known layout.

    plain:   in C order, without gaps
    ordered: in C order, perhaps with gaps, or backwards
    spread:  broadcast, so without an order of their own
    """

    plain: set[Var]
    ordered: set[Var]
    spread: set[Var]


def _is_ordered(equation: Equation, values: _Layouts) -> bool:
    is_view = equation.primitive.name in ("slice", "reverse") and equation.operands[0] in values.ordered
    return is_view or values.plain.issuperset(equation.results)


def _is_contiguous(equation: Equation, values: _Layouts) -> bool:
    primitive, operands = equation.primitive, equation.operands
    if primitive.name in ("pad", "svd") or all(v.type.ndim == 0 for v in equation.results):
        return True
    if primitive.name == "broadcast":
        return is_copied(equation.results[0].type.shape)
    if primitive.name == "slice":
        return operands[0] in values.plain and operands[0].type.ndim == 1 and equation.params["stride"] == (1,)
    if primitive.name in ("reshape", "concatenate", "convert") or primitive.family in _ALONG_AXES:
        return values.plain.issuperset(operands)
    # NumPy lays a result out like its operands; those of one element, or broadcast, do not count.
    large = [a for a in operands if isinstance(a, Var) and a.type.ndim]
    is_elementwise = primitive.family in _ELEMENTWISE
    return (
        is_elementwise
        and values.ordered.union(values.spread).issuperset(large)
        and any(a in values.ordered for a in large)
    )


@functools.cache
def is_numpys_order() -> bool:
    """Whether this NumPy adds up as described here: another version may use another order."""
    row = np.array([(-1.0) ** k * 3.7 ** (k % 11) for k in range(29)], np.float32)
    partial_sums = row[:8] + row[8:16] + row[16:24]
    pairs = partial_sums[::2] + partial_sums[1::2]
    total = reduce(np.add, row[24:], (pairs[0] + pairs[1]) + (pairs[2] + pairs[3]))
    # Sums start from +0 and not from the first number, which may be -0.
    zero = np.sum(np.array([-0.0], np.float32))
    return bool(np.sum(row) == total and not np.signbit(zero))


def has_known_order(equation: Equation, plain: frozenset[Var]) -> bool:
    """Whether an equation adds up or multiplies floats in an order that is written out."""
    if equation.primitive not in _WRITTEN or not is_numpys_order():
        return False
    (operand,) = equation.operands
    # One axis has one order, whatever the stride of its elements.
    is_known = operand in plain or operand.type.ndim == 1 or equation.primitive in _RUNNING
    return is_known and _written_out(equation.primitive, operand.type, equation.params) is not None


def in_numpys_order(primitive: Primitive, x: Value, params: Mapping[str, object]) -> Array | None:
    """The result with NumPy's bits, for floats in C order; None for other operations."""
    computation = _written_out(primitive, type_of(x), params) if primitive in _WRITTEN else None
    return None if computation is None else in_memory(computation(x))


def _written_out(primitive: Primitive, x: ArrayType, params: Mapping[str, object]) -> Callable[[Value], Array] | None:
    """NumPy's computation, written out where that is possible."""
    if x.dtype not in _FLOATS or not all(isinstance(d, int) and d > 0 for d in x.shape):
        return None
    if primitive in _RUNNING:
        axis = params["axis"]
        assert isinstance(axis, int)
        is_short = x.shape[axis] <= MOST_STEPS and not params["reverse"]
        return partial(_running, _RUNNING[primitive], axis=axis) if is_short else None
    axes = params["axes"]
    assert isinstance(axes, tuple)
    return _written_out_along(primitive, x, axes)


def _written_out_along(primitive: Primitive, x: ArrayType, axes: tuple[int, ...]) -> Callable[[Value], Array] | None:
    """The same for reductions: within rows, or across rows."""
    # Axes of size 1 do not matter. Sorted flags: the reduced axes are the last ones, or the first.
    is_reduced = [i in axes for i, d in enumerate(x.shape) if d != 1]
    result = tuple(d for i, d in enumerate(x.shape) if i not in axes)
    count, remainder = math.prod(x.shape[i] for i in axes), math.prod(result)
    if is_reduced == sorted(is_reduced) and count <= (MOST_IN_A_ROW if primitive is ops.reduce_sum else MOST_STEPS):
        reduce_rows = _sums_of_rows if primitive is ops.reduce_sum else partial(_one_by_one, ops.mul, axis=1)
        return lambda x: ops.reshape(reduce_rows(ops.reshape(x, shape=(remainder, count))), shape=result)
    if is_reduced == sorted(is_reduced, reverse=True) and count <= MOST_STEPS:
        reduce_columns = _sums_of_columns if primitive is ops.reduce_sum else partial(_one_by_one, ops.mul, axis=0)
        return lambda x: ops.reshape(reduce_columns(ops.reshape(x, shape=(count, remainder))), shape=result)
    return None


def _sums_of_rows(x: Value) -> Array:
    """Eight numbers at a time."""
    length = type_of(x).shape[1]
    assert isinstance(length, int)
    # Column sums of blocks of eight, then a tree of pairs, then the tail one by one: NumPy's loop.
    even = length - length % _PARTIAL
    tail = _parts(x, 1, 1, even)
    if not even:
        return _to_zero(reduce(ops.add, tail))
    sums = _parts(reduce(ops.add, _parts(x, 1, _PARTIAL)[: even // _PARTIAL]), 1, 1)
    while len(sums) > 1:
        sums = [ops.add(a, b) for a, b in zip(sums[::2], sums[1::2], strict=True)]
    return _to_zero(reduce(ops.add, [*sums, *tail]))


def _sums_of_columns(x: Value) -> Array:
    return _to_zero(_one_by_one(ops.add, x, axis=0))


def _to_zero(x: Value) -> Array:
    """NumPy starts from 0, which shows if all numbers are -0."""
    return ops.add(x, zeros_like(x))


def _one_by_one(combine: Combine, x: Value, *, axis: int) -> Array:
    """The combination of all elements of an axis, from the first to the last."""
    return reduce(combine, _parts(x, axis, 1))


def _running(combine: Combine, x: Value, *, axis: int) -> Array:
    """The combinations up to each element of an axis."""
    return ops.concatenate(*accumulate(_parts(x, axis, 1), combine), axis=axis)


def _parts(x: Value, axis: int, size: int, first: int = 0) -> list[Array]:
    """Pieces of `size` elements of an axis, from `first` on; the last may have fewer."""
    shape = type_of(x).shape
    parts = []
    for k in range(first, shape[axis], size):
        start, limit = [0] * len(shape), list(shape)
        start[axis], limit[axis] = k, min(k + size, shape[axis])
        parts.append(ops.slice_(x, start=tuple(start), limit=tuple(limit), stride=(1,) * len(shape)))
    return parts


_RUNNING: dict[Primitive, Combine] = {ops.cumsum: ops.add, ops.cumprod: ops.mul}
_WRITTEN = (ops.reduce_sum, ops.reduce_prod, *_RUNNING)
