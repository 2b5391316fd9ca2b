"""Bits and uniform distributions: numbers in an interval, integers in a range, coin flips.

`bits` and `uniform` are JAX's, bit for bit. A float is made from mantissa bits only: a number in
[1, 2) minus 1, so all are multiples of one step, and 1 itself never occurs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import literal, literal_like, type_of
from rune.core.types import Shape
from rune.errors import ArgumentError, DtypeError
from rune.numpy.arguments import value as value_of
from rune.ops.promote import broadcast_to
from rune.ops.random import BITS
from rune.ops.scalars import int_bounds
from rune.random.keys import single_key, split
from rune.random.ordered import random_bits
from rune.random.sampler import Sampler, floating, integral, joint_shape, spread, with_static
from rune.typing import ArrayLike, DTypeLike

UNSIGNED = {d.itemsize * 8: d for d in BITS}


@Sampler
def bits(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Random bits as unsigned integers.

    Shapes: `shape`.
    Types:  u8, u16, u32 (the default) or u64.
    Errors: DtypeError for any other dtype.
    Source: Threefry, Salmon, Moraes, Dror & Shaw 2011, SC11.

    >>> import rune
    >>> rune.random.bits(rune.random.key(42), (2,))
    Array([2098992034, 2919706841], u32[2], cpu:0)
    """
    checked_key = single_key("bits", key)
    kind = dtypes.canonical(dtypes.u64) if dtype is None else dtypes.as_dtype(dtype)
    if kind not in BITS:
        raise DtypeError(f"bits: cannot draw {dtypes.short(kind)} (unsigned dtype required)")
    return random_bits(checked_key, shape=shape, dtype=kind)


@Sampler
def uniform(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0
) -> Array:
    """Uniformly distributed numbers in [minval, maxval).

    Shapes: minval and maxval broadcast to `shape`; () becomes theirs if all their axes are 1.
    Types:  floating, f32 by default.
    Errors: DtypeError, ShapeError.
    Source: Threefry, Salmon, Moraes, Dror & Shaw 2011, SC11.

    >>> import rune
    >>> rune.random.uniform(rune.random.key(0), (3,))
    Array([0.947667  , 0.9785799 , 0.33229148], f32[3], cpu:0)
    """
    kind = floating("uniform", dtype, minval, maxval)
    if shape == () and set(axes := joint_shape("uniform", None, minval, maxval)) == {1}:
        shape = axes
    joint_shape("uniform", shape, minval, maxval)
    unit = unit_interval(key, shape, kind)
    if _is(minval, 0.0) and _is(maxval, 1.0):
        return unit
    low, high = (spread("uniform", v, kind, shape) for v in (minval, maxval))
    # Rounding may take the product to just below the lower bound.
    return ops.max(low, ops.add(ops.mul(unit, ops.sub(high, low)), low))


def _is(value: ArrayLike, number: float) -> bool:
    return isinstance(value, int | float) and value == number


def unit_interval(key: ArrayLike, shape: Shape, dtype: np.dtype) -> Any:
    """Numbers in [0, 1) of a floating dtype."""
    info = rnp.finfo(dtype)
    word_bits = 8 if info.nmant < 8 else info.bits  # bits per number
    raw = random_bits(single_key("uniform", key), shape=shape, dtype=UNSIGNED[word_bits])
    raw = ops.cast(raw, UNSIGNED[info.bits])
    word_dtype = type_of(raw).dtype
    mantissa = ops.shr(raw, literal(word_bits - info.nmant, word_dtype))
    one = np.ones((), dtype).view(word_dtype)
    return ops.sub(ops.bitcast(ops.logical_or(mantissa, one), dtype=dtype), literal(1, dtype))


def pairs(key: ArrayLike, shape: Shape, dtype: np.dtype) -> tuple[Array, Array]:
    """Two numbers in [0, 1) for each element, independent of the other elements."""
    numbers = unit_interval(key, (*shape, 2), dtype)
    return numbers[..., 0], numbers[..., 1]


@Sampler
def randint(
    key: ArrayLike, shape: Shape, minval: ArrayLike, maxval: ArrayLike, dtype: DTypeLike | None = None
) -> Array:
    """Integers in [minval, maxval), almost equally likely.

    Twice the bits of the dtype are reduced to the range, so the most likely integer is more likely
    than the least likely one by at most (maxval - minval) / 2**64, or 2**128 for 64 bits.
    Shapes: minval and maxval broadcast to `shape`. An empty range gives minval.
    Types:  integer, i32 by default; narrower ones are drawn as i32.
    Errors: DtypeError, ShapeError.
    Source: Threefry, Salmon, Moraes, Dror & Shaw 2011, SC11.

    >>> import rune
    >>> rune.random.randint(rune.random.key(0), (4,), 0, 10)
    Array([9, 0, 2, 3], i32[4], cpu:0)
    """
    kind = integral("randint", dtype)
    joint_shape("randint", shape, minval, maxval)
    wide = dtypes.i32 if kind.itemsize < 4 else kind
    low, high = (_bound(v, shape, wide) for v in (minval, maxval))
    if wide != kind:
        least, most = int_bounds(kind)
        low, high = _clipped(low, least, most), _clipped(high, least, most + 1)
    return ops.cast(_in_range(key, shape, low, high, wide), kind)


