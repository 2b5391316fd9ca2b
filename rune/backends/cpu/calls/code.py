"""An executable as native calls see it: the types of its memory, and its code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Memory:
    """The dtype object and the shape of a dense array."""

    dtype: np.dtype
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """The code of a plan. function: the address of void(ptr words), with all addresses and
    sizes."""

    function: int
    sizes: tuple[int, ...]
    arena_bytes: int
    arenas: list[np.ndarray]
    arena_maker: Callable[[], np.ndarray]
    is_brief: bool  # so short that it runs with the interpreter's lock
    counters: tuple[int, int]  # addresses: calls submitted, calls finished
    owner: object  # keeps the code alive
