"""What is known of how a value is split along the Explicit axes of a mesh.

A layout has, for each axis of the array, the Explicit mesh axes that split it. A value may also be

    FREE     the same on all devices and on no mesh, as constants and new arrays are: it fits every
             layout
    UNKNOWN  nothing is known, so nothing is refused: cotangents, and results of operations without
             a rule

Layouts are beside the types, and not in them: types, and all that is remembered by type, are the
same with and without a mesh (decision 0171).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from enum import Enum

from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.types import ArrayType, split_text
from rune.core.values import Value
from rune.sharding import Mesh, PartitionSpec
from rune.sharding.memory import Spread
from rune.transforms.sharding.reshard import Layout, layout_of
from rune.transforms.tracers import ValueTracer


class Loose(Enum):
    """A value without a layout of its own."""

    FREE = "free"
    UNKNOWN = "unknown"


FREE, UNKNOWN = Loose.FREE, Loose.UNKNOWN
Known = Layout | Loose


def explicit_layout(mesh: Mesh, layout: Layout) -> Layout:
    """The layout without the mesh axes that are not Explicit."""
    explicit_axes = mesh.explicit_axes
    return tuple(tuple(n for n in names if n in explicit_axes) for names in layout)


def mesh_of(values: Sequence[Value]) -> Mesh | None:
    """The first mesh with Explicit axes that one of the values is on."""
    return next((mesh for mesh in map(_mesh_of, values) if mesh is not None), None)


def _mesh_of(value: Value) -> Mesh | None:
    if type(value) is Array:
        device = value.place.device
        return _explicit(device, value.type.ndim)[0] if isinstance(device, Spread) else None
    if not isinstance(value, ValueTracer):
        return None
    outer = value.underlying()
    return getattr(value.interpreter, "laid_out_on", None) if outer is None else _mesh_of(outer)


@functools.lru_cache(maxsize=4096)
def _explicit(devices: Spread, ndim: int) -> tuple[Mesh | None, Layout]:
    """The mesh of these devices, None without Explicit axes, and the layout of arrays on them."""
    mesh = devices.sharding.mesh
    layout = explicit_layout(mesh, layout_of(devices.sharding.spec, ndim))
    return (mesh if mesh.explicit_axes else None), layout


def known_on(mesh: Mesh, value: Value) -> Known:
    """What is known of a value of any interpreter on this mesh."""
    if type(value) is Array:
        device = value.place.device
        if not isinstance(device, Spread) or device.sharding.mesh != mesh:
            return FREE
        return _explicit(device, value.type.ndim)[1]
    if not isinstance(value, ValueTracer):
        return FREE
    outer = value.underlying()
    if outer is None:
        interpreter = value.interpreter
        has_layouts = getattr(interpreter, "laid_out_on", None) == mesh
        return interpreter.known(value) if has_layouts else UNKNOWN  # type: ignore[attr-defined]
    known = known_on(mesh, outer)
    # Lanes lead, and the function that is batched does not see them.
    lanes = type_of(outer).ndim - value.type.ndim
    return known if isinstance(known, Loose) else known[lanes:]


def spec_words(layout: Layout) -> PartitionSpec:
    """A layout as a spec with an entry for each axis."""
    return PartitionSpec(*layout)


def open_spec(mesh: Mesh, layout: Layout) -> PartitionSpec:
    """The spec of a constraint for a known layout, which leaves axes of other kinds as they are."""
    if mesh.are_all_axes_explicit:
        return PartitionSpec(*layout)
    return PartitionSpec(*(names or PartitionSpec.UNCONSTRAINED for names in layout))


def type_text(type: ArrayType, known: Known) -> str:
    """A type with its layout, `f32[8@a,16]`."""
    if isinstance(known, Loose):
        return str(type)
    sizes = (f"{size}{split_text(part)}" for size, part in zip(type.shape, PartitionSpec(*known), strict=True))
    return f"{str(type).partition('[')[0]}[{','.join(sizes)}]"
