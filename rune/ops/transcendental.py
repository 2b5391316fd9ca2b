"""Roots, powers, exponentials, logarithms, circular and hyperbolic functions: elementwise.

Derivatives are from Abramowitz & Stegun, Handbook of Mathematical Functions (1964), chapters 4
and 7; those with 1 - x² use (1 - x)(1 + x), which does not cancel near 1.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.primitive import JvpRule, Primitive, Rule
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import DtypeError
from rune.ops import complex_scalars, scalars
from rune.ops.arithmetic import abs, add, div, eq, lt, max, min, mul, neg, select, sub, zero_like
from rune.ops.complex_numbers import is_complex, real_dtype
from rune.ops.creation import stop_gradient
from rune.ops.elementwise_rows import FLOATS, of_floats
from rune.ops.family import KINDS, elementwise, fit, require, same_type

if TYPE_CHECKING:
    from rune.array import Array


def _floating(name: str, reference: Rule, *jvp: JvpRule) -> Primitive:
    rule = same_type(name, KINDS["floating"], "floating")
    return elementwise(name, "transcendental", rule, scalars.widened(reference), jvp)


def _inexact(name: str, reference: Rule, *jvp: JvpRule, plane: Rule | None = None) -> Primitive:
    """A function of real and complex numbers; `plane` is its meaning for the latter."""
    rule = same_type(name, KINDS["inexact"], "inexact")
    meaning = complex_scalars.either(scalars.widened(reference), plane or reference)
    return elementwise(name, "transcendental", rule, meaning, jvp)


def _scale(tangent: Value, factor: float) -> Array:
    return mul(tangent, literal_like(factor, tangent))


def _one_plus(x: Value) -> Array:
    return add(x, literal_like(1, x))


def _one_minus(x: Value) -> Array:
    return sub(literal_like(1, x), x)


def _one_minus_square(x: Value) -> Array:
    return mul(_one_minus(x), _one_plus(x))


def _unit_and(x: Value) -> tuple[Array, Array]:
    """(u, u x), where u is 1, or for a large x a power of two with which (u x)² does not overflow.

    A function of x computed from both does not depend on u, which has no derivative.
    """
    largest_exponent = ml_dtypes.finfo(real_dtype(type_of(x).dtype)).maxexp
    size = abs(stop_gradient(x))
    is_small = lt(size, literal_like(2.0 ** (largest_exponent // 2 - 2), size))
    one = select(is_small, literal_like(1, x), literal_like(2.0 ** -(largest_exponent // 2 + 1), x))
    return one, mul(one, x)


def _over_one_plus_square(dx: Value, x: Value) -> Array:
    """dx / (1 + x²)."""
    one, part = _unit_and(x)
    return mul(dx, mul(one, div(one, add(mul(one, one), mul(part, part)))))


def _over_root_of_one_plus_square(dx: Value, x: Value) -> Array:
    one, part = _unit_and(x)
    return mul(dx, mul(one, rsqrt(add(mul(one, one), mul(part, part)))))


def _over_one_minus_square(dx: Value, x: Value) -> Array:
    """dx / (1 - x²)."""
    if not is_complex(x):
        return div(dx, _one_minus_square(x))  # where |x| <= 1
    one, part = _unit_and(x)
    return mul(dx, mul(one, div(one, mul(sub(one, part), add(one, part)))))


def _over_root_of_one_minus_square(dx: Value, x: Value) -> Array:
    if not is_complex(x):
        return mul(dx, rsqrt(_one_minus_square(x)))
    one, part = _unit_and(x)
    return mul(dx, mul(one, rsqrt(mul(sub(one, part), add(one, part)))))


sqrt = _inexact("sqrt", np.sqrt, lambda dx, x, y: div(_scale(dx, 0.5), y))
rsqrt: Primitive = _inexact(
    "rsqrt", scalars.rsqrt, lambda dx, x, y: mul(_scale(dx, -0.5), div(y, x)), plane=complex_scalars.rsqrt
)
cbrt = _floating("cbrt", np.cbrt, lambda dx, x, y: div(_scale(dx, 1 / 3), mul(y, y)))
exp = _inexact("exp", np.exp, lambda dx, x, y: mul(dx, y))
exp2 = _inexact("exp2", np.exp2, lambda dx, x, y: mul(dx, _scale(y, math.log(2))))
expm1 = _inexact("expm1", np.expm1, lambda dx, x, y: mul(dx, exp(x)), plane=complex_scalars.expm1)
log = _inexact("log", np.log, lambda dx, x, y: div(dx, x))
log2 = _inexact("log2", np.log2, lambda dx, x, y: div(dx, _scale(x, math.log(2))))
log1p = _inexact("log1p", np.log1p, lambda dx, x, y: div(dx, _one_plus(x)), plane=complex_scalars.log1p)
sin: Primitive = _inexact("sin", np.sin, lambda dx, x, y: mul(dx, cos(x)))
cos: Primitive = _inexact("cos", np.cos, lambda dx, x, y: mul(dx, neg(sin(x))))
tan = _inexact("tan", np.tan, lambda dx, x, y: mul(dx, _one_plus(mul(y, y))))
asin = _inexact("asin", np.arcsin, lambda dx, x, y: _over_root_of_one_minus_square(dx, x))
acos = _inexact("acos", np.arccos, lambda dx, x, y: neg(_over_root_of_one_minus_square(dx, x)))
atan = _inexact("atan", np.arctan, lambda dx, x, y: _over_one_plus_square(dx, x))
sinh: Primitive = _inexact("sinh", np.sinh, lambda dx, x, y: mul(dx, cosh(x)))
cosh: Primitive = _inexact("cosh", np.cosh, lambda dx, x, y: mul(dx, sinh(x)))
tanh = _inexact("tanh", np.tanh, lambda dx, x, y: mul(dx, _one_minus_square(y)))
asinh = _inexact("asinh", np.arcsinh, lambda dx, x, y: _over_root_of_one_plus_square(dx, x))
acosh = _inexact("acosh", np.arccosh, lambda dx, x, y: mul(dx, mul(rsqrt(neg(_one_minus(x))), rsqrt(_one_plus(x)))))
atanh = _inexact("atanh", np.arctanh, lambda dx, x, y: _over_one_minus_square(dx, x))


def _gauss(x: Value) -> Array:
    return _scale(exp(neg(mul(x, x))), 2 / math.sqrt(math.pi))


erf = _floating("erf", scalars.erf, lambda dx, x, y: mul(dx, _gauss(x)))
erfc = _floating("erfc", scalars.erfc, lambda dx, x, y: neg(mul(dx, _gauss(x))))
erf_inv = _floating("erf_inv", scalars.erf_inv, lambda dx, x, y: div(dx, _gauss(y)))
# 1 - y, without cancelling where y is near 1.
logistic: Primitive = _inexact(
    "logistic", scalars.logistic, lambda dx, x, y: mul(dx, mul(y, logistic(neg(x)))), plane=complex_scalars.logistic
)


# --- two arguments ----------------------------------------------------------------------------


def _pow_wrt_a(da: Value, a: Value, b: Value, y: Value) -> Array:
    return mul(da, mul(b, pow(a, sub(b, literal_like(1, b)))))


def _pow_wrt_b(db: Value, a: Value, b: Value, y: Value) -> Array:
    # d/db a^b = log(a) a^b; at a = 0 the limit 0 for b > 0 is taken, not 0 * -inf = NaN.
    safe = select(eq(a, zero_like(a)), literal_like(1, a), a)
    factor = mul(log(safe), y)
    return mul(db, factor)


pow: Primitive = _inexact("pow", scalars.power, _pow_wrt_a, _pow_wrt_b, plane=np.power)


def _over_square(tangent: Value, side: Value, a: Value, b: Value) -> Array:
    """side / (a² + b²): scaled first, so that no square overflows or underflows."""
    most = literal_like(float(ml_dtypes.finfo(type_of(a).dtype).max), a)
    scale = stop_gradient(min(max(abs(a), abs(b)), most))  # the quotient does not depend on the scale
    a, b, side = div(a, scale), div(b, scale), div(side, scale)
    return mul(tangent, div(div(side, add(mul(a, a), mul(b, b))), scale))


atan2 = _floating(
    "atan2",
    np.arctan2,
    lambda da, a, b, y: _over_square(da, b, a, b),
    lambda db, a, b, y: _over_square(db, neg(a), a, b),
)


# --- integer powers ---------------------------------------------------------------------------


MOST_BY_PRODUCTS = 32  # exponents up to which a float's power is made of products: ten of f64 at most


def _integer_pow_type(x: ArrayType, *, exponent: int) -> ArrayType:
    require("integer_pow", KINDS["numeric"], "numeric", x)
    if exponent < 0 and x.dtype in KINDS["integer"]:
        raise DtypeError(
            f"integer_pow: cannot raise {x} to {exponent} (integers have no negative powers)",
            hint="convert to a floating dtype first",
        )
    return x


def _integer_pow_reference(x: np.ndarray, *, exponent: int) -> np.ndarray:
    if x.dtype in KINDS["integer"]:
        return _wrapped_power(x, exponent)
    if x.dtype in dtypes.COMPLEX:
        return complex_scalars.whole_power(x, exponent)
    return _whole_power(x, exponent)


def _whole_power(x: np.ndarray, exponent: int) -> np.ndarray:
    """The power of floats, in f64; small ones by products, which take a tenth of NumPy's time."""
    wide = np.array(x, np.float64)
    has_bits_to_spare = x.dtype != dtypes.f64 or exponent == 2
    if not (0 < builtins.abs(exponent) <= MOST_BY_PRODUCTS and has_bits_to_spare):
        return np.power(wide, exponent).astype(x.dtype)
    # In place, because fresh memory for each product takes longer than the product.
    result, factor = wide, x if x.dtype == dtypes.f32 else wide.copy()
    for bit in f"{builtins.abs(exponent):b}"[1:]:
        result *= result
        if bit == "1":
            result *= factor
    return (result if exponent > 0 else np.divide(1.0, result, out=result)).astype(x.dtype)


