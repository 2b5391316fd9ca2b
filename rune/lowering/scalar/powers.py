"""Powers, cube roots and remainders in plain arithmetic and in integers.

pow uses a logarithm with half as many bits again as its format: a sum of two numbers, the first of
them short, so that products of first parts are exact. The remainder of floats is computed from
their mantissas, some bits at a time, and is exact. Error: at most 2 ulp (tests measure it).

Source: the splitting of log2 and the last step of cbrt are those of fdlibm.
"""

from __future__ import annotations

import math

from rune.lowering.scalar import exponential as e
from rune.lowering.scalar.exponential import LOG_F64
from rune.lowering.scalar.formats import format_of
from rune.lowering.scalar.number import Number, Pair, halves, horner, select

TWO_THIRDS_LOG2E = (0.9617966939259756, 5.0577616648125907e-17)  # of LOG2E, in two parts
LOG_SERIES_F32 = (0.6666666655302053, 0.4000012275359553, 0.2855073711916104, 0.23332382808421073)


def pow(x: Number, y: Number) -> Number:
    """x to the power y, with IEEE 754's special cases."""
    size = x.abs()
    return with_sign(x, y, _special_power(size, y, _positive_power(size, y)))


def with_sign(x: Number, y: Number, magnitude: Number) -> Number:
    """x to the power y from |x| to the power y."""
    is_integer = y.apply("floor").equals(y)
    half = y * 0.5
    odd = is_integer & ~half.apply("floor").equals(half) & (y.abs() < math.inf)
    value = select((x.bits() < 0) & odd, -magnitude, magnitude)
    is_undefined = (x < 0.0) & (x > -math.inf) & ~is_integer & (y.abs() < math.inf)
    power = select(is_undefined | x.is_nan() | y.is_nan(), math.nan, value)
    unit = x.equals(1.0) | y.equals(0.0) | (x.abs().equals(1.0) & y.abs().equals(math.inf))
    return select(unit, 1.0, power)


def _special_power(size: Number, y: Number, power: Number) -> Number:
    """`power`, or the 0 or infinity that follows if |x| is 0 or infinite, or y infinite."""
    up = select(y > 0.0, size.like(math.inf), 0.0)
    down = select(y > 0.0, size.like(0.0), math.inf)
    endless = select(size > 1.0, up, down)
    power = select(y.abs() < math.inf, power, endless)
    return select(size.equals(0.0), down, select(size < math.inf, power, up))


def _positive_power(x: Number, y: Number) -> Number:
    """x to the power y for 0 < x < inf and finite y."""
    high, low = _log2(x)
    limit = format_of(x).exp_low * -1.5
    # Beyond it the power is 0 or infinite, and the parts of larger products would overflow.
    rough = y * high
    y_high = y.short()
    product = y_high * high
    error = (y - y_high) * high + y * low
    n, integer = e.nearest(product + error)
    power = e.scale_twice(e.exp_tail(*e.times_ln2(product - n, error)) + 1.0, integer)
    outside = select(rough > 0.0, power.like(math.inf), 0.0)
    return select(rough.abs() < limit, power, outside)


def _log2(x: Number) -> Pair:
    """log2 of 0 < x < inf: with s = (m-1)/(m+1), log m = 2/3 s (3 + s² + s⁴ R)."""
    m, exponent = e.normalised(x)
    n = exponent.convert(x.dtype)
    above, below = m - 1.0, m + 1.0
    s = above / below
    first = s.short()
    # below = divisor + the errors of rounding m + 1 and of shortening it.
    divisor = below.short()
    divisor_rest = m - (divisor - 1.0)
    error = ((above - first * divisor) - first * divisor_rest) / below
    square = first * first
    z = s * s
    coefficients = LOG_SERIES_F32 if x.is_single else LOG_F64
    inner = error * (first + s) + z * z * 1.5 * horner(z, coefficients[1:])
    factor = ((square + 3.0) + inner).short()
    factor_rest = inner - ((factor - 3.0) - square)
    product = first * factor
    product_rest = error * factor + factor_rest * s
    high = (product + product_rest).short()
    low = (product - high) + product_rest
    first, error = halves(TWO_THIRDS_LOG2E[0], x.dtype)
    multiple = high * first
    multiple_rest = high * (error + TWO_THIRDS_LOG2E[1]) + low * TWO_THIRDS_LOG2E[0]
    total = (n + (multiple + multiple_rest)).short()
    return total, ((n - total) + multiple) + multiple_rest


