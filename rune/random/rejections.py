"""Distributions that are drawn by rejection: vonmises, zipf, hypergeometric.

Proposals are drawn for all elements at once until each element has accepted one; an element keeps
the first one it accepts, so its number depends only on the key and its position. The loop takes few
steps, since the hats fit closely for all parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import dtypes, ops
from rune.array import Array
from rune.control import while_loop
from rune.core.types import Shape
from rune.errors import TransformError
from rune.ops.scalars import int_bounds
from rune.random.keys import Key, single_key, split
from rune.random.sampler import Sampler, in_dtype, integral, joint_shape, kind_of, real_arguments
from rune.random.special import stirling_remainder
from rune.random.uniforms import pairs
from rune.transforms.custom.jvp import custom_jvp
from rune.typing import ArrayLike, DTypeLike

Proposal = tuple[Any, Any]  # numbers, and which of them are accepted


class _Trying(NamedTuple):
    """The number accepted for each element, and which elements are done."""

    key: Key
    draw: Array
    is_done: Array


def until_accepted(key: Key, like: Array, propose: Callable[[Array, Array], Proposal]) -> Array:
    """Numbers of the shape and dtype of `like`; `propose` takes arrays in (0, 1] and [0, 1)."""

    def step(s: _Trying) -> _Trying:
        next_key, draw_key = split(s.key)
        first, second = pairs(draw_key, like.shape, like.dtype)
        number, is_accepted = propose(1.0 - first, second)
        return _Trying(next_key, rnp.where(s.is_done, s.draw, number), s.is_done | is_accepted)

    start = _Trying(key, rnp.zeros_like(like), rnp.zeros(like.shape, bool))
    return while_loop(lambda s: rnp.any(~s.is_done), step, start).draw


# --- vonmises ---------------------------------------------------------------------------------


@Sampler
def vonmises(
    key: ArrayLike, mu: ArrayLike, kappa: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Angles in -π…π, the normal distribution of the circle: density exp(kappa cos(x - mu)).

    Shapes: mu and kappa broadcast to `shape`, which is their own by default.
    Types:  floating, f32 by default. NaN for a kappa that is negative, infinite or NaN.
    Errors: TransformError for a derivative in kappa.
    Source: Best & Fisher 1979, Applied Statistics 28(2).

    >>> import rune
    >>> rune.random.vonmises(rune.random.key(0), 0.0, 4.0, (2,))
    Array([-0.26470196, -0.23029247], f32[2], cpu:0)
    """
    _, shape, parameters = real_arguments("vonmises", shape, dtype, mu, kappa)
    centre, k = (rnp.broadcast_to(v, shape) for v in parameters)
    angles = centre + _angles(single_key("vonmises", key), k)
    return angles - 2 * math.pi * ops.stop_gradient(rnp.round(angles / (2 * math.pi)))


@custom_jvp
def _angles(key: Key, kappa: Array) -> Array:
    """Angles around 0. The hat is a wrapped Cauchy distribution.

    With the paper's r: kappa (r - 1) is `excess`, which stays near 1/2…1 where r - 1 vanishes or
    grows without bound; 1 - cos(angle) is 2 `half`.
    """
    is_valid = (kappa >= 0.0) & rnp.isfinite(kappa)
    k = rnp.where(is_valid, kappa, 1.0)
    excess = 0.5 + 0.5 / (rnp.hypot(1.0, 2.0 * k) + 2.0 * k)

    def propose(u: ArrayLike, v: Array) -> Proposal:
        turn = math.pi * (v - 0.5)  # half of the proposed angle of the uniform distribution
        square = rnp.square(rnp.sin(turn))
        half = square / (1.0 + 2.0 * (k / excess) * (1.0 - square))
        c = excess + 2.0 * k * half
        angle = 2.0 * rnp.arcsin(rnp.sqrt(half))
        return rnp.copysign(angle, turn), rnp.log(u) <= 1.0 + rnp.log(c) - c

    return rnp.where(is_valid, until_accepted(key, k, propose), rnp.nan)


@_angles.defjvp
def _angles_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    raise TransformError(
        "vonmises: cannot differentiate in kappa (which proposal is accepted depends on it)",
        hint="differentiate in mu, and use rune.lax.stop_gradient(kappa)",
    )


# --- zipf -------------------------------------------------------------------------------------

MOST_A = 100.0  # from here on 2 has a probability below 2**-99, so only 1 is drawn


