"""exp, log and the hyperbolic functions in plain arithmetic, for f32 and f64 alike.

Each function takes numbers of one floating dtype and computes in it; selects handle special values,
so that a loop around it vectorises.
Error: at most 2 ulp (tests measure it).

Source: coefficients by tools/minimax.py. Argument reduction x = n ln2 + r with a short
first part of ln2 is Cody & Waite 1980; log(1+f) by s = f/(2+f), the splitting of logarithms, the
forms of the inverse hyperbolic functions and log1p's handling of the rounding error of 1+x are
fdlibm's.
"""

from __future__ import annotations

import math

from rune import dtypes
from rune.lowering.scalar.formats import F32, F64, format_of
from rune.lowering.scalar.number import LN2, LOG2E, Ability, Number, at_least, at_most, halves, horner, root, select
from rune.number_tables import numbers

LOG_F32 = numbers("""
    0.3333331672939915      -0.2500080900056109       0.20002286006773976     -0.1662459623537122
    0.14181213410559687     -0.13128402906242834      0.1288140765906253      -0.07860213830724207
""")
LOG_F64 = numbers("""
    0.6666666666666666       0.40000000000000885      0.28571428570798235      0.2222222239281885
    0.18181795532004305      0.15386245133790552      0.1326863789233584       0.13087949148387323
""")

# 2ʳ for |r| up to 1/2, with an error of 2e-9.
EXP2 = numbers("""
    1.0000000005546106       0.6931472057522048       0.24022646888344276      0.05550328744366558
    0.009618489101652902     0.0013399944431936128    0.0001534580032066217
""")


def power_of_two(n: Number) -> Number:
    """2ⁿ for an integer n within the exponents of normal numbers."""
    form, dtype = (F32, dtypes.f32) if n.dtype == dtypes.i32 else (F64, dtypes.f64)
    return ((n + form.bias) << form.mantissa).bits_as(dtype)


def nearest(x: Number, factor: float = 1.0) -> tuple[Number, Number]:
    """The integer nearest to x * factor, below 2²² in size, as a float and as an integer."""
    # Few devices round at the speed at which they add.
    shifter = x.like(format_of(x).shifter)
    total = x + shifter if factor == 1.0 else x.times_plus(factor, shifter)
    return total - shifter, total.bits() - shifter.bits()


def ln2_of(x: Number) -> tuple[float, float]:
    """ln 2 in two parts; the product of the first and an exponent is exact, or fused into a sum."""
    form = format_of(x)
    if x.has(Ability.FUSED):
        return form.ln2_high, form.ln2_low
    return form.ln2_short, form.ln2_rest


def reduce(x: Number) -> tuple[Number, Number, Number]:
    """(high, low, n) with x = n ln2 + high + low and |high + low| <= ln2/2."""
    first, second = ln2_of(x)
    n, integer = nearest(x, LOG2E)
    return n.times_plus(-first, x), n * -second, integer


def scale_twice(y: Number, n: Number) -> Number:
    """y 2ⁿ where 2ⁿ itself may be out of range: two factors, so that one product rounds."""
    half = n >> 1
    return y * power_of_two(half) * power_of_two(n - half)


def scale(y: Number, n: Number, integer: Number) -> Number:
    """y 2ⁿ by the processor's own instruction if it has one; the same bits either way."""
    return y.scaled(n) if y.has(Ability.SCALED) else scale_twice(y, integer)


def scale_by_range(y: Number, n: Number, integer: Number, x: Number, tiny: float, zero: float) -> Number:
    """y 2ⁿ for y of about 1, which is a denormal number for x < tiny, and 0 for x < zero.

    Where such results take hundreds of cycles they are counted: beside a power of two the last
    place of y is the smallest number, and a denormal number's bits are how many of those it has.
    """
    if not y.has(Ability.ASSISTED):
        return scale(y, n, integer)
    is_tiny, mantissa = x < tiny, format_of(y).mantissa
    if y.has(Ability.SCALED):
        result = y.scaled(n, ~is_tiny).variable()
    else:
        result = scale_twice(y, select(is_tiny, 0, integer)).variable()

    def count() -> None:
        power = (1 - integer) << mantissa
        units = (y + power.bits_as(y.dtype)).bits() - power
        # A sum, which costs no more for denormal numbers, is 0 where these are flushed.
        result.set(select(x < zero, 0.0, units.bits_as(y.dtype) + 0.0))

    is_tiny.when(count)
    return result.get()


