"""The traces of a jitted function: its own, and those for arguments on Explicit axes of a mesh.

A call with such arguments is one of another function, with the same options, for their layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from rune.core.values import Value
from rune.sharding import Mesh
from rune.transforms.compile.trace_cache import Traces
from rune.transforms.sharding.explicit.stage import Layouts, layouts_of_call


class ByLayouts:
    """What a jitted function remembers of its traces.

    layouts: those of all its arguments; None for arguments that are not on Explicit axes
    """

    __slots__ = ()
    function: Callable[..., object]
    layouts: Layouts | None
    _trace_cache: Traces
    _by_layouts: dict[Layouts, Self]

    def alike(self, function: Callable[..., object], layouts: Layouts | None = None) -> Self:
        """Another function with the same parameters, compiled in the same way."""
        raise NotImplementedError

    def for_layouts_of(self, values: Sequence[Value]) -> Self:
        """The function that has the traces for these arguments."""
        layouts = layouts_of_call(values) if Mesh.has_explicit else None
        if layouts is None or layouts == self.layouts:
            return self
        known = self._by_layouts.get(layouts)
        return self._by_layouts.setdefault(layouts, self.alike(self.function, layouts)) if known is None else known

    def cache_size(self) -> int:
        """How many traces are kept."""
        return sum(map(len, self._trace_cache.by_key.values())) + sum(f.cache_size() for f in self._by_layouts.values())

    _cache_size = cache_size  # JAX's name of it

    def clear_cache(self) -> None:
        """Drop all traces of the function with these options, and their compiled code."""
        self._trace_cache.clear()
        self._by_layouts.clear()
