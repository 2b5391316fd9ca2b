"""What tab completion shows of a module: its public names and subpackages.

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
        declared = members.get("__all__")
        chosen = declared if isinstance(declared, list) else [n for n in members if _is_named(n, members[n])]
        return sorted({*chosen, *rooms, *(n for n in members if n[:2] == "__")})

    return listed


def _is_named(name: str, value: object) -> bool:
    return name[0] != "_" and name != "annotations" and not isinstance(value, ModuleType)
