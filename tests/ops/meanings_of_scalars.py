"""The meaning of every elementwise primitive, as functions of Python's numbers.

`SCALAR` has those of real numbers, `OF_COMPLEX` those that differ there; `DOMAINS` says where a
function is smooth. Nothing here calls the code under test.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import special

from rune import dtypes


def _div(a: Any, b: Any) -> Any:
    if not isinstance(a, int):
        return a / b
    return -1 if b == 0 else int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b))


def _rem(a: Any, b: Any) -> Any:
    if not isinstance(a, int):
        return math.fmod(a, b)
    return a if b == 0 else a - b * _div(a, b)


def _sign(x: Any) -> Any:
    return (x > 0) - (x < 0)


def _integer_pow(x: Any, exponent: int) -> Any:
    return x**exponent


def _reduce_precision(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    if x == 0 or not math.isfinite(x):
        return x
    part, exponent = math.frexp(x)
    integer = round(math.ldexp(part, mantissa_bits + 1))
    nearest = math.ldexp(integer, exponent - mantissa_bits - 1)
    largest = 2 ** (exponent_bits - 1) - 1
    if abs(nearest) >= 2.0 ** (largest + 1):
        return math.copysign(math.inf, x)
    return nearest if abs(nearest) >= 2.0 ** (1 - largest) else math.copysign(0, x)


def _unit(z: complex) -> complex:
    return z / abs(z) if z else z


# Where a function of complex numbers is not spelled as that of real ones.
OF_COMPLEX: dict[str, Callable[..., Any]] = {
    "real": lambda z: z.real,
    "imag": lambda z: z.imag,
    "conj": lambda z: z.conjugate(),
    "sign": _unit,
    "sqrt": cmath.sqrt,
    "rsqrt": lambda z: 1 / cmath.sqrt(z),
    "exp": cmath.exp,
    "exp2": lambda z: 2**z,
    "expm1": lambda z: cmath.exp(z) - 1,
    "log": cmath.log,
    "log2": lambda z: cmath.log(z) / math.log(2),
    "log1p": lambda z: cmath.log(1 + z),
    "pow": operator.pow,
    "sin": cmath.sin,
    "cos": cmath.cos,
    "tan": cmath.tan,
    "asin": cmath.asin,
    "acos": cmath.acos,
    "atan": cmath.atan,
    "sinh": cmath.sinh,
    "cosh": cmath.cosh,
    "tanh": cmath.tanh,
    "asinh": cmath.asinh,
    "acosh": cmath.acosh,
    "atanh": cmath.atanh,
    "logistic": lambda z: 1 / (1 + cmath.exp(-z)),
}
SCALAR: dict[str, Callable[..., Any]] = {
    "complex": complex,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "is_finite": math.isfinite,
    "select": lambda c, a, b: a if c else b,
    "neg": operator.neg,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "square": lambda x: x * x,
    "div": _div,
    "rem": _rem,
    "abs": abs,
    "sign": _sign,
    "max": max,
    "min": min,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
    "copysign": math.copysign,
    "not": lambda x: not x if isinstance(x, bool) else ~x,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "cbrt": special.cbrt,
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "expm1": math.expm1,
    "log": math.log,
    "log2": math.log2,
    "log1p": math.log1p,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": math.acosh,
    "atanh": math.atanh,
    "erf": math.erf,
    "erfc": math.erfc,
    "erf_inv": special.erfinv,
    "logistic": lambda x: 1 / (1 + math.exp(-x)),
    "pow": math.pow,
    "atan2": math.atan2,
    "integer_pow": _integer_pow,
    "reduce_precision": _reduce_precision,
}
# Where each argument is drawn from: inside the domain, away from poles and jumps.
DOMAINS: dict[str, tuple[tuple[float, float], ...]] = {
    "sqrt": ((0.2, 3),),
    "rsqrt": ((0.2, 3),),
    "cbrt": ((0.2, 3),),
    "log": ((0.2, 3),),
    "log2": ((0.2, 3),),
    "log1p": ((-0.8, 3),),
    "tan": ((-1.2, 1.2),),
    "asin": ((-0.9, 0.9),),
    "acos": ((-0.9, 0.9),),
    "acosh": ((1.2, 3),),
    "atanh": ((-0.9, 0.9),),
    "erf_inv": ((-0.9, 0.9),),
    "pow": ((0.2, 2), (-2, 2)),
    "div": ((-2, 2), (0.5, 2)),
    "rem": ((2.1, 2.9), (0.8, 1.0)),
    "atan2": ((0.2, 2), (0.2, 2)),
    "integer_pow": ((0.3, 2),),
    "shl": ((-4, 7), (0, 3)),
    "shr": ((-4, 7), (0, 3)),
    "floor": ((0.1, 0.9),),
    "ceil": ((0.1, 0.9),),
    "round": ((0.6, 1.4),),
    "trunc": ((0.1, 0.9),),
    "sign": ((0.1, 2),),
    "abs": ((0.1, 2),),
    "copysign": ((0.1, 2), (0.1, 2)),
}


def plain(value: Any) -> Any:
    """The Python number of an element; of a key its two words."""
    if value.dtype in dtypes.KEYS:
        return tuple(dtypes.stored_words(value).tolist())
    if value.dtype in dtypes.INTEGER:
        return int(value)
    if value.dtype == dtypes.bool_:
        return bool(value)
    return complex(value) if value.dtype in dtypes.COMPLEX else float(value)


def typed(value: Any, dtype: np.dtype) -> np.ndarray:
    """A Python number in `dtype`: integers wrap, floats round once. A key of its words."""
    if dtype in dtypes.KEYS:
        return np.array((value,), dtype)
    if dtype not in dtypes.INTEGER:
        return np.asarray(value).astype(dtype)
    width = {dtypes.i4: 4, dtypes.u4: 4}.get(dtype, dtype.itemsize * 8)
    residue = int(value) % (1 << width)
    high = dtype in dtypes.SIGNED and residue >= 1 << (width - 1)
    return np.array(residue - (1 << width) if high else residue).astype(dtype)


def elementwise(function: Callable[..., Any], arrays: list[np.ndarray], dtype: np.dtype, params: Mapping) -> np.ndarray:
    """`function` on every element; scalars broadcast against arrays."""
    spread = np.broadcast_arrays(*arrays)
    out = np.empty(spread[0].shape, dtype)
    for at in np.ndindex(out.shape):
        out[at] = typed(function(*(plain(a[at]) for a in spread), **params), dtype)
    return out