@Sampler
def zipf(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Integers k >= 1 with probability proportional to k**-a, for a > 1.

    Shapes: a broadcasts to `shape`, which is its own by default.
    Types:  integer, i32 by default, limited to its range. -1 for any other `a`.
    Source: Devroye 1986, Non-Uniform Random Variate Generation, X.6.1.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.

    >>> import rune
    >>> rune.random.zipf(rune.random.key(0), 2.0, (4,))
    Array([1, 2, 1, 1], i32[4], cpu:0)
    """
    kind = integral("zipf", dtype)
    _, shape, (exponent,) = real_arguments("zipf", shape, None, a)
    power = rnp.broadcast_to(ops.stop_gradient(exponent), shape)
    is_valid = power > 1.0
    less = rnp.where(is_valid, rnp.minimum(power, MOST_A), 2.0) - 1.0
    most = float(int_bounds(kind)[1])
    least = rnp.power(most, -less)  # a smaller uniform number would give an integer above `most`
    twice = rnp.expm1(less * math.log(2))

    def propose(u: Array, v: Array) -> Proposal:
        number = rnp.floor(rnp.power(least + (1.0 - least) * u, -1.0 / less))
        number = rnp.clip(number, 1.0, most)
        more = rnp.expm1(less * rnp.log1p(1.0 / number))
        return number, v * number * more * (1.0 + twice) <= twice * (1.0 + more)

    number = until_accepted(single_key("zipf", key), less, propose)
    return ops.convert(rnp.where(is_valid, number, -1.0), dtype=kind)


# --- hypergeometric ---------------------------------------------------------------------------

HAT_SLOPE, HAT_LEAST = 2 * math.sqrt(2 / math.e), 3 - 2 * math.sqrt(3 / math.e)


@Sampler
def hypergeometric(
    key: ArrayLike,
    ngood: ArrayLike,
    nbad: ArrayLike,
    nsample: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The number of good elements among `nsample` taken from ngood good and nbad bad ones.

    Shapes: the parameters broadcast to `shape`, which is their own by default.
    Types:  integer, i32 by default. -1 for numbers below 0, or more taken than there are.
            Numbers are counted in f32, exact up to 2**24; in f64 where a parameter has 64 bits.
    Source: Stadlober 1990, Journal of Computational and Applied Mathematics 31(1), HRUA*.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.

    >>> import rune
    >>> rune.random.hypergeometric(rune.random.key(0), 5, 8, 6, (4,))
    Array([2, 1, 3, 3], i32[4], cpu:0)
    """
    kind = integral("hypergeometric", dtype)
    shape = joint_shape("hypergeometric", shape, ngood, nbad, nsample)
    counts = (ngood, nbad, nsample)
    wide = {dtypes.f64, dtypes.i64, dtypes.u64} & {kind_of("hypergeometric", v) for v in counts}
    real = dtypes.f64 if wide else dtypes.canonical(dtypes.f64)
    numbers = (rnp.broadcast_to(ops.stop_gradient(in_dtype("hypergeometric", v, real)), shape) for v in counts)
    count = _good(single_key("hypergeometric", key), *map(rnp.floor, numbers))
    return ops.convert(count, dtype=kind)


def _good(key: Key, good: Array, bad: Array, sample_size: Array) -> Array:
    """The number of good elements in the sample.

    By symmetry, proposals count the rarer kind in the smaller part: the sample or the remainder.
    """
    total = good + bad
    is_valid = (good >= 0.0) & (bad >= 0.0) & (sample_size >= 0.0) & (sample_size <= total)
    rare, total, sample_size = (rnp.where(is_valid, v, 0.0) for v in (rnp.minimum(good, bad), total, sample_size))
    fewer = rnp.minimum(sample_size, total - sample_size)
    number = until_accepted(key, rare, _rare_proposal(rare, total - rare, fewer))
    number = rnp.where(good <= bad, number, fewer - number)
    return rnp.where(is_valid, rnp.where(fewer < sample_size, good - number, number), -1.0)


def _rare_proposal(rare: Array, common: Array, sample_size: Array) -> Callable[[Array, Array], Proposal]:
    """The ratio of uniforms around the mean; at most half of the elements are rare, or taken."""
    total = rare + common
    share = rare / rnp.maximum(total, 1.0)
    mean = sample_size * share
    variance = (total - sample_size) * mean * (1.0 - share) / rnp.maximum(total - 1.0, 1.0)
    width = HAT_SLOPE * rnp.sqrt(variance + 0.5) + HAT_LEAST
    mode = rnp.floor((sample_size + 1.0) * (rare + 1.0) / (total + 2.0))

    def propose(u: Array, v: Array) -> Proposal:
        number = rnp.floor(mean + 0.5 + width * (v - 0.5) / u)
        is_there = (number >= 0.0) & (number <= rnp.minimum(rare, sample_size))
        k = rnp.where(is_there, number, mode)
        likelihood = (
            _log_factorial_ratio(mode, k)
            + _log_factorial_ratio(rare - mode, rare - k)
            + _log_factorial_ratio(sample_size - mode, sample_size - k)
            + _log_factorial_ratio(common - sample_size + mode, common - sample_size + k)
        )
        return k, is_there & (2.0 * rnp.log(u) <= likelihood)

    return propose


def _log_factorial_ratio(m: Array, k: Array) -> Array:
    """log(m! / k!) + k - m for integers, by Stirling's formula, without cancellation."""
    near = (m + 0.5) * rnp.log1p((m - k) / (k + 1.0)) + (m - k) * rnp.log(k + 1.0)
    return near + stirling_remainder(m) - stirling_remainder(k)
