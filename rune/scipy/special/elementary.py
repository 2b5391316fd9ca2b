"""Logarithms, exponentials and entropies that keep their digits and their limits."""

from __future__ import annotations

import math

import numpy as np

import rune.numpy as rnp
from rune import dtypes, ops
from rune.array import Array
from rune.numpy.arguments import static_count
from rune.scipy.special.arguments import continued, elementwise, undefined, with_slopes
from rune.scipy.special.densities import deviance, quotient, times_log


@continued(ops.logistic)
def expit(x: Array) -> Array:
    """1 / (1 + exp(-x)).

    Shapes: any, unchanged. Types: bools and integers become floats; complex numbers stay complex.
    Errors: ArgumentError if an argument is not an array.

    >>> from rune.scipy.special import expit
    >>> expit(0.0)
    Array(0.5, f32*[], cpu:0)
    """
    return ops.logistic(x)


@elementwise
def log_expit(x: Array) -> Array:
    """log(expit(x)), without underflow.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> from rune.scipy.special import log_expit
    >>> log_expit(-1e4)
    Array(-10000., f32*[], cpu:0)
    """
    return -rnp.logaddexp(-x, 0.0)


@continued(lambda z: rnp.log(z) - rnp.log1p(-z))
@with_slopes(lambda t, y, p: t / (p * (1.0 - p)))
def logit(x: Array) -> Array:
    """log(x / (1 - x)): the inverse of expit; NaN outside [0, 1].

    Shapes: any, unchanged. Types: bools and integers become floats; complex numbers stay complex.
    Errors: ArgumentError if an argument is not an array.

    >>> from rune.scipy.special import logit
    >>> logit(0.5)
    Array(0., f32*[], cpu:0)
    """
    # By symmetry log((1 - q)/q) of the smaller one of x and 1 - x; a sum of 0 is not -0.
    small = rnp.where(x < 0.5, x, 1.0 - x) + 0.0
    # The inverse of a denormal number may overflow.
    is_tiny = rnp.abs(small) < 2.0**26 * float(rnp.finfo(x.dtype).tiny)
    excess = rnp.where(is_tiny, 2.0**-60, 1.0 - 2.0 * small) / small
    size = rnp.log1p(excess) + rnp.where(is_tiny, 60 * math.log(2), 0.0)
    return rnp.where(x < 0.5, -size, size)


@continued(times_log)
def xlogy(x: Array, y: Array) -> Array:
    """x log(y), and 0 where x is 0.

    Shapes: broadcast together.
    Types:  bools and integers become floats; complex numbers stay complex.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> from rune.scipy.special import xlogy
    >>> xlogy(0.0, 0.0)
    Array(0., f32*[], cpu:0)
    """
    return times_log(x, y)


@with_slopes(lambda t, r, x, y: t * rnp.log1p(y), lambda t, r, x, y: t * quotient(x, 1.0 + y))
def _times_log1p(x: Array, y: Array) -> Array:
    is_zero = (x == 0) & ~rnp.isnan(y)
    return rnp.where(is_zero, 0.0, x * rnp.log1p(rnp.where(is_zero, 1.0, y)))


@continued(_times_log1p)
def xlog1py(x: Array, y: Array) -> Array:
    """x log(1 + y), and 0 where x is 0.

    Shapes: broadcast together.
    Types:  bools and integers become floats; complex numbers stay complex.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> from rune.scipy.special import xlog1py
    >>> xlog1py(0.0, -1.0)
    Array(0., f32*[], cpu:0)
    """
    return _times_log1p(x, y)


@elementwise
# By separate terms it would be inf / inf for large values.
@with_slopes(lambda t, y, x: t * rnp.where(x < 0, 0.0, -rnp.log(rnp.where(x < 0, 1.0, x)) - 1.0))
def entr(x: Array) -> Array:
    """-x log(x), 0 at 0 and -inf below.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> from rune.scipy.special import entr
    >>> entr(0.5)
    Array(0.3465736, f32*[], cpu:0)
    """
    return rnp.where(x < 0, -rnp.inf, -times_log(x, rnp.where(x < 0, 1.0, x)))


@elementwise
def rel_entr(p: Array, q: Array) -> Array:
    """x log(x / y) for positive x and y, 0 for x = 0 <= y, else inf.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> from rune.scipy.special import rel_entr
    >>> rel_entr(0.0, 1.0)
    Array(0., f32*[], cpu:0)
    """
    is_positive, is_zero = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    x1, y1 = rnp.where(is_positive, p, 1.0), rnp.where(is_positive, q, 1.0)
    # Close numbers have a small logarithm, which the quotient would round.
    is_near = (x1 > 0.5 * y1) & (x1 < 2.0 * y1)
    near = rnp.log1p((rnp.where(is_near, x1, y1) - y1) / y1)
    inner = x1 * rnp.where(is_near, near, rnp.log(x1) - rnp.log(y1))
    out = rnp.where(is_positive, inner, rnp.where(is_zero, 0.0, rnp.inf))
    return undefined(rnp.isnan(p) | rnp.isnan(q), out, p + q)


