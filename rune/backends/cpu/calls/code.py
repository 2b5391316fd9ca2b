"""What an executable says of the calls that native code makes of it: memory, and what is run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Memory:
    """A dense array: what its dtype object and shape are."""

    dtype: np.dtype
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """What is run: `function` is the address of void(ptr words), arguments to sizes in a row."""

    function: int
    sizes: tuple[int, ...]
    arena_bytes: int
    arenas: list[np.ndarray]
    arena_maker: Callable[[], np.ndarray]
    is_brief: bool  # so short that other threads may wait for it
    counters: tuple[int, int]  # addresses: calls submitted, calls finished
    owner: object  # keeps the code alive
