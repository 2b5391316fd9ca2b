"""Distributions with a closed-form inverse: each sample uses one uniform number.

The samplers follow JAX in how they keep the uniform number away from points where the formula is
infinite.
"""

from __future__ import annotations

import math

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.core.interpreter import literal
from rune.core.types import Shape
from rune.errors import ArgumentError
from rune.random.sampler import Sampler, floating, integral, joint_shape, real_arguments, real_kind, spread, with_static
from rune.random.uniforms import uniform, unit_interval
from rune.typing import ArrayLike, DTypeLike


@Sampler
def exponential(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Waiting times of mean 1: density exp(-x) for x >= 0.

    Shapes: `shape`. Types: floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: the inverse of the distribution function, Devroye 1986, Non-Uniform Random Variate
            Generation, II.2.

    >>> import rune
    >>> rune.random.exponential(rune.random.key(0), (2,))
    Array([2.950128 , 3.8434246], f32[2], cpu:0)
    """
    # 1 - u is never 0.
    return -rnp.log1p(-unit_interval(key, shape, floating("exponential", dtype)))


@with_static("mode")
def gumbel(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, mode: str | None = None) -> Array:
    """The distribution of the largest of many: density exp(-(x + exp(-x))).

    mode:   "high" takes twice the bits: the largest number is about 32 instead of 16 in f32.
    Shapes: `shape`. Types: floating, f32 by default.
    Errors: ArgumentError for any other mode.
    Source: the inverse of the distribution function, Devroye 1986, Non-Uniform Random Variate
            Generation, II.2.

    >>> import rune
    >>> rune.random.gumbel(rune.random.key(0), (2,))
    Array([2.9233725, 3.8326175], f32[2], cpu:0)
    """
    kind = floating("gumbel", dtype)
    if mode not in (None, "low", "high"):
        raise ArgumentError(f"gumbel: cannot use mode={mode!r} ('low', 'high')")
    info = rnp.finfo(kind)
    tiny = literal(info.tiny, kind)
    if mode != "high":
        return -rnp.log(-rnp.log(uniform.core(key, shape, kind, tiny, 1.0)))
    coarse, fine = unit_interval(key, (2, *shape), kind)
    # Below 1/2, floats are closer together than the steps of `coarse`: `fine` adds their bits.
    u = rnp.where(coarse >= 0.5, coarse, coarse + 2.0**-info.nmant * fine + float(info.tiny))
    return -rnp.log(-rnp.log1p(-u))


@Sampler
def laplace(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Density exp(-|x|) / 2.

    Shapes: `shape`. Types: floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: the inverse of the distribution function, Devroye 1986, Non-Uniform Random Variate
            Generation, II.2.

    >>> import rune
    >>> rune.random.laplace(rune.random.key(0), (2,))
    Array([-2.2569816, -3.1502788], f32[2], cpu:0)
    """
    kind = floating("laplace", dtype)
    low = literal(-1 + rnp.finfo(kind).epsneg, kind)
    u = uniform.core(key, shape, kind, low, 1.0)
    return rnp.sign(u) * rnp.log1p(-rnp.abs(u))


@Sampler
def logistic(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Density exp(-x) / (1 + exp(-x))².

    Shapes: `shape`. Types: floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: the inverse of the distribution function, Devroye 1986, Non-Uniform Random Variate
            Generation, II.2.

    >>> import rune
    >>> rune.random.logistic(rune.random.key(0), (2,))
    Array([2.896376 , 3.8217716], f32[2], cpu:0)
    """
    kind = floating("logistic", dtype)
    u = uniform.core(key, shape, kind, literal(rnp.finfo(kind).tiny, kind), 1.0)
    return rnp.log(u) - rnp.log1p(-u)


@Sampler
def cauchy(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Density 1 / (π (1 + x²)): no mean.

    Shapes: `shape`. Types: floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: the inverse of the distribution function, Devroye 1986, Non-Uniform Random Variate
            Generation, II.2.

    >>> import rune
    >>> rune.random.cauchy(rune.random.key(0), (2,))
    Array([ 6.0274944, 14.837895 ], f32[2], cpu:0)
    """
    kind = floating("cauchy", dtype)
    u = uniform.core(key, shape, kind, literal(rnp.finfo(kind).eps, kind), 1.0)
    return rnp.tan(math.pi * (u - 0.5))


@Sampler
def pareto(key: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Density b / x**(b + 1) for x >= 1.

    Shapes: b broadcasts to `shape`, which is its own by default.
    Types:  floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: the inverse of the distribution function, Devroye 1986, Non-Uniform Random Variate
            Generation, II.2.

    >>> import rune
    >>> rune.random.pareto(rune.random.key(0), 2.0, (2,))
    Array([4.3713155, 6.832648 ], f32[2], cpu:0)
    """
    kind, shape, (exponent,) = real_arguments("pareto", shape, dtype, b)
    return rnp.exp(exponential.core(key, shape, kind) / exponent)


@Sampler
def power(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Density a x**(a - 1) for 0 <= x <= 1: the largest of `a` uniform numbers.

    Shapes: a broadcasts to `shape`, which is its own by default.
    Types:  floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: the inverse of the distribution function, Devroye 1986, Non-Uniform Random Variate
            Generation, II.2.

    >>> import rune
    >>> rune.random.power(rune.random.key(0), 2.0, (2,))
    Array([0.22876407, 0.14635615], f32[2], cpu:0)
    """
    kind, shape, (exponent,) = real_arguments("power", shape, dtype, a)
    return rnp.exp(-exponential.core(key, shape, kind) / exponent)


@Sampler
def weibull_min(
    key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """scale e**(1/concentration), where e is exponentially distributed.

    Shapes: the parameters broadcast to `shape`.
    Types:  floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: the inverse of the distribution function, Devroye 1986, Non-Uniform Random Variate
            Generation, II.2.

    >>> import rune
    >>> rune.random.weibull_min(rune.random.key(0), 1.0, 2.0, (2,))
    Array([1.7175937, 1.9604654], f32[2], cpu:0)
    """
    kind, shape, (size, k) = real_arguments("weibull_min", shape, dtype, scale, concentration)
    return rnp.power(exponential.core(key, shape, kind), 1.0 / k) * size


@Sampler
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Density that rises from left to its mode and falls to right.

    Shapes: the parameters broadcast to `shape`, which is their own by default.
    Types:  floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: the inverse of the distribution function, Devroye 1986, Non-Uniform Random Variate
            Generation, II.2.

    >>> import rune
    >>> rune.random.triangular(rune.random.key(0), 0.0, 0.5, 1.0, (2,))
    Array([0.8382394, 0.8965106], f32[2], cpu:0)
    """
    kind, shape, (a, c, b) = real_arguments("triangular", shape, dtype, left, mode, right)
    u = unit_interval(key, shape, kind)
    rising = a + rnp.sqrt(u * (b - a) * (c - a))
    falling = b - rnp.sqrt((1 - u) * (b - a) * (b - c))
    return rnp.where(u < (c - a) / (b - a), rising, falling)


@Sampler
def geometric(key: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """The number of trials of probability p up to the first success.

    Shapes: p broadcasts to `shape`, which is its own by default.
    Types:  integer, i32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: the inverse of the distribution function, Devroye 1986, Non-Uniform Random Variate
            Generation, II.2.

    >>> import rune
    >>> rune.random.geometric(rune.random.key(0), 0.1, (2,))
    Array([1, 1], i32[2], cpu:0)
    """
    kind = integral("geometric", dtype)
    shape = joint_shape("geometric", shape, p)
    real = real_kind("geometric", p)
    chance = spread("geometric", p, real, shape)
    u = unit_interval(key, shape, real)
    u = rnp.where(u == 0, 1, u)  # uniform in (0, 1], where the logarithm is finite
    count = rnp.floor(rnp.log(u) / rnp.log1p(-chance)) + 1
    return ops.convert(count, dtype=kind)
