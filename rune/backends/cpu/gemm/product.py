"""A matrix product as a plan calls it: its sizes, its transposed sides, and the walks of its views.

A role is the index of one operand over its batch, its rows or columns, or p. Its digits are (size,
step) pairs, innermost first: an index is written in mixed radix, and digit d moves the place of an
element by step d.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from rune.records import dataclass

Digits = tuple[tuple[int, int], ...]

DIGITS = 8  # at most, of one index
WORDS = 1 + 2 * DIGITS  # of one role in memory: the number of its digits, then these
ROLES = ("a_batch", "a_rows", "a_inner", "b_batch", "b_columns", "b_inner")
DEPTH = 512  # of p in one block, on which the order of the sum depends
FEW = 4  # the most rows of A for which contiguous columns of B are not packed
COLUMNS = 12  # the most of a narrow product
COLUMNS_OF_ROWS = 8  # the same if tiles read the rows of A in place, too
NARROW = 1 << 17  # the least elements of A of a narrow product, which no draft computes by itself


@dataclass(frozen=True, slots=True)
class Product:
    """A product as known before it runs: m x k by k x n, and the transposed sides.

    None stands for a size that is known only at run time.
    walks: of a product of views, the digits of each role; empty if they are unknown
    """

    m: int | None
    n: int | None
    k: int | None
    trans_a: bool = False
    trans_b: bool = False
    walks: Mapping[str, Digits] = field(default_factory=dict)


def most_columns(lanes: int) -> int:
    """The most columns of a narrow product: with more of them tiles use most of their lanes."""
    return min(COLUMNS, lanes * 3 // 4)


def is_narrow(m: int, n: int, k: int, inner: Digits, lanes: int) -> bool:
    """Whether sums over the lanes of p are faster than tiles, whose lanes are columns.

    inner: the digits of p in A, of which vectors are read
    """
    length, step = inner[0]
    most = min(most_columns(lanes), COLUMNS_OF_ROWS if len(inner) == 1 else COLUMNS)
    # A sum of lanes costs the time of some four steps of a vector, and a tile's row of p two.
    is_deep = k >= max(lanes, 8 * n) and step == 1 and length >= lanes // 2
    return is_deep and n <= most and m >= lanes and m * k >= NARROW


def is_of_few_rows(m: int | None, n: int | None, trans_a: bool, trans_b: bool) -> bool:
    """Whether a dense product may be sums over the lanes of p, as those of `blocks.rows_function`.

    n is not 1 unless m is: such a product is computed as the transposed one.
    """
    return (not trans_a or m in (None, 1)) and (trans_b or n == 1) and (m is None or m <= FEW)
