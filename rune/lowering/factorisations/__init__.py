"""Factorisations with groups of threads: by blocks of columns, in handwritten kernels."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from rune.core.lower import Rule
from rune.core.primitive import Primitive
from rune.lowering import late_modules
from rune.lowering.codegen.target import Target
from rune.ops.linalg.cholesky import dense_cholesky
from rune.ops.linalg.lu import dense_lu
from rune.ops.linalg.triangular import dense_solve

THREADS = 256  # of a group that factors a block


def expansions(target: Target) -> Mapping[Primitive, Rule]:
    """The device's rules that replace the primitives' own expansions."""
    if not target.is_gpu or target.threads_per_workgroup < THREADS:
        return {}
    rules = {
        dense_cholesky: late_modules.cholesky().by_blocks,
        dense_solve: late_modules.triangular().by_blocks,
        dense_lu: late_modules.lu().eliminated,
    }
    return {primitive: functools.partial(rule, target) for primitive, rule in rules.items()}
