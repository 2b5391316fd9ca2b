"""Comparison, logic, bits, and tests of floats: elementwise with promotion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import floating, listed, refuse, value, values
from rune.numpy.composites import composite
from rune.numpy.docstrings import broadcast, documented, documented_row, elementwise
from rune.numpy.operands import operands_alone
from rune.numpy.positions import nonzero
from rune.numpy.transcendental import same_dtype
from rune.ops import conventions as c
from rune.ops import statistics as st
from rune.ops.elementwise_rows import ANY, Row
from rune.ops.elementwise_table import ROWS
from rune.ops.family import fit
from rune.ops.nested import joined
from rune.ops.promote import apply, broadcast_together, constant, promoted, scalar_kind, unrounded
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, Nested

Unary = Callable[[ArrayLike], Array]
Binary = Callable[[ArrayLike, ArrayLike], Array]


_NO_COMPLEX, _NO_FLOATS = "DtypeError for complex numbers", "DtypeError for floats"


def _compare(name: str, row: Row) -> Binary:
    compare = apply if row.takes == ANY else c.ordered

    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        return compare(row.primitive, x1, x2)

    return operands_alone(documented_row(function, name, row, broadcast("bool"), "rnp"))


equal = _compare("equal", ROWS["eq"])
not_equal = _compare("not_equal", ROWS["ne"])
less = _compare("less", ROWS["lt"])
less_equal = _compare("less_equal", ROWS["le"])
greater = _compare("greater", ROWS["gt"])
greater_equal = _compare("greater_equal", ROWS["ge"])


def _truths(name: str, xs: Sequence[ArrayLike]) -> list[Array]:
    truths = [c.astype(value(name, x), dtypes.bool_) for x in xs]
    return broadcast_together(name, truths)


def _logical(name: str, primitive: Primitive, doc: str, result_text: str) -> Binary:
    @tiered
    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        return primitive(*_truths(name, (x1, x2)))

    example = f"rnp.{name}(rnp.arange(2), True)"
    return documented(function, name, doc, broadcast("bool"), example, f"Array({result_text}, bool[2], cpu:0)")


logical_and = _logical("logical_and", ops.logical_and, "Whether both are nonzero.", "[False,  True]")
logical_or = _logical("logical_or", ops.logical_or, "Whether one is nonzero.", "[ True,  True]")
logical_xor = _logical("logical_xor", ops.logical_xor, "Whether exactly one is nonzero.", "[ True, False]")


@tiered
@operands_alone
def logical_not(x: ArrayLike, /) -> Array:
    """Whether x is zero.

    Shapes: any, unchanged. Types: bool.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.logical_not(rnp.arange(2))
    Array([ True, False], bool[2], cpu:0)
    """
    return ops.logical_not(*_truths("logical_not", (x,)))


def _bits(name: str, row: Row) -> Binary:
    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        return apply(row.primitive, x1, x2)

    return documented_row(function, name, row, broadcast("promoted together", _NO_FLOATS), "rnp")


def _shift(name: str, row: Row) -> Binary:
    @tiered
    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        return row.rule(*promoted(name, x1, x2, kind="numeric"))

    facts = broadcast("promoted together; bools become integers", _NO_FLOATS)
    return operands_alone(documented_row(function, name, row, facts, "rnp"))


bitwise_and = _bits("bitwise_and", ROWS["bitwise_and"])
bitwise_or = _bits("bitwise_or", ROWS["bitwise_or"])
bitwise_xor = _bits("bitwise_xor", ROWS["bitwise_xor"])
left_shift = _shift("left_shift", ROWS["shift_left"])
right_shift = _shift("right_shift", ROWS["shift_right"])
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


invert = same_dtype("invert", ROWS["bitwise_not"], _NO_FLOATS)
bitwise_not = bitwise_invert = invert


@tiered
@operands_alone
def bitwise_count(x: ArrayLike, /) -> Array:
    """Number of one bits in the magnitude of x, as u8.

    Shapes: any, unchanged. Types: u8.
    Errors: ArgumentError if an argument is not an array; DtypeError for anything but integers and
            bools.

    >>> import rune.numpy as rnp
    >>> rnp.bitwise_count(rnp.array([7, -1]))
    Array([3, 1], u8[2], cpu:0)
    """
    x = value("bitwise_count", x)
    if type_of(x).dtype == dtypes.bool_:
        return ops.cast(x, dtypes.u8)
    return ops.cast(ops.popcount(c.absolute(x)), dtypes.u8)


# --- tests of floats --------------------------------------------------------------------------


def _test(name: str, rule: Unary, otherwise: bool, doc: str, result_text: str, errors: str = "") -> Unary:
    """A test with the same answer for all integers and bools."""

    @tiered
    def function(x: ArrayLike, /, out: None = None) -> Array:
        refuse(name, out=out)
        x = value(name, x)
        if type_of(x).dtype in dtypes.INEXACT:
            return rule(x)
        return fit(value(name, otherwise), type_of(x).shape)

    example, result = f"rnp.{name}(rnp.array([-rnp.inf, rnp.nan, 0.0]))", f"Array({result_text}, bool[3], cpu:0)"
    return operands_alone(documented(function, name, doc, elementwise("bool", errors), example, result))


def _equals(name: str, number: float) -> Unary:
    return lambda x: ops.eq(floating(name, x), constant(number, x))


def _is_infinite(x: ArrayLike) -> Array:
    # The modulus of a complex number is infinite only if a part is, since it is computed scaled.
    length = ops.abs(x)
    return ops.eq(length, constant(np.inf, length))


isnan = _test("isnan", lambda x: ops.ne(x, x), False, "Whether x is NaN.", "[False,  True, False]")
isfinite = _test("isfinite", c.is_finite, True, "Whether x is neither infinite nor NaN.", "[False, False,  True]")
isinf = _test("isinf", _is_infinite, False, "Whether x is infinite.", "[ True, False, False]")
isposinf = _test(
    "isposinf", _equals("isposinf", np.inf), False, "Whether x is +infinity.", "[False, False, False]", _NO_COMPLEX
)
isneginf = _test(
    "isneginf", _equals("isneginf", -np.inf), False, "Whether x is -infinity.", "[ True, False, False]", _NO_COMPLEX
)


@composite
def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set, for zeros and NaN too.

    Shapes: any, unchanged. Types: bool.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> import rune.numpy as rnp
    >>> rnp.signbit(rnp.array([-0.0, 1.0]))
    Array([ True, False], bool[2], cpu:0)
    """
    x = value("signbit", x)
    if type_of(x).dtype in dtypes.FLOATING:
        x = ops.copysign(constant(1, x), x)
    return apply(ops.lt, x, 0)