@elementwise
def kl_div(p: Array, q: Array) -> Array:
    """x log(x / y) - x + y for positive x and y, y for x = 0 <= y, else inf.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> from rune.scipy.special import kl_div
    >>> kl_div(1.0, 2.0)
    Array(0.30685282, f32*[], cpu:0)
    """
    is_positive = (p > 0) & (q > 0) & (p < rnp.inf)
    x1, y1 = rnp.where(is_positive, p, 1.0), rnp.where(is_positive, q, 1.0)
    is_near = (y1 < 4.0 * x1) & (y1 > x1 / 64.0)  # beyond, y / x may be 0
    at = rnp.where(is_near, y1, x1)
    near = -x1 * deviance((at - x1) / x1, at / x1)
    inner = rnp.where(is_near, near, y1 - x1 * (1.0 + rnp.log(y1) - rnp.log(x1)))
    out = rnp.where(is_positive, inner, rnp.where((p == 0) & (q >= 0), q, rnp.inf))
    return undefined(rnp.isnan(p) | rnp.isnan(q), out, p + q)


@elementwise
def exprel(x: Array) -> Array:
    """(exp(x) - 1) / x, and 1 at 0.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> from rune.scipy.special import exprel
    >>> exprel(0.0)
    Array(1., f32*[], cpu:0)
    """
    is_small, is_large = rnp.abs(x) < 1e-5, x > 80.0
    near, middle = rnp.where(is_small, x, 0.0), rnp.where(is_small | is_large, 1.0, x)
    far = rnp.where(is_large & (x < rnp.inf), x, 80.0)
    half = rnp.expm1(0.5 * far)  # exp(x) - 1 is half (half + 2), which overflows before the result
    beyond = rnp.where(x == rnp.inf, x, half / far * (half + 2.0))
    series = 1.0 + near * (0.5 + near * (1 / 6 + near * (1 / 24)))
    return rnp.where(is_small, series, rnp.where(is_large, beyond, rnp.expm1(middle) / middle))


@elementwise
def cosm1(x: Array) -> Array:
    """cos(x) - 1, accurate near 0.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> from rune.scipy.special import cosm1
    >>> cosm1(1e-3)
    Array(-5.0000006e-07, f32*[], cpu:0)
    """
    half = rnp.sin(0.5 * x)
    return -2.0 * half * half


@elementwise
def log1p(x: Array) -> Array:
    """log(1 + x), accurate near 0.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> from rune.scipy.special import log1p
    >>> log1p(0.0)
    Array(0., f32*[], cpu:0)
    """
    return rnp.log1p(x)


@elementwise
def expm1(x: Array) -> Array:
    """exp(x) - 1, accurate near 0.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> from rune.scipy.special import expm1
    >>> expm1(0.0)
    Array(0., f32*[], cpu:0)
    """
    return rnp.expm1(x)


def _product(power: Array, y: Array) -> Array:
    """power y, and 0 for power 0 and an infinite y."""
    return power * rnp.where((power == 0) & rnp.isinf(y), 0.0, y)


def _expm1_over(y: Array, power: Array) -> Array:
    """(exp(power y) - 1) / power, and y at power 0."""
    product = _product(power, y)
    is_zero = rnp.abs(product) < 1e-5
    safe = rnp.where(is_zero, 1.0, power)
    series = y * (1.0 + product * (0.5 + product * (1 / 6 + product * (1 / 24))))
    return rnp.where(is_zero, series, rnp.expm1(safe * y) / safe)


@elementwise
def boxcox(x: Array, lmbda: Array) -> Array:
    """(x**lmbda - 1) / lmbda, and log(x) for lmbda = 0. Source: Box & Cox 1964.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> from rune.scipy.special import boxcox
    >>> boxcox(4.0, 0.5)
    Array(2., f32*[], cpu:0)
    """
    return _expm1_over(rnp.log(x), lmbda)


@elementwise
def boxcox1p(x: Array, lmbda: Array) -> Array:
    """((1 + x)**lmbda - 1) / lmbda, and log(1 + x) for lmbda = 0.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> from rune.scipy.special import boxcox1p
    >>> boxcox1p(3.0, 0.5)
    Array(2., f32*[], cpu:0)
    """
    return _expm1_over(rnp.log1p(x), lmbda)


