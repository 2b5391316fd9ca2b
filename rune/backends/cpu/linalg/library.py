"""Which function serves a routine's arrays, compiled when the first plan needs it.

A function is of one dtype and takes the addresses of its arrays and sizes; what it calls is
compiled with it, but for the tiles of matrix products, which all share. Code lives as long as the
process.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import field
from types import ModuleType

import numpy as np

from rune import dtypes, locks
from rune.backends.cpu import compiler
from rune.backends.cpu.gemm import library as gemm
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.linalg.tasks import Task
from rune.lowering.factors import Factor
from rune.ops.complex_numbers import real_dtype
from rune.records import dataclass

PARALLEL_OPERATIONS = 400_000  # multiply-adds from which cores share matrices, or columns
PIECES_PER_CORE = 4


@functools.cache
def routines() -> ModuleType:
    """What writes factorisations: for the first that no earlier process has left."""
    return locks.load("rune.backends.cpu.linalg.routines")


@dataclass(slots=True)
class Library:
    """The functions of one dtype and number of cores."""

    shape: Shape
    parts: int  # of a number: 2 of complex ones
    cores: int
    parallel: int  # the address of the pool's function, with several cores
    tiles: gemm.Library
    addresses: dict[str, int] = field(default_factory=dict)
    codes: list[compiler.Code] = field(default_factory=list)
    groups: dict[str, gemm.Group] = field(default_factory=dict)  # the module of each function

    def need(self, factors: Sequence[Factor]) -> None:
        """Compile what these need and is not there; two threads may both, and either serves.

        Errors: CompileError.
        """
        functions, tiles = routines().functions_of(factors, self.shape)
        self.tiles.need(tiles)
        self.need_groups([tuple(sorted(functions - self.addresses.keys()))])

    def need_groups(self, groups: Iterable[gemm.Group]) -> None:
        """The same, of functions by the modules in which they are, or are to be."""
        for group in groups:
            if not self.addresses.keys() >= {*group}:
                self._compile(group)

    def groups_of(self, names: Iterable[str]) -> list[gemm.Group]:
        """The modules of these functions, which are there."""
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
        """How many parts of the work a core takes at once."""
        if self.cores == 1 or task.total * task.operations < PARALLEL_OPERATIONS:
            return task.total
        return -(-task.total // (PIECES_PER_CORE * self.cores))


@functools.cache
def library(dtype: np.dtype, cores: int, parallel: int, effort: int) -> Library:
    """The functions of this process for f32, f64, c64 or c128."""
    tiles = gemm.library(real_dtype(dtype), cores, parallel, effort, "linalg")
    return Library(tiles.shape, 2 if dtype in dtypes.COMPLEX else 1, cores, parallel, tiles)
