"""Mesh: devices in a grid whose axes have names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from rune import config
from rune.backends import Device, device_of, devices, everywhere
from rune.config import Setting
from rune.core.abstract_mesh import AbstractMesh, Axes, AxisType, axis_types_of
from rune.core.axes import Name
from rune.errors import ArgumentError, DeviceError
from rune.options import Config, variable_of


class Mesh(Axes):
    """Devices in a grid. Equal meshes have the same devices at the same places of equal axes.

    devices:    an array or nested lists of devices, or of their names
    axis_names: the name of each axis; for a single axis, the name alone
    axis_types: the kind of each axis; None for Auto
    In `with mesh:` it is the mesh of a bare PartitionSpec, as in `with set_mesh(mesh):`.
    Errors:     ArgumentError unless there is a different name for each axis, and if a device occurs
                twice.

    >>> import rune
    >>> from rune.sharding import Mesh
    >>> mesh = Mesh([["cpu:0"], ["reference:0"]], ("data", "model"))
    >>> mesh, mesh.shape["data"], mesh.size
    (Mesh('data': 2, 'model': 1), 2, 2)
    """

    __slots__ = ("_block", "_grid", "_hash", "axis_names", "axis_sizes", "axis_types")
    has_explicit: ClassVar[bool] = False  # whether this process has made a mesh with Explicit axes

    def __init__(
        self,
        devices: object,
        axis_names: Name | Sequence[Name],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ):
        grid = np.asarray(devices, dtype=object)
        names = tuple(axis_names) if isinstance(axis_names, tuple | list) else (axis_names,)
        _require_grid(grid)
        _require_names(grid.shape, names)
        self._grid = tuple(map(device_of, grid.flat))
        _require_distinct(self._grid)
        self.axis_names: tuple[Name, ...] = names
        self.axis_sizes: tuple[int, ...] = grid.shape
        self.axis_types = axis_types_of("Mesh", names, axis_types)
        self._hash = hash(self._key())
        self._block: Setting[Config] | None = None  # of `with mesh:`
        if self.explicit_axes:
            Mesh.has_explicit = True

    @property
    def devices(self) -> np.ndarray:
        """The devices, as an array of objects in the shape of the mesh."""
        grid = np.empty(len(self._grid), object)
        grid[:] = self._grid
        return grid.reshape(self.axis_sizes)

    @property
    def in_order(self) -> tuple[Device, ...]:
        """The devices, row by row."""
        return self._grid

    @property
    def empty(self) -> bool:
        """Whether it has no devices."""
        return not self._grid

    @property
    def local_devices(self) -> tuple[Device, ...]:
        """The devices of this process, in the order of the mesh."""
        return tuple(d for d in self._grid if d.is_local)

    @property
    def homes(self) -> tuple[int, ...]:
        """The process of each device, in the order of the mesh."""
        return tuple(d.process_index for d in self._grid)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the devices in order, the same in every process: "1/cpu:0" of several."""
        if not self.is_multi_process:
            return tuple(d.name for d in self._grid)
        return tuple(f"{d.process_index}/{d.name.rpartition('/')[2]}" for d in self._grid)

    @property
    def is_multi_process(self) -> bool:
        """Whether some devices belong to other processes."""
        return not all(d.is_local for d in self._grid)

    @property
    def device_ids(self) -> np.ndarray:
        """The number of each device among those of its kind, in the mesh's shape."""
        return np.array([d.id for d in self._grid]).reshape(self.axis_sizes)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The axes without the devices."""
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)

    def update(self, **changes: Any) -> Mesh:
        """The mesh with other `devices`, `axis_names` or `axis_types`. Errors: as for a new one."""
        fields = {"devices": self.devices, "axis_names": self.axis_names, "axis_types": self.axis_types}
        return Mesh(**{**fields, **changes})

    def __enter__(self) -> Mesh:
        if self._block is None:
            self._block = config.setting(mesh=self)
        self._block.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        assert self._block is not None
        self._block.__exit__(*error)

    def coordinates(self) -> Iterable[tuple[Device, Mapping[Name, int]]]:
        """Each device with its place along every axis, in the order of the grid."""
        places = np.ndindex(*self.axis_sizes)
        return ((d, dict(zip(self.axis_names, at, strict=True))) for d, at in zip(self._grid, places, strict=True))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Mesh) and self._key() == other._key())

    def __hash__(self) -> int:
        return self._hash

    def _key(self) -> tuple[object, ...]:
        return self._grid, self.axis_names, self.axis_sizes, self.axis_types

    def __reduce__(self) -> tuple:
        """Pickled by the names of its devices, which must exist where it is unpickled."""
        names = np.array([d.name for d in self._grid], object).reshape(self.axis_sizes)
        return Mesh, (names.tolist(), self.axis_names, self.axis_types)

    def __repr__(self) -> str:
        return f"Mesh({self._shown_axes()})"


def _require_grid(grid: np.ndarray) -> None:
    # NumPy leaves rows of different lengths as lists.
    lengths = [len(row) for row in grid.flat if isinstance(row, list | tuple)]
    if lengths:
        raise ArgumentError(
            f"Mesh: cannot make a grid of rows of {', '.join(map(str, lengths))} devices (as many in each required)"
        )
    if not grid.size:
        raise ArgumentError(f"Mesh: cannot make a grid of {_sizes(grid.shape)} devices (at least one required)")


def _require_names(shape: Sequence[int], names: Sequence[Name]) -> None:
    if len(names) != len(shape):
        raise ArgumentError(
            f"Mesh: cannot name the axes of {_sizes(shape)} devices {names} ({len(shape)} names required)"
        )
    if None in names:
        raise ArgumentError(
            f"Mesh: cannot name an axis None ({names}; in a spec it says that an axis is not split)",
            hint='Mesh(devices, ("data",))',
        )
    duplicates = [name for n, name in enumerate(names) if name in names[:n]]
    if duplicates:
        raise ArgumentError(f"Mesh: cannot name two axes {duplicates[0]!r} ({names})")


def _require_distinct(grid: Sequence[Device]) -> None:
    if len(set(grid)) < len(grid):
        duplicate = next(d for n, d in enumerate(grid) if d in grid[:n])
        raise ArgumentError(
            f"Mesh: cannot use {duplicate.name} at two places",
            hint=f"{variable_of('cpu_devices')}={len(grid)} splits the CPU into that many devices",
        )


def _sizes(shape: Sequence[int]) -> str:
    return " by ".join(map(str, shape)) or "no"


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[Name],
    axis_types: AxisType | Sequence[AxisType] | None = None,
    *,
    devices: Sequence[str | Device] | None = None,
) -> Mesh:
    """A mesh of the first available devices.

    axis_shapes: the number of devices along each axis
    axis_types:  the kind of each axis; None for Auto
    devices:     the devices to take from, in order; None for those of the default device's kind, in
                 all processes that have joined
    Errors:      DeviceError if there are too few; ArgumentError as for Mesh.

    >>> from rune.sharding import make_mesh
    >>> make_mesh((1, 1), ("data", "model"), devices=["cpu"])
    Mesh('data': 1, 'model': 1)
    """
    candidates = everywhere() or default_devices() if devices is None else tuple(map(device_of, devices))
    _require_counts(axis_shapes)
    count = math.prod(axis_shapes)
    if len(candidates) < count:
        raise DeviceError(
            f"make_mesh: cannot fill {_sizes(axis_shapes)} places with {len(candidates)} devices "
            f"({', '.join(d.name for d in candidates)})",
            hint=f"{variable_of('cpu_devices')}={count} splits the CPU into that many devices",
        )
    grid = np.empty(count, object)
    grid[:] = candidates[:count]
    names = axis_names if isinstance(axis_names, str) else tuple(axis_names)
    return Mesh(grid.reshape(tuple(axis_shapes)), names, axis_types)


def _require_counts(axis_shapes: object) -> None:
    is_sequence = isinstance(axis_shapes, tuple | list)
    if not is_sequence or not all(isinstance(n, int | np.integer) and n > 0 for n in axis_shapes):
        raise ArgumentError(
            f"make_mesh: cannot make a grid of {axis_shapes!r} devices (a positive number for each axis required)",
            hint='make_mesh((4, 2), ("data", "model"))',
        )


def default_devices() -> tuple[Device, ...]:
    """The devices of this process of the kind that new arrays are on."""
    default = device_of(config.current().device or "cpu")
    return tuple(devices(default.target.backend))  # of this kind alone, so no other driver is loaded
