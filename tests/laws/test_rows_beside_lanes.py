"""Rows of a few elements at each point, read by several results, eager and compiled, beside NumPy.

Points run in lanes, and each lane has a copy of its row (lanes/choose.py). Rows are longer and
shorter than the limit of copies, and points fill vectors and do not.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rune
import rune.numpy as rnp

KINDS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
POINTS = (1, 2, 15, 16, 17, 33, 130, 257, 4_099, 65_537)
CASES = [(9, "f32", points) for points in POINTS]
CASES += [(rows, "f32", 257) for rows in (2, 3, 64, 65)] + [(9, kind, 33) for kind in ("f16", "bf16", "f64")]


def rows(x: Any, y: Any, xp: Any) -> tuple[Any, ...]:
    """A row for each point, less a sum of squares: all of it, two elements, and pieces by turns."""
    row = x * 2 - (y * y).sum(0) * x * x
    turned = xp.stack([xp.roll(row[q], q) for q in range(min(len(x), 9))])
    return row, row[0], row[-1] + 1, turned


@pytest.mark.parametrize(("length", "kind", "points"), CASES)
def test_rows_that_are_stored_and_read_in_part_are_numpys(length: int, kind: str, points: int):
    rng = np.random.default_rng(length)
    x, y = (rng.random((n, points)).astype(KINDS[kind]) for n in (length, 2))

    operands = rnp.asarray(x, dtype=x.dtype), rnp.asarray(y, dtype=y.dtype)
    results = [*rune.jit(lambda x, y: rows(x, y, rnp))(*operands), *rows(*operands, rnp)]

    for result, exact in zip(results, 2 * rows(x.astype(np.float64), y.astype(np.float64), np), strict=True):
        assert result.dtype == x.dtype
        tolerance = 16 * float(ml_dtypes.finfo(x.dtype).eps)
        np.testing.assert_allclose(np.asarray(result).astype(np.float64), exact, atol=tolerance)


@pytest.mark.parametrize("points", [1, 16, 17, 130])
def test_rows_of_integers_and_truth_values_index_and_divide_in_lanes(points: int):
    rng = np.random.default_rng(points)
    x = rng.integers(-9, 9, (5, points), np.int32)
    table = rng.integers(-99, 99, 11, np.int32)

    def program(x: Any, table: Any, xp: Any) -> tuple[Any, ...]:
        row = xp.where(x > (x * x).sum(0) % 7, x % 5, 3)
        place = row[1] + row[2] + 1
        return row, table[place % 11], (row > 2)[0], table[row[0] % 11] // xp.where(row[3] == 0, 1, row[3])

    results = rune.jit(lambda x, t: program(x, t, rnp))(rnp.asarray(x), rnp.asarray(table))

    for result, exact in zip(results, program(x, table, np), strict=True):
        np.testing.assert_array_equal(np.asarray(result), exact)
