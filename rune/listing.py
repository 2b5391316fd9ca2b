"""The names that tab completion shows for a module: public names and subpackages.

A module's globals also include its imports and internal submodules, which would clutter the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType


def names(members: Mapping[str, object], *rooms: str) -> Callable[[], list[str]]:
    """The `__dir__` of a module with these globals: its `__all__`, or all but modules, and `rooms`.

    >>> import math
    >>> names({"sine": math.sin, "math": math, "_hidden": 1, "fft": math}, "fft")()
    ['fft', 'sine']
    """

    def listed() -> list[str]:
        all_names = members.get("__all__")
        visible_names = all_names if isinstance(all_names, list) else [n for n in members if _is_named(n, members[n])]
        return sorted({*visible_names, *rooms, *(n for n in members if n[:2] == "__")})

    return listed


def _is_named(name: str, value: object) -> bool:
    return name[0] != "_" and name != "annotations" and not isinstance(value, ModuleType)
