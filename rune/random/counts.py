"""Counts of successes and of events: poisson, binomial, multinomial.

For small means, events are counted one by one; for large means, numbers are drawn by rejection from
a transformed hat. The loops run until every element is done. A finished count no longer changes,
but with rejection an element keeps the last proposal that it accepts, as in JAX, so its number also
depends on how long the others need. Both loops use the same key, as each element needs only one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import rune.numpy as rnp
from rune import dtypes, ops
from rune.array import Array
from rune.control import scan, while_loop
from rune.core.interpreter import type_of
from rune.core.types import Shape
from rune.errors import ShapeError
from rune.random.keys import Key, clone, single_key, split
from rune.random.sampler import (
    Sampler,
    floating,
    in_dtype,
    integral,
    joint_shape,
    numeric,
    real_kind,
    shape_for,
    shape_of,
    with_static,
)
from rune.random.special import log_poisson_density, stirling_remainder
from rune.random.uniforms import unit_interval
from rune.typing import ArrayLike, DTypeLike

FEW = 10.0  # below this mean events are counted one by one
F32 = dtypes.f32


# --- poisson ----------------------------------------------------------------------------------


class _Waiting(NamedTuple):
    """The number of events so far, and minus the time that they took."""

    key: Key
    count: Any
    log_product: Array


def _by_waiting(key: Key, lam: Array) -> Array:
    """The number of events in a time of lam, from exponential waiting times (Knuth)."""

    def step(s: _Waiting) -> _Waiting:
        next_key, draw_key = split(s.key)
        count = rnp.where(s.log_product > -lam, s.count + 1.0, s.count)
        return _Waiting(next_key, count, s.log_product + rnp.log(unit_interval(draw_key, lam.shape, F32)))

    zero = rnp.zeros_like(lam)
    final = while_loop(lambda s: rnp.any(s.log_product > -lam), step, _Waiting(key, zero, zero))
    return final.count - 1.0


class _Trying(NamedTuple):
    """The number accepted for each element, and which elements are done."""

    key: Key
    draw: Array
    is_done: Array


def _by_rejection(key: Key, shape: Shape, dtype: np.dtype, propose: Callable[..., Array]) -> Array:
    """Call propose(u - 1/2, v) -> (number, accepted) until all elements have accepted one."""

    def step(s: _Trying) -> _Trying:
        next_key, first, second = clone(split(clone(s.key), 3))  # the other loop has the same keys
        u, v = (unit_interval(k, shape, dtype) for k in (first, second))
        number, is_accepted = propose(u - 0.5, v)
        return _Trying(next_key, rnp.where(is_accepted, number, s.draw), s.is_done | is_accepted)

    no_draw = rnp.full(shape, -1.0, dtype)
    first = _Trying(key, no_draw, rnp.zeros(shape, bool))
    return while_loop(lambda s: rnp.any(~s.is_done), step, first).draw


def _poisson_proposal(lam: ArrayLike) -> Any:
    """Source: Hörmann 1993, Insurance: Mathematics and Economics 12(1), algorithm PTRS."""
    b = 0.931 + 2.53 * rnp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2.0)

    def propose(u: Array, v: ArrayLike) -> tuple[Array, Array]:
        inner = 0.5 - abs(u)
        k = rnp.floor((2.0 * a / inner + b) * u + lam + 0.43)
        hat = rnp.log(v * inverse_alpha / (a / (inner * inner) + b))
        is_sure = (inner >= 0.07) & (v <= v_r)
        is_out = (k < 0.0) | ((inner < 0.013) & (v > inner))
        is_under = hat <= log_poisson_density(rnp.maximum(k, 0.0), lam)
        return k, is_sure | (~is_out & is_under)

    return propose


@Sampler
def poisson(key: ArrayLike, lam: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """The number of events in a time in which `lam` occur on average.

    Shapes: lam broadcasts to `shape`, which is its own by default.
    Types:  integer, i32 by default. -1 for a lam that is negative, infinite or NaN.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: Hörmann 1993, Insurance: Mathematics and Economics 12(1), algorithm PTRS.

    >>> import rune
    >>> rune.random.poisson(rune.random.key(0), 4.0, (3,))
    Array([0, 1, 5], i32[3], cpu:0)
    """
    kind = integral("poisson", dtype)
    shape = joint_shape("poisson", shape, lam)
    checked_key = single_key("poisson", key)
    mean = rnp.broadcast_to(in_dtype("poisson", lam, F32), shape)
    is_small, is_large = mean < FEW, (mean >= FEW) & rnp.isfinite(mean)
    small_count = _by_waiting(checked_key, rnp.where(is_small, mean, 0.0))
    safe = rnp.where(is_large, mean, 1e5)
    large_count = _by_rejection(checked_key, shape, F32, _poisson_proposal(safe))
    count = rnp.where(is_small, rnp.where(mean < 0.0, -1.0, small_count), large_count)
    valid = rnp.where(mean == 0.0, 0.0, rnp.where(is_small | is_large, count, -1.0))
    return ops.convert(valid, dtype=kind)


# --- binomial ---------------------------------------------------------------------------------


class _Skipping(NamedTuple):
    """Successes so far, and the number of trials up to the last success."""

    key: Key
    count: Any
    trials: Array


def _by_skipping(key: Key, n: Array, p: Array) -> Array:
    """The number of successes in n trials, from geometric waiting times."""
    log_failure = rnp.log1p(-p)

    def step(s: _Skipping) -> _Skipping:
        draw_key, next_key = split(s.key)
        count = rnp.where(s.trials <= n, s.count + 1.0, s.count)
        waiting_time = rnp.ceil(rnp.log(unit_interval(draw_key, n.shape, n.dtype)) / log_failure)
        return _Skipping(next_key, count, s.trials + waiting_time)

    zero = rnp.zeros_like(n)
    return while_loop(lambda s: rnp.any(s.trials <= n), step, _Skipping(key, zero, zero)).count - 1.0


def _binomial_proposal(n: Array, p: Array) -> Any:
    """Source: Hörmann 1993, Journal of Statistical Computation and Simulation 46, BTRS."""
    deviation = rnp.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    odds = p / (1.0 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = rnp.floor((n + 1.0) * p)

    def propose(u: Array, v: ArrayLike) -> tuple[Array, Array]:
        inner = 0.5 - abs(u)
        k = rnp.floor((2.0 * a / inner + b) * u + c)
        is_sure = (inner >= 0.07) & (v <= v_r)
        is_out = (k < 0.0) | (k > n)
        hat = rnp.log(v * alpha / (a / (inner * inner) + b))
        return k, is_sure | (~is_out & (hat <= _log_ratio(rnp.clip(k, 0.0, n), m, n, odds)))

    return propose


def _log_ratio(k: Array, m: Array, n: Array, odds: Array) -> Array:
    """The logarithm of the probability of k successes, relative to the most likely number m."""
    return (
        (m + 0.5) * rnp.log((m + 1.0) / (odds * (n - m + 1.0)))
        + (n + 1.0) * rnp.log((n - m + 1.0) / (n - k + 1.0))
        + (k + 0.5) * rnp.log(odds * (n - k + 1.0) / (k + 1.0))
        + stirling_remainder(m)
        + stirling_remainder(n - m)
        - stirling_remainder(k)
        - stirling_remainder(n - k)
    )


@Sampler
def binomial(
    key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """The number of successes in n trials of probability p, as floats.

    Shapes: n and p broadcast to `shape`, which is their own by default.
    Types:  floating, f32 by default. NaN for n < 0, or p outside 0…1 or NaN; the fractional part of
            n is cut off.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: Hörmann 1993, Journal of Statistical Computation and Simulation 46, BTRS.

    >>> import rune
    >>> rune.random.binomial(rune.random.key(0), 10, 0.3, (3,))
    Array([2., 2., 1.], f32[3], cpu:0)
    """
    kind = floating("binomial", dtype, p)
    shape = joint_shape("binomial", shape, n, p)
    real = real_kind("binomial", p)
    count, chance = (rnp.broadcast_to(in_dtype("binomial", v, real), shape) for v in (n, p))
    return ops.convert(_binomial(single_key("binomial", key), count, chance), dtype=kind)


def _binomial(key: Key, n: Any, p: Array) -> Array:
    is_rare = p < 0.5
    q = rnp.where(is_rare, p, 1.0 - p)
    is_valid = (n >= 0.0) & (q >= 0.0)
    is_finite = is_valid & rnp.isfinite(n)
    trials = rnp.floor(rnp.where(is_finite, n, 0.0))
    q = rnp.where(is_valid, q, 0.01)
    is_small = trials * q <= FEW
    small_count = _by_skipping(key, rnp.where(is_small, trials, 0.0), q)
    proposal = _binomial_proposal(rnp.where(is_small, 1e4, trials), rnp.where(is_small, 0.5, q))
    large_count = _by_rejection(key, n.shape, n.dtype, proposal)
    successes = rnp.where(is_small, small_count, large_count)
    count = rnp.where(is_rare, successes, trials - successes)
    return rnp.where(is_valid, rnp.where(is_finite, count, rnp.inf), rnp.nan)


@with_static("unroll")
def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    unroll: int = 1,
) -> Array:
    """The number of times that each outcome, of probabilities p, occurs in n trials.

    Shapes: p [*B, K]; n and B broadcast to all but the last axis of `shape`, which is that of p by
            default; the last one is K.
    Types:  floating or of integers, f32 by default.
    unroll: as in rune.scan, over the outcomes.
    Errors: ShapeError.
    Source: Hörmann 1993, Journal of Statistical Computation and Simulation 46, BTRS.

    >>> import rune, rune.numpy as rnp
    >>> rune.random.multinomial(rune.random.key(0), 10.0, rnp.array([0.2, 0.3, 0.5]))
    Array([1., 1., 8.], f32[3], cpu:0)
    """
    kind = numeric("multinomial", dtype, n, p)
    params = shape_of("multinomial", p)
    if not params:
        raise ShapeError("multinomial: cannot draw one outcome (p of rank 0)")
    full_shape = params if shape is None else shape_for("multinomial", shape, params)
    real = real_kind("multinomial", p)
    total = rnp.broadcast_to(in_dtype("multinomial", n, real), full_shape[:-1])
    chances = rnp.moveaxis(rnp.broadcast_to(in_dtype("multinomial", p, real), full_shape), -1, 0)
    remaining = rnp.flip(rnp.cumsum(rnp.flip(chances, 0), 0), 0)
    ratios = rnp.clip(chances / rnp.where(remaining == 0.0, 1.0, remaining), 0.0, 1.0)

    def outcome(trials: ArrayLike, step: tuple[Array, Key]) -> tuple[Any, Any]:
        ratio, one = step
        count = _binomial(one, trials, ratio)
        return trials - count, count

    keys = split(single_key("multinomial", key), type_of(ratios).shape[0])
    counts = scan(outcome, total, (ratios, keys), unroll=unroll)[1]
    return ops.convert(rnp.moveaxis(counts, 0, -1), dtype=kind)
