"""Factorisations where threads work in groups: by blocks of columns, whose kernels are written."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from rune.core.lower import Rule
from rune.core.primitive import Primitive
from rune.lowering.codegen.target import Target
from rune.lowering.factorisations import cholesky, lu, triangular
from rune.lowering.factorisations.panels import THREADS
from rune.ops.linalg.cholesky import dense_cholesky
from rune.ops.linalg.lu import dense_lu
from rune.ops.linalg.triangular import dense_solve


def expansions(target: Target) -> Mapping[Primitive, Rule]:
    """What a device does in place of the primitives' own expansions."""
    if not target.is_gpu or target.threads_per_workgroup < THREADS:
        return {}
    rules = {dense_cholesky: cholesky.by_blocks, dense_solve: triangular.by_blocks, dense_lu: lu.eliminated}
    return {primitive: functools.partial(rule, target.shared_bytes) for primitive, rule in rules.items()}
