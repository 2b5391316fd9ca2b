"""exp, log and the hyperbolic functions as branch-free IR, for f32 and f64 alike.

Each function takes values of one floating type, scalar or vector, and appends the instructions
that compute it. Special values are chosen by selects, so that a loop around them vectorises.
Error: at most 2 ulp over the whole domain, denormal results included (tests measure it).

Source: coefficients by tools/minimax.py. Argument reduction x = n ln2 + r is Cody & Waite 1980;
the form log(1+f) = f - (f²/2 - s(f²/2 + R)) with s = f/(2+f) is fdlibm's e_log.c, expm1's and
log1p's handling of the rounded-off part likewise.
"""

from __future__ import annotations

import math

from rune.lowering.codegen.llvm_text import Value, horner
from rune.lowering.scalar.exponential import LOG_F32, LOG_F64
from rune.lowering.scalar.formats import F32, F64, Format

LOG2E = math.log2(math.e)


def format_of(x: Value) -> Format:
    """The constants for the type of `x`."""
    return F64 if x.scalar_type == "double" else F32


def at_least(x: Value, low: float) -> Value:
    """x, or `low` where x is less; NaN stays."""
    return x.writer.select(x < low, low, x)


def at_most(x: Value, high: float) -> Value:
    """x, or `high` where x is greater; NaN stays."""
    return x.writer.select(x > high, high, x)


def power_of_two(n: Value, type: str) -> Value:
    """2ⁿ for an integer n within the exponents of normal numbers."""
    form = F64 if "double" in type else F32
    return ((n + form.bias) << form.mantissa).from_bits(type)


def nearest(x: Value, scale: float) -> tuple[Value, Value]:
    """The integer nearest to x * scale, as a float and as an integer; |x * scale| < 2²²."""
    form = format_of(x)
    shifted = x.fma(scale, form.shifter)
    shifter = x.like(form.shifter)
    return shifted - shifter, shifted.to_bits() - shifter.to_bits()


def reduce(x: Value) -> tuple[Value, Value, Value]:
    """(high, low, n) with x = n ln2 + high + low and |high + low| <= ln2/2."""
    form = format_of(x)
    n, integer = nearest(x, LOG2E)
    return n.fma(-form.ln2_high, x), n * -form.ln2_low, integer


def scale_twice(y: Value, n: Value) -> Value:
    """y 2ⁿ where 2ⁿ itself may be out of range: two factors, so that one product rounds."""
    half = n.binary("ashr", n, 1)
    return y * power_of_two(half, y.type) * power_of_two(n - half, y.type)


def scale(y: Value, n: Value, integer: Value) -> Value:
    """y 2ⁿ by the processor's own instruction where it has one; the same bits either way."""
    if y.type in y.writer.scalef:
        return y.writer.scale_register(y, n)
    return scale_twice(y, integer)


def exp_tail(high: Value, low: Value) -> Value:
    """exp(high + low) - 1 for a sum of at most ln2/2 in size; as exact as a term beside 1."""
    r = high + low
    return high + horner(r, format_of(r).exp).fma(r * r, low)


def exp(x: Value) -> Value:
    """e to the power x, with 1 + r + c₀r² + … all by Horner: beside 1, what r lost is nothing."""
    form = format_of(x)
    x = at_most(at_least(x, form.exp_low), form.exp_high)
    n, integer = nearest(x, LOG2E)
    r = n.fma(-form.ln2_low, n.fma(-form.ln2_high, x))
    return scale(horner(r, (1.0, 1.0, *form.exp)), n, integer)


def exp2(x: Value) -> Value:
    """2 to the power x."""
    form = format_of(x)
    x = at_most(at_least(x, form.exp_low * 1.5), form.exp_high * 1.5)
    n, integer = nearest(x, 1.0)
    rest = x - n
    high = rest * math.log(2.0)
    low = rest.fma(form.ln2_low, rest.fma(form.ln2_high, -high))
    return scale(exp_tail(high, low) + 1.0, n, integer)


def expm1(x: Value) -> Value:
    """exp(x) - 1, accurate near 0; an eighth of it at first, lest its scale overflow."""
    form = format_of(x)
    high, low, n = reduce(at_most(at_least(x, form.expm1_low), form.exp_high))
    r = high + low
    tail = horner(r, form.expm1).fma(r * r, low)
    scale = power_of_two(n - 3, x.type)
    eighth = tail.fma(scale, high.fma(scale, scale - 0.125))
    # An eighth of a tiny number would be denormal; expm1 rounds to x long before.
    tiny = x.abs() < 2.0 ** -(form.mantissa + 3)
    return x.writer.select(tiny, x, (eighth * 8.0).copysign(x))


def tanh(x: Value) -> Value:
    """The hyperbolic tangent: an odd polynomial near 0, else 1 - 2/(exp(2|x|) + 1)."""
    form = format_of(x)
    size = x.abs()
    square = x * x
    near = (horner(square, form.tanh) * square).fma(size, size)
    far = 1.0 - 2.0 / (exp_double(at_most(size, form.tanh_high)) + 1.0)
    return x.writer.select(size < 0.625, near, far).copysign(x)