def powering(x: ArrayType, *, exponent: int) -> Callable[[np.ndarray], np.ndarray] | None:
    """`integer_pow` of floats of one type, as a function of NumPy; None for other types."""
    if x.dtype not in KINDS["floating"]:
        return None
    return lambda array: _whole_power(array, exponent)


def _wrapped_power(x: np.ndarray, exponent: int) -> np.ndarray:
    """The power's lowest bits; np.power cannot compute them if the dtype of `x` cannot hold the
    exponent.
    """
    result = np.ones_like(x)
    with np.errstate(over="ignore"):
        for bit in f"{exponent:b}":
            result = result * result * (x if bit == "1" else 1)
    return np.asarray(result, x.dtype)


def _integer_pow_expand(x: Value, *, exponent: int) -> Value:
    """Repeated squaring: about 2 log2(exponent) products."""
    result, square, remaining = fit(literal_like(1, x), type_of(x).shape), x, builtins.abs(exponent)
    first = True
    while remaining:
        if remaining & 1:
            result, first = (square if first else mul(result, square)), False
        remaining >>= 1
        square = mul(square, square) if remaining else square
    return result if exponent >= 0 else div(literal_like(1, x), result)


def _integer_pow_jvp(dx: Value, x: Value, y: Value, *, exponent: int) -> Array:
    if exponent == 0:
        return mul(dx, zero_like(x))
    factor = fit(literal_like(exponent, x), type_of(x).shape)
    return mul(dx, mul(factor, integer_pow(x, exponent=exponent - 1)))


