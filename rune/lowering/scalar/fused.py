"""Forms of functions for devices with fused multiply-adds, such as CPUs; some of f32 in f64.

The inverse hyperbolic functions are log1p of a sum in two parts. A power of f32 is computed in f64,
by polynomials just accurate enough for f32; a power of f64 uses a logarithm in two parts, whose
products are exact by fused multiply-adds. The cube root needs no division: a polynomial gives
1/cbrt of the mantissa, and one step with an exact residual gives the root. Arguments of sin, cos
and tan are reduced by π/2 in three parts; beyond a limit, where that is not accurate enough, the C
library computes them. Error: at most 2 ulp (tests measure it).

Source: coefficients by tools/minimax.py; the kernels for a reduced argument in two parts are those
of fdlibm.
"""

from __future__ import annotations

import math

from rune import dtypes
from rune.lowering.scalar import errors, powers
from rune.lowering.scalar import exponential as e
from rune.lowering.scalar.formats import F32, F64, format_of
from rune.lowering.scalar.number import LN2, LOG2E, Number, Pair, at_least, at_most, horner, residual, select
from rune.lowering.scalar.trigonometric import COS_F32, COS_F64, HALF_PI, SIN_F32, SIN_F64
from rune.number_tables import numbers, quotient

# 1/cbrt(m) in m - 3/2 for 1 <= m < 2; log2(1 + f)/f in the reduced range of log1p.
INVERSE_CBRT = (0.8735905444673834, -0.1938092005191881, 0.08576672948519841, -0.04969053899976581, 0.02908857845386976)
LOG2_NARROW = numbers("""
    1.4426950409152333      -0.721347525468934        0.4808983328137441      -0.36067276439563284
    0.2885396499982365      -0.24050514892226457      0.20612564732308716     -0.17905164885125097
    0.15863761377314226     -0.15664058891389135      0.15646683617235843     -0.08875902862554347
""")
# 2ʳ for |r| up to 1/2, with an error of 4e-11.
EXP2_NARROW = numbers("""
    0.999999999961652        0.6931471807285853       0.24022651198455364      0.05550410353129117
    0.009618027213240602     0.001333392271764394     0.00015469304227859216   1.5201909657961182e-05
""")
# erfc(x) exp(x²) for 0 <= x <= 10.3, beyond which f32 has only 0, with an error of 9e-11.
ERFC_NARROW = quotient("""
    0.9999999999212192       1.4353684891605427       1.0020909226620907       0.40326848817163713
    0.09311119607268999      0.010059069913372007 /
    1.0                      2.5637476451860253       2.8949706007490184       1.8583960349862976
    0.7237117745043478       0.1650342408845957       0.01782925945189062
""")
# -log(1 + f)/f in the reduced range, with an error of 4e-9.
MINUS_LOG_NARROW = numbers("""
   -1.000000000666355        0.4999998832419283      -0.333333023955231        0.25001570964388314
   -0.20003206733989493      0.16610342225441047     -0.14160720084573597      0.13212260626782027
   -0.13019158466755976      0.07830829410934015
""")
# log(erfc(x))/x + 1 for 0 <= x <= 4, within 4e-9 of erf
LOG_ERFC_PLUS_ONE = numbers("""
   -0.1283791716112431      -0.636619381966547       -0.10277783050677755     0.019153063894428928
    0.00016039608059327485  -0.0016670274622717664   0.0006328368422544175  -0.00011764126220951736
    9.256263311615158e-06
""")
LOG_TAIL = (  # R of `_log2_in_two`
    0.4,
    0.28571428571429375,
    0.22222222221651322,
    0.18181818336323582,
    0.15384594872143592,
    0.13334809197922962,
    0.11706125038347458,
    0.11724259076470335,
)
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
INVERSE_TAIL_F32 = numbers("""
    2.7915758114484786      -4.098175521389605        3.7524957441364686      -1.5127898674607805
    0.3511141216127411      -0.04328771263461023      0.00161278512875654      0.0001938980546961955
   -1.7118245157114984e-05
""")
LARGE = 2.0**30  # from here on x² + 1 rounds to x² in both formats
REDUCTION_LIMIT = 1.0e9  # the quotient by π/2 keeps all its bits up to here
HALF_PI_REST = -1.4973849048591698e-33  # π/2 minus the two parts of HALF_PI


# --- inverse hyperbolic functions -------------------------------------------------------------


def asinh(x: Number) -> Number:
    """The inverse hyperbolic sine: log1p of |x| + x²/(sqrt(x² + 1) + 1)."""
    size = x.abs()
    small = select(size < LARGE, size, 0.0)
    square = small * small
    bend = square / ((square + 1.0).sqrt() + 1.0)
    return _log1p_or_twice(size - 1.0, small, bend, x.like(0.0)).copysign(x)


