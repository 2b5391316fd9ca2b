"""Loads that are scattered along the lanes, but contiguous along another axis of the grid.

Before   for i { for j in lanes { y[i, j] = x[j, i] } }         x is scattered along j
After    the axis i, and x[j, i]: copies of square tiles pay off (codegen/llvm/tiles.py)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set

from rune import dims
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import For, KernelCode, Let, Stmt, Store
from rune.lowering.kernel.rewrite import expressions, loads, loads_in, names_in, size_names, walk
from rune.lowering.lanes.choose import is_vectorisable
from rune.records import dataclass

LEAST_EXTENT = 32  # of both axes, for tiles to be worth their code


@dataclass(frozen=True, slots=True)
class Transposition:
    """The last axis, another axis, and loads that are scattered along the last, but not along it.

    constants: values that are the same for the whole grid, which the loads' indices may mention
    """

    last: For
    axis: For
    loads: tuple[Load, ...]
    constants: tuple[Let, ...]

    def others(self, grid: Sequence[For]) -> list[For]:
        """The axes that tiles do not cover."""
        return [loop for loop in grid if loop not in (self.axis, self.last)]


def find_transposed(code: KernelCode, grid: Sequence[For], inner: tuple[Stmt, ...]) -> Transposition | None:
    """The loads to copy by tiles, or None if no load gains from it."""
    if len(grid) < 2 or not all(isinstance(s, (Let, Store)) for s in inner):
        return None
    if not is_vectorisable(grid[-1]):
        return None
    alias_names = {name for pair in code.aliases for name in pair}
    constants = _constants(inner, grid, alias_names)
    varying = {s.name for s in inner if isinstance(s, Let)} - {let.name for let in constants}
    along: Counter[str] = Counter()
    candidates: list[tuple[str, Load]] = []
    for load in _loads(inner):
        axis = None if size_names(load.indices[0]) & varying else _contiguous_axis(load, grid)
        if axis is not None and load.buffer not in alias_names:
            along[axis] += 1
            candidates.append((axis, load))
    if not along:
        return None
    # Only one axis is tiled; loads contiguous along others stay scattered.
    axis_name = along.most_common(1)[0][0]
    loop = next(g for g in grid if g.var == axis_name)
    if any(isinstance(g.extent, int) and g.extent < LEAST_EXTENT for g in (loop, grid[-1])):
        return None
    distinct = {(load.buffer, load.indices): load for axis, load in candidates if axis == axis_name}
    return Transposition(grid[-1], loop, tuple(distinct.values()), constants)


def _constants(inner: Sequence[Stmt], grid: Sequence[For], alias_names: Set[str]) -> tuple[Let, ...]:
    """The values that depend on no axis and that no store changes, such as the number of a step."""
    varying, constants = {g.var for g in grid}, list[Let]()
    for stmt in inner:
        if not isinstance(stmt, Let):
            continue
        if names_in(stmt.value) & varying or loads_in(stmt.value) & alias_names:
            varying.add(stmt.name)
        else:
            constants.append(stmt)
    return tuple(constants)


def _loads(body: Sequence[Stmt]) -> Iterator[Load]:
    return loads(e for s in walk(body) for e in expressions(s))


def _contiguous_axis(load: Load, grid: Sequence[For]) -> str | None:
    """The axis along which a load scattered along the last one is contiguous."""
    index, names = load.indices[0], {g.var for g in grid}
    step = dims.coefficient(index, grid[-1].var)
    # A tile is copied whole, but a guarded element may not exist.
    plain = load.guard is None and size_names(index) & names
    if not plain or step is None or step in (0, 1):
        return None
    for loop in grid[:-1]:
        if dims.coefficient(index, loop.var) == 1:
            return loop.var
    return None