def exp_tail(high: Number, low: Number) -> Number:
    """exp(high + low) - 1 for a sum of at most ln2/2 in size; exact enough to be added to 1."""
    r = high + low
    return high + horner(r, format_of(r).exp).times_plus(r * r, low)


def clamped(x: Number) -> Number:
    """x, limited to a range outside of which exp is 0 or infinite anyway."""
    form = format_of(x)
    return at_most(at_least(x, form.exp_low), form.exp_high)


def exp(x: Number) -> Number:
    """e to the power x."""
    form = format_of(x)
    if not x.has(Ability.FUSED):
        x = clamped(x)
        high, low, n = reduce(x)
        return scale_twice(exp_tail(high, low) + 1.0, n)
    # 1 + r + c₀r² + … all by Horner: what fused products lose of r is negligible beside 1.
    x = at_most(x, form.exp_high)
    n, integer = nearest(x, LOG2E)
    r = n.fma(-form.ln2_low, n.fma(-form.ln2_high, x))
    return scale_by_range(horner(r, (1.0, 1.0, *form.exp)), n, integer, x, math.log(form.tiny), form.exp_low)


def exp2(x: Number) -> Number:
    """2 to the power x."""
    form = format_of(x)
    x = at_most(at_least(x, form.exp_low * 1.5), form.exp_high * 1.5)
    n, integer = nearest(x)
    return scale_by_range(exp_tail(*times_ln2(x - n)) + 1.0, n, integer, x, math.log2(form.tiny), form.exp_low * 1.5)


def times_ln2(high: Number, low: Number | None = None) -> tuple[Number, Number]:
    """(high + low) ln2 as a sum."""
    if high.has(Ability.FUSED):
        product = high * LN2
        low_part = high.fma(format_of(high).ln2_low, high.fma(LN2, -product))
        return product, low_part if low is None else low.fma(LN2, low_part)
    first = high.short()
    ln2_first, ln2_rest = halves(LN2, high.dtype)
    low_part = high - first if low is None else (high - first) + low
    return first * ln2_first, first * ln2_rest + low_part * LN2


def expm1(x: Number) -> Number:
    """exp(x) - 1, accurate near 0; computes an eighth first, so that its scale cannot overflow."""
    form = format_of(x)
    high, low, n = reduce(at_most(at_least(x, form.expm1_low), form.exp_high))
    r = high + low
    tail = horner(r, form.expm1).times_plus(r * r, low)
    scale = power_of_two(n - 3)
    eighth = tail.times_plus(scale, high.times_plus(scale, scale - 0.125))
    # An eighth of a tiny number would be denormal; expm1 rounds to x long before.
    tiny = x.abs() < 2.0 ** -(form.mantissa + 3)
    return select(tiny, x, (eighth * 8.0).copysign(x))


def tanh(x: Number) -> Number:
    """The hyperbolic tangent: an odd polynomial near 0, else 1 - 2/(exp(2|x|) + 1)."""
    form, size = format_of(x), x.abs()
    square = x * x
    near = (horner(square, form.tanh) * square).times_plus(size, size)
    far = 1.0 - 2.0 / (_exp_doubled(at_most(size, form.tanh_high)) + 1.0)
    return select(size < 0.625, near, far).copysign(x)


def _exp_doubled(x: Number) -> Number:
    """exp(2x) for 0 <= x <= tanh_high, where neither the result nor a factor overflows."""
    if not x.has(Ability.FUSED):
        return exp(x * 2.0)
    form = format_of(x)
    n, integer = nearest(x, 2.0 * LOG2E)
    half = n.fma(-0.5 * form.ln2_low, n.fma(-0.5 * form.ln2_high, x))
    coefficients = [c * 2.0**k for k, c in enumerate((1.0, 1.0, *form.exp))]
    return horner(half, coefficients) * power_of_two(integer)


