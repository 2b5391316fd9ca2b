"""Matrix products and fetches in languages of the C family, and the error in all others.

    multiply a[i, 40, 1] by b[j, 1, 136] into (s, t, u, v), (w, x, y, z)

    { const auto _a_0 = rune_rows(&a[i], 40);
      const auto _b_0 = rune_columns_turned(&b[j], 136);
      rune_multiply_bf16(s, t, w, x, u, v, y, z, _a_0, _b_0); }

    multiply by 4 subgroups a[i, 64, 1] by b[j, 1, 64, 4096] into (s, ...), (t, ...)

    { const auto _a = rune_matrix(&a[i], 8), _b = rune_matrix(&b[j], 4096);
      rune_multiply_begins();
      rune_multiply_together_bf16_64<0, 1>(_a, _b, s, ..., t, ...);     and again for each next 16
      rune_multiply_ends(); }

The helpers of a language define these functions. They read 16 rows or columns at a time, and 8 for
a last half; the `turned` ones are for factors whose neighbours in memory differ in position, not in
depth.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NoReturn

from rune.dims import Size
from rune.errors import CompileError
from rune.lowering.kernel.matrices import DEPTH, TEAM, TEAM_DEPTH, TEAM_ROWS, place
from rune.lowering.kernel.nodes import Factor, Fetch, KernelCode, MatrixProduct
from rune.lowering.kernel.rewrite import walk

_WIDE, _NARROW = 16, 8  # rows or columns that one call reads
PIECE = 8  # elements in 16 bytes, the unit of addresses in products of four subgroups


def product_lines(stmt: MatrixProduct, function: str, address: Callable[[str, Size], str], name: Callable[[str], str]):
    """The lines of a block that computes a product.

    address: gives that of a shared element;  name: gives the identifier of an accumulator
    """
    rows, columns = 8 * len(stmt.accumulators), 4 * len(stmt.accumulators[0])
    for first in range(0, rows, _WIDE):
        yield f"const auto _a_{first} = {_matrix(stmt.a, 'rows', first, address)};"
    for first in range(0, columns, _WIDE):
        part = "columns" if columns - first > _NARROW else "columns_8"
        yield f"const auto _b_{first} = {_matrix(stmt.b, part, first, address)};"
    for row in range(0, rows, _WIDE):
        for column in range(0, columns, _WIDE):
            sums = [name(s) for s in _sums(stmt, row, column)]
            width = "" if columns - column > _NARROW else "_8"
            yield f"{function}{width}({', '.join(sums)}, _a_{row}, _b_{column});"


def together_lines(
    stmt: MatrixProduct, function: str, address: Callable[[str, Size], str], name: Callable[[str], str]
) -> Iterator[str]:
    """The lines of a block in which four subgroups compute a product; see `product_lines`."""
    for side, factor in (("a", stmt.a), ("b", stmt.b)):
        at = address(factor.buffer, factor.index)
        yield f"const auto _{side} = rune_matrix(&{at}, {factor.block_stride or PIECE});"
    yield "rune_multiply_begins();"
    columns, across = 4 * len(stmt.accumulators[0]), (f.position_stride == 1 for f in (stmt.a, stmt.b))
    call = f"{function}_{columns}<{', '.join(str(int(x)) for x in across)}>"
    for depth, row in itertools.product(range(0, TEAM_DEPTH, DEPTH), range(0, len(stmt.accumulators), 2)):
        a = (place(stmt.a, row // 2 * TEAM_ROWS) + depth * stmt.a.depth_stride) // PIECE
        b = depth * stmt.b.depth_stride // PIECE
        sums = ", ".join(name(s) for s in _sums_of_team(stmt, row))
        yield f"{call}(_a + {a}, _b + {b}, {sums});"
    yield "rune_multiply_ends();"


def _sums_of_team(stmt: MatrixProduct, row: int) -> Iterator[str]:
    """The accumulators of two rows of a thread: two columns of each at a time."""
    rows = stmt.accumulators[row : row + 2]
    for first in range(0, len(rows[0]), 2):
        for names in rows:
            yield from names[first : first + 2]


def swizzled_arrays(code: KernelCode) -> frozenset[str]:
    """The shared arrays that four subgroups multiply, whose pieces are stored in swizzled order."""
    teams = [s for s in walk(code.body) if isinstance(s, MatrixProduct) and s.subgroups == TEAM]
    return frozenset(f.buffer for s in teams for f in (s.a, s.b))


def _matrix(factor: Factor, part: str, first: int, address: Callable[[str, Size], str]) -> str:
    """The call that reads a part of a factor, from position `first` on."""
    is_turned, stride = factor.position_stride == 1, max(factor.position_stride, factor.depth_stride)
    at = address(factor.buffer, factor.index + first * factor.position_stride)
    return f"rune_{part}{'_turned' * is_turned}(&{at}, {stride})"


def _sums(stmt: MatrixProduct, row: int, column: int) -> Iterator[str]:
    """The accumulators of two rows of a thread, two columns at a time."""
    rows = stmt.accumulators[row // 8 : row // 8 + 2]
    for first in range(column // 4, min(column // 4 + 4, len(rows[0])), 2):
        for names in rows:
            yield from names[first : first + 2]


def refuse_unit(stmt: Fetch | MatrixProduct, language: str) -> NoReturn:
    """Raise CompileError for a statement that legalize/units.py should have written out."""
    statement = "a fetch" if isinstance(stmt, Fetch) else "a product of matrices"
    raise CompileError(
        f"{language}: cannot render {statement} (the language has no such instruction)",
        hint="the pass write-out-units replaces it with other statements for targets that lack it",
    )


__all__ = ["product_lines", "refuse_unit", "swizzled_arrays", "together_lines"]