def cbrt(x: Number) -> Number:
    """The cube root: a third of the exponent, two steps of Halley, one with an exact square."""
    form, size = format_of(x), x.abs()
    shift = (form.mantissa + 4) // 3 * 3
    tiny = size < form.tiny
    # Where a device flushes denormals to 0, their bits still count units of the smallest one.
    units = size.bits().convert(x.dtype) * 2.0 ** (shift - form.mantissa - form.bias + 1)
    radicand = select(tiny, units, size)
    # A third of the bits is a third of the exponent, and nearly one of the mantissa's logarithm.
    bits = radicand.bits()
    start = bits / bits.like(3) + int((form.bias * 2 / 3 - 0.03306235651) * 2.0**form.mantissa)
    root = start.bits_as(x.dtype)
    for _ in range(2):
        ratio = (radicand / root) / (root * root)
        root = root * ((ratio + ratio + 1.0) / (ratio + 2.0))
    # The square of a short number is exact.
    near = root.short()
    quotient = radicand / (near * near)
    root = near + near * ((quotient - near) / (near + near + quotient))
    result = select(tiny, root * 2.0 ** (-shift // 3), root)
    return select((size > 0.0) & (size < math.inf), result.copysign(x), x)


# --- remainders -------------------------------------------------------------------------------


def rem(x: Number, y: Number) -> Number:
    """The exact remainder of truncating division of x by y, with the sign of x."""
    form = format_of(x)
    bits = x.bits().dtype.itemsize * 8
    step = bits - 1 - (form.mantissa + 1)  # bits of the quotient at a time
    a, b = x.abs(), y.abs()
    (top, top_place), (bottom, place) = _integer(a), _integer(b)
    remainder = x.variable()

    def divide() -> None:
        distance = top_place - place
        residue = ((top << (distance % distance.like(step))) % bottom).variable()
        steps = distance / distance.like(step)
        most = (2 * form.bias + form.mantissa) // step
        steps.repeat(most, lambda: residue.set((residue.get() << step) % bottom))
        remainder.set(_float(residue.get(), place, x).copysign(x))

    ((b <= a) & (a < math.inf) & (b > 0.0)).when(divide)
    is_defined = (a < math.inf) & (b > 0.0) & ~y.is_nan()
    return select(is_defined, remainder.get(), select(x.is_nan(), x, select(y.is_nan(), y, math.nan)))


def _integer(x: Number) -> tuple[Number, Number]:
    """(m, place) with x = m 2^place in units of the smallest number, and place >= 0."""
    mantissa, bits = format_of(x).mantissa, x.bits()
    exponent, fraction = bits >> mantissa, bits & ((1 << mantissa) - 1)
    denormal = exponent.equals(0)
    integer = select(denormal, fraction, fraction | (1 << mantissa))
    return integer, select(denormal, 0, exponent - 1)


def _float(integer: Number, place: Number, like: Number) -> Number:
    """An integer of at most a mantissa's bits times 2^place, as above."""
    mantissa = format_of(like).mantissa
    width = 8 * integer.dtype.itemsize
    room = integer.apply("clz") - (width - 1 - mantissa)
    shift = select(room < place, room, place)
    fraction, raise_by = integer << shift, place - shift
    normal = (fraction >> mantissa).equals(1)
    # The bit above the fraction adds one to the exponent.
    bits = select(normal, fraction + (raise_by << mantissa), fraction)
    return bits.bits_as(like.dtype)
