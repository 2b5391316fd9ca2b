"""The normal distribution, and distributions built on normal numbers.

A normal number is the inverse error function of a uniform one, as in JAX: one draw each, and close
uniform numbers give close normal numbers. Executors compute the inverse within a few ulps of each
other; the uniform numbers are the same.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.core.interpreter import literal
from rune.core.types import Shape
from rune.ops.complex_numbers import PART
from rune.random.keys import single_key, split
from rune.random.sampler import Sampler, floating, real_arguments
from rune.random.uniforms import rademacher, uniform, unit_interval
from rune.typing import ArrayLike, DTypeLike

SQRT2 = math.sqrt(2)


def standard_normal(key: ArrayLike, shape: Shape, dtype: np.dtype) -> Array:
    """Normal numbers in a floating dtype."""
    # The open interval: erf_inv is infinite at -1.
    low = np.nextafter(literal(-1, dtype), literal(0, dtype))
    between = uniform.core(key, shape, dtype, low, literal(1, dtype))
    return ops.mul(literal(SQRT2, dtype), ops.erf_inv(between))


@Sampler
def normal(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Normally distributed numbers with mean 0 and variance 1.

    Shapes: `shape`.
    Types:  floating, f32 by default; or complex, each part then of variance 1/2.
    Errors: DtypeError for any other dtype.
    Source: the inverse error function of a uniform number, as in JAX.

    >>> import rune
    >>> rune.random.normal(rune.random.key(0), (2,))
    Array([1.622642 , 2.0252647], f32[2], cpu:0)
    """
    checked_key = single_key("normal", key)
    if dtype in PART:
        half = literal(1 / SQRT2, PART[dtype])
        parts = (ops.mul(standard_normal(k, shape, PART[dtype]), half) for k in split(checked_key))
        return ops.complex(*parts)
    return standard_normal(checked_key, shape, floating("normal", dtype))


@Sampler
def truncated_normal(
    key: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Normal numbers between two bounds, both excluded.

    Shapes: the bounds broadcast to `shape`, which is their own by default.
    Types:  floating, f32 by default.
    Errors: DtypeError, ShapeError.
    Source: normal numbers, Johnson, Kotz & Balakrishnan, Continuous Univariate Distributions.

    >>> import rune
    >>> rune.random.truncated_normal(rune.random.key(0), -1.0, 1.0, (2,))
    Array([0.8618594, 0.9412884], f32[2], cpu:0)
    """
    kind, shape, (low, high) = real_arguments("truncated_normal", shape, dtype, lower, upper)
    root = literal(SQRT2, kind)
    a, b = (ops.erf(ops.div(v, root)) for v in (low, high))
    number = root * ops.erf_inv(uniform.core(key, shape, kind, a, b))
    # Rounding may leave the interval; the bounds themselves get no derivative from that.
    least = ops.nextafter(ops.stop_gradient(low), literal(np.inf, kind))
    most = ops.nextafter(ops.stop_gradient(high), literal(-np.inf, kind))
    return rnp.clip(number, least, most)


@Sampler
def lognormal(
    key: ArrayLike, sigma: ArrayLike = 1.0, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """exp(sigma z) for normal z.

    Shapes: sigma broadcasts to `shape`, which is its own by default.
    Types:  floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: normal numbers, Johnson, Kotz & Balakrishnan, Continuous Univariate Distributions.

    >>> import rune
    >>> rune.random.lognormal(rune.random.key(0), 0.5, (2,))
    Array([2.2508795, 2.752838 ], f32[2], cpu:0)
    """
    kind, shape, (scale,) = real_arguments("lognormal", shape, dtype, sigma)
    return rnp.exp(standard_normal(single_key("lognormal", key), shape, kind) * scale)


@Sampler
def maxwell(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Lengths of vectors of three normal numbers: the speeds of molecules in a gas.

    Shapes: `shape`. Types: floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: normal numbers, Johnson, Kotz & Balakrishnan, Continuous Univariate Distributions.

    >>> import rune
    >>> rune.numpy.round(rune.random.maxwell(rune.random.key(0), (2,)), 4)
    Array([2.6311, 0.991 ], f32[2], cpu:0)
    """
    kind = floating("maxwell", dtype)
    vectors = standard_normal(single_key("maxwell", key), (*shape, 3), kind)
    return rnp.sqrt(rnp.sum(vectors * vectors, axis=-1))


@Sampler
def double_sided_maxwell(key: ArrayLike, loc: Any, scale: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """loc + scale s m, with a random sign s and m of the Maxwell distribution.

    Shapes: `shape` in front of the joint shape of the parameters; for () that shape twice, as in
            JAX.
    Types:  floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: Devroye 1986, Non-Uniform Random Variate Generation, IV.

    >>> import rune
    >>> rune.random.double_sided_maxwell(rune.random.key(0), 0.0, 1.0, (2,))
    Array([1.5457212, 1.5741274], f32[2], cpu:0)
    """
    kind, params, (centre, width) = real_arguments("double_sided_maxwell", None, dtype, loc, scale)
    full_shape = (*(shape or params), *params)
    first, second = split(single_key("double_sided_maxwell", key))
    sign = rademacher.core(second, full_shape, kind)
    return sign * maxwell.core(first, full_shape, kind) * width + centre


@Sampler
def rayleigh(key: ArrayLike, scale: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Lengths of vectors of two normal numbers, times scale.

    Shapes: scale broadcasts to `shape`, which is its own by default.
    Types:  floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: normal numbers, Johnson, Kotz & Balakrishnan, Continuous Univariate Distributions.

    >>> import rune
    >>> rune.random.rayleigh(rune.random.key(0), 2.0, (2,))
    Array([0.65575665, 0.41620055], f32[2], cpu:0)
    """
    kind, shape, (size,) = real_arguments("rayleigh", shape, dtype, scale)
    return size * rnp.sqrt(rnp.log(unit_interval(key, shape, kind)) * -2.0)


@Sampler
def wald(key: ArrayLike, mean: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """The inverse Gaussian distribution of scale 1: first passages of a Brownian motion.

    Shapes: mean broadcasts to `shape`, which is its own by default.
    Types:  floating, f32 by default.
    Source: Michael, Schucany & Haas 1976, The American Statistician 30(2).
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.

    >>> import rune
    >>> rune.random.wald(rune.random.key(0), 1.0, (2,))
    Array([0.38059756, 0.4156652 ], f32[2], cpu:0)
    """
    kind, shape, (m,) = real_arguments("wald", shape, dtype, mean)
    first, second = split(single_key("wald", key))
    # The roots of a quadratic, with the product m². As published, and in JAX, the smaller one is a
    # difference, which has no digits left in f32 for means of 1,000.
    spread = m * rnp.square(standard_normal(first, shape, kind))
    smaller = m / (1 + spread / 2 + rnp.sqrt(spread) * rnp.sqrt(1 + spread / 4))
    takes_smaller = unit_interval(second, shape, kind) <= m / (m + smaller)
    return rnp.where(takes_smaller, smaller, m * (m / smaller))