def _bound(value: ArrayLike, shape: Shape, dtype: np.dtype) -> Array:
    """A bound as integers of the shape, or of rank 0; a fraction is cut off."""
    bound = value_of("randint", value)
    if type_of(bound).dtype not in dtypes.INTEGER:
        bound = ops.convert(bound, dtype=dtype)
    return broadcast_to("randint", bound, shape) if type_of(bound).shape else bound


def _clipped(value: ArrayLike, low: int, high: int) -> Array:
    """Integers, for bounds that their dtype can represent."""
    least, most = int_bounds(type_of(value).dtype)
    return ops.min(ops.max(value, literal_like(max(low, least), value)), literal_like(min(high, most), value))


def _in_range(key: ArrayLike, shape: Shape, minval: ArrayLike, maxval: ArrayLike, dtype: np.dtype) -> Array:
    word_dtype = UNSIGNED[dtype.itemsize * 8]
    one = literal(1, word_dtype)
    least, most = int_bounds(dtype)
    low, high = (ops.convert(_clipped(v, least, most), dtype=dtype) for v in (minval, maxval))
    is_some = ops.lt(low, high)
    span = ops.convert(ops.sub(high, low), dtype=word_dtype)
    span = ops.select(is_some, span, one)
    # One more where maxval is past the last integer; past the last unsigned one it wraps to 0, and
    # a remainder by 0 leaves a number unchanged.
    last = literal_like(min(most, int_bounds(type_of(maxval).dtype)[1]), maxval)
    is_past = ops.logical_and(ops.gt(maxval, last), is_some)
    span = ops.select(is_past, ops.add(span, one), span)
    first, second = split(single_key("randint", key))
    higher, lower = (bits.core(k, shape, word_dtype) for k in (first, second))
    step = ops.rem(literal(1 << (4 * word_dtype.itemsize), word_dtype), span)
    step = ops.rem(ops.mul(step, step), span)  # 2**bits modulo the span
    offset = ops.add(ops.mul(ops.rem(higher, span), step), ops.rem(lower, span))
    return ops.add(low, ops.convert(ops.rem(offset, span), dtype=dtype))


@with_static("mode")
def bernoulli(key: ArrayLike, p: ArrayLike = 0.5, shape: Shape | None = None, mode: str = "low") -> Array:
    """True with probability p.

    Shapes: p broadcasts to `shape`, which is that of p by default.
    Types:  bool.
    mode:   "high" takes twice the bits, for probabilities below 1e-6.
    Errors: DtypeError for p that is not floating; ArgumentError for any other mode.
    Source: Threefry, Salmon, Moraes, Dror & Shaw 2011, SC11.

    >>> import rune
    >>> rune.random.bernoulli(rune.random.key(0), 0.5, (3,))
    Array([False, False,  True], bool[3], cpu:0)
    """
    if mode not in ("low", "high"):
        raise ArgumentError(f"bernoulli: cannot use mode={mode!r} ('low', 'high')")
    kind = type_of(value_of("bernoulli", p)).dtype
    if kind not in dtypes.FLOATING:
        raise DtypeError(f"bernoulli: cannot use p of {dtypes.short(kind)} (floating required)")
    shape = joint_shape("bernoulli", shape, p)
    chance = spread("bernoulli", p, kind, shape)
    if mode == "low":
        return ops.lt(unit_interval(key, shape, kind), chance)
    coarse, fine = unit_interval(key, (2, *shape), kind)
    # The remainder of p after the first number has more bits than that number.
    return fine * 2.0 ** -rnp.finfo(kind).nmant < chance - coarse


@Sampler
def rademacher(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """-1 or 1, equally likely.

    Shapes: `shape`.
    Types:  any numeric one, i32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind.
    Source: Threefry, Salmon, Moraes, Dror & Shaw 2011, SC11.

    >>> import rune
    >>> rune.random.rademacher(rune.random.key(0), (4,))
    Array([-1, -1,  1,  1], i32[4], cpu:0)
    """
    kind = dtypes.canonical(dtypes.i64) if dtype is None else dtypes.as_dtype(dtype)
    heads = bernoulli.core(key, 0.5, shape)
    return ops.select(heads, literal(1, kind), literal(-1, kind))