def _log1p_over(x: Array, power: Array) -> Array:
    """log(1 + power x) / power, and x at power 0."""
    product = _product(power, x)
    is_zero = rnp.abs(product) < 1e-5
    safe = rnp.where(is_zero, 1.0, power)
    series = x * (1.0 - product * (0.5 - product * (1 / 3 - product * 0.25)))
    return rnp.where(is_zero, series, rnp.log1p(rnp.where(is_zero, 0.0, product)) / safe)


@elementwise
def inv_boxcox(y: Array, lmbda: Array) -> Array:
    """The inverse of boxcox in x.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> from rune.scipy.special import inv_boxcox
    >>> inv_boxcox(2.0, 0.0)
    Array(7.3890557, f32*[], cpu:0)
    """
    return rnp.exp(_log1p_over(y, lmbda))


@elementwise
def inv_boxcox1p(y: Array, lmbda: Array) -> Array:
    """The inverse of boxcox1p in x.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> from rune.scipy.special import inv_boxcox1p
    >>> inv_boxcox1p(2.0, 0.0)
    Array(6.389056, f32*[], cpu:0)
    """
    return rnp.expm1(_log1p_over(y, lmbda))


@elementwise
def huber(delta: Array, r: Array) -> Array:
    """r²/2 up to |r| = delta, and delta (|r| - delta/2) beyond; inf for negative delta.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.
    Source: Huber 1964, The Annals of Mathematical Statistics 35(1).

    >>> from rune.scipy.special import huber
    >>> huber(1.0, 3.0)
    Array(2.5, f32*[], cpu:0)
    """
    size = rnp.abs(r)
    beyond = delta * (size - 0.5 * delta)
    loss = rnp.where(delta < 0, rnp.inf, rnp.where(size <= delta, 0.5 * r * r, beyond))
    return undefined(rnp.isnan(delta) | rnp.isnan(r), loss, delta + r)


@elementwise
def pseudo_huber(delta: Array, r: Array) -> Array:
    """delta² (sqrt(1 + (r/delta)²) - 1): a smooth approximation of huber.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.
    Source: Huber 1964, The Annals of Mathematical Statistics 35(1).

    >>> from rune.scipy.special import pseudo_huber
    >>> pseudo_huber(1.0, 0.0)
    Array(0., f32*[], cpu:0)
    """
    ratio = r / rnp.where(delta > 0, delta, 1.0)
    # sqrt(1 + s) - 1 = s / (sqrt(1 + s) + 1), which does not cancel.
    is_near = rnp.abs(ratio) < 1.0
    at = rnp.where(is_near, r, 0.0)
    root = rnp.sqrt(1.0 + rnp.square(rnp.clip(ratio, -1e17, 1e17)))
    beyond = delta * (r * (rnp.clip(ratio, -1e17, 1e17) / (root + 1.0)))
    loss = rnp.where(is_near, at * (at / (root + 1.0)), beyond)
    loss = rnp.where(delta < 0, rnp.inf, rnp.where(delta == 0, 0.0, loss))
    return undefined(rnp.isnan(delta) | rnp.isnan(r), loss, delta + r)


# --- numbers ---------------------------------------------------------------------------------


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers B(0) … B(n), with B(1) = -1/2, as a floating array.

    Shapes: [n + 1]. Types: f32; numbers beyond its range are ±inf.
    Source: DLMF 24.2.1, by the tangent numbers of Brent & Harvey 2011, arXiv:1108.0286.
    Errors: ArgumentError for an `n` that is not an integer.

    >>> from rune.scipy.special import bernoulli
    >>> bernoulli(2)
    Array([ 1.        , -0.5       ,  0.16666667], f32[3], cpu:0)
    """
    n = static_count("bernoulli", "n", n)
    count = min(n // 2, _LAST_BERNOULLI // 2)
    tangents = [math.factorial(k) for k in range(count)]
    for i in range(1, count):
        for j in range(i, count):
            tangents[j] = (j - i) * tangents[j - 1] + (j - i + 2) * tangents[j]
    numbers = np.zeros(n + 1)
    numbers[:2] = [1.0, -0.5][: n + 1]
    numbers[2::4], numbers[4::4] = np.inf, -np.inf
    for k, tangent in enumerate(tangents, 1):
        power = 4**k
        numbers[2 * k] = (-1) ** (k + 1) * (2 * k * tangent) / (power * (power - 1))
    with np.errstate(over="ignore"):
        return rnp.asarray(numbers, dtypes.canonical(dtypes.f64))


_LAST_BERNOULLI = 258  # numbers of larger even index are beyond the range of f64
