"""Split parts: a complex array becomes its real and imaginary parts, two real arrays.

Before   program f(%0: c64[n]) { %1: c64[n] = mul %0, %0;  return %1 }
After    program f(%0: f32[n,2]) {
           %1: f32[n] = part %0 {number=0, axis=1};  %2: f32[n] = part %0 {number=1, axis=1}
           %3 = mul %1, %1;  %4 = mul %2, %2;  %5 = sub %3, %4;  ...
           %8: f32[n,2] = interleave %5, %7 {axis=1};  return %8
         }

Keys of random numbers are split in the same way, into their two words. In memory such an array is
its parts side by side, so the inputs and results keep their bytes and only their types change;
`outer_types` gives a plan the types that callers know. The program inside is real: it fuses,
reduces and vectorises like any other, and no later stage knows complex numbers or keys. The module
that splits equations (parts.py) is loaded for the first program that has such a value.

Invariant: no type of two parts is left, not even in the programs that equations hold.
Cost:      linear in the number of equations.
"""

from __future__ import annotations

from itertools import chain

from rune import dtypes
from rune.core.higher import inner_first, subprograms
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.lowering import late_modules
from rune.lowering.passes import Pass
from rune.ops.complex_numbers import PART as COMPLEX_PART

PART = {**COMPLEX_PART, **dict.fromkeys(dtypes.KEYS, dtypes.u32)}  # the dtype of a part


def has_parts(type: ArrayType) -> bool:
    """Whether values of a type have two parts."""
    return type.dtype in PART


@inner_first
def mentions_pairs(program: Program) -> bool:
    """Whether a program, or one that it holds, has a value of two parts."""
    atoms = chain(program.inputs, program.outputs, *((*e.operands, *e.results) for e in program.equations))
    inner = (p for e in program.equations for p in subprograms(e))
    return any(map(has_parts, {a.type for a in atoms})) or any(map(mentions_pairs, inner))


def split_parts(program: Program) -> Program:
    """The program in real numbers; the same program if it has no others."""
    return late_modules.parts().split(program) if mentions_pairs(program) else program


PASS = Pass("split-parts", "complex arrays and keys as their two parts", split_parts)
