"""The tables of docs/accuracy.md: what rounding may do to a result, in ulps.

allowed(div, dtypes.f32)              4: from the reference
is_sum(reduce_sum)                    True: its ulps are those of 1 plus the result
bars("Functions")["tan"]["vulkan"]    1.5: from the exact value
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np

from rune import dtypes
from rune.core.primitive import Primitive

PAGE = Path(__file__).parent.parent.parent / "docs" / "accuracy.md"
_COLUMNS = (
    {dtypes.f32, dtypes.f64},
    {dtypes.f16, dtypes.bf16, dtypes.f8_e4m3, dtypes.f8_e5m2},
    {dtypes.c64, dtypes.c128},
)


def _rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading of the page, the header row first."""
    sections = re.split(r"^#+ (.*)\n", PAGE.read_text(), flags=re.M)
    text = dict(zip(sections[1::2], sections[2::2], strict=True))[heading]
    lines = [line.strip("| ") for line in text.splitlines() if line.startswith("|")]
    return [re.split(r"\s*\|\s*", line) for line in lines if not line.startswith("---")]


@functools.cache
def bars(heading: str) -> Mapping[str, Mapping[str, float]]:
    """The ulps in each column, by the name of a function or distribution."""
    head, *rows = _rows(heading)
    columns = [cell.strip("`") for cell in head[1:]]
    return {
        name: dict(zip(columns, map(_ulps, cells), strict=True))
        for names, *cells in rows
        for name in re.findall(r"`(.*?)`", names)
    }


def _ulps(cell: str) -> float:
    """A bar; a dash promises nothing."""
    return math.inf if cell == "–" else float(cell)


@functools.cache
def table() -> dict[str, tuple[int, ...]]:
    """The ulps of each column of dtypes, by the name of a primitive or family."""
    return {
        name: tuple(map(int, cells[: len(_COLUMNS)]))
        for names, *cells in _rows("Accuracy")[1:]
        for name in re.findall(r"\w+", names)
    }


def allowed(primitive: Primitive, result: np.dtype, *operands: np.dtype) -> int:
    """The ulps for a result of that dtype; 0 for whole numbers and bools."""
    if result not in dtypes.INEXACT:
        return 0
    row = table().get(primitive.name) or table()[primitive.family]
    governing = next((d for d in operands if d in dtypes.COMPLEX), result)
    return next(ulps for ulps, column in zip(row, _COLUMNS) if governing in column)


def step(dtype: np.dtype) -> float:
    """One ulp of 1, for a complex dtype that of its parts."""
    return float(ml_dtypes.finfo(np.real(np.zeros(1, dtype)).dtype).eps)


def is_sum(primitive: Primitive) -> bool:
    """Whether the order of summation differs."""
    return primitive.name == "scatter_add" or primitive.family in ("reduction", "cumulative", "contraction")
