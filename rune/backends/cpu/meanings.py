"""What primitives mean on the CPU where no plan runs: NumPy's functions, with one exception.

Signs of eigenvectors, and bases where values are equal, are the algorithm's. So an eager call is
decomposed by the code that a compiled one is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np

from rune import locks
from rune.core.primitive import Primitive
from rune.ops.linalg.eigh import eigh


def meaning(primitive: Primitive) -> Callable[..., np.ndarray | Sequence[np.ndarray]]:
    """A function of NumPy arrays and parameters. The primitive must have a meaning in NumPy."""
    assert primitive.reference is not None
    return _eigh if primitive is eigh else primitive.reference


def _eigh(a: np.ndarray, *, lower: bool, vectors: bool) -> tuple[np.ndarray, ...]:
    assert eigh.reference is not None
    is_small = a.size > 0 and _symmetric().is_small(a.shape[-1], a.dtype)
    decomposed = _symmetric().decomposed if is_small else eigh.reference
    return decomposed(a, lower=lower, vectors=vectors)


@functools.cache
def _symmetric() -> ModuleType:
    return locks.load("rune.backends.cpu.linalg.symmetric")
