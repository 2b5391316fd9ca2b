"""Arithmetic, comparison, logic, bit operations, selection and conversion: elementwise.

Integer `div` truncates, and `rem` takes the dividend's sign; `rune.numpy` builds the floor forms
from them. `max` and `min` propagate NaN. Where a derivative does not exist, a convention applies,
which the tests pin: abs'(0) = 1, sign' = round' = 0, and operands that tie in max share its tangent
equally. For complex numbers the derivative of abs at 0 is 0, and sign, which is z/|z| there, has
its true derivative.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.jax_names import Translation
from rune.core.lower import Bitcast, Convert
from rune.core.primitive import NOT_DIFFERENTIABLE, ZERO, JvpRule, Primitive, Rule
from rune.core.types import ArrayType
from rune.core.values import Operand, Value
from rune.errors import DtypeError
from rune.ops import complex_scalars, scalars
from rune.ops.complex_numbers import complex as complex_
from rune.ops.complex_numbers import conj, imag, is_complex, real, real_dtype
from rune.ops.family import (
    KINDS,
    Batched,
    bool_type,
    elementwise,
    joint_shape,
    not_linear,
    require,
    same_dtype,
    same_type,
    types_text,
)

if TYPE_CHECKING:
    from rune.array import Array


def _same(
    name: str,
    kind: str,
    reference: Rule,
    *jvp: JvpRule,
    transpose: Rule | None = None,
    family: str = "arithmetic",
    linear_in: tuple[tuple[int, ...], ...] = (),
    solves: bool = False,
) -> Primitive:
    rule = same_type(name, KINDS[kind], kind)
    return elementwise(name, family, rule, reference, jvp, transpose, linear_in=linear_in, solves=solves)


def _bool(name: str, kind: str, reference: Rule, arity: int = 2) -> Primitive:
    rule = bool_type(name, KINDS[kind], kind)
    return elementwise(name, "comparison", rule, reference, (ZERO,) * arity)


# --- comparison -------------------------------------------------------------------------------

# Python's operators: NumPy's functions of these names do not compare records, as which keys are
# stored.
eq = _bool("eq", "any or key", operator.eq)
ne = _bool("ne", "any or key", operator.ne)
lt = _bool("lt", "ordered", np.less)
le = _bool("le", "ordered", np.less_equal)
gt = _bool("gt", "ordered", np.greater)
ge = _bool("ge", "ordered", np.greater_equal)
is_finite = _bool("is_finite", "floating", np.isfinite, arity=1)


# --- selection --------------------------------------------------------------------------------


def _select_type(condition: ArrayType, a: ArrayType, b: ArrayType) -> ArrayType:
    if condition.dtype != dtypes.bool_:
        raise DtypeError(f"select: cannot select by {condition} (bool condition required)")
    same_dtype("select", a, b)
    shape = joint_shape("select", (condition, a, b))
    return ArrayType(shape, a.dtype, a.weak and b.weak)


def _select_reference(condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return scalars.choose(condition, a, b)


def selecting(condition: ArrayType, a: ArrayType, b: ArrayType) -> Callable[..., np.ndarray] | None:
    """`select` of operands of these types as NumPy's function; None where another may be faster."""
    is_counted = a.dtype.itemsize == 4 and not (isinstance(condition.size, int) and condition.size < scalars.MANY)
    return None if is_counted else np.where


def _select_transpose(
    ct: Value, linear: Batched, condition: Value, a: Value | ArrayType, b: Value | ArrayType
) -> list[Array | None]:
    zero = literal_like(0, ct)
    return [
        None,
        select(condition, ct, zero) if linear[1] else None,
        select(condition, zero, ct) if linear[2] else None,
    ]


def zero_like(x: Operand) -> Value:
    """The rank-0 zero of the dtype of x."""
    return literal_like(0, x)


select: Primitive = elementwise(
    "select",
    "selection",
    _select_type,
    _select_reference,
    (
        ZERO,
        lambda da, condition, a, b, y: select(condition, da, zero_like(da)),
        lambda db, condition, a, b, y: select(condition, zero_like(db), db),
    ),
    _select_transpose,
    linear_in=((1, 2),),
    jax_order=(0, 2, 1),  # JAX's select_n takes the case for False first
)


# --- arithmetic -------------------------------------------------------------------------------

