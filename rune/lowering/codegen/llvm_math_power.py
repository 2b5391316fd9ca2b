"""Powers, roots and inverse hyperbolic functions as IR.

f32 is computed in f64, where the plain formulas lose nothing that f32 could hold. In f64 these
functions are rare and hard: the C library computes them lane by lane.
"""

from __future__ import annotations

import math

from rune.lowering.codegen import llvm_math_exp as e
from rune.lowering.codegen.llvm_text import Value


def _in_f64(compute, name: str):
    """`compute` on f32 widened to f64; f64 itself through the C library's `name`."""

    def function(*args: Value) -> Value:
        x = args[0]
        if x.scalar_type == "double":
            return x.writer.by_lane(name, *args)
        return compute(*(a.cast("fpext", "double") for a in args)).cast("fptrunc", x.type)

    function.__doc__ = compute.__doc__
    return function


def _asinh(x: Value) -> Value:
    """The inverse hyperbolic sine."""
    size = x.abs()
    square = size * size
    result = e.log1p(size + square / ((square + 1.0).call("sqrt") + 1.0))
    return x.writer.select(size < math.inf, result, size).copysign(x)


def _acosh(x: Value) -> Value:
    """The inverse hyperbolic cosine; NaN below 1."""
    t = x - 1.0
    return x.writer.select(x < 1.0, math.nan, e.log1p(t + (t * (t + 2.0)).call("sqrt")))


def _atanh(x: Value) -> Value:
    """The inverse hyperbolic tangent; infinite at ±1, NaN beyond."""
    size = x.abs()
    return (e.log1p((size + size) / (1.0 - size)) * 0.5).copysign(x)


def _pow(x: Value, y: Value) -> Value:
    """x to the power y, with IEEE 754's special cases."""
    select = x.writer.select
    size = x.abs()
    magnitude = e.exp2(e.log2(size) * y)
    whole = y.call("floor").equals(y)
    half = y * 0.5
    odd = whole & half.call("floor").compare("une", half) & (y.abs() < math.inf)
    negative = x.to_bits() < 0
    signed = select(negative & odd, -magnitude, magnitude)
    undefined = (x < 0.0) & (x > -math.inf) & whole.invert() & (y.abs() < math.inf)
    result = select(undefined, math.nan, signed)
    unit = x.equals(1.0) | y.equals(0.0) | (size.equals(1.0) & y.abs().equals(math.inf))
    return select(unit, 1.0, result)


asinh = _in_f64(_asinh, "asinh")
acosh = _in_f64(_acosh, "acosh")
atanh = _in_f64(_atanh, "atanh")
pow = _in_f64(_pow, "pow")


def cbrt(x: Value) -> Value:
    """The cube root: 2^(log2|x|/3), and for f64 one Newton step with its residual exact."""
    select, wide = x.writer.select, x.cast("fpext", "double")
    size = wide.abs()
    if x.scalar_type == "float":
        root = e.exp2(e.log2(size) * (1.0 / 3.0))
    else:
        small = size < 2.0**-900
        root = _newton_cbrt(select(small, size * 2.0**162, size))
        root = select(small, root * 2.0**-54, root)
    known = (size > 0.0) & (size < math.inf)
    return select(known, root.copysign(wide), wide).cast("fptrunc", x.type)


def _newton_cbrt(x: Value) -> Value:
    root = e.exp2(e.log2(x) * (1.0 / 3.0))
    square = root * root
    residual = square.fma(root, -x) + root.fma(root, -square) * root
    return root - residual / (square * 3.0)