def acosh(x: Number) -> Number:
    """The inverse hyperbolic cosine, log1p of t + sqrt(t (t + 2)), t = x - 1; NaN below 1."""
    t = x - 1.0
    small = select(x < LARGE, t, 0.0)
    double = small + small
    square = small.fma(small, double)
    near = square.sqrt()
    # The rounding errors of the square and its root; the former matters only for t < 2.
    square_error = residual(square, near, near) + small.fma(small, double - square)
    error = select(near > 0.0, square_error / (near + near), 0.0)
    return select(x < 1.0, math.nan, _log1p_or_twice(t, small, near, error))


def _log1p_or_twice(t: Number, a: Number, b: Number, addend: Number) -> Number:
    """log(1 + a + b + addend), or log(2 (1 + t)) for a large t."""
    large = ~(t < LARGE)
    total = a + b
    back = total - a
    error = (a - (total - back)) + (b - back) + addend
    logarithm = _log1p_of_sum(select(large, t, total), select(large, 0.0, error))
    return logarithm + select(large, t.like(LN2), 0.0)


def _log1p_of_sum(x: Number, low: Number) -> Number:
    """log(1 + x + low), with all special values of x."""
    return e.log_special(x, e.log1p_of_sum(x, low), -1.0).copysign(x)


def atanh(x: Number) -> Number:
    """The inverse hyperbolic tangent; infinite at ±1, NaN beyond."""
    size = x.abs()
    double, below = size + size, 1.0 - size
    quotient = double / below
    # The rounding errors of the division and the difference; not finite at 1.
    remainder = residual(double, quotient, below) + quotient * (size - (1.0 - below))
    error = remainder / below
    known = select(error.abs() < math.inf, error, 0.0)
    return (_log1p_of_sum(quotient, known) * 0.5).copysign(x)


# --- powers -----------------------------------------------------------------------------------


def pow_by_f64(x: Number, y: Number) -> Number:
    """x to the power y for f32, by 2^(y log2(x)) in f64."""
    size = x.abs()
    m, exponent = e.normalised(size)
    f = m.convert(dtypes.f64) - 1.0
    log = f.fma(horner(f, LOG2_NARROW), exponent.convert(dtypes.f64))
    wide = size.convert(dtypes.f64)
    log = select(wide.equals(0.0), -math.inf, select(wide < math.inf, log, wide))
    product = at_most(at_least(log * y.convert(dtypes.f64), -160.0), 130.0)
    n, integer = e.nearest(product)
    power = horner(product - n, e.EXP2) * e.power_of_two(integer)
    return powers.with_sign(x, y, power.convert(x.dtype))


def pow_of_f64(x: Number, y: Number) -> Number:
    """The same for f64: the logarithm and its product with y are sums of two numbers."""
    size = x.abs()
    log, log_rest = _log2_in_two(size)
    log = select(size.equals(0.0), -math.inf, select(size < math.inf, log, size))
    rough = log * y
    near = rough.abs() < 1100.0  # beyond, the power is 0 or infinite
    log, factor = select(near, log, 0.0), select(near, y, 0.0)
    product = log * factor
    error = log.fma(factor, -product) + log_rest * factor
    n, integer = e.nearest(product)
    power = e.scale(e.exp_tail(*e.times_ln2(product - n, error)) + 1.0, n, integer)
    outside = select(rough > 0.0, math.inf, select(rough < 0.0, rough.like(0.0), rough))
    return powers.with_sign(x, y, select(near, power, outside))


def _log2_in_two(x: Number) -> Pair:
    """log2(x) of f64 for 0 < x < inf as a sum: with s = (m - 1)/(m + 1) the logarithm of m is
    s (2 + z (2/3 + z R)), z = s².
    """
    m, exponent = e.normalised(x)
    n = exponent.convert(x.dtype)
    above, below = m - 1.0, m + 1.0
    s = above / below
    s_rest = (residual(above, s, below) - s * (m - (below - 1.0))) / below
    z = s * s
    z_rest = s.fma(s, -z) + (s + s) * s_rest
    third = z * TWO_THIRDS[0]
    third_rest = z.fma(TWO_THIRDS[0], -third) + z_rest * TWO_THIRDS[0] + z * TWO_THIRDS[1]
    third_rest = third_rest + (z * z) * horner(z, LOG_TAIL)
    factor = third + 2.0
    factor_rest = (third - (factor - 2.0)) + third_rest
    log = s * factor
    log_rest = s.fma(factor, -log) + s.fma(factor_rest, s_rest * factor)
    product = log * LOG2E
    product_rest = log.fma(LOG2E, -product)
    product_rest = product_rest + log.fma(F64.log2e_low, log_rest * LOG2E)
    total = n + product
    error = (product - (total - n)) + product_rest
    high = total + error  # the rest is less than a rounding error
    return high, (total - high) + error


