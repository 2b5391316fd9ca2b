"""Scatters on a device: which way each is done.

    atomically    every update at once, where their order does not show: integers, and floats
                  where the user allows sums in any order (atomic.py)
    by sorting    updates of one element in their order, next to each other (by_sorting.py)
    one by one    a loop over updates, in one thread for each element that all of them may change

A processor with vector units is quick at the last; of a device with many slow threads it leaves all
but a few idle.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rune import dtypes
from rune.core.lower import Scatter
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.lowering.scatters.atomic import change_atomically, is_atomic
from rune.lowering.scatters.by_sorting import COMBINES, change_by_sorting
from rune.lowering.sorting.radix import tiles
from rune.ops.row_scatters import Change, changed_rows, is_of_rows

MANY_CORES = 16  # a device with fewer is taken for a processor that runs kernels
# Mesa's CPU device silently ends every loop after this many iterations.
LONGEST_LOOP = {"spirv": 65535, "wgsl": 65535}


def expansion(
    target: Target, reproducible: bool, primitive: Primitive, *types: ArrayType, **params: Any
) -> Callable[..., Value] | None:
    """What the target does in place of a scatter of these operands; None: one by one."""
    change = _change(target, reproducible, primitive, *types, **params)
    return None if change is None else functools.partial(changed_rows, change)


def _change(
    target: Target, reproducible: bool, primitive: Primitive, *types: ArrayType, **params: Any
) -> Change | None:
    lower = primitive.lower
    if not isinstance(lower, Scatter) or not _is_long(target, types[1]):
        return None
    operand = types[0]
    if (
        operand.dtype in dtypes.COMPLEX
        or 0 in operand.shape
        or not is_of_rows(operand, params["dims"], params["slice_sizes"])
    ):
        return None
    if lower.combine is not None and is_atomic(target, lower.combine, operand.dtype, reproducible):
        return functools.partial(change_atomically, lower.combine)
    if lower.combine in COMBINES:
        return functools.partial(change_by_sorting, lower.combine, tiles(target))
    return None


def _is_long(target: Target, indices: ArrayType) -> bool:
    """Whether the loop over updates would be too long for the device."""
    if target.threads_per_workgroup == 1:
        return False
    count = cost.count(indices.shape[:-1])
    if target.cores >= MANY_CORES:
        return count >= cost.LONG_SCATTER
    return count >= LONGEST_LOOP.get(target.language, count + 1)