def logistic(x: Number) -> Number:
    """1/(1 + exp(-x)): with exp|x| = (1 + t)/p the small side is p/(p + 1 + t)."""
    form = format_of(x)
    size = at_most(x.abs(), -form.exp_low)
    high, low, n = reduce(size)
    if x.has(Ability.ASSISTED):
        # p is 0 beside 1 long before it is denormal, and the quotient of 1 is normal.
        total, error = _one_plus_power(power_of_two(at_least(-n, 1 - form.bias)))
        inverse = 1.0 / ((exp_tail(high, low) + error) + total)
        small = scale_by_range(inverse, (-n).convert(x.dtype), -n, -size, math.log(form.tiny), form.exp_low)
    else:
        p = scale_twice(x.like(1.0), -n)
        total, error = _one_plus_power(p)
        small = p / ((exp_tail(high, low) + error) + total)
    return select(x < 0.0, small, 1.0 - small)


def _one_plus_power(p: Number) -> tuple[Number, Number]:
    """1 + p, and its rounding error for p of at most 1."""
    total = p + 1.0
    return total, p - (total - 1.0)


def sinh(x: Number) -> Number:
    """The hyperbolic sine: an odd polynomial near 0, else (e - 1/e)/2 with e = exp|x|."""
    size = x.abs()
    square = x * x
    near = (horner(square, format_of(x).sinh) * square).times_plus(x, x)
    quarter = _exp_quarter(size)
    far = (quarter - _inverse(quarter, 0.0625)) * 2.0
    return select(size < 1.0, near, far.copysign(x))


def cosh(x: Number) -> Number:
    """The hyperbolic cosine, (e + 1/e)/2 with e = exp|x|."""
    quarter = _exp_quarter(x.abs())
    return quarter.times_plus(2.0, _inverse(quarter, 0.125))


def _inverse(x: Number, numerator: float) -> Number:
    """numerator/x, which for large x is not denormal but too small to matter beside x."""
    return numerator / (at_most(x, 2.0**60) if x.has(Ability.ASSISTED) else x)


def _exp_quarter(x: Number) -> Number:
    """exp(x)/4, which does not overflow where sinh and cosh do not."""
    high, low, n = reduce(at_most(x, format_of(x).exp_high))
    return scale_twice(exp_tail(high, low) + 1.0, n - 2)


# --- logarithms -------------------------------------------------------------------------------


def split(x: Number) -> tuple[Number, Number]:
    """(m, e) with x = m 2^e and sqrt(1/2) <= m < sqrt(2), for x > 0 and normal."""
    form, bits = format_of(x), x.bits()
    e = (bits - x.like(math.sqrt(0.5)).bits()) >> form.mantissa
    return (bits - (e << form.mantissa)).bits_as(x.dtype), e


def normalised(x: Number) -> tuple[Number, Number]:
    """`split` for any x > 0: denormals are scaled up first.

    Where a device flushes them to 0, or waits for them, their bits count units of the smallest one.
    """
    form, bits = format_of(x), x.bits()
    # Counts of f64 are i64, which few processors convert in lanes.
    if x.has(Ability.DENORMALS) and not (x.is_single and x.has(Ability.ASSISTED)):
        small = x < form.tiny
        m, e = split(select(small, x * 2.0 ** (form.mantissa + 1), x))
        return m, e - select(small, e.like(form.mantissa + 1), 0)
    small = bits < (1 << form.mantissa)
    count = select(small, bits, 1).convert(x.dtype)
    m, e = split(select(small, count, x))
    return m, e - select(small, e.like(form.mantissa + form.bias - 1), 0)


def log1p_reduced(f: Number) -> tuple[Number, Number]:
    """(high, low) with high + low = log(1 + f), for sqrt(1/2) <= 1 + f < sqrt(2)."""
    if f.is_single:
        square = f * f
        return f, square.times_plus(-0.5, horner(f, LOG_F32) * f * square)
    s = f / (f + 2.0)
    z, half = s * s, f * f * 0.5
    return f, s.times_plus(z.times_plus(horner(z, LOG_F64), half), -half)


def log_special(x: Number, result: Number, pole: float) -> Number:
    """`result`, but NaN below the pole, -inf at it, and x itself if it is inf or NaN."""
    special = select(x.equals(pole), -math.inf, select(x < pole, math.nan, x))
    return select((x > pole) & (x < math.inf), result, special)


def log(x: Number) -> Number:
    """The natural logarithm."""
    return log_special(x, log_of_positive(x), 0.0)


def log_of_positive(x: Number) -> Number:
    """The natural logarithm of 0 < x < inf."""
    m, e = normalised(x)
    return _log_of_parts(m - 1.0, e.convert(x.dtype))


