"""`jax.interpreters.batching`: batch rules of users' primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rune import absent
from rune.as_jax.primitive import AxisData, Primitive
from rune.as_jax.rules import axis_primitive_batchers, fancy_primitive_batchers, primitive_batchers
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.errors import ArgumentError
from rune.numpy import broadcast_to, moveaxis
from rune.transforms.batching.lane_classes import CLASSES, LaneClass

not_mapped = None
Dims = Sequence[int | None]


def broadcast(x: Any, size: Size, axis: int, mesh_axis: None = None) -> Any:
    """The value repeated in `size` lanes along a new axis."""
    shape = type_of(x).shape
    position = axis % (len(shape) + 1)
    return moveaxis(broadcast_to(x, (size, *shape)), 0, position)


def bdim_at_front(x: Any, dim: int | None, size: Size, mesh_axis: None = None) -> Any:
    """The value with its batch axis first; repeated in each lane if it has none."""
    return broadcast(x, size, 0) if dim is None else moveaxis(x, dim, 0)


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., object],
    from_elt: Callable[..., object],
    make_iota: Callable[..., object] | None,
) -> None:
    """Declare how objects of a class, a tree, lie in lanes under `vmap` (MuJoCo MJX).

    Errors: ArgumentError for axes or sizes other than integers.
    """
    if (spec_type, axis_size_type, make_iota) != (int, int, None):
        raise ArgumentError(f"register_vmappable: cannot split a {data_type.__name__} by other axes than integers")
    CLASSES[data_type] = LaneClass(to_elt, from_elt)


def unregister_vmappable(data_type: type) -> None:
    """As in JAX, it does nothing: the class stays declared."""


def defvectorized(primitive: Primitive) -> None:
    """Declare that it acts on each index of any axis alike, so a batch axis is one more axis."""

    def rule(values: Sequence[Any], dims: Dims, **params: Any) -> Any:
        return primitive.bind(*values, **params), dims[0]

    primitive_batchers[primitive] = rule


def defbroadcasting(primitive: Primitive) -> None:
    """Declare that it broadcasts operands as NumPy does, so a batch axis is one more axis."""

    def rule(axis: AxisData, values: Sequence[Any], dims: Dims, **params: Any) -> Any:
        ranks = [type_of(x).ndim - (d is not None) for x, d in zip(values, dims, strict=True)]
        operands = [_align(x, d, max(ranks) - r) for x, d, r in zip(values, dims, ranks, strict=True)]
        out = primitive.bind(*operands, **params)
        return (out, (0,) * len(out)) if primitive.multiple_results else (out, 0)

    fancy_primitive_batchers[primitive] = rule


def _align(x: Any, dim: int | None, missing: int) -> Any:
    """The batch axis first, followed by `missing` axes of size 1, up to the largest rank."""
    x = bdim_at_front(x, dim, 1)
    shape = type_of(x).shape
    return x.reshape((shape[0], *(1,) * missing, *shape[1:]))


def defreducer(primitive: Primitive) -> None:
    """Declare that it reduces the axes in its parameter `axes`, and leaves all others."""

    def rule(values: Sequence[Any], dims: Dims, *, axes: Sequence[int], **params: Any) -> Any:
        x = bdim_at_front(values[0], dims[0], 1)
        return primitive.bind(x, axes=tuple(a + 1 for a in axes), **params), 0

    primitive_batchers[primitive] = rule


__getattr__ = absent.of(__name__)