@tiered
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether |a - b| <= atol + rtol |b|; infinities are close only to themselves.

    Shapes: broadcast together. Types: bool.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.isclose(rnp.array([1.0, 2.0]), 1.000001)
    Array([ True, False], bool[2], cpu:0)
    """
    return _isclose(a, b, rtol, atol, equal_nan)


def _isclose(x: ArrayLike, y: ArrayLike, rtol: ArrayLike, atol: ArrayLike, equal_nan: bool) -> Array:
    if scalar_kind(unrounded("isclose", x))[0] in dtypes.KEYS:
        return apply(ops.eq, x, y)
    x, y = promoted("isclose", x, y, kind="inexact")
    bound = apply(ops.add, apply(ops.mul, ops.abs(y), rtol), atol)
    near = apply(ops.le, ops.abs(ops.sub(x, y)), bound)
    finite = ops.logical_and(c.is_finite(x), c.is_finite(y))
    is_close = ops.logical_or(ops.logical_and(near, finite), ops.eq(x, y))
    if not equal_nan:
        return is_close
    return ops.logical_or(is_close, ops.logical_and(ops.ne(x, x), ops.ne(y, y)))


@tiered
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether all elements are close, see `isclose`; a bool array of rank 0.

    Shapes: broadcast together -> []. Types: bool.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> bool(rnp.allclose(rnp.ones(2), 1.000001))
    True
    """
    return st.all(_isclose(a, b, rtol, atol, equal_nan))


@tiered
def array_equal(a1: Nested, a2: Nested, equal_nan: bool = False) -> Array:
    """Whether shapes and all elements are equal.

    Shapes: any -> []. Types: bool.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> bool(rnp.array_equal(rnp.ones(2), rnp.ones(3)))
    False
    """
    x, y = (value("array_equal", joined("array_equal", a)) for a in (a1, a2))
    if type_of(x).shape != type_of(y).shape:
        return value("array_equal", False)
    is_equal = apply(ops.eq, x, y)
    if equal_nan:
        is_equal = ops.logical_or(is_equal, ops.logical_and(isnan(x), isnan(y)))
    return st.all(is_equal)


@tiered
def array_equiv(a1: Nested, a2: Nested) -> Array:
    """Whether all elements are equal after broadcasting; False where shapes do not broadcast.

    Shapes: any -> []. Types: bool.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> bool(rnp.array_equiv(rnp.ones(2), 1.0))
    True
    """
    x, y = (value("array_equiv", joined("array_equiv", a)) for a in (a1, a2))
    try:
        return st.all(apply(ops.eq, x, y))
    except ShapeError:
        return value("array_equiv", False)


# --- choice -----------------------------------------------------------------------------------


@overload
def where(
    condition: ArrayLike, /, *, size: Size | None = ..., fill_value: ArrayLike | None = ...
) -> tuple[Array, ...]: ...


@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...


@tiered
def where(
    condition: ArrayLike,
    x: Any = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: Size | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """`x` where the condition is nonzero, else `y`; without them, `nonzero(condition)`.

    size, fill_value: those of `nonzero`, only without x and y.

    Shapes: broadcast together. Types: x and y promoted together.
    Errors: ArgumentError when only one is given. The derivative of the side not chosen is 0, but 0
            times an infinite slope is NaN: make its operands safe too.

    >>> import rune.numpy as rnp
    >>> rnp.where(rnp.arange(3) > 1, 1.0, 0.0)
    Array([0., 0., 1.], f32*[3], cpu:0)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ArgumentError("where: cannot choose between one array and nothing (give both x and y)")
    refuse("where", size=size, fill_value=fill_value)
    (mask,) = _truths("where", (condition,))
    return ops.select(*broadcast_together("where", [mask, *c.same_dtype("where", x, y)]))


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """The choice of the first condition that holds, otherwise `default`.

    Shapes: broadcast together. Types: choices and default promoted together.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> x = rnp.arange(3)
    >>> rnp.select([x < 1, x < 2], [10, 20], 30)
    Array([10, 20, 30], i32*[3], cpu:0)
    """
    condlist = listed("select", "condlist", condlist)
    choicelist = listed("select", "choicelist", choicelist)
    if len(condlist) != len(choicelist):
        raise ArgumentError(f"select: cannot match {len(condlist)} conditions to {len(choicelist)} choices")
    out = default  # unconverted: as an array, a number would lose digits before it meets the choices
    conditions = values("select", condlist)
    for condition, choice in reversed(list(zip(conditions, choicelist, strict=True))):
        out = where(condition, choice, out)
    return value("select", out)
