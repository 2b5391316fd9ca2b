"""Legalize storage: store dtypes that a target lacks as bits, and compute with them in others.

Before   code f(x: read f8_e4m3[n], y: write f8_e4m3[n]) { ... store y[i] = x[i] * x[i] }
After    code f(x: read u8[n], y: write u8[n]) { ...
           bits: u32 = u32(x[i]);  ...  number: f32 = <decode>;  store y[i] = u8(<encode>) }

8-bit floats, and half types where the target has none, are computed in f32 and rounded after every
operation that may leave the format; 4-bit integers are computed in 8 bits and wrapped, and each
takes a byte of memory whose upper half is zero. formats.py has the bit expressions; Lets name the
parts that they use several times, so that the code stays linear.

Invariant: the code computes the same values bit for bit, and only the target's own dtypes remain.
Cost:      linear in the code.
"""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.lowering import late_modules
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.rewrite import expressions, walk, walk_expr
from rune.lowering.passes import Pass

NARROW = frozenset({dtypes.f8_e4m3, dtypes.f8_e5m2, dtypes.f16, dtypes.bf16, dtypes.i4, dtypes.u4})


def legalize_storage(target: Target) -> Pass[KernelCode]:
    """The pass for one target: it replaces dtypes that `target.dtypes` lacks."""
    foreign = NARROW - target.dtypes

    def run(code: KernelCode) -> KernelCode:
        # A foreign dtype may occur only inside, as the result of a cast.
        if not any(p.dtype in foreign for p in code.params) and not _mentions(code, foreign):
            return code
        return late_modules.narrow_storage().rewritten(code, foreign)

    return Pass("legalize-storage", "compute narrow dtypes in those of the target", run)


def _mentions(code: KernelCode, foreign: frozenset[np.dtype]) -> bool:
    exprs = (e for s in walk(code.body) for e in expressions(s))
    return any(part.dtype in foreign for e in exprs for part in walk_expr(e))
