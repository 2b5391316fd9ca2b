"""Trigonometric functions and their inverses as IR, for f32 and f64.

The argument is reduced by multiples of π/2 in three parts with fused multiply-adds; f32 is reduced
in f64, and sin, cos and tan of it computed there. Beyond a limit, where that would not do, the
lanes concerned go through the C library one by one; a branch on "any lane" keeps that out of the
way of all others. The inverses keep their last bits in second parts instead.
Error: at most 2 ulp (tests measure it).

Source: coefficients by tools/minimax.py; the kernels for a reduced argument in two parts, and the
reduction of atan by atan(x) = atan(c) + atan((x - c)/(1 + c x)), are those of fdlibm.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rune.lowering.codegen.llvm_text import Value, horner
from rune.lowering.scalar.trigonometric import (
    ASIN,
    ASIN_F32,
    ATAN,
    ATAN_HALF,
    COS_F32,
    COS_F64,
    HALF_PI,
    SIN_F32,
    SIN_F64,
)

ATAN_F32 = (  # up to 1, where ATAN ends at 7/16
    -0.333333331454096, 0.19999959524235122, -0.14284271572770058, 0.11090976816989438,
    -0.08945651624208309, 0.07071525534287405, -0.04962809109529333, 0.02696138718877372,
    -0.00949294204672164, 0.001565755898686861,
)  # fmt: skip
HALF_PI_F32 = (1.57079637050628662109375, -4.371138828673793e-08)
REDUCTION_LIMIT = 1.0e9  # the quotient by π/2 keeps all its bits up to here


Pair = tuple[Value, Value]


def sin(x: Value) -> Value:
    """The sine."""
    return _circular(x, "sin", 0)


def cos(x: Value) -> Value:
    """The cosine: the sine a quarter turn ahead."""
    return _circular(x, "cos", 1)


def _circular(x: Value, name: str, quarters: int) -> Value:
    wide = x.cast("fpext", "double")

    def common() -> Value:
        sine, cosine, n = _sin_cos(wide, x.scalar_type == "float")
        n = n + quarters
        chosen = x.writer.select((n & 1).compare("ne", 0), cosine[0], sine[0])
        signed = (chosen.to_bits() ^ ((n & 2) << 62)).from_bits(chosen.type)
        return signed.cast("fptrunc", x.type)

    return _unless_large(x, wide, name, common)


def tan(x: Value) -> Value:
    """The tangent, sin/cos; for f64 the quotient of both in two parts."""
    wide = x.cast("fpext", "double")

    def common() -> Value:
        select, narrow = x.writer.select, x.scalar_type == "float"
        sine, cosine, n = _sin_cos(wide, narrow)
        odd = (n & 1).compare("ne", 0)
        a = select(odd, -cosine[0], sine[0]), select(odd, -cosine[1], sine[1])
        b = select(odd, sine[0], cosine[0]), select(odd, sine[1], cosine[1])
        quotient = a[0] / b[0]
        if narrow:
            return quotient.cast("fptrunc", x.type)
        rest = (-quotient).fma(b[0], a[0]) + ((-quotient).fma(b[1], a[1]))
        return select(quotient.equals(0.0), quotient, quotient + rest / b[0])

    return _unless_large(x, wide, "tan", common)


def _unless_large(x: Value, wide: Value, name: str, common: Callable[[], Value]) -> Value:
    size = wide.abs()
    large = (size >= REDUCTION_LIMIT) & (size < math.inf)
    by_library = x.writer.by_lane
    return x.writer.rarely(large, common, lambda: by_library(name, wide).cast("fptrunc", x.type))


def _sin_cos(x: Value, narrow: bool) -> tuple[Pair, Pair, Value]:
    """sin and cos of the remainder of x by π/2, high and low, and the number of quarter turns."""
    shifted = x.fma(2.0 / math.pi, 1.5 * 2.0**52)
    shifter = x.like(1.5 * 2.0**52)
    n, turns = shifted - shifter, shifted.to_bits() - shifter.to_bits()
    high = n.fma(-HALF_PI[0], x)
    if narrow:
        r = n.fma(-HALF_PI[1], high)
        z = r * r
        sine = (horner(z, SIN_F32) * z).fma(r, r).copysign(r)
        cosine = (horner(z, COS_F32) * z).fma(z, z.fma(-0.5, z.like(1.0)))
        return (sine, z), (cosine, z), turns  # the low parts are not used
    product = n * HALF_PI[1]
    r = high - product
    back = high - r
    lost = (high - (r + back)) + (back - product)
    low = n.fma(-HALF_PI[2], lost - n.fma(HALF_PI[1], -product))
    return _sin_kernel(r, low), _cos_kernel(r, low), turns


def _sin_kernel(r: Value, low: Value) -> Pair:
    z = r * r
    cube = z * r
    inner = z.fma(low * 0.5 - cube * horner(z, SIN_F64[1:]), -low) - cube * SIN_F64[0]
    sine = r - inner
    return sine, (r - sine) - inner


def _cos_kernel(r: Value, low: Value) -> Pair:
    z = r * r
    half = z * 0.5
    w = 1.0 - half
    rest = ((1.0 - w) - half) + (z * z).fma(horner(z, COS_F64), -(r * low))
    cosine = w + rest
    return cosine, (w - cosine) + rest


def _atan_unit(x: Value) -> tuple[Value, Value]:
    """(high, low) with high + low = atan(x) for 0 <= x <= 1; of f32 by one polynomial."""
    if x.scalar_type == "float":
        square = x * x
        return x, horner(square, ATAN_F32) * square * x
    select = x.writer.select
    middle, upper = x >= 0.4375, x >= 0.6875
    c = select(upper, x.like(1.0), select(middle, x.like(0.5), 0.0))
    t = (x - c) / x.fma(c, x.like(1.0))
    base = select(upper, x.like(HALF_PI[0] / 2), select(middle, x.like(ATAN_HALF[0]), 0.0))
    rest = select(upper, x.like(HALF_PI[1] / 2), select(middle, x.like(ATAN_HALF[1]), 0.0))
    z = t * t
    tail = (horner(z, ATAN) * z).fma(t, rest)
    high = base + t
    return high, ((base - high) + t) + tail


def _half_pi(x: Value) -> tuple[float, float]:
    """π/2 in two parts of the format of x."""
    return HALF_PI_F32 if x.scalar_type == "float" else HALF_PI[:2]


def atan(x: Value) -> Value:
    """The inverse tangent, of the inverse where that is smaller."""
    select, size = x.writer.select, x.abs()
    steep = size > 1.0
    high, low = _atan_unit(select(steep, 1.0 / size, size))
    half = _half_pi(x)
    turned, turned_low = _add(size.like(half[0]), size.like(half[1]), -high, -low)
    return select(steep, turned + turned_low, high + low).copysign(x)


def atan2(y: Value, x: Value) -> Value:
    """The angle of the point (x, y), by the quotient of the smaller side by the larger."""
    select = x.writer.select
    a, b = y.abs(), x.abs()
    steep = a > b
    large, small = select(steep, a, b), select(steep, b, a)
    ratio = select(small.equals(large), select(large.equals(0.0), x.like(0.0), 1.0), small / large)
    high, low = _atan_unit(ratio)
    half = _half_pi(x)
    for condition, turns in ((steep, 1.0), (x.to_bits() < 0, 2.0)):
        start, start_low = (select(condition, x.like(part * turns), 0.0) for part in half)
        high, low = _add(start, start_low, *_negated_if(condition, high, low))
    return select(y.compare("uno", x), y + x, (high + low).copysign(y))


def _negated_if(condition: Value, high: Value, low: Value) -> tuple[Value, Value]:
    select = high.writer.select
    return select(condition, -high, high), select(condition, -low, low)


def _add(a: Value, a_low: Value, b: Value, b_low: Value) -> tuple[Value, Value]:
    """The sum of two numbers in two parts, where |a| >= |b| or a is 0."""
    total = a + b
    return total, ((a - total) + b) + (a_low + b_low)


def _asin_tail(z: Value) -> Value:
    """asin(s)/s - 1 for s = sqrt(z) <= 1/2."""
    return horner(z, ASIN_F32 if z.scalar_type == "float" else ASIN) * z


def _root(z: Value) -> tuple[Value, Value]:
    """The square root and, of f32, what its rounding took; f64 keeps enough without."""
    s = z.call("sqrt")
    if z.scalar_type == "double":
        return s, s.like(0.0)
    rest = (-s).fma(s, z) / (s + s)
    return s, z.writer.select(s > 0.0, rest, 0.0)


def asin(x: Value) -> Value:
    """The inverse sine: asin(x) = π/2 - 2 asin(sqrt((1 - x)/2)) in the outer half."""
    select, size, half = x.writer.select, x.abs(), _half_pi(x)
    outer = size > 0.5
    z = select(outer, (1.0 - size) * 0.5, size * size)
    root, rest = _root(z)
    tail = _asin_tail(z)
    below = tail.fma(root, rest) * 2.0 - half[1]
    far = (half[0] - (root + root)) - below
    return select(outer, far, tail.fma(size, size)).copysign(x)


def acos(x: Value) -> Value:
    """The inverse cosine, by the same two ranges."""
    select, size, half = x.writer.select, x.abs(), _half_pi(x)
    outer, left = size > 0.5, x < 0.0
    z = select(outer, (1.0 - size) * 0.5, size * size)
    root, rest = _root(z)
    tail = _asin_tail(z)
    inner = half[0] - (x - tail.fma(-x, x.like(half[1])))
    below = tail.fma(root, rest)
    turned = (2.0 * half[0] - (root + root)) - (below * 2.0 - 2.0 * half[1])
    return select(outer, select(left, turned, (root + below) * 2.0), inner)
