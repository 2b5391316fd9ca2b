"""AbstractMesh: the axes of a mesh without its devices, and the kinds of axes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from enum import Enum
from typing import NoReturn

from rune.errors import ArgumentError

Name = Hashable  # of an axis


class AxisType(Enum):
    """The kind of an axis of a mesh: what decides the layout of arrays along it.

    Along Auto axes layouts follow those of the operands, and `lax.with_sharding_constraint` sets
    them. Along Explicit axes they are known while a function is traced: `typeof(x)` says them, and
    operands that leave the layout of the result open are refused (errors.ShardingTypeError). Manual
    axes are those of an enclosing `shard_map`. Errors: none.

    >>> from rune.sharding import AxisType
    >>> AxisType.Auto
    AxisType.Auto
    """

    Auto = "auto"
    Explicit = "explicit"
    Manual = "manual"

    def __repr__(self) -> str:
        return str(self)


def axis_types_of(
    name: str, axis_names: Sequence[Name], axis_types: AxisType | Sequence[AxisType] | None
) -> tuple[AxisType, ...]:
    """The kind of each axis; Auto by default.

    Errors: ArgumentError if there are not as many kinds as axes, or one is not an AxisType.
    """
    if axis_types is None:
        return (AxisType.Auto,) * len(axis_names)
    kinds = (axis_types,) if isinstance(axis_types, AxisType) else tuple(axis_types)
    if len(kinds) != len(axis_names) or not all(isinstance(k, AxisType) for k in kinds):
        raise ArgumentError(
            f"{name}: cannot give axes {tuple(axis_names)} the kinds {kinds} (an AxisType for each required)"
        )
    return kinds


class Axes:
    """The axes of a mesh, with or without devices."""

    __slots__ = ()
    axis_names: tuple[Name, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]

    @property
    def shape(self) -> Mapping[Name, int]:
        """The number of devices along each axis, by its name."""
        return dict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Name, int], ...]:
        """The names and sizes of the axes, as pairs."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether there are no devices."""
        return self.size == 0

    @property
    def auto_axes(self) -> tuple[Name, ...]:
        """The axes of kind Auto."""
        return self._of_kind(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Name, ...]:
        """The axes of kind Explicit."""
        return self._of_kind(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Name, ...]:
        """The axes of kind Manual."""
        return self._of_kind(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether there are axes, all of kind Auto."""
        return self._is_all(self.auto_axes)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether there are axes, all of kind Explicit."""
        return self._is_all(self.explicit_axes)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether there are axes, all of kind Manual."""
        return self._is_all(self.manual_axes)

    def _is_all(self, names: tuple[Name, ...]) -> bool:
        return 0 < len(names) == len(self.axis_names)

    def _of_kind(self, kind: AxisType) -> tuple[Name, ...]:
        return tuple(n for n, k in zip(self.axis_names, self.axis_types, strict=True) if k is kind)

    def _shown_axes(self) -> str:
        return ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)


class AbstractMesh(Axes):
    """The names, sizes and kinds of the axes of a mesh, without devices.

    Errors: ArgumentError if there are not as many names as sizes, or a name occurs twice.

    >>> from rune.sharding import AbstractMesh
    >>> mesh = AbstractMesh((2, 4), ("data", "model"))
    >>> mesh, mesh.size, mesh.shape["model"]
    (AbstractMesh('data': 2, 'model': 4), 8, 4)
    """

    __slots__ = ("axis_names", "axis_sizes", "axis_types")

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: Sequence[Name],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ):
        sizes, names = tuple(axis_sizes), tuple(axis_names)
        if len(sizes) != len(names) or len(set(names)) < len(names):
            raise ArgumentError(
                f"AbstractMesh: cannot name axes of sizes {sizes} by {names} (as many names required, all different)"
            )
        self.axis_names: tuple[Name, ...] = names
        self.axis_sizes: tuple[int, ...] = sizes
        self.axis_types = axis_types_of("AbstractMesh", names, axis_types)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """Itself."""
        return self

    def coordinates(self) -> NoReturn:
        """Errors: ArgumentError, always: no devices are known."""
        raise ArgumentError(
            f"NamedSharding: cannot say its devices ({self!r} has none)",
            hint="take the Mesh itself; rune.sharding.set_mesh(mesh) says it where arrays are laid out",
        )

    def update(self, **changes: object) -> AbstractMesh:
        """The mesh with other `axis_sizes`, `axis_names` or `axis_types`."""
        return AbstractMesh(**{**dict(zip(_FIELDS, self._key(), strict=True)), **changes})  # type: ignore[arg-type]

    def _key(self) -> tuple[object, ...]:
        return self.axis_sizes, self.axis_names, self.axis_types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"AbstractMesh({self._shown_axes()})"


_FIELDS = ("axis_sizes", "axis_names", "axis_types")
