"""The functions of factorisations, compiled when the first plan needs them.

A function serves one dtype and takes the addresses of its arrays, and sizes. Functions that it
calls are compiled with it, except the tiles of matrix products, which all share. Code is kept until
the process ends.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import field

import numpy as np

from rune import dtypes, locks
from rune.backends.cpu import compiler
from rune.backends.cpu.gemm import library as gemm
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.linalg.tasks import Task
from rune.lowering.factors import Factor
from rune.ops.complex_numbers import real_dtype
from rune.records import dataclass

PARALLEL_OPERATIONS = 400_000  # multiply-adds that are divided among cores, as those of a product (gemm/blocks.py)
PIECES_PER_CORE = 4  # of the work: cores that finish early take another piece


# The module that writes factorisations. Plans from the disk cache do not need to load it.
routines = locks.late_module("rune.backends.cpu.linalg.routines")


@dataclass(slots=True)
class Library:
    """The functions of one dtype and number of cores."""

    shape: Shape
    parts: int  # of a number: 2 if it is complex
    cores: int
    parallel: int  # the address of the pool's function, with several cores
    tiles: gemm.Library
    addresses: dict[str, int] = field(default_factory=dict)
    codes: list[compiler.Code] = field(default_factory=list)
    groups: dict[str, gemm.Group] = field(default_factory=dict)  # the module of each function

    def need(self, factors: Sequence[Factor]) -> None:
        """Compile the missing functions of these factorisations.

        Two threads may compile the same ones; both results are correct, and one is used.

        Errors: CompileError.
        """
        functions, tiles = routines().functions_of(factors, self.shape)
        self.tiles.need(tiles)
        self.need_groups([tuple(sorted(functions - self.addresses.keys()))])

    def need_groups(self, groups: Iterable[gemm.Group]) -> None:
        """The same for functions given by the modules that contain them."""
        for group in groups:
            if not self.addresses.keys() >= {*group}:
                self._compile(group)

    def groups_of(self, names: Iterable[str]) -> list[gemm.Group]:
        """The modules of these functions, which must be compiled."""
        return sorted({self.groups[name] for name in names})

    def _compile(self, group: gemm.Group) -> None:
        def write() -> str:
            return routines().module_text(self.shape, self.parts, (self.cores, self.parallel), self.tiles.effort, group)

        words = self.parts, *self.tiles.words, *group
        code = compiler.compile_routine("linalg", words, self.tiles.outside, write, self.tiles.effort)
        self.codes.append(code)
        for name in group:
            self.groups.setdefault(name, group)
            self.addresses.setdefault(name, code.address(name))

    def chunk(self, task: Task) -> int:
        """The number of parts of the work that a core takes at a time."""
        if self.cores == 1 or task.total * task.operations < PARALLEL_OPERATIONS:
            return task.total
        return -(-task.total // (PIECES_PER_CORE * self.cores))


@functools.cache
def _library_of(dtype: np.dtype, shape: Shape, cores: int, parallel: int, effort: int) -> Library:
    tiles = gemm.library(real_dtype(dtype), cores, parallel, effort, "linalg")
    return Library(shape, 2 if dtype in dtypes.COMPLEX else 1, cores, parallel, tiles)


def library(dtype: np.dtype, cores: int, parallel: int, effort: int) -> Library:
    """The functions of this process for f32, f64, c64 or c128."""
    tiles = gemm.library(real_dtype(dtype), cores, parallel, effort, "linalg")
    # The shape has the address of their table, so functions are found by the tiles that they call.
    return _library_of(dtype, tiles.shape, cores, parallel, effort)