integer_pow: Primitive = elementwise(
    "integer_pow",
    "transcendental",
    _integer_pow_type,
    scalars.nibbles(_integer_pow_reference),
    (_integer_pow_jvp,),
    expand=_integer_pow_expand,
    jax_names={"y": "exponent"},
)

ROWS = (
    of_floats(sqrt, "Square root; NaN of negative reals.", "4.0", "2."),
    of_floats(rsqrt, "1 / sqrt(x).", "4.0", "0.5"),
    of_floats(cbrt, "Cube root, of negatives too.", "-8.0", "-2.", FLOATS),
    of_floats(exp, "e to the power x.", "0.0", "1."),
    of_floats(exp2, "2 to the power x.", "3.0", "8."),
    of_floats(expm1, "exp(x) - 1, accurate near 0.", "0.0", "0."),
    of_floats(log, "Natural logarithm; -inf of 0, NaN of negative reals.", "1.0", "0."),
    of_floats(log2, "Logarithm to base 2.", "8.0", "3."),
    of_floats(log1p, "log(1 + x), accurate near 0.", "0.0", "0."),
    of_floats(sin, "Sine of x in radians.", "0.0", "0."),
    of_floats(cos, "Cosine of x in radians.", "0.0", "1."),
    of_floats(tan, "Tangent of x in radians.", "0.0", "0."),
    of_floats(asin, "Inverse sine, in [-π/2, π/2].", "0.0", "0."),
    of_floats(acos, "Inverse cosine, in [0, π].", "1.0", "0."),
    of_floats(atan, "Inverse tangent, in [-π/2, π/2].", "0.0", "0."),
    of_floats(sinh, "Hyperbolic sine.", "0.0", "0."),
    of_floats(cosh, "Hyperbolic cosine.", "0.0", "1."),
    of_floats(tanh, "Hyperbolic tangent.", "0.0", "0."),
    of_floats(asinh, "Inverse hyperbolic sine.", "0.0", "0."),
    of_floats(acosh, "Inverse hyperbolic cosine.", "1.0", "0."),
    of_floats(atanh, "Inverse hyperbolic tangent.", "0.0", "0."),
    of_floats(erf, "The error function.", "0.0", "0.", FLOATS),
    of_floats(erfc, "1 - erf(x), accurate for large x.", "0.0", "1.", FLOATS),
    of_floats(erf_inv, "The inverse of erf.", "0.0", "0.", FLOATS),
    of_floats(logistic, "1 / (1 + exp(-x)).", "0.0", "0.5"),
    of_floats(atan2, "Angle in [-π, π] of the point (x, y), given as y, x.", "0.0, 1.0", "0.", FLOATS),
)
PRIMITIVES = (*(row.primitive for row in ROWS), pow, integer_pow)
__all__ = ["acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf", "erf_inv"]
__all__ += ["erfc", "exp", "exp2", "expm1", "integer_pow", "log", "log1p", "log2", "logistic", "pow", "rsqrt"]
__all__ += ["sin", "sinh", "sqrt", "tan", "tanh"]
