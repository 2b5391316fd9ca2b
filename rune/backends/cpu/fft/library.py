"""The routines of transforms and their pieces, compiled when the first plan needs them.

A routine serves one form and dtype, and its arrays must not overlap:
void(ptr real, ptr imag, ptr out_real, ptr out_imag, ptr scratch, ptr watch). Its code and tables
are kept until the process ends, as are the pieces, which all routines share.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial

import numpy as np

from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.fft.forms import (
    WORDS,
    Form,
    Routine,
    groups_of,
    halves_of,
    new_routine,
    pieces_of,
    write_groups,
    write_half,
)
from rune.backends.cpu.fft.pieces import piece_text
from rune.backends.cpu.fft.stages import declarations
from rune.backends.cpu.gemm.shape import SCALARS, Shape, shape_for
from rune.backends.cpu.gemm.tile import Maker, maker
from rune.lowering.codegen.llvm.ir.names import pointer_to
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

_ARRAYS = "real imag out_real out_imag scratch"
# The least number of elements, times the bits of a line's length, that is divided among cores.
PARALLEL_ELEMENTS = 1 << 17


@dataclass(slots=True)
class Library:
    """The routines of one dtype and number of cores, and their pieces."""

    dtype: np.dtype
    cores: int
    parallel: int  # the address of the pool's function, with several cores
    effort: int  # LLVM's
    shape: Shape
    pieces: dict[str, int] = field(default_factory=dict)
    routines: dict[Form, int] = field(default_factory=dict)
    codes: list[compiler.Code] = field(default_factory=list)
    tables: list[object] = field(default_factory=list)

    def need(self, forms: Iterable[Form]) -> None:
        """Compile the missing routines and pieces of these forms.

        Two threads may compile the same ones; both results are correct, and one is used.

        Errors: CompileError.
        """
        # Sorted, so that equal plans get equal text, by which code is found on disk.
        missing = sorted(set(forms) - self.routines.keys(), key=str)
        if not missing:
            return
        # Pieces first: the routines contain their addresses.
        names = sorted(set[str]().union(*(pieces_of(f, self.shape.lanes) for f in missing)) - self.pieces.keys())
        if names:
            code = self.compiled([piece_text(self.shape, name) for name in names], self.effort)
            self.pieces.update((name, code.address(name)) for name in names)
        # A routine mostly calls pieces, so more optimisation would gain nothing.
        code = self.compiled([self.routine_text(form, k) for k, form in enumerate(missing)], conventions.LITTLE)
        self.routines.update((form, code.address(f"transform{k}")) for k, form in enumerate(missing))

    def compiled(self, texts: list[str], effort: int) -> compiler.Code:
        """Compile functions as a module that is kept until the process ends."""
        code = compiler.compile_module("fft", "\n\n".join([declarations(self.shape), *texts]), effort)
        self.codes.append(code)
        return code

    def routine_text(self, form: Form, number: int) -> str:
        """The functions of a routine: its tasks, and the entry that divides them among cores."""
        halves = halves_of(form, self.shape.lanes)
        if halves is None:
            tasks = [self.task(lambda r: write_groups(r, form, f"groups{number}"))]
            return "\n\n".join([*tasks, self.entry(form, number)])
        names = [f"{half}{number}" for half in ("down", "along")]
        tasks = [self.task(partial(write_half, form=form, name=name, half=k)) for k, name in enumerate(names)]
        return "\n\n".join([*tasks, self.entry_of_halves(form, number, dict(zip(names, halves, strict=True)))])

    def task(self, write: Callable[[Routine], str]) -> str:
        """A function of the routine. Its tables are kept: the code contains their addresses."""
        routine = new_routine(self.shape, self.dtype, self.pieces.__getitem__)
        text = write(routine)
        self.tables += routine.tables
        return text

    def entry(self, form: Form, number: int) -> str:
        """The function of the routine that plans call."""
        make = maker(self.shape)
        words, total = self.words(make), groups_of(form, self.shape.lanes)
        for k, array in enumerate(make.pointers(_ARRAYS)):
            make.writer.store(array, make.at(words, k, "i64"))
        elements = form.outer * form.n * form.inner
        is_shared = total > 1 and elements * form.n.bit_length() >= PARALLEL_ELEMENTS
        self.run(make, f"groups{number}", words, total, is_shared)
        return self.entry_text(make, number)

    def entry_of_halves(self, form: Form, number: int, totals: dict[str, int]) -> str:
        """The same for long rows, one after the other, each in two halves that cores share."""
        make = maker(self.shape)
        words = self.words(make)
        *arrays, scratch = make.pointers(_ARRAYS)
        make.writer.store(scratch, make.at(words, len(arrays), "i64"))

        def row(index: Value) -> None:
            for k, array in enumerate(arrays):
                make.writer.store(make.at(array, index * form.n), make.at(words, k, "i64"))
            # The second half reads all results of the first, so each ends before the next begins.
            for name, total in totals.items():
                self.run(make, name, words, total, is_shared=True)

        make.each(make.number(form.outer), row)
        return self.entry_text(make, number)

    def words(self, make: Maker) -> Value:
        """Memory for the words of a task."""
        (watch,) = make.pointers("watch")
        return make.words(WORDS, watch)

    def run(self, make: Maker, name: str, words: Value, total: int, is_shared: bool) -> None:
        """Run a task on one core, or divided among all."""
        if self.cores == 1 or not is_shared:
            make.call(name, words, make.number(0), make.number(total))
        else:
            # More shares than cores: a core that is late takes fewer of them.
            task = f"ptr @{name}, ptr {words.text}, i64 {total}, i64 {-(-total // (2 * self.cores))}"
            make.writer.do(f"call void {pointer_to(self.parallel)}({task})")

    def entry_text(self, make: Maker, number: int) -> str:
        """The text of the entry, visible outside of its module."""
        parameters = ", ".join(f"ptr %{name}" for name in (*_ARRAYS.split(), "watch"))
        return make.text(f"transform{number}({parameters})").replace("define internal", "define", 1)


@functools.cache
def _library_of(dtype: np.dtype, cores: int, parallel: int, effort: int, shape: Shape) -> Library:
    return Library(dtype, cores, parallel, effort, shape)


def library(dtype: np.dtype, cores: int, parallel: int, effort: int) -> Library:
    """The routines of this process for f32 or f64, and for one pool and effort."""
    return _library_of(dtype, cores, parallel, effort, shape_for(compiler.machine(), SCALARS[dtype]))


def transform_address(
    dtype: np.dtype, cores: int, parallel: int, effort: int, forms: Iterable[Form], form: Form
) -> int:
    """The address of the routine for a form. Errors: CompileError."""
    routines = library(dtype, cores, parallel, effort)
    routines.need(forms)
    return routines.routines[form]
