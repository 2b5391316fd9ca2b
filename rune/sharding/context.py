"""The current mesh, to which a bare PartitionSpec refers, as set by `set_mesh`."""

from __future__ import annotations

from rune import config
from rune.config import Setting
from rune.context import innermost, inside, put
from rune.core.abstract_mesh import AbstractMesh, AxisType
from rune.core.axes import Name
from rune.core.interpreter import current
from rune.core.manual import Manual
from rune.core.partition_spec import PartitionSpec
from rune.errors import ArgumentError
from rune.sharding.meshes import Mesh
from rune.sharding.shardings import NamedSharding

NO_AXES = AbstractMesh((), ())


def set_mesh(mesh: Mesh | None) -> Setting[Mesh | None]:
    """Set the mesh to which a bare PartitionSpec refers, for the process or a block.

    None for no mesh. A `shard_map` without a mesh uses it, too.
    Errors: ArgumentError if it is not a mesh.

    >>> import rune, rune.numpy as rnp
    >>> from rune.sharding import P, make_mesh, set_mesh
    >>> with set_mesh(make_mesh((1,), ("data",))):
    ...     print(rune.device_put(rnp.ones(2), P("data")).sharding)
    NamedSharding(Mesh('data': 1), P('data'))
    """
    if mesh is not None and not isinstance(mesh, Mesh):
        raise ArgumentError(f"set_mesh: cannot use {type(mesh).__name__} (a Mesh or None required)")
    return Setting({"mesh": mesh}, lambda settings: settings.mesh)


def use_abstract_mesh(mesh: AbstractMesh) -> Setting[AbstractMesh]:
    """As `set_mesh`, for a mesh without devices, which `get_abstract_mesh` returns.

    Errors: ArgumentError if it is not an AbstractMesh.

    >>> from rune.sharding import AbstractMesh, get_abstract_mesh, use_abstract_mesh
    >>> with use_abstract_mesh(AbstractMesh((8,), ("data",))):
    ...     get_abstract_mesh().size
    8
    """
    if not isinstance(mesh, AbstractMesh):
        raise ArgumentError(f"use_abstract_mesh: cannot use {type(mesh).__name__} (an AbstractMesh required)")
    return Setting({"mesh": mesh}, lambda settings: settings.mesh)


def get_mesh() -> Mesh | None:
    """The mesh that `set_mesh` has set; None without one. Errors: none.

    >>> from rune.sharding import get_mesh
    >>> get_mesh() is None
    True
    """
    mesh = config.current().mesh
    return mesh if isinstance(mesh, Mesh) else None


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh in force; without a mesh no axes, and it is `empty`. Errors: none.

    In the body of a `shard_map` it is that of the body, whose axes are Manual.

    >>> from rune.sharding import get_abstract_mesh
    >>> get_abstract_mesh().empty
    True
    """
    mesh, manual = _around()
    if mesh is None:
        mesh = config.current().mesh
        return NO_AXES if mesh is None else mesh.abstract_mesh
    axes = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return mesh.abstract_mesh.update(axis_types=[AxisType.Manual if n in manual else kind for n, kind in axes])


def _around() -> tuple[Mesh | None, set[Name]]:
    """The mesh of the body of a shard_map that makes the call, and the axes split there."""
    interpreter, mesh, manual = current(), None, set[Name]()
    while interpreter is not None:
        if isinstance(interpreter, Manual) and isinstance(interpreter.mesh, Mesh):
            mesh = mesh or interpreter.mesh
            manual.update(interpreter.named_axes)
        interpreter = interpreter.parent
    return mesh, manual


def _innermost_mesh() -> Mesh | None:
    """The mesh of the body that makes the call; otherwise the one that `set_mesh` has set."""
    return _around()[0] or get_mesh()


def on_devices(name: str, where: PartitionSpec | NamedSharding) -> NamedSharding:
    """The sharding over devices of a spec, or of a sharding over axes alone, by the current mesh.

    name:   the operation, for messages
    Errors: ArgumentError without a mesh, or with a mesh of other axes than those of the sharding.
    """
    sharding = _read_spec(name, where) if isinstance(where, PartitionSpec) else where
    if isinstance(sharding.mesh, Mesh):
        return sharding
    mesh = _innermost_mesh()
    # In a body the same axes may have become manual.
    if mesh is None or mesh.shape_tuple != sharding.mesh.shape_tuple:
        raise ArgumentError(
            f"{name}: cannot lay out by {sharding!r} ({'no mesh' if mesh is None else mesh} is in force)",
            hint="rune.sharding.set_mesh(mesh) sets the mesh for a block",
        )
    return NamedSharding(mesh, sharding.spec)


def _read_spec(name: str, spec: PartitionSpec) -> NamedSharding:
    mesh = _innermost_mesh()
    if mesh is None:
        raise ArgumentError(
            f"{name}: cannot lay out by {spec!r} alone (a mesh and a spec required)",
            hint="pass rune.NamedSharding(mesh, spec), or set the mesh of a block by rune.sharding.set_mesh(mesh)",
        )
    return NamedSharding(mesh, spec)


class Unchecked:
    """The entry of a context in which layouts along Explicit axes are not followed."""


_UNCHECKED = Unchecked()


def unchecked() -> inside[Unchecked]:
    """A block in which results have unknown layouts along Explicit axes, and none is refused."""
    return inside(Unchecked, _UNCHECKED)


def leave_unchecked() -> None:
    """From now on in this context, results have unknown layouts."""
    put(Unchecked, _UNCHECKED)


def is_checked() -> bool:
    """Whether layouts along Explicit axes are followed here."""
    return innermost(Unchecked) is None
