"""Choosing and shuffling: permutation, choice, categorical.

A shuffle sorts by random words, as JAX does, and gives the same permutation. The sort is a stable
radix sort, one bit at a time, in a loop with one step for each bit of a word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import dims, dtypes, ops
from rune.array import Array
from rune.control import fori_loop
from rune.core.interpreter import literal, literal_like, type_of
from rune.core.types import Shape
from rune.dims import Dim, Size, UndecidedComparison, product
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import laid_out
from rune.numpy.arguments import value as value_of
from rune.ops.conventions import normalised_axis
from rune.random.inverses import gumbel
from rune.random.keys import Key, single_key, split, static_shape
from rune.random.ordered import random_bits
from rune.random.sampler import Sampler, in_dtype, real_kind, shape_for, shape_of, with_static
from rune.random.streams import take_key
from rune.random.uniforms import UNSIGNED, randint, unit_interval
from rune.sharding.shardings import Sharding
from rune.transforms.batching.vmap import vmap
from rune.typing import ArrayLike

LAST_WORD = (1 << 32) - 1


# --- sorting ----------------------------------------------------------------------------------


def stable_order(words: Array) -> Array:
    """The positions of unsigned integers in ascending order; equal ones keep their order.

    Shapes: words [N] -> i32[N].
    """
    count, kind = words.shape[0], words.dtype
    positions = ops.iota(shape=(count,), axis=0, dtype=dtypes.i32)
    one = literal(1, kind)

    def by_bit(bit: Array, order: Array) -> Array:
        is_set = ops.logical_and(ops.shr(words[order], ops.convert(bit, dtype=kind)), one)
        is_clear = 1 - ops.convert(is_set, dtype=dtypes.i32)
        before = rnp.cumsum(is_clear) - is_clear  # number of clear bits in front of each
        after = rnp.sum(is_clear) + positions - before
        return rnp.zeros_like(order).at[rnp.where(is_clear == 1, before, after)].set(order)

    return fori_loop(0, kind.itemsize * 8, by_bit, positions)


def _descending(x: Array) -> Array:
    """Unsigned integers that ascend where floats descend."""
    real = x if x.dtype in (dtypes.f32, dtypes.f64) else x.astype(dtypes.f32)
    word_dtype = UNSIGNED[real.dtype.itemsize * 8]
    bits = ops.bitcast(real + 0.0, dtype=word_dtype)  # -0 becomes 0
    top = literal(1 << (8 * word_dtype.itemsize - 1), word_dtype)
    is_negative = ops.ne(ops.logical_and(bits, top), literal_like(0, bits))
    return ops.select(is_negative, bits, ops.logical_not(ops.logical_or(bits, top)))


def _largest(x: Array, count: int) -> Array:
    """The positions of the `count` largest numbers along the last axis, the largest first."""
    flat = x.reshape(-1, x.shape[-1])
    order = vmap(lambda row: stable_order(_descending(row)))(flat)
    return order[:, :count].reshape(*x.shape[:-1], count)


# --- permutation ------------------------------------------------------------------------------


def _shuffled(key: Key, x: Array, axis: int) -> Array:
    """The elements along an axis, with each line shuffled separately."""
    # Words may be equal, which leaves a bias; a second round makes it negligible.
    for _ in range(_rounds(product(x.shape))):
        key, round_key = split(key)
        words = random_bits(round_key, shape=x.shape, dtype=dtypes.u32)
        x = _sorted_by(words, x, axis)
    return x


def _rounds(size: Size) -> int:
    """The least n >= 1 with size³ <= LAST_WORDⁿ.

    Errors: DimensionError where the range of a symbolic size does not determine it.
    """
    rounds = 1
    try:
        while size > int(LAST_WORD ** (rounds / 3)):
            rounds += 1
    except UndecidedComparison as error:
        error.during("permutation", f"{size} elements")
        raise
    return rounds


def _static_size(name: str, shape: Shape) -> int:
    """How many elements a shape has. Errors: ShapeError where a size is symbolic."""
    size = product(shape)
    if not isinstance(size, int):
        raise ShapeError(f"{name}: cannot choose among {size} elements (a known size required)")
    return size


def _sorted_by(words: Array, x: Array, axis: int) -> Array:
    if x.ndim == 1:
        return x[stable_order(words)]
    if 0 in x.shape:
        return x
    keys, lines = (rnp.moveaxis(v, axis, -1) for v in (words, x))
    lines_in_order = vmap(lambda k, line: line[stable_order(k)])(
        keys.reshape(-1, keys.shape[-1]), lines.reshape(-1, lines.shape[-1])
    )
    return rnp.moveaxis(lines_in_order.reshape(lines.shape), -1, axis)


@with_static("count")
def _positions(key: ArrayLike, count: int) -> Array:
    return _shuffled(single_key("permutation", key), rnp.arange(count), 0)


@with_static("axis", "independent")
def _permuted(key: Array, x: Array, axis: int, independent: bool) -> Array:
    checked_key = single_key("permutation", key)
    if independent or x.ndim == 1:
        return _shuffled(checked_key, x, axis)
    return rnp.take(x, _shuffled(checked_key, rnp.arange(x.shape[axis]), 0), axis)


def permutation(
    key: ArrayLike | None = None,
    x: Any = None,
    axis: int = 0,
    independent: bool = False,
    *,
    name: str | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """The slices of `x` along an axis in a random order; of range(x) for an integer.

    independent:  every line along the axis gets its own order.
    out_sharding:  the sharding of the result.
    Cost:   a radix sort: 32 passes over the elements, or 64 for more than 2000.
    Shapes: x any, unchanged; [x] for an integer. Types: that of `x`; i32 for an integer.
    Errors: ArgumentError if `x` is neither an array nor an integer; AxisError.
    Source: sorting by random words, as in JAX.

    >>> import rune
    >>> rune.random.permutation(rune.random.key(0), 5)
    Array([0, 1, 4, 3, 2], i32[5], cpu:0)
    """
    draw_key = take_key("permutation", key, name)
    if _is_size(x):
        return laid_out(_positions(draw_key, _as_size(x)), out_sharding)
    array = _array("permutation", x)
    place = normalised_axis("permutation", axis, type_of(array))
    return laid_out(_permuted(draw_key, array, place, bool(independent)), out_sharding)


def _is_size(x: object) -> bool:
    return isinstance(x, int | np.integer | Dim) and not isinstance(x, bool)


def _as_size(x: int | Dim) -> Size:
    return x if isinstance(x, Dim) else int(x)


def _array(name: str, x: ArrayLike) -> Array:
    """Errors: ArgumentError if there is no axis to choose along."""
    array = None if x is None else value_of(name, x)
    if array is None or not type_of(array).shape:
        description = type(x).__name__ if array is None else type_of(array)
        raise ArgumentError(f"{name}: cannot use {description} (an array, or a Python integer, required)")
    return array


# --- choice -----------------------------------------------------------------------------------


@with_static("count", "mode")
def _without_replacement(key: Array, p: Array, count: int, mode: str | None) -> Array:
    """Positions without replacement: the largest values of log p plus Gumbel noise (Vieira)."""
    noisy = gumbel.core(key, p.shape, p.dtype, mode) + rnp.log(p)
    return _largest(noisy, count)


@Sampler
def _with_replacement(key: Array, p: Array, shape: Shape) -> Array:
    """Positions with replacement: where a uniform number falls among the cumulative sums of p."""
    sums = rnp.cumsum(p)
    targets = sums[-1] * (1.0 - unit_interval(single_key("choice", key), shape, p.dtype))
    (size,) = p.shape
    most = dims.bounds(size)[1]
    halvings = 31 if most is None else most.bit_length()

    def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) // 2
        is_below = (sums[rnp.clip(middle, 0, size - 1)] < targets) & (low < high)
        return rnp.where(is_below, middle + 1, low), rnp.where(is_below, high, middle)

    first = rnp.zeros(shape, rnp.int32), rnp.full(shape, size, rnp.int32)
    return fori_loop(0, halvings, halve, first)[0]


def choice(
    key: ArrayLike | None = None,
    a: Any = None,
    shape: int | Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
    *,
    name: str | None = None,
) -> Array:
    """Slices of `a` along an axis, chosen at random; of range(a) for an integer.

    shape:    how many, in place of the axis.
    replace:  whether a slice may be chosen more than once.
    p:        probabilities, one for each; all are equal by default.
    mode:     as in `gumbel`, without replacement and with p.
    Shapes: a [*A, N, *B], p [N] -> [*A, *shape, *B].
    Types:  that of `a`; the default integer dtype for a number.
    Errors: ArgumentError for no elements, or for too few of them without replacement;
            ShapeError for p of another shape.
    Source: sorting by random words, as in JAX.

    >>> import rune, rune.numpy as rnp
    >>> rune.random.choice(rune.random.key(0), 5, (3,), replace=False)
    Array([0, 1, 4], i32[3], cpu:0)
    """
    is_range = _is_size(a)
    source = None if is_range else _array("choice", a)
    place = 0 if is_range else normalised_axis("choice", axis, type_of(source))
    size = _as_size(a) if is_range else type_of(source).shape[place]
    draw_shape = static_shape("choice", shape)
    count = _static_size("choice", draw_shape)
    _check_choice(size, count, replace, p)
    draw_key = take_key("choice", key, name)
    if p is not None:
        weights = in_dtype("choice", p, real_kind("choice", p))
        indices = (
            _with_replacement(draw_key, weights, draw_shape)
            if replace
            else _without_replacement(draw_key, weights, count, mode).reshape(draw_shape)
        )
    elif replace:
        indices = randint(draw_key, draw_shape, 0, size)
    elif is_range:
        return permutation(draw_key, size)[:count].reshape(draw_shape)
    else:
        shuffle = permutation(draw_key, source, place)
        sample = rnp.moveaxis(rnp.moveaxis(shuffle, place, 0)[:count], 0, place)
        before, after = sample.shape[:place], sample.shape[place + 1 :]
        return sample.reshape(*before, *draw_shape, *after)
    return indices.astype(int) if is_range else rnp.take(source, indices, place)


def _check_choice(size: Size, count: int, replace: bool, p: ArrayLike | None) -> None:
    if count and size <= 0:
        raise ArgumentError("choice: cannot choose from nothing (a has no elements)")
    if not replace and count > size:
        raise ArgumentError(
            f"choice: cannot choose {count} of {size} without replacement", hint="use replace=True, or a smaller shape"
        )
    if p is not None and shape_of("choice", p) != (size,):
        raise ShapeError(f"choice: cannot use p of shape {shape_of('choice', p)} (({size},) required)")


# --- categorical ------------------------------------------------------------------------------


@with_static("axis", "replace", "mode")
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
) -> Array:
    """Indices of outcomes whose probabilities are softmax(logits) along an axis.

    Shapes:   logits without the axis broadcast to `shape`, which is that by default.
    Types:    real logits -> i32.
    replace:  if false, the outcomes along the leading axes of `shape` are all different.
    mode:     as in `gumbel`: "high" for outcomes less likely than 1e-7.
    Errors: ShapeError; ArgumentError for more different outcomes than there are.
    Source: Kool, van Hoof & Welling 2019, arXiv:1903.06059.

    >>> import rune, rune.numpy as rnp
    >>> rune.random.categorical(rune.random.key(0), rnp.array([0.0, 1.0, 2.0]), shape=(4,))
    Array([1, 1, 2, 1], i32[4], cpu:0)
    """
    x = _array("categorical", logits)
    kind = real_kind("categorical", x)
    place = normalised_axis("categorical", axis, type_of(x))
    x = rnp.moveaxis(in_dtype("categorical", x, kind), place, -1)
    batch, outcomes = x.shape[:-1], x.shape[-1]
    full_shape = shape_for("categorical", shape, batch)
    prefix = full_shape[: len(full_shape) - len(batch)]
    place = normalised_axis("categorical", axis, type_of(logits))
    if replace:
        noise_shape = list(full_shape[len(prefix) :])
        noise_shape.insert(place, outcomes)
        noise = gumbel.core(key, (*prefix, *noise_shape), kind, mode)
        return rnp.argmax(rnp.moveaxis(noise, len(prefix) + place, -1) + x, axis=-1)
    count = _static_size("categorical", prefix)
    if count > outcomes:
        raise ArgumentError(f"categorical: cannot draw {count} different outcomes of {outcomes}")
    shape_of_logits = list(batch)
    shape_of_logits.insert(place, outcomes)
    noise = rnp.moveaxis(gumbel.core(key, tuple(shape_of_logits), kind, mode), place, -1)
    return rnp.moveaxis(_largest(x + noise, count), -1, 0).reshape(full_shape)
