"""Distributions with a random parameter: first the parameter is drawn, then the number.

A negative binomial number is a Poisson number whose mean is a gamma number, a logarithmic number is
a geometric number with a random parameter, and a noncentral chi-square number is a chi-square
number whose degrees of freedom come from a Poisson number.
"""

from __future__ import annotations

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.core.types import Shape
from rune.random.counts import poisson
from rune.random.gammas import chisquare, gamma
from rune.random.keys import single_key, split
from rune.random.normals import standard_normal
from rune.random.sampler import Sampler, in_dtype, integral, joint_shape, real_arguments, real_kind
from rune.random.uniforms import pairs
from rune.typing import ArrayLike, DTypeLike


@Sampler
def negative_binomial(
    key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """The number of failures before n successes, with probability p each; n need not be an integer.

    Shapes: n and p broadcast to `shape`, which is their own by default.
    Types:  integer, i32 by default. -1 for n < 0, for p outside 0…1, and for p = 0.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: mixtures, Johnson, Kotz & Balakrishnan, Univariate Distributions.

    >>> import rune
    >>> rune.random.negative_binomial(rune.random.key(0), 3.0, 0.4, (3,))
    Array([3, 2, 6], i32[3], cpu:0)
    """
    kind = integral("negative_binomial", dtype)
    real, shape, parameters = real_arguments("negative_binomial", shape, None, n, p)
    successes, chance = map(ops.stop_gradient, parameters)
    first, second = split(single_key("negative_binomial", key))
    odds = rnp.where((chance > 0.0) & (chance <= 1.0), (1.0 - chance) / chance, rnp.nan)
    return poisson.core(second, gamma.core(first, successes, shape, real) * odds, shape, kind)


@Sampler
def logseries(key: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Integers k >= 1 with probability proportional to p**k / k.

    Shapes: p broadcasts to `shape`, which is its own by default.
    Types:  integer, i32 by default. -1 for p outside 0…1, and for p = 1.
    Source: Kemp 1981, Applied Statistics 30(3).
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.

    >>> import rune
    >>> rune.random.logseries(rune.random.key(0), 0.6, (4,))
    Array([8, 1, 1, 1], i32[4], cpu:0)
    """
    kind = integral("logseries", dtype)
    shape = joint_shape("logseries", shape, p)
    real = real_kind("logseries", p)
    chance = ops.stop_gradient(in_dtype("logseries", p, real))
    first, second = pairs(key, shape, real)
    # The geometric number fails with probability q = 1 - (1 - p)**u.
    log_q = rnp.log1p(-rnp.exp(rnp.log1p(-chance) * first))
    count = rnp.floor(1.0 + rnp.log1p(-second) / log_q)
    return ops.convert(rnp.where((chance >= 0.0) & (chance < 1.0), count, -1.0), dtype=kind)


@Sampler
def noncentral_chisquare(
    key: ArrayLike, df: ArrayLike, nonc: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """The sum of squares of `df` normal numbers whose squared means sum to `nonc`.

    Shapes: df and nonc broadcast to `shape`, which is their own by default.
    Types:  floating, f32 by default.
    The derivative with respect to nonc is that of the numbers for df > 1; below, where nonc enters
    through a count, it is 0.
    Source: Johnson, Kotz & Balakrishnan 1995, Continuous Univariate Distributions 2, 29.3.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.

    >>> import rune
    >>> rune.random.noncentral_chisquare(rune.random.key(0), 3.0, 2.0, (2,))
    Array([7.7360325, 2.4579365], f32[2], cpu:0)
    """
    kind, shape, parameters = real_arguments("noncentral_chisquare", shape, dtype, df, nonc)
    number, offset = (rnp.broadcast_to(v, shape) for v in parameters)
    first, second, third = split(single_key("noncentral_chisquare", key), 3)
    noncentral = rnp.square(standard_normal(first, shape, kind) + rnp.sqrt(offset))
    pairs = poisson.core(second, ops.stop_gradient(offset) / 2.0, shape).astype(kind)
    is_many = number > 1.0
    degrees = rnp.where(is_many, number - 1.0, number + 2.0 * pairs)
    return rnp.where(is_many, noncentral, 0.0) + chisquare.core(third, degrees, shape, kind)


@Sampler
def noncentral_f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    nonc: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """A noncentral chi-square number over a chi-square number, each over its degrees of freedom.

    Shapes: the parameters broadcast to `shape`, which is their own by default.
    Types:  floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: mixtures, Johnson, Kotz & Balakrishnan, Univariate Distributions.

    >>> import rune
    >>> rune.random.noncentral_f(rune.random.key(0), 3.0, 20.0, 2.0, (2,))
    Array([0.52072805, 4.228178  ], f32[2], cpu:0)
    """
    kind, shape, (num, den, offset) = real_arguments("noncentral_f", shape, dtype, dfnum, dfden, nonc)
    first, second = split(single_key("noncentral_f", key))
    above = noncentral_chisquare.core(first, num, offset, shape, kind) / num
    return above / (chisquare.core(second, den, shape, kind) / den)
