"""The functions of primitives in eager calls on the CPU: NumPy's, with two exceptions.

Signs of eigenvectors, and bases for equal eigenvalues, depend on the algorithm. So small eager
calls use the code of compiled ones. Long complex rows are transformed by a routine that takes half
of NumPy's time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TypeAlias

import numpy as np

from rune import locks
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.ops.contraction import dot_general, product_of
from rune.ops.family import broadcast, broadcasting
from rune.ops.fourier import fft
from rune.ops.linalg.eigh import eigh
from rune.ops.scalars import of_dtype

LONG_ROW = 1 << 10  # numbers in a row for which the routine gains more than its call costs
Meaning: TypeAlias = Callable[..., np.ndarray | Sequence[np.ndarray]]


def meaning_of(primitive: Primitive, types: Sequence[ArrayType], params: Mapping[str, object]) -> Meaning:
    """`meaning` for arrays of these types, with all decisions that depend on types made once."""
    of_shapes = _OF_SHAPES.get(primitive)
    specific = None if of_shapes is None else of_shapes(*types, **params)
    if specific is not None:
        return specific
    function = of_dtype(meaning(primitive), types[0].dtype) if types else meaning(primitive)
    return functools.partial(function, **params) if params else function


def _transform_of_rows(x: ArrayType, *, kind: str, axes: tuple[int, ...], odd: bool) -> Meaning | None:
    """The routine for complex rows that are long enough; None to use NumPy's function."""
    if kind not in ("fft", "ifft") or axes != (x.ndim - 1,) or x.is_symbolic:
        return None
    n = x.shape[-1]
    if not isinstance(n, int) or n < LONG_ROW or 0 in x.shape or not _rows().is_routine(n, x.dtype):
        return None
    return functools.partial(_rows().transformed, inverse=kind == "ifft")


# Functions of types and parameters that give a primitive's function for these types.
_OF_SHAPES: Mapping[Primitive, Callable[..., Meaning | None]] = {
    dot_general: product_of,
    broadcast: lambda x, **params: broadcasting(x.shape, **params),
    fft: _transform_of_rows,
}


def meaning(primitive: Primitive) -> Meaning:
    """A function of NumPy arrays and parameters. The primitive must have a meaning in NumPy."""
    assert primitive.reference is not None
    return _eigh if primitive is eigh else primitive.reference


def _eigh(a: np.ndarray, *, lower: bool, vectors: bool) -> tuple[np.ndarray, ...]:
    assert eigh.reference is not None
    is_small = a.size > 0 and _symmetric().is_small(a.shape[-1], a.dtype)
    decompose = _symmetric().decomposed if is_small else eigh.reference
    return decompose(a, lower=lower, vectors=vectors)


@functools.cache
def _symmetric() -> ModuleType:
    return locks.load("rune.backends.cpu.linalg.symmetric")


@functools.cache
def _rows() -> ModuleType:
    return locks.load("rune.backends.cpu.fft.rows")
