"""The compiled pieces of matrix products, of this process or from disk.

A piece is a function of blocks.py and its companions; pieces call each other through a table of
addresses, in the order of `Shape.pieces`. So a program compiles only the tiles that its sizes need
(pieces.py), once per process: a tile of four vectors for 512 columns, one of a single vector for
ten.

Invariant: before a product runs, `Library.need` has compiled all pieces that `pieces_for` lists.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

import numpy as np

from rune import dtypes, locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.gemm.shape import SCALARS, Shape, is_of_views, shape_for
from rune.errors import CompileError
from rune.records import dataclass

# Pieces that do little but call others: more of LLVM's effort would not make them faster.
DIRECTING = frozenset({"dot", "tiles", "view_dot", "view_block", "pack_right", "narrow_dot"})


# The module that writes products, imported for the first one that is not on disk.
pieces = locks.late_module("rune.backends.cpu.gemm.pieces")
# The module that writes products of views, imported for the first one that is not on disk.
strided = locks.late_module("rune.backends.cpu.gemm.strided")
# The module that writes products with few columns, imported for the first of them.
narrow = locks.late_module("rune.backends.cpu.gemm.narrow")


Group = tuple[str, ...]  # functions of one module


@dataclass(slots=True)
class Library:
    """The pieces for one shape and number of cores, and their table."""

    shape: Shape
    cores: int
    parallel: int  # the address of the pool's function, with several cores
    effort: int  # LLVM's
    table: ctypes.Array[ctypes.c_void_p]
    codes: list[compiler.Code] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)  # the module of each piece

    def need(self, names: Iterable[str]) -> None:
        """Compile the missing ones of these pieces. Two threads may do so at once: either code
        serves.

        Errors: CompileError.
        """
        # Sorted, because the names are part of the key under which code is stored on disk.
        missing = sorted(name for name in names if not self._has(name))
        if self.effort == conventions.HURRY:
            self.need_groups([tuple(missing)])
        else:
            # A module has one effort, so pieces that direct others are compiled apart from loops.
            by_kind = (tuple(n for n in missing if (n in DIRECTING) == is_directing) for is_directing in (True, False))
            self.need_groups(by_kind)

    def need_groups(self, groups: Iterable[Group]) -> None:
        """The same for pieces given by their modules."""
        for group in groups:
            if not all(map(self._has, group)):
                self._compile(group)

    def groups_of(self, names: Iterable[str]) -> list[Group]:
        """The modules of these pieces, which must be compiled."""
        return sorted({self.groups[name] for name in names})

    def _has(self, name: str) -> bool:
        return bool(self.table[self.shape.pieces.index(name)])

    def _compile(self, group: Group) -> None:
        effort = conventions.LITTLE if self.effort != conventions.HURRY and DIRECTING.issuperset(group) else self.effort

        def write() -> str:
            # Only the module of views writes pieces of both kinds.
            writer = strided() if any(map(is_of_views, group)) else pieces()
            return writer.module_text(self.shape, group, self.cores, self.parallel, effort)

        code = compiler.compile_routine("gemm", (*self.words, *group), self.outside, write, effort)
        self.codes.append(code)
        # An address that is in the table stays: another thread may be using it.
        for name in group:
            if not self._has(name):
                self.groups[name] = group
                self.table[self.shape.pieces.index(name)] = code.address(name)

    @property
    def words(self) -> tuple[object, ...]:
        """All that the text of pieces depends on besides their names."""
        # The table has another address in each process, which is bound by its name (`outside`).
        return replace(self.shape, table=0), self.cores

    @property
    def outside(self) -> Mapping[str, int]:
        """The addresses to which pieces refer."""
        return {"table": self.shape.table, "pool": self.parallel}

    def address(self, name: str) -> int:
        """The address of a compiled piece."""
        address = self.table[self.shape.pieces.index(name)]
        assert address is not None, name
        return address


def new_library(shape: Shape, cores: int, parallel: int, effort: int = conventions.EFFORT) -> Library:
    """An empty library."""
    table = (ctypes.c_void_p * (len(shape.pieces) + 1))()  # the last is the hint of mended.py
    return Library(replace(shape, table=ctypes.addressof(table)), cores, parallel, effort, table)


@functools.cache
def _library_of(shape: Shape, cores: int, parallel: int, effort: int) -> Library:
    return new_library(shape, cores, parallel, effort)


def library(dtype: np.dtype, cores: int, parallel: int, effort: int, routine: str) -> Library:
    """The pieces of this process for f32 or f64.

    Errors: CompileError for another dtype.
    """
    if dtype not in SCALARS:
        name = dtypes.short(dtype)
        raise CompileError(f"{routine}: cannot multiply {name} (the routine takes f32 and f64)")
    return _library_of(shape_for(compiler.machine(), SCALARS[dtype]), cores, parallel, effort)
