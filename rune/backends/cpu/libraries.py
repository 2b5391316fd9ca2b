"""The routines that plans call, compiled at one effort: products, transforms, factorisations.

A plan's needs have names that are the same in every process, by which the next one finds the code
without importing the modules that write it (on_disk.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes, locks
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.backends.cpu.fft.forms import Form
    from rune.backends.cpu.gemm import library as gemm_types
    from rune.backends.cpu.gemm.product import Product
    from rune.backends.cpu.gemm.shape import Shape
    from rune.backends.cpu.linalg import library as linalg_types

Word = tuple[str, ...]  # names an address, in every process
DOT, STRIDED_DOT, NARROW_DOT, FACTOR, SORT = "dot", "strided_dot", "narrow_dot", "factor", "sort"
_ENTRIES = {DOT: "dot", STRIDED_DOT: "view_dot", NARROW_DOT: "narrow_dot"}  # the pieces that plans call
_DTYPES = {dtypes.short(d): d for d in dtypes.ANY}


# Matrix products, imported for the first plan that has one.
gemm = locks.late_module("rune.backends.cpu.gemm.library")
# Factorisations, imported for the first plan that has one.
linalg = locks.late_module("rune.backends.cpu.linalg.library")
# Fourier transforms, imported for the first plan that has one.
_fft = locks.late_module("rune.backends.cpu.fft.library")
# Sorts, imported for the first plan that has one.
_sorting = locks.late_module("rune.backends.cpu.sorting.library")
# Products through the system's BLAS, imported on systems that have one.
_blas = locks.late_module("rune.backends.cpu.blas")


@dataclass(frozen=True, slots=True)
class Need:
    """A plan's needs of a library: pieces of products, and functions of matrices, by modules.

    Of sorts, the words of each key; they have no dtype.
    """

    kind: str
    dtype: str
    pieces: Sequence[gemm_types.Group]
    functions: Sequence[gemm_types.Group] = ()


@dataclass(frozen=True, slots=True)
class Libraries:
    """The routines of a device, compiled at one effort."""

    cores: int
    effort: int
    pool: Callable[[], int]  # address of void(ptr task, ptr words, i64 total, i64 chunk)

    def product(self, routine: str, dtype: np.dtype, products: Sequence[Product]) -> int:
        """The address of a routine that supports these products. Errors: CompileError for other
        dtypes."""
        address = of_system(dtype) if routine == DOT else 0
        if address:
            return address
        pieces = self.pieces(routine, dtype)
        pieces.need(pieces_of(routine, pieces.shape, self.cores, products))
        return pieces.address(_ENTRIES[routine])

    def transform(self, dtype: np.dtype, forms: Sequence[Form], form: Form) -> int:
        """The address of the routine of a form, compiled in one module with all of `forms`."""
        return _fft().transform_address(dtype, *self._shared, forms, form)

    def factors(self, dtype: np.dtype) -> linalg_types.Library:
        """The functions of matrices."""
        return linalg().library(dtype, *self._shared)

    @property
    def _shared(self) -> tuple[int, int, int]:
        """Arguments of all libraries: the cores, the pool's address (0 for one core), the
        effort."""
        # Asking for the pool's address starts its threads.
        return self.cores, self.pool() if self.cores > 1 else 0, self.effort

    def addresses(self, needs: Iterable[Need]) -> dict[Word, int]:
        """The addresses of the routines that the needs name, compiled where they are missing."""
        addresses: dict[Word, int] = {}
        for need in needs:
            addresses |= self._sorts(need) if need.kind == SORT else self._addresses_of(need, _DTYPES[need.dtype])
        return addresses

    def _sorts(self, need: Need) -> dict[Word, int]:
        places = _sorting().addresses(need.pieces, _sorting().effort_for(self.effort))
        return {(SORT, *name): place for name, place in places.items()}

    def _addresses_of(self, need: Need, dtype: np.dtype) -> dict[Word, int]:
        if need.kind == FACTOR:
            library = self.factors(dtype)
            library.tiles.need_groups(need.pieces)
            library.need_groups(need.functions)
            return {(FACTOR, need.dtype, name): place for name, place in library.addresses.items()}
        address = (of_system(dtype) if need.kind == DOT else 0) or self._product(need, dtype)
        return {(need.kind, need.dtype): address}

    def pieces(self, kind: str, dtype: np.dtype) -> gemm_types.Library:
        """The pieces of products. Errors: CompileError for another dtype."""
        return gemm().library(dtype, *self._shared, kind)

    def _product(self, need: Need, dtype: np.dtype) -> int:
        pieces = self.pieces(need.kind, dtype)
        pieces.need_groups(need.pieces)
        return pieces.address(_ENTRIES[need.kind])


def pieces_of(routine: str, shape: Shape, cores: int, products: Sequence[Product]) -> set[str]:
    """The pieces that products of a routine may call."""
    match routine:
        case "dot":
            return gemm().pieces().pieces_of_dots(shape, cores, products)
        case "narrow_dot":
            return gemm().narrow().pieces_of(shape, products)
        case _:
            return gemm().strided().pieces_of(shape, cores, products)


def of_system(dtype: np.dtype) -> int:
    """The address of @dot through the system's BLAS, 0 on systems where ours is as fast."""
    return _blas().address(dtype) if sys.platform == "darwin" else 0
