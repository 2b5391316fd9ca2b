"""The functions of primitives in eager calls on the CPU: NumPy's, with two exceptions.

Signs of eigenvectors, and bases for equal eigenvalues, depend on the algorithm. So small eager
calls use the code of compiled ones. Large arrays are transformed by routines that take half of
NumPy's time.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from typing import TypeAlias

import numpy as np

from rune import locks
from rune.core.primitive import Primitive
from rune.core.types import ArrayType, Shape
from rune.ops.arithmetic import select, selecting
from rune.ops.contraction import dot_general, product_of
from rune.ops.family import broadcast, broadcasting, reduce_sum, reshape, summing
from rune.ops.fourier import fft
from rune.ops.linalg.eigh import eigh
from rune.ops.movement import pad, padding, slice_, slicing, transpose
from rune.ops.scalars import of_dtype
from rune.ops.sliding import shear, shearing
from rune.ops.transcendental import integer_pow, powering

LARGE = 1 << 10  # numbers of an array for which routines take less time than NumPy's transform
Meaning: TypeAlias = Callable[..., np.ndarray | Sequence[np.ndarray]]


def meaning_of(primitive: Primitive, types: Sequence[ArrayType], params: Mapping[str, object]) -> Meaning:
    """`meaning` for arrays of these types, with all decisions that depend on types made once."""
    of_shapes = _OF_SHAPES.get(primitive)
    specific = None if of_shapes is None else of_shapes(*types, **params)
    if specific is not None:
        return specific
    function = of_dtype(meaning(primitive), types[0].dtype) if types else meaning(primitive)
    return functools.partial(function, **params) if params else function


def _transform(x: ArrayType, *, kind: str, axes: tuple[int, ...], odd: bool) -> Meaning | None:
    """The routines for arrays that are large enough; None to use NumPy's function."""
    shape = tuple(d for d in x.shape if isinstance(d, int))
    reals = 2 if kind == "irfft" else 1  # for which a frequency stands
    if len(shape) < x.ndim or reals * math.prod(shape) < LARGE:
        return None
    return _transforms().transform(shape, x.dtype, kind, axes, odd)


def is_transformed_by_routines(x: ArrayType, kind: str, axes: tuple[int, ...], odd: bool) -> bool:
    """Whether routines compute the whole of an eager transform of such a large array."""
    shape = tuple(d for d in x.shape if isinstance(d, int))
    by_routines: bool = _transforms().is_routine(shape, x.dtype, kind, axes, odd)
    return len(shape) == x.ndim and by_routines


# Functions of types and parameters that give a primitive's function for these types.
_OF_SHAPES: Mapping[Primitive, Callable[..., Meaning | None]] = {
    dot_general: product_of,
    broadcast: lambda x, **params: broadcasting(x.shape, **params),
    slice_: slicing,
    select: selecting,
    integer_pow: powering,
    fft: _transform,
    transpose: lambda x, *, permutation: methodcaller("transpose", permutation),
    reshape: lambda x, *, shape: methodcaller("reshape", shape),
    reduce_sum: summing,
    shear: shearing,
    pad: padding,
}


def meaning(primitive: Primitive) -> Meaning:
    """A function of NumPy arrays and parameters. The primitive must have a meaning in NumPy."""
    assert primitive.reference is not None
    return _eigh if primitive is eigh else primitive.reference


def has_compiled_bits(primitive: Primitive, x: ArrayType) -> bool:
    """Whether eager calls of a decomposition run the code of compiled ones."""
    return primitive is eigh and not x.is_symbolic and _is_small(x.shape, x.dtype)


def _is_small(shape: Shape, dtype: np.dtype) -> bool:
    return 0 not in shape and _symmetric().is_small(shape[-1], dtype)


def _eigh(a: np.ndarray, *, lower: bool, vectors: bool) -> tuple[np.ndarray, ...]:
    assert eigh.reference is not None
    decompose = _symmetric().decomposed if _is_small(a.shape, a.dtype) else eigh.reference
    return decompose(a, lower=lower, vectors=vectors)


# The eigenvalues of small symmetric matrices, and Fourier transforms, each imported for its first.
_symmetric = locks.late_module("rune.backends.cpu.linalg.symmetric")
_transforms = locks.late_module("rune.backends.cpu.fft.arrays")
# The routine of packbits (bits.py), which is worth compiling for large arrays.
bits = locks.late_module("rune.backends.cpu.bits")
# The routine for the means of matrices and their transposes, likewise.
means = locks.late_module("rune.backends.cpu.linalg.means")


def forget_tables() -> None:
    """Drop what eager transforms keep of the lengths that occurred."""
    if _transforms.cache_info().currsize:  # otherwise there was none
        _transforms().forget_tables()
