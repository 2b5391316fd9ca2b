"""The functions of rune.numpy that are ufuncs, as in JAX: those that can be reduced by.

A row gives the function, its identity, and the equivalent reductions and updates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.numpy import arithmetic, logic, reductions, transcendental
from rune.numpy.arguments import value
from rune.numpy.ufuncs import Function, Ways, ufunc
from rune.ops import conventions as c
from rune.ops import statistics as st
from rune.typing import ArrayLike, DTypeLike


def _extremum(reduce: Function) -> Function:
    def reduced(
        x: ArrayLike,
        axis: int,
        dtype: DTypeLike | None,
        out: None,
        keepdims: bool,
        initial: ArrayLike | None,
        where: ArrayLike | None,
    ) -> Array:
        return reduce(_in(x, dtype), axis, out, keepdims, initial, where)

    return reduced


def _truth(reduce: Function, combine: Function) -> Function:
    def reduced(
        x: ArrayLike,
        axis: int,
        dtype: DTypeLike | None,
        out: None,
        keepdims: bool,
        initial: ArrayLike | None,
        where: ArrayLike | None,
    ) -> Array:
        truth = _in(reduce(x, axis, out, keepdims, where=where), dtype)
        return truth if initial is None else combine(truth, value("reduce", initial))

    return reduced


def _bits(primitive: Primitive, combine: Function, identity: int) -> Function:
    def reduced(
        x: ArrayLike,
        axis: int,
        dtype: DTypeLike | None,
        out: None,
        keepdims: bool,
        initial: ArrayLike | None,
        where: ArrayLike | None,
    ) -> Array:
        operand = reductions.selected(primitive.name, _in(value("reduce", x), dtype), where, identity)
        bits = st.reduce(primitive.name, primitive, operand, axis, keepdims)
        return bits if initial is None else c.astype(combine(bits, initial), type_of(bits).dtype)

    return reduced


def _in(x: ArrayLike, dtype: DTypeLike | None) -> Any:
    return x if dtype is None else c.astype(x, dtypes.as_dtype(dtype))


def _running(primitive: Primitive) -> Function:
    def accumulated(x: ArrayLike, axis: int, dtype: DTypeLike | None) -> Array:
        return st.cumulative(primitive.name, primitive, _in(x, dtype), axis)

    return accumulated


def _running_truth(primitive: Primitive) -> Function:
    """Reduces truth values, which count as 0 and 1."""

    def accumulated(x: ArrayLike, axis: int, dtype: DTypeLike | None) -> Array:
        truths = c.astype(c.astype(x, dtypes.bool_), dtypes.i32)
        return _in(st.cumulative(primitive.name, primitive, truths, axis), dtype or bool)

    return accumulated


def _ufunc(function: Function, identity: ArrayLike | None = None, ways: Ways | None = None) -> ufunc:
    return ufunc(function, 2, 1, identity=identity, ways=ways)


add = _ufunc(arithmetic.add, 0, Ways(reductions.sum, reductions.cumsum, "add"))
multiply = _ufunc(arithmetic.multiply, 1, Ways(reductions.prod, reductions.cumprod, "multiply"))
subtract = _ufunc(arithmetic.subtract, None, Ways(at="subtract"))
maximum = _ufunc(arithmetic.maximum, None, Ways(_extremum(reductions.max), _running(ops.cummax), "max"))
minimum = _ufunc(arithmetic.minimum, None, Ways(_extremum(reductions.min), _running(ops.cummin), "min"))
logical_and = _ufunc(
    logic.logical_and, True, Ways(_truth(reductions.all, logic.logical_and), _running_truth(ops.cummin))
)
logical_or = _ufunc(logic.logical_or, False, Ways(_truth(reductions.any, logic.logical_or), _running_truth(ops.cummax)))
logical_xor = _ufunc(logic.logical_xor, False)
bitwise_and = _ufunc(logic.bitwise_and, -1, Ways(_bits(ops.reduce_and, logic.bitwise_and, -1)))
bitwise_or = _ufunc(logic.bitwise_or, 0, Ways(_bits(ops.reduce_or, logic.bitwise_or, 0)))
bitwise_xor = _ufunc(logic.bitwise_xor, 0)
logaddexp = _ufunc(transcendental.logaddexp, -np.inf)
logaddexp2 = _ufunc(transcendental.logaddexp2, -np.inf)
negative = ufunc(arithmetic.negative, 1, 1)

__all__ = ["add", "bitwise_and", "bitwise_or", "bitwise_xor", "logaddexp", "logaddexp2", "logical_and"]
__all__ += ["logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "subtract"]
