"""The routines of transforms and their pieces, compiled when the first plan needs them.

A routine is of one form and dtype: void(ptr real, ptr imag, ptr out_real, ptr out_imag, ptr watch),
over arrays that do not overlap. Its code and its tables live as long as the process; so do the
pieces, which all routines share.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import field
from functools import partial

import numpy as np

from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.fft import lines
from rune.backends.cpu.fft.forms import Form, groups_of, new_routine, pieces_of, write_groups
from rune.backends.cpu.fft.stages import prime_function, stage_function
from rune.backends.cpu.gemm.library import SCALARS
from rune.backends.cpu.gemm.shape import Shape, shape_for
from rune.backends.cpu.gemm.tile import maker
from rune.lowering.codegen.llvm.names import suffix
from rune.records import dataclass

PARALLEL_ELEMENTS = 1 << 17  # elements, times the logarithm of a line, from which on cores share


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
    tables: list[np.ndarray] = field(default_factory=list)

    def need(self, forms: Iterable[Form]) -> None:
        """Compile what these forms need and is not there; two threads may both, and either serves.

        Errors: CompileError.
        """
        missing = sorted(set(forms) - self.routines.keys(), key=str)
        if not missing:
            return
        names = sorted(set[str]().union(*(pieces_of(f, self.shape.lanes) for f in missing)) - self.pieces.keys())
        if names:
            code = self.compiled([_piece_text(self.shape, name) for name in names], self.effort)
            self.pieces.update((name, code.address(name)) for name in names)
        # Most of what a routine does is to call pieces: it would gain nothing by more effort.
        code = self.compiled([self.routine_text(form, k) for k, form in enumerate(missing)], conventions.LITTLE)
        self.routines.update((form, code.address(f"transform{k}")) for k, form in enumerate(missing))

    def compiled(self, texts: list[str], effort: int) -> compiler.Code:
        """Functions as a module that stays."""
        code = compiler.compile_module("fft", "\n\n".join([_declarations(self.shape), *texts]), effort)
        self.codes.append(code)
        return code

    def routine_text(self, form: Form, number: int) -> str:
        """The functions of a routine: its groups, and what divides them among cores."""
        routine = new_routine(self.shape, self.dtype, self.pieces.__getitem__)
        groups = write_groups(routine, form, f"groups{number}")
        self.tables += routine.tables
        return "\n\n".join([groups, self.entry(form, number)])

    def entry(self, form: Form, number: int) -> str:
        """The routine itself."""
        make = maker(self.shape)
        (watch,) = make.pointers("watch")
        words, total = make.words(4, watch), groups_of(form, self.shape.lanes)
        for k, array in enumerate(make.pointers("real imag out_real out_imag")):
            make.writer.store(array, make.at(words, k, "i64"))
        elements = form.outer * form.n * form.inner
        if self.cores == 1 or total == 1 or elements * form.n.bit_length() < PARALLEL_ELEMENTS:
            make.call(f"groups{number}", words, make.number(0), make.number(total))
        else:
            task = f"ptr @groups{number}, ptr {words.text}, i64 {total}, i64 {-(-total // (2 * self.cores))}"
            make.writer.do(f"call void inttoptr (i64 {self.parallel} to ptr)({task})")
        text = make.text(f"transform{number}(ptr %real, ptr %imag, ptr %out_real, ptr %out_imag, ptr %watch)")
        return text.replace("define internal", "define", 1)


@functools.cache
def library(dtype: np.dtype, cores: int, parallel: int, effort: int) -> Library:
    """The routines of this process for f32 or f64."""
    return Library(dtype, cores, parallel, effort, shape_for(compiler.machine(), SCALARS[dtype]))


def transform_address(
    dtype: np.dtype, cores: int, parallel: int, effort: int, forms: Iterable[Form], form: Form
) -> int:
    """The address of the routine for a form. Errors: CompileError."""
    routines = library(dtype, cores, parallel, effort)
    routines.need(forms)
    return routines.routines[form]


def _declarations(shape: Shape) -> str:
    vector = shape.vector
    floats = (vector, shape.scalar)
    return "\n".join(
        [
            *(f"declare {t} @llvm.fma.{suffix(t)}({t}, {t}, {t})" for t in floats),
            "declare i64 @llvm.smin.i64(i64, i64)",
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        ]
    )


def _piece_text(shape: Shape, name: str) -> str:
    stem = name.rstrip("0123456789")
    radix = int(name.removeprefix(stem) or 0)
    write = partial(stage_function, radix=radix, turns=stem == "turned") if radix else _FUNCTIONS[name]
    return write(shape).replace("define internal", "define", 1)


_FUNCTIONS = {
    "prime": prime_function,
    "squares": lines.squares_function,
    "gather_line": lines.gather_line_function,
    "scatter_line": lines.scatter_line_function,
    "turned_squares": lines.turned_squares_function,
}
