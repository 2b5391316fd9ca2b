"""Powers, roots and inverse hyperbolic functions as IR.

The inverse hyperbolic ones are log1p of a sum that is kept in two parts. A power of f32 is computed
in f64, by polynomials that give no more than f32 can hold; one of f64 by a logarithm in two parts,
whose products fused multiply-adds make exact. The cube root divides nothing: a polynomial gives
1/cbrt of the mantissa, and one step in which the residual is exact the root.
Error: at most 2 ulp (tests measure it).

Source: coefficients by tools/minimax.py.
"""

from __future__ import annotations

import math

from rune.lowering.codegen import llvm_math_exp as e
from rune.lowering.codegen.llvm_text import Value, horner

# 1/cbrt(m) in m - 3/2 for 1 <= m < 2; log2(1 + f)/f where log1p is reduced to; 2^r, |r| <= 1/2.
INVERSE_CBRT = (
    0.8735905444673834, -0.1938092005191881, 0.08576672948519841, -0.04969053899976581,
    0.02908857845386976,
)  # fmt: skip
LOG2_NARROW = (
    1.4426950409152333, -0.721347525468934, 0.4808983328137441, -0.36067276439563284,
    0.2885396499982365, -0.24050514892226457, 0.20612564732308716, -0.17905164885125097,
    0.15863761377314226, -0.15664058891389135, 0.15646683617235843, -0.08875902862554347,
)  # fmt: skip
EXP2_NARROW = (
    1.0000000005546106, 0.6931472057522048, 0.24022646888344276, 0.05550328744366558,
    0.009618489101652902, 0.0013399944431936128, 0.0001534580032066217,
)  # fmt: skip
LOG_TAIL = (  # R of `_log2_in_two`
    0.4, 0.28571428571429375, 0.22222222221651322, 0.18181818336323582,
    0.15384594872143592, 0.13334809197922962, 0.11706125038347458, 0.11724259076470335,
)  # fmt: skip
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
LARGE = 2.0**30  # from here on x² + 1 is x², whatever the format


# --- inverse hyperbolic functions -------------------------------------------------------------


def asinh(x: Value) -> Value:
    """The inverse hyperbolic sine: log1p of |x| + x²/(sqrt(x² + 1) + 1)."""
    select, size = x.writer.select, x.abs()
    small = select(size < LARGE, size, 0.0)
    square = small * small
    bend = square / ((square + 1.0).call("sqrt") + 1.0)
    return _log1p_or_twice(size - 1.0, small, bend).copysign(x)


def acosh(x: Value) -> Value:
    """The inverse hyperbolic cosine, log1p of t + sqrt(t (t + 2)), t = x - 1; NaN below 1."""
    select, t = x.writer.select, x - 1.0
    small = select(x < LARGE, t, 0.0)
    double = small + small
    square = small.fma(small, double)
    root = square.call("sqrt")
    # What rounding the square and its root took; the former matters only where t < 2.
    residual = (-root).fma(root, square) + small.fma(small, double - square)
    rest = select(root > 0.0, residual / (root + root), 0.0)
    return select(x < 1.0, math.nan, _log1p_or_twice(t, small, root, rest))


def _log1p_or_twice(t: Value, a: Value, b: Value, beside: Value | float = 0.0) -> Value:
    """log(1 + a + b + beside), or log(2 (1 + t)) for a large t."""
    large = (t < LARGE).invert()
    select, total = t.writer.select, a + b
    back = total - a
    rest = (a - (total - back)) + (b - back) + beside
    found = e.log1p_of_sum(select(large, t, total), select(large, 0.0, rest))
    return found + select(large, t.like(math.log(2.0)), 0.0)


def atanh(x: Value) -> Value:
    """The inverse hyperbolic tangent; infinite at ±1, NaN beyond."""
    size = x.abs()
    double, below = size + size, 1.0 - size
    quotient = double / below
    # What the division and the difference took; neither is a number at 1.
    residual = (-quotient).fma(below, double) + quotient * (size - (1.0 - below))
    rest = residual / below
    known = rest.abs() < math.inf
    rest = x.writer.select(known, rest, 0.0)
    return (e.log1p_of_sum(quotient, rest) * 0.5).copysign(x)


# --- powers -----------------------------------------------------------------------------------


def pow(x: Value, y: Value) -> Value:
    """x to the power y, with IEEE 754's special cases."""
    select = x.writer.select
    size = x.abs()
    positive = _narrow_power if x.scalar_type == "float" else _wide_power
    magnitude = positive(size, y)
    whole = y.call("floor").equals(y)
    half = y * 0.5
    odd = whole & half.call("floor").compare("une", half) & (y.abs() < math.inf)
    negative = x.to_bits() < 0
    signed = select(negative & odd, -magnitude, magnitude)
    undefined = (x < 0.0) & (x > -math.inf) & whole.invert() & (y.abs() < math.inf)
    result = select(undefined, math.nan, signed)
    unit = x.equals(1.0) | y.equals(0.0) | (size.equals(1.0) & y.abs().equals(math.inf))
    return select(unit, 1.0, result)


