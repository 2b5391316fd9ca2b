"""Matrix products of a subgroup, in terms of what each of its threads does.

    multiply a[i, 24, 1] by b[j, 1, 40] into (s, t), (u, v)       thread of the workgroup: x

    for k in 16 serial {
      a_0: bf16 = a[i + 24*(x % 32 // 4) + k];           a_1: 8 rows further
      b_0: bf16 = b[j + 2*(x % 4) + 40*k];               b_1: the next column
      s add= contract f32(a_0) * f32(b_0);  t add= ...   u: a_1 and b_0, v: a_1 and b_1
    }

Each thread reads the rows and columns of its accumulators itself, so this definition needs no
exchange between threads, unlike the instructions of devices. Four subgroups together do the same
for 64 rows and a depth of 64: each has 16 of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rune import dtypes
from rune.dims import Dim, Size
from rune.lowering.kernel.expr import Cast, Load, Local, Op
from rune.lowering.kernel.nodes import Accumulate, Factor, For, Kind, Let, MatrixProduct, Stmt
from rune.lowering.kernel.rewrite import loop_symbol

SUBGROUP = 32  # threads that hold a product together
ROWS, COLUMNS, DEPTH = 16, 8, 16  # of the smallest product
TEAM = 4  # subgroups that multiply together
TEAM_ROWS, TEAM_DEPTH = 64, 64  # of their smallest product: a depth fills a line of 128 bytes
NARROW = frozenset({dtypes.bf16, dtypes.f16})  # dtypes of factors


def row(thread: Size, r: int, subgroups: int = 1) -> Size:
    """The row of A to which the r-th row of a thread belongs."""
    if subgroups == 1:
        return 8 * r + thread % SUBGROUP // 4
    of_subgroup = thread % (TEAM * SUBGROUP) // SUBGROUP * ROWS
    return TEAM_ROWS * (r // 2) + 8 * (r % 2) + of_subgroup + thread % SUBGROUP // 4


def column(thread: Size, c: int) -> Size:
    """The row of B to which the c-th column of a thread belongs."""
    return 8 * (c // 2) + thread % 4 * 2 + c % 2


def depth(stmt: MatrixProduct) -> int:
    """How many products are added to each accumulator."""
    return DEPTH if stmt.subgroups == 1 else TEAM_DEPTH


def written_out(stmt: MatrixProduct, thread: Dim, fresh: Callable[[str], str]) -> For:
    """What a thread does for its accumulators, as a loop over the depth."""
    loop = For(fresh("k"), depth(stmt), Kind.SERIAL, ())
    rows, columns = len(stmt.accumulators), len(stmt.accumulators[0])
    a = [_element(stmt.a, row(thread, r, stmt.subgroups), loop, fresh(f"a_{r}")) for r in range(rows)]
    b = [_element(stmt.b, column(thread, c), loop, fresh(f"b_{c}")) for c in range(columns)]
    return For(loop.var, loop.extent, loop.kind, (*a, *b, *_sums(stmt, a, b)))


def _element(factor: Factor, position: Size, loop: For, name: str) -> Let:
    index = factor.index + place(factor, position) + loop_symbol(loop) * factor.depth_stride
    return Let(name, Load(factor.buffer, (index,), factor.dtype))


def place(factor: Factor, position: Size) -> Size:
    """The offset of a position from the first one."""
    if not factor.block_stride:
        return position * factor.position_stride
    block, within = position // TEAM_ROWS, position % TEAM_ROWS
    return block * factor.block_stride + within * factor.position_stride


def _sums(stmt: MatrixProduct, a: list[Let], b: list[Let]) -> Iterator[Stmt]:
    for names, x in zip(stmt.accumulators, a, strict=True):
        for name, y in zip(names, b, strict=True):
            factors = tuple(Cast(Local(let.name, let.value.dtype), dtypes.f32) for let in (x, y))
            yield Accumulate(name, "add", Op("mul", factors, dtypes.f32), contract=True)


__all__ = ["COLUMNS", "DEPTH", "NARROW", "ROWS", "SUBGROUP", "TEAM", "TEAM_DEPTH", "TEAM_ROWS", "column", "depth"]
__all__ += ["place", "row", "written_out"]