def exp_double(x: Value) -> Value:
    """exp(2x) for 0 <= x <= tanh_high, where neither it nor a factor overflows."""
    form = format_of(x)
    n, integer = nearest(x, 2.0 * LOG2E)
    half = n.fma(-0.5 * form.ln2_low, n.fma(-0.5 * form.ln2_high, x))
    doubled = [c * 2.0**k for k, c in enumerate((1.0, 1.0, *form.exp))]
    return horner(half, doubled) * power_of_two(integer, x.type)


def logistic(x: Value) -> Value:
    """1/(1 + exp(-x)): with exp|x| = (1 + t)/p the small side is p/(p + 1 + t)."""
    high, low, n = reduce(at_most(x.abs(), -format_of(x).exp_low))
    p = scale_twice(x.like(1.0), -n)
    small = p / ((exp_tail(high, low) + p) + 1.0)
    return x.writer.select(x < 0.0, small, 1.0 - small)


def sinh(x: Value) -> Value:
    """The hyperbolic sine: an odd polynomial near 0, else (e - 1/e)/2 with e = exp|x|."""
    square = x * x
    near = (horner(square, format_of(x).sinh) * square).fma(x, x)
    quarter = exp_quarter(x.abs())
    far = (quarter - 0.0625 / quarter) * 2.0
    return x.writer.select(x.abs() < 1.0, near, far.copysign(x))


def exp_quarter(x: Value) -> Value:
    """exp(x)/4, which does not overflow where sinh and cosh do not."""
    high, low, n = reduce(at_most(x, format_of(x).exp_high))
    return scale_twice(exp_tail(high, low) + 1.0, n - 2)


def cosh(x: Value) -> Value:
    """The hyperbolic cosine, (e + 1/e)/2 with e = exp|x|."""
    quarter = exp_quarter(x.abs())
    return quarter.fma(2.0, 0.125 / quarter)


def split(x: Value) -> tuple[Value, Value]:
    """(m, e) with x = m 2^e and sqrt(1/2) <= m < sqrt(2), for x > 0 and normal."""
    form = format_of(x)
    bits = x.to_bits()
    above = bits - x.like(math.sqrt(0.5)).to_bits()
    e = above.binary("ashr", above, form.mantissa)
    return (bits - (e << form.mantissa)).from_bits(x.type), e


def log1p_reduced(f: Value) -> tuple[Value, Value]:
    """(high, low) with high + low = log(1 + f), for sqrt(1/2) <= 1 + f < sqrt(2)."""
    if format_of(f) is F32:
        square = f * f
        return f, square.fma(-0.5, horner(f, LOG_F32) * f * square)
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    return f, s.fma(z.fma(horner(z, LOG_F64), half), -half)


def log_special(x: Value, result: Value, pole: float) -> Value:
    """`result`, but NaN left of the pole, -inf on it, and x itself where it is inf or NaN."""
    select = x.writer.select
    rest = select(x.equals(pole), -math.inf, select(x < pole, math.nan, x))
    return select((x > pole) & (x < math.inf), result, rest)


def normalised(x: Value) -> tuple[Value, Value]:
    """`split` for any x > 0: denormals are scaled up first."""
    form = format_of(x)
    small = x < form.tiny
    m, e = split(x.writer.select(small, x * 2.0 ** (form.mantissa + 1), x))
    return m, e - x.writer.select(small, e.like(form.mantissa + 1), 0)


def log(x: Value) -> Value:
    """The natural logarithm."""
    form = format_of(x)
    m, e = normalised(x)
    n = e.cast("sitofp", x.type)
    high, low = log1p_reduced(m - 1.0)
    return log_special(x, n.fma(form.ln2_high, high + n.fma(form.ln2_low, low)), 0.0)


def log2(x: Value) -> Value:
    """The logarithm to base 2; exact for powers of two."""
    form = format_of(x)
    m, e = normalised(x)
    high, low = log1p_reduced(m - 1.0)
    y = high + low
    lost = (high - y) + low
    n = e.cast("sitofp", x.type)
    scaled = y * LOG2E
    rest = lost.fma(LOG2E, y.fma(form.log2e_low, y.fma(LOG2E, -scaled)))
    return log_special(x, (n + scaled) + rest, 0.0)


def log1p(x: Value) -> Value:
    """log(1 + x), accurate near 0."""
    return log1p_of_sum(x)


def log1p_of_sum(x: Value, rest: Value | None = None) -> Value:
    """log(1 + x + rest), where `rest` is what the rounding of x took."""
    form = format_of(x)
    u = x + 1.0
    back = u - 1.0
    lost = (1.0 - (u - back)) + (x - back)
    lost = lost if rest is None else lost + rest
    m, e = split(u)
    n = e.cast("sitofp", x.type)
    down = power_of_two(e.writer.select(e > form.bias - 2, 2 - form.bias, -e), x.type)
    high, low = log1p_reduced(lost.fma(down, m - 1.0))
    result = n.fma(form.ln2_high, high + n.fma(form.ln2_low, low))
    return log_special(x, result, -1.0).copysign(x)