def _narrow_power(x: Value, y: Value) -> Value:
    """x to the power y for f32 and x >= 0, by 2^(y log2(x)) in f64."""
    select = x.writer.select
    m, exponent = e.normalised(x)
    f = m.cast("fpext", "double") - 1.0
    log = f.fma(horner(f, LOG2_NARROW), exponent.cast("sitofp", "double"))
    wide = x.cast("fpext", "double")
    log = select(wide.equals(0.0), -math.inf, select(wide < math.inf, log, wide))
    product = e.at_most(e.at_least(log * y.cast("fpext", "double"), -160.0), 130.0)
    n, integer = e.nearest(product, 1.0)
    power = horner(product - n, EXP2_NARROW) * e.power_of_two(integer, product.type)
    return power.cast("fptrunc", x.type)


def _wide_power(x: Value, y: Value) -> Value:
    """The same for f64: the logarithm and its product with y are sums of two numbers."""
    select = x.writer.select
    log, log_rest = _log2_in_two(x)
    log = select(x.equals(0.0), -math.inf, select(x < math.inf, log, x))
    rough = log * y
    near = rough.abs() < 1100.0  # beyond, the power is 0 or infinite
    log, y = select(near, log, 0.0), select(near, y, 0.0)
    product = log * y
    rest = log.fma(y, -product) + log_rest * y
    n, integer = e.nearest(product, 1.0)
    left = product - n
    high = left * math.log(2.0)
    low = left.fma(math.log(2.0), -high) + left.fma(e.F64.ln2_low, rest * math.log(2.0))
    found = e.scale(e.exp_tail(high, low) + 1.0, n, integer)
    outside = select(rough > 0.0, math.inf, select(rough < 0.0, rough.like(0.0), rough))
    return select(near, found, outside)


def _log2_in_two(x: Value) -> tuple[Value, Value]:
    """log2(x) of f64 for 0 < x < inf as a sum: with s = (m - 1)/(m + 1) the logarithm of m is
    s (2 + z (2/3 + z R)), z = s².
    """
    m, exponent = e.normalised(x)
    n = exponent.cast("sitofp", x.type)
    above, below = m - 1.0, m + 1.0
    s = above / below
    s_rest = ((-s).fma(below, above) - s * (m - (below - 1.0))) / below
    z = s * s
    z_rest = s.fma(s, -z) + (s + s) * s_rest
    third = z * TWO_THIRDS[0]
    third_rest = z.fma(TWO_THIRDS[0], -third) + z_rest * TWO_THIRDS[0] + z * TWO_THIRDS[1]
    third_rest = third_rest + (z * z) * horner(z, LOG_TAIL)
    factor = third + 2.0
    factor_rest = (third - (factor - 2.0)) + third_rest
    log = s * factor
    log_rest = s.fma(factor, -log) + s.fma(factor_rest, s_rest * factor)
    scaled = log * e.LOG2E
    scaled_rest = log.fma(e.LOG2E, -scaled)
    scaled_rest = scaled_rest + log.fma(e.F64.log2e_low, log_rest * e.LOG2E)
    total = n + scaled
    rest = (scaled - (total - n)) + scaled_rest
    rounded = total + rest  # what is left is less than a rounding
    return rounded, (total - rounded) + rest


def cbrt(x: Value) -> Value:
    """The cube root."""
    size = x.abs()
    known = (size > 0.0) & (size < math.inf)
    return x.writer.select(known, _positive_root(size).copysign(x), x)


def _positive_root(x: Value) -> Value:
    """cbrt for 0 < x < inf: with x = M 8^q and 1 <= M < 8, and p near 1/cbrt(M), M p² is near the
    root and p²/3 near its inverse derivative.
    """
    select, form = x.writer.select, e.format_of(x)
    narrow = x.scalar_type == "float"
    lift = 24 if narrow else 54
    small = x < form.tiny
    bits = select(small, x * 2.0**lift, x).to_bits()
    # The exponent is biased by a multiple of 3; a third of it by a product that is exact enough.
    above = -form.bias % 3
    biased = (bits >> form.mantissa) + above
    third = (biased * 21846) >> 16
    left = biased - third * 3
    fraction = bits & ((1 << form.mantissa) - 1)
    m = (fraction | (form.bias << form.mantissa)).from_bits(x.type)
    scaled = (fraction | ((left + form.bias) << form.mantissa)).from_bits(x.type)
    shrunk = select(left.equals(1), x.like(2.0 ** (-1 / 3)), 2.0 ** (-2 / 3))
    p = horner(m - 1.5, INVERSE_CBRT) * select(left.equals(0), x.like(1.0), shrunk)
    if not narrow:
        p = p.fma((1.0 - scaled * p * p * p) * (1.0 / 3.0), p)
    square = p * p
    root = scaled * square
    power = root * root
    residual = power.fma(root, -scaled) + root.fma(root, -power) * root
    found = root - residual * (square * (1.0 / 3.0))
    middle = (form.bias + above) // 3
    q = third - select(small, third.like(middle + lift // 3), middle)
    return found * e.power_of_two(q, x.type)
