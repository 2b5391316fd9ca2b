"""Decide which scatters are done by sorting (ops/sorted_scatters.py) and which update by update.

The loop over updates runs in one thread for each element that all of them may change. A processor
with vector units is quick at it; of a device with many slow threads it leaves all but a few idle.
"""

from __future__ import annotations

from typing import Any

from rune.core.lower import Scatter
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.ops.sorted_scatters import COMBINE, is_of_rows

MANY_CORES = 16  # a device with fewer is taken for a processor that runs kernels
# Mesa's CPU device silently ends every loop after this many iterations.
LONGEST_LOOP = {"spirv": 65535, "wgsl": 65535}


def sorts(target: Target, primitive: Primitive, *types: ArrayType, **params: Any) -> bool:
    """Whether a scatter of these operands is done by sorting on the target."""
    lower = primitive.lower
    if not isinstance(lower, Scatter) or target.threads_per_workgroup == 1:
        return False
    operand, indices, _ = types
    possible = lower.combine is None or lower.combine in COMBINE
    if not possible or not is_of_rows(operand, params["dims"], params["slice_sizes"]):
        return False
    count = cost.count(indices.shape[:-1])
    if target.cores >= MANY_CORES:
        return count >= cost.LONG_SCATTER
    return count >= LONGEST_LOOP.get(target.language, count + 1)