def cbrt(x: Number) -> Number:
    """The cube root."""
    size = x.abs()
    known = (size > 0.0) & (size < math.inf)
    return select(known, _positive_root(size).copysign(x), x)


def _positive_root(x: Number) -> Number:
    """cbrt for 0 < x < inf: with x = M 8^q and 1 <= M < 8, and p near 1/cbrt(M), M p² is near the
    root and p²/3 near its inverse derivative.
    """
    form = format_of(x)
    lift = 24 if x.is_single else 54
    small = x < form.tiny
    bits = select(small, x * 2.0**lift, x).bits()
    # The exponent is biased by a multiple of 3; a product that is exact enough gives a third of it.
    above = -form.bias % 3
    exponent = (bits >> form.mantissa) + above
    third = (exponent * 21846) >> 16
    remainder = exponent - third * 3
    fraction = bits & ((1 << form.mantissa) - 1)
    m = (fraction | (form.bias << form.mantissa)).bits_as(x.dtype)
    radicand = (fraction | ((remainder + form.bias) << form.mantissa)).bits_as(x.dtype)
    shrunk = select(remainder.equals(1), x.like(2.0 ** (-1 / 3)), 2.0 ** (-2 / 3))
    p = horner(m - 1.5, INVERSE_CBRT) * select(remainder.equals(0), x.like(1.0), shrunk)
    if not x.is_single:
        p = p.fma((1.0 - radicand * p * p * p) * (1.0 / 3.0), p)
    square = p * p
    near = radicand * square
    power = near * near
    excess = power.fma(near, -radicand) + near.fma(near, -power) * near
    exact = near - excess * (square * (1.0 / 3.0))
    middle = (form.bias + above) // 3
    q = third - select(small, third.like(middle + lift // 3), middle)
    return exact * e.power_of_two(q)


# --- error functions --------------------------------------------------------------------------


def erf_of_f32(x: Number) -> Number:
    """The error function, for f32: 1 - exp(y) as (1 - 2ⁿ) - 2ⁿ (exp(r) - 1), exact for small ones.

    Near 0 the result is y, whose rounding would count twice: so y is a sum of two there.
    """
    size = at_most(x.abs(), 4.0)  # beyond, f32 has only 1
    slope = horner(size, LOG_ERFC_PLUS_ONE)
    y = size.fma(slope, -size)
    low = size.fma(slope, -(size + y))
    n, integer = e.nearest(y, LOG2E)
    r, power = n.fma(-LN2, y), e.power_of_two(integer)
    excess = (r * r).fma(horner(r, F32.exp), low) + r
    return (-excess).fma(power, 1.0 - power).copysign(x)


def erfc_by_f64(x: Number) -> Number:
    """The complement of the error function, for f32: exp(-x²) times a quotient.

    The square of an f32 is exact, and only 2 is ever subtracted from: so one range is enough.
    """
    size = at_most(x.abs(), 10.25).convert(dtypes.f64)  # beyond, f32 has only 0
    above, below = ERFC_NARROW
    power = _exp2_narrow(size * size * -LOG2E)
    upper = power * horner(size, above) / horner(size, below)
    return select(x < 0.0, 2.0 - upper, upper).convert(x.dtype)


def _exp2_narrow(x: Number) -> Number:
    """2ˣ for f64, as accurate as f32 needs, where it is a normal number of f64."""
    n, integer = e.nearest(x)
    return (horner(x - n, EXP2_NARROW).bits() + (integer << F64.mantissa)).bits_as(dtypes.f64)


def erf_inv_by_f64(x: Number) -> Number:
    """The inverse of erf, for f32: infinite at ±1, NaN beyond."""
    wide = x.convert(dtypes.f64)
    w = _minus_log_narrow((-wide).fma(wide, 1.0))
    factor = horner(w, errors.INVERSE_CENTRAL_F32).variable()
    # Few numbers are so near to ±1, where w is 6.25, or beyond.
    is_far = x.abs() > 0.99903
    is_far.when(lambda: factor.set(_inverse_near_one(wide, w)))
    return (factor.get() * wide).convert(x.dtype)


def _inverse_near_one(x: Number, w: Number) -> Number:
    """erf_inv(x)/x for f32 from where w is about 6.25: infinite at ±1, NaN beyond."""
    beyond = select(x.abs().equals(1.0), math.inf, x.like(math.nan))
    return select(x.abs() < 1.0, horner(w.sqrt(), INVERSE_TAIL_F32), beyond)


def _minus_log_narrow(x: Number) -> Number:
    """-log(x) for 0 < x < inf of f64, as accurate as f32 needs."""
    steps = x.bits() - x.like(math.sqrt(0.5)).bits()
    exponent = steps & -(1 << F64.mantissa)
    f = (x.bits() - exponent).bits_as(dtypes.f64) - 1.0
    n = exponent.convert(dtypes.f64) * 2.0**-F64.mantissa
    return f * horner(f, MINUS_LOG_NARROW) - n * LN2


def erf_inv_of_f64(x: Number) -> Number:
    """The same for f64; the polynomials are in the distance from the middle of their ranges."""
    size = x.abs()
    w = -e.log((1.0 - size) * (1.0 + size))
    far = horner(w - 17.125, errors.INVERSE_FAR_F64)
    last = horner(w - 29.75, errors.INVERSE_LAST_F64)
    near = horner(w - 9.25, errors.INVERSE_TAIL_F64)
    tail = select(w < 12.25, near, select(w < 22.0, far, last))
    factor = select(w < 6.25, horner(w - 3.125, errors.INVERSE_CENTRAL_F64), tail)
    return _unless_one(x, factor * x)


def _unless_one(x: Number, inside: Number) -> Number:
    """erf_inv(x) from `inside`, its value for |x| < 1."""
    infinite = x.like(math.inf).copysign(x)
    return select(x.abs().equals(1.0), infinite, inside)


# --- sine, cosine, tangent --------------------------------------------------------------------


def sin(x: Number) -> Number:
    """The sine."""
    return _circular(x, "sin", 0)


def cos(x: Number) -> Number:
    """The cosine: the sine a quarter turn ahead."""
    return _circular(x, "cos", 1)


def _circular(x: Number, name: str, quarters: int) -> Number:
    wide = x.convert(dtypes.f64)
    sine, cosine, n = _sin_cos(wide, x.is_single)
    n = n + quarters
    magnitude = select((n & 1).equals(0), sine[0], cosine[0])
    value = (magnitude.bits() ^ ((n & 2) << 62)).bits_as(dtypes.f64)
    return _unless_large(wide, name, value).convert(x.dtype)


def tan(x: Number) -> Number:
    """The tangent, sin/cos; for f64 the quotient of both in two parts."""
    wide = x.convert(dtypes.f64)
    sine, cosine, n = _sin_cos(wide, x.is_single)
    odd = ~(n & 1).equals(0)
    a = select(odd, -cosine[0], sine[0]), select(odd, -cosine[1], sine[1])
    b = select(odd, sine[0], cosine[0]), select(odd, sine[1], cosine[1])
    quotient = a[0] / b[0]
    if not x.is_single:
        error = residual(a[0], quotient, b[0]) + (-quotient).fma(b[1], a[1])
        quotient = select(quotient.equals(0.0), quotient, quotient + error / b[0])
    return _unless_large(wide, "tan", quotient).convert(x.dtype)


def _unless_large(x: Number, name: str, usual: Number) -> Number:
    """`usual`, or the C library's function if x is too large for it."""
    size, value = x.abs(), usual.variable()
    large = (size >= REDUCTION_LIMIT) & (size < math.inf)
    large.when(lambda: value.set(x.by_library(name)))
    return value.get()


def _sin_cos(x: Number, narrow: bool) -> tuple[Pair, Pair, Number]:
    """sin and cos of the remainder of x by π/2, in two parts each, and the quarter turns."""
    n, turns = e.nearest(x, 2.0 / math.pi)
    high = n.fma(-HALF_PI[0], x)
    if narrow:
        return *_narrow_kernels(n.fma(-HALF_PI[1], high)), turns
    product = n * HALF_PI[1]
    r = high - product
    back = high - r
    error = (high - (r + back)) + (back - product)
    low = n.fma(-HALF_PI_REST, error - n.fma(HALF_PI[1], -product))
    return _sin_kernel(r, low), _cos_kernel(r, low), turns


def _narrow_kernels(r: Number) -> tuple[Pair, Pair]:
    """sin and cos as accurate as f32 needs; the low parts are 0."""
    z, zero = r * r, r.like(0.0)
    sine = (horner(z, SIN_F32) * z).fma(r, r).copysign(r)
    cosine = (horner(z, COS_F32) * z).fma(z, z.fma(-0.5, 1.0))
    return (sine, zero), (cosine, zero)


def _sin_kernel(r: Number, low: Number) -> Pair:
    z = r * r
    cube = z * r
    inner = z.fma(low * 0.5 - cube * horner(z, SIN_F64[1:]), -low) - cube * SIN_F64[0]
    sine = r - inner
    return sine, (r - sine) - inner


def _cos_kernel(r: Number, low: Number) -> Pair:
    z = r * r
    half = z * 0.5
    w = 1.0 - half
    low_part = ((1.0 - w) - half) + (z * z).fma(horner(z, COS_F64), -(r * low))
    cosine = w + low_part
    return cosine, (w - cosine) + low_part