def log_of_sum(x: Number, low: Number) -> Number:
    """The natural logarithm of x + low for 0 < x < inf and normal, with low 0 for x < 1/2."""
    m, e = split(x)
    return _log_of_parts((m - 1.0) + low, e.convert(x.dtype))


def _log_of_parts(f: Number, n: Number) -> Number:
    """The natural logarithm of (1 + f) 2ⁿ, for sqrt(1/2) <= 1 + f < sqrt(2)."""
    first, second = ln2_of(f)
    high, low = log1p_reduced(f)
    return n.times_plus(first, high + n.times_plus(second, low))


def log2(x: Number) -> Number:
    """The logarithm to base 2; exact for powers of two."""
    m, e = normalised(x)
    product, error = _times_log2e(*log1p_reduced(m - 1.0))
    return log_special(x, (e.convert(x.dtype) + product) + error, 0.0)


def _times_log2e(f: Number, tail: Number) -> tuple[Number, Number]:
    """(f + tail) log2(e) as a sum."""
    total = f + tail
    if f.has(Ability.FUSED):
        product, error = total * LOG2E, (f - total) + tail
        near = total.fma(format_of(f).log2e_low, total.fma(LOG2E, -product))
        return product, error.fma(LOG2E, near)
    high = total.short()
    low = (f - high) + tail
    first, second = halves(LOG2E, f.dtype)
    return high * first, high * second + low * LOG2E


def log1p(x: Number) -> Number:
    """log(1 + x), accurate near 0."""
    return log_special(x, log1p_inside(x), -1.0).copysign(x)


def log1p_inside(x: Number) -> Number:
    """log(1 + x) for -1 < x < inf, except for the sign of 0."""
    return _log_of_one_plus(x, *_one_plus(x))


def log1p_of_sum(x: Number, low: Number) -> Number:
    """log(1 + x + low) for 0 <= x < inf and a low that is small compared with x."""
    u, error = _one_plus(x)
    return _log_of_one_plus(x, u, error + low)


def _one_plus(x: Number) -> tuple[Number, Number]:
    """1 + x and its rounding error."""
    u = x + 1.0
    back = u - 1.0
    return u, (1.0 - (u - back)) + (x - back)


def _log_of_one_plus(x: Number, u: Number, error: Number) -> Number:
    form = format_of(x)
    m, e = split(u)
    n = e.convert(x.dtype)
    down = power_of_two(select(e > form.bias - 2, 2 - form.bias, -e))
    logarithm = _log_of_parts(error.times_plus(down, m - 1.0), n)
    if x.has(Ability.DENORMALS):
        return logarithm
    # 1 + x loses all of a tiny x.
    return select(x.abs() < 2.0 ** -(form.mantissa + 2), x, logarithm)


# --- inverse hyperbolic functions -------------------------------------------------------------


def asinh(x: Number) -> Number:
    """The inverse hyperbolic sine."""
    size = x.abs()
    large = 2.0 ** (format_of(x).mantissa // 2 + 2)
    square = size * size
    near = log1p_inside(size + square / ((square + 1.0).sqrt() + 1.0))
    logarithm = select(size < large, near, log_of_positive(size) + LN2)
    return select(size < math.inf, logarithm, size).copysign(x)


def acosh(x: Number) -> Number:
    """The inverse hyperbolic cosine: log(1 + t + sqrt(2t + t²)) with t = x - 1; NaN below 1."""
    large = x > 2.0 ** (format_of(x).mantissa // 2 + 2)
    t = select(large, 1.0, x - 1.0)
    double, square = t + t, t * t
    inner = double + square
    first, error = root(inner, (double - inner) + square)
    total = first + t
    near = log1p_of_sum(total, ((first - total) + t) + error)
    logarithm = select(large, log_of_positive(x) + LN2, near)
    return select(x < math.inf, select(x < 1.0, math.nan, logarithm), x)


def atanh(x: Number) -> Number:
    """The inverse hyperbolic tangent; infinite at ±1, NaN beyond."""
    size = x.abs()
    double = size + size
    inner = double + double * size / (1.0 - size)
    half_logarithm = log1p_inside(select(size < 0.5, inner, double / (1.0 - size))) * 0.5
    outside = select(size.equals(1.0), math.inf, x.like(math.nan))
    return select(size < 1.0, half_logarithm, select(size.is_nan(), size, outside)).copysign(x)
