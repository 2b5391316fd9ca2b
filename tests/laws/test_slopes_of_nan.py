"""A function that is NaN because of one NaN operand must not have 0 as its derivative."""

from __future__ import annotations

import zlib
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import tree
from tests.differential.operands import plain
from tests.numpy.spelling import Case
from tests.scipy.cases import CASES
from tests.support.sampling import IS_WHOLE

NAMES = ("special.*", "stats.*: [pc]df*", "stats.*: ppf*", "stats.*: pmf*")
SHARE = 1 if IS_WHOLE else 12  # one in this many functions is tried
POINTWISE = [
    c
    for c in CASES
    if c.smooth and zlib.crc32(c.name.encode()) % SHARE == 0 and any(fnmatchcase(c.name, name) for name in NAMES)
]


def _floats(case: Case, operands: list[Any]) -> list[Any]:
    leaves = tree.leaves(case.call(case.ours, *operands))
    return [x for x in leaves if x.dtype.kind == "f"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", POINTWISE, ids=str)
def test_a_nan_among_the_operands_is_in_the_derivative(case: Case):
    operands = [rnp.asarray(x) for x in plain(case)]
    floats = [place for place, x in enumerate(operands) if x.dtype.kind == "f"]

    assert [place for place in floats if _is_silent(case, operands, place)] == []


def _is_silent(case: Case, operands: list[Any], place: int) -> bool:
    """Whether a value is NaN, as this operand is, and its slope 0."""
    x = operands[place]

    def at(y: Any) -> list[Any]:
        return _floats(case, [*operands[:place], y, *operands[place + 1 :]])

    values, slopes = rune.jvp(at, (rnp.full_like(x, rnp.nan),), (rnp.ones_like(x),))
    pairs = [(np.asarray(v), np.asarray(s)) for v, s in zip(values, slopes, strict=True)]
    return any(bool(np.any(np.isnan(v) & (s == 0))) for v, s in pairs)
