"""Scatters on a device, and how to choose among them.

    atomically    all updates at once, if their order does not matter: integers, and floats
                  where the user allows sums in any order (atomic.py)
    in integers   sums of floats, atomically in fixed point: the same on every run, for two
                  atomic operations instead of one (fixed_point.py)
    by sorting    the updates of one element become neighbours, in their order (by_sorting.py)
    one by one    a loop over all updates, in one thread for each element that they may change

The last is fast on a processor with vector units, but leaves all but a few threads of a GPU idle.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from rune import dtypes
from rune.core.lower import Scatter
from rune.core.primitive import Primitive
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.lowering.scatters.atomic import change_atomically, is_atomic
from rune.lowering.scatters.by_sorting import COMBINES, change_by_sorting
from rune.lowering.scatters.fixed_point import add_in_integers, is_summed_in_integers
from rune.lowering.sorting.radix import tiles
from rune.ops.index_dims import IndexDims
from rune.ops.row_scatters import Change, changed_rows, is_of_rows, scattered_axes
from rune.records import dataclass

# On an H100, four million atomic changes of 1,000 elements take 390 µs, and 210 if they are sorted;
# of a million elements, 60 and 330.
FEW_ELEMENTS, MANY_CHANGES = 1 << 12, 1 << 18
# Sums in integers move 36 bytes for each element: up to this many, a sort would only have started.
QUICK_ELEMENTS = 1 << 20
MANY_CORES = 16  # a device with fewer is assumed to be a processor that runs kernels
# Mesa's CPU device silently ends every loop after this many iterations.
LONGEST_LOOP = {"spirv": 65535, "wgsl": 65535}


def expansion(
    target: Target,
    reproducible: bool,
    primitive: Primitive,
    operand: ArrayType,
    indices: ArrayType,
    updates: ArrayType,
    *,
    dims: IndexDims,
    slice_sizes: Shape,
    mode: str,
) -> Callable[..., Value] | None:
    """The function that replaces a scatter of these operands on the target; None for one by one."""
    lower = primitive.lower
    assert isinstance(lower, Scatter)
    is_plain = operand.dtype not in dtypes.COMPLEX and 0 not in operand.shape
    if not is_plain or not _is_long(target, indices) or not is_of_rows(operand, dims, slice_sizes):
        return None
    rows = cost.count(tuple(operand.shape[a] for a in scattered_axes(dims)))
    changes = Changes(rows, cost.count(operand.shape) // max(1, rows), cost.count(indices.shape[:-1]))
    change = _change(target, reproducible, lower.combine, operand.dtype, changes)
    return None if change is None else functools.partial(changed_rows, change)


@dataclass(frozen=True, slots=True)
class Changes:
    """The number of rows, their length, and the number of updates; symbolic sizes are guessed."""

    rows: int
    width: int
    updates: int

    @property
    def wait(self) -> bool:
        """Whether changes of one element wait for one another for longer than sorting takes."""
        return self.rows * self.width < FEW_ELEMENTS and self.updates * self.width >= MANY_CHANGES

    @property
    def are_dense(self) -> bool:
        """Whether sums in integers, which touch every row, touch few rows that do not change."""
        return self.rows <= 2 * self.updates or self.rows * self.width <= QUICK_ELEMENTS


def _change(
    target: Target, reproducible: bool, combine: str | None, dtype: np.dtype, changes: Changes
) -> Change | None:
    if not changes.wait or combine not in COMBINES:
        if combine is not None and is_atomic(target, combine, dtype, reproducible):
            return functools.partial(change_atomically, combine)
        if combine == "add" and is_summed_in_integers(target, dtype) and changes.are_dense:
            return add_in_integers
    if combine in COMBINES:
        return functools.partial(change_by_sorting, combine, tiles(target))
    return None


def _is_long(target: Target, indices: ArrayType) -> bool:
    """Whether the loop over updates would be too long for the device."""
    if target.threads_per_workgroup == 1:
        return False
    count = cost.count(indices.shape[:-1])
    if target.cores >= MANY_CORES:
        return count >= cost.LONG_SCATTER
    return count >= LONGEST_LOOP.get(target.language, count + 1)