neg: Primitive = _same(
    "neg", "numeric", scalars.nibbles(np.negative), lambda dx, x, y: neg(dx), transpose=lambda ct, linear, x: [neg(ct)]
)
add: Primitive = _same(
    "add",
    "numeric",
    np.add,
    lambda da, a, b, y: da,
    lambda db, a, b, y: db,
    transpose=lambda ct, linear, a, b: [ct, ct],
)
sub: Primitive = _same(
    "sub",
    "numeric",
    np.subtract,
    lambda da, a, b, y: da,
    lambda db, a, b, y: neg(db),
    transpose=lambda ct, linear, a, b: [ct, neg(ct) if linear[1] else None],
)


_PRODUCT = complex_scalars.either(np.multiply, complex_scalars.product)
mul: Primitive = _same(
    "mul",
    "numeric",
    _PRODUCT,
    lambda da, a, b, y: mul(da, b),
    lambda db, a, b, y: mul(db, a),
    transpose=lambda ct, linear, a, b: [mul(ct, b), None] if linear[0] else [None, mul(ct, a)],
    linear_in=((0,), (1,)),
)
square: Primitive = elementwise(
    "square",
    "arithmetic",
    same_type("square", KINDS["numeric"], "numeric"),
    lambda x: _PRODUCT(x, x),
    (lambda dx, x, y: mul(mul(dx, x), literal_like(2, x)),),  # in this order a tangent 0 stays 0 at any x
    expand=lambda x: mul(x, x),
)
div: Primitive = _same(
    "div",
    "numeric",
    complex_scalars.either(scalars.nibbles(scalars.div), complex_scalars.quotient),
    lambda da, a, b, y: div(da, b),
    lambda db, a, b, y: neg(mul(db, div(y, b))),
    transpose=lambda ct, linear, a, b: [div(ct, b), None],
    linear_in=((0,),),
    solves=True,
)
floor = _same("floor", "floating", np.floor, ZERO, family="rounding")
ceil = _same("ceil", "floating", np.ceil, ZERO, family="rounding")
round = _same("round", "floating", np.rint, ZERO, family="rounding")
trunc = _same("trunc", "floating", np.trunc, ZERO, family="rounding")
rem: Primitive = _same(
    "rem",
    "real",
    scalars.nibbles(scalars.rem),
    lambda da, a, b, y: da,
    lambda db, a, b, y: neg(mul(db, trunc(div(a, b)))),
)


def _abs_type(x: ArrayType) -> ArrayType:
    require("abs", KINDS["numeric"], "numeric", x)
    return ArrayType(x.shape, real_dtype(x.dtype), x.weak)


def _abs_jvp(dx: Value, x: Value, y: Value) -> Array:
    """±dx; of a complex number, the component of dx in the direction of x, and 0 at 0."""
    if not is_complex(x):
        return select(ge(x, zero_like(x)), dx, neg(dx))
    length = _or_one(y)
    return add(mul(real(dx), div(real(x), length)), mul(imag(dx), div(imag(x), length)))


def _or_one(x: Value) -> Array:
    """x, with 1 in place of 0."""
    return select(eq(x, zero_like(x)), literal_like(1, x), x)


abs: Primitive = elementwise("abs", "arithmetic", _abs_type, scalars.nibbles(np.abs), (_abs_jvp,))


def _sign_jvp(dx: Value, x: Value, y: Value) -> Array | None:
    """Zero; for a complex number, the part of dx perpendicular to the direction y of x, divided by
    |x|.
    """
    if not is_complex(x):
        return None
    across = imag(mul(dx, conj(y)))
    return mul(y, complex_(zero_like(across), div(across, _or_one(abs(x)))))


sign: Primitive = _same(
    "sign", "numeric", complex_scalars.either(scalars.nibbles(scalars.sign), complex_scalars.sign), _sign_jvp
)


def _share_tie(d: Value, winner: Value, a: Value, b: Value) -> Array:
    half = mul(d, literal_like(0.5, d))
    return select(eq(a, b), half, select(winner, d, zero_like(d)))


max: Primitive = _same(
    "max",
    "ordered",
    scalars.nibbles(scalars.maximum),
    lambda da, a, b, y: _share_tie(da, gt(a, b), a, b),
    lambda db, a, b, y: _share_tie(db, lt(a, b), a, b),
)
min: Primitive = _same(
    "min",
    "ordered",
    scalars.nibbles(scalars.minimum),
    lambda da, a, b, y: _share_tie(da, lt(a, b), a, b),
    lambda db, a, b, y: _share_tie(db, gt(a, b), a, b),
)
copysign: Primitive = _same(
    "copysign",
    "floating",
    np.copysign,
    # |a| with the sign of b.
    lambda da, a, b, y: mul(_abs_jvp(da, a, y), copysign(literal_like(1, b), b)),
    ZERO,
)
nextafter = _same(
    "nextafter", "floating", scalars.nextafter, NOT_DIFFERENTIABLE("nextafter steps between numbers"), ZERO
)


