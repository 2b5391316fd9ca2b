"""Operations on pairs of arrays along one axis: cut, join, reshape, multiply by a vector."""

from __future__ import annotations

from collections.abc import Sequence

from rune.core.interpreter import literal, type_of
from rune.core.types import Shape
from rune.dims import Size
from rune.ops import movement, pairs
from rune.ops.family import broadcast, reshape
from rune.ops.movement import part
from rune.ops.pairs import Pair


def shape_of(x: Pair) -> Shape:
    """The shape that both parts have."""
    return type_of(x[0]).shape


def cut(x: Pair, axis: int, start: Size, limit: Size, stride: int = 1) -> Pair:
    """x[..., start:limit:stride, ...]."""
    real, imag = (part(v, axis, start, limit, stride) for v in x)
    return real, imag


def join(pieces: Sequence[Pair], axis: int) -> Pair:
    """The pieces one after the other along `axis`."""
    if len(pieces) == 1:
        return pieces[0]
    real, imag = (movement.concatenate(*part, axis=axis) for part in zip(*pieces, strict=True))
    return real, imag


def reverse(x: Pair, axis: int) -> Pair:
    """x[..., ::-1, ...]."""
    real, imag = (movement.reverse(v, axes=(axis,)) for v in x)
    return real, imag


def split_axis(x: Pair, axis: int, sizes: tuple[Size, ...], count: int = 1) -> Pair:
    """`count` axes from `axis` on, replaced by axes of these sizes."""
    shape = shape_of(x)
    split = (*shape[:axis], *sizes, *shape[axis + count :])
    real, imag = (v if split == shape else reshape(v, shape=split) for v in x)
    return real, imag


def lengthen(x: Pair, axis: int, size: Size) -> Pair:
    """x with zeros appended, up to `size`."""
    shape = shape_of(x)
    high = tuple(size - d if k == axis else 0 for k, d in enumerate(shape))
    zeros = (0,) * len(shape)
    zero = literal(0, type_of(x[0]).dtype)
    real, imag = (movement.pad(v, zero, low=zeros, high=high, interior=zeros) for v in x)
    return real, imag


def spread(factors: Pair, axes: tuple[int, ...], shape: Shape) -> Pair:
    """A pair whose axes stand at `axes` of `shape`, broadcast along the others."""
    real, imag = (broadcast(v, shape=shape, axes=axes) for v in factors)
    return real, imag


def times(x: Pair, factors: Pair, axis: int) -> Pair:
    """x times a vector along `axis`."""
    return pairs.mul(x, spread(factors, (axis,), shape_of(x)))
