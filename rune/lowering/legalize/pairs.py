"""Types of two parts: complex numbers, and keys. What splits them is loaded if one occurs."""

from __future__ import annotations

from rune import dtypes
from rune.core.higher import subprograms
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.lowering import late_modules
from rune.lowering.passes import Pass
from rune.ops.complex_numbers import PART as COMPLEX_PART

PART = {**COMPLEX_PART, **dict.fromkeys(dtypes.KEYS, dtypes.u32)}  # the dtype of a part


def has_parts(type: ArrayType) -> bool:
    """Whether values of a type have two parts."""
    return type.dtype in PART


def mentions_pairs(program: Program) -> bool:
    """Whether a program, or one that it holds, has a value of two parts."""
    types = [a.type for e in program.equations for a in (*e.operands, *e.results)]
    if any(map(has_parts, (*program.input_types, *program.output_types, *types))):
        return True
    return any(mentions_pairs(p) for e in program.equations for p in subprograms(e))


def split_parts(program: Program) -> Program:
    """The program in real numbers; the same program if it has no others."""
    return late_modules.parts().split(program) if mentions_pairs(program) else program


PASS = Pass("split-parts", "complex arrays and keys as their two parts", split_parts)
