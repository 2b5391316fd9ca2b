"""Manual: a stage for the program of one device of a mesh, whose axes collectives may mention."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from rune.core.abstract_mesh import Axes
from rune.core.interpreter import Axis, Interpreter
from rune.core.staging import Stage


class Manual(Stage):
    """A stage inside which the axes of a mesh have names.

    mesh: that of a body which users wrote, and whose `named_axes` are manual there
    """

    __slots__ = ("mesh", "named_axes")

    def __init__(self, parent: Interpreter | None, named_axes: Mapping[Hashable, Axis], mesh: Axes | None = None):
        super().__init__(parent)
        self.named_axes, self.mesh = named_axes, mesh
        self.is_typed = self.is_typed or any(axis.is_typed for axis in named_axes.values())

    def named_axis(self, name: Hashable) -> Axis | None:
        """The axis of the mesh that has this name."""
        return self.named_axes.get(name)
