"""Refuse programs with a dtype that a target neither has nor can be legalised to.

This runs before anything is lowered, so that the message names the user's line and not a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rune import dtypes
from rune.core.higher import programs_within
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.errors import DtypeError, Frame
from rune.lowering.codegen.target import Target

_NARROWER = {dtypes.f64: "f32", dtypes.c128: "c64", dtypes.i64: "i32", dtypes.u64: "u32"}


def require_dtypes(program: Program, target: Target) -> None:
    """Check that the target can compute with every type of the program.

    Errors: DtypeError "lower: cannot use f64[3] on opencl:1 (no f64 on Intel(R) Graphics)".
    """
    target_dtypes = target.program_dtypes
    for type, frame in _types(program):
        if type.dtype not in target_dtypes and type.dtype in dtypes.ANY | dtypes.KEYS:
            raise _refusal(type.dtype, type, target, frame)


def _types(program: Program) -> Iterator[tuple[ArrayType, Frame | None]]:
    """Every type of the program and of its subprograms, with the line that it came from."""
    for inner in programs_within(program):
        yield from ((type, None) for type in inner.input_types)
        yield from ((v.type, e.frame) for e in inner.equations for v in e.results)


def _refusal(dtype: np.dtype, type: ArrayType, target: Target, frame: Frame | None) -> DtypeError:
    narrower = _NARROWER.get(dtype)
    hint = "compute it on another device: rune.jit(device=...)"
    if narrower is not None:
        hint = f"convert to {narrower}, or compute it on another device: rune.jit(device=...)"
    reason = f"no {dtypes.short(dtype)} on {target.description}"
    return DtypeError(f"lower: cannot use {type} on {target.name} ({reason})", hint=hint, frame=frame)