# --- logic and bits ---------------------------------------------------------------------------


def _bits(name: str, kind: str, reference: Rule, arity: int) -> Primitive:
    return _same(name, kind, reference, *((ZERO,) * arity), family="bits")


logical_not = _bits("not", "bool or integer", scalars.nibbles(np.invert), 1)
logical_and = _bits("and", "bool or integer", scalars.nibbles(np.bitwise_and), 2)
logical_or = _bits("or", "bool or integer", scalars.nibbles(np.bitwise_or), 2)
logical_xor = _bits("xor", "bool or integer", scalars.nibbles(np.bitwise_xor), 2)
shl = _bits("shl", "integer", scalars.nibbles(scalars.shl), 2)
shr = _bits("shr", "integer", scalars.nibbles(scalars.shr), 2)
popcount = _bits("popcount", "integer", scalars.popcount, 1)
clz = _bits("clz", "integer", scalars.clz, 1)


# --- conversion -------------------------------------------------------------------------------


def _convert_type(x: ArrayType, *, dtype: np.dtype, weak: bool = False) -> ArrayType:
    if x.dtype != dtype and (x.dtype in dtypes.KEYS or dtype in dtypes.KEYS):
        raise DtypeError(
            f"convert: cannot convert {x} to {dtypes.short(dtype)} (keys are not numbers)",
            hint="rune.random.key_data gives the words of keys, wrap_key_data makes keys of words",
        )
    if x.dtype in dtypes.COMPLEX and dtype not in dtypes.COMPLEX:
        raise DtypeError(
            f"convert: cannot convert {types_text((x,))} to {dtypes.short(dtype)} (the imaginary part would be lost)",
            hint="take .real first",
        )
    return ArrayType(x.shape, dtype, weak)


def _convert_transpose(ct: Value, linear: Batched, x: ArrayType, **params: object) -> list[Array]:
    if type_of(ct).dtype not in dtypes.INEXACT:
        raise not_linear(f"convert of {x} to {type_of(ct).dtype}", "it rounds to whole numbers")
    part = real(ct) if is_complex(ct) and not is_complex(x) else ct
    return [convert(part, dtype=x.dtype, weak=x.weak)]


# Tangents exist only between inexact dtypes; the jvp interpreter drops tangents of other dtypes.
convert: Primitive = elementwise(
    "convert",
    "conversion",
    _convert_type,
    lambda x, *, dtype, weak=False: scalars.convert(x, dtype),
    (lambda dx, x, y, *, dtype, weak=False: convert(dx, dtype=dtype, weak=weak),),
    _convert_transpose,
    lower=Convert(),
    jax_names={
        "new_dtype": Translation(lambda params: params["dtype"], lambda dtype, _: {"dtype": dtypes.as_dtype(dtype)}),
        "weak_type": Translation(
            lambda params: params.get("weak", False), lambda weak, _: {"weak": True} if weak else {}
        ),
    },
)


def _bitcast_type(x: ArrayType, *, dtype: np.dtype) -> ArrayType:
    require("bitcast", dtypes.NUMERIC, "numeric", x)
    if dtype not in dtypes.NUMERIC or scalars.bit_width(x.dtype) != scalars.bit_width(dtype):
        raise DtypeError(
            f"bitcast: cannot read {x} as {dtypes.short(dtype)} (a numeric dtype of "
            f"{scalars.bit_width(x.dtype)} bits required)"
        )
    return ArrayType(x.shape, dtype)


bitcast = elementwise(
    "bitcast",
    "conversion",
    _bitcast_type,
    lambda x, *, dtype: np.ascontiguousarray(x).view(dtype).reshape(np.shape(x)),
    (ZERO,),
    lower=Bitcast(),
    jax_names={"new_dtype": "dtype"},
)


def cast(x: Any, dtype: np.dtype) -> Any:
    """`x` converted to `dtype`; x itself if it has that dtype already."""
    return x if type_of(x).dtype == dtype else convert(x, dtype=dtype)


_OF_TRUTH = (eq, ne, lt, le, gt, ge, is_finite, select)
_OF_NUMBERS = (
    neg,
    add,
    sub,
    mul,
    square,
    div,
    floor,
    ceil,
    round,
    trunc,
    rem,
    abs,
    sign,
    max,
    min,
    copysign,
    nextafter,
)
_OF_BITS = (logical_not, logical_and, logical_or, logical_xor, shl, shr, popcount, clz)
PRIMITIVES = (*_OF_TRUTH, *_OF_NUMBERS, *_OF_BITS, convert, bitcast)
