"""Reductions, scans and in-place carries equal NumPy's for extents 1 to 130 and every dtype.

How an extent divides into whole vectors and a remainder depends on the dtype and the executor. Each
run takes a sample and the extents known to be delicate; RUNE_TEST_WHOLE=1 takes all extents, on
every executor (`-k cpu` selects one).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, lax
from rune.array import Array
from rune.lowering.codegen.machine import SUPPORTED
from tests.support.arrays import array
from tests.support.sampling import one_in

EXTENTS = range(1, 131)
ROWS, DEPTH = 3, 2
DEVICES = {d.name: d.target for d in rune.devices() if d.target.backend != "null"}
NUMBERS = sorted(SUPPORTED - {dtypes.bool_}, key=dtypes.short)


@dataclass(frozen=True)
class Case:
    """One program: where, of what, how long."""

    device: str
    dtype: np.dtype
    extent: int

    def __str__(self) -> str:
        return f"{self.device}-{dtypes.short(self.dtype)}-{self.extent}"


ALL = [
    Case(name, dtype, n)
    for name, target in DEVICES.items()
    for dtype in NUMBERS
    if dtype in target.program_dtypes
    for n in EXTENTS
]
# Extents of three vectors of 512 bits, their neighbours, and rounding within a sum.
DELICATE = [
    *(Case("cpu:0", dtypes.f32, n) for n in (47, 48, 55, 63, 64, 65)),
    *(Case("cpu:0", dtypes.f64, n) for n in (23, 24, 29, 31, 32)),
    *(Case("cpu:0", dtypes.bf16, n) for n in (17, 96, 127)),
    *(Case(name, dtypes.f16, 17) for name in DEVICES),
]
HERE = [c for c in ALL if c.device == "cpu:0"]
ELSEWHERE = [c for c in ALL if c.device != "cpu:0"]
CHOSEN = {*DELICATE, *one_in(192, HERE), *one_in(2000, ELSEWHERE)}
SAMPLE = [case for case in ALL if case in CHOSEN]


def reductions(x: Array) -> list[Array]:
    """Along each axis, of the array and of the array read by columns."""
    both = [x, x.T]
    return [
        *(r for y in both for r in (y.sum(0), y.sum(1), y.max(0), y.min(1))),
        x.T.sum(),
        (x + 1).prod(1),
        rnp.argmax(x, 1),
        rnp.cumsum(x, 1),
        rnp.cumsum(x.T, 1),
    ]


def loops(x: Array, lhs: Array, rhs: Array) -> list[Array]:
    """Carries that are changed in place, and sums of them."""
    zeros = rnp.zeros_like(x[0])
    product = lax.fori_loop(0, ROWS, lambda i, h: h + lhs[i] @ rhs, zeros)
    total, sums = lax.scan(lambda c, row: (c + row, (c + row).sum()), zeros, x)
    return [product, total, sums]


def meant(x: np.ndarray, lhs: np.ndarray, rhs: np.ndarray) -> list[np.ndarray]:
    """The same by NumPy, in whole numbers."""
    both = [x, x.T]
    return [
        *(r for y in both for r in (y.sum(0), y.sum(1), y.max(0), y.min(1))),
        x.sum(),
        (x + 1).prod(1),
        x.argmax(1),
        np.cumsum(x, 1),
        np.cumsum(x.T, 1),
        (lhs @ rhs).sum(0),
        x.sum(0),
        np.cumsum(x, 0).sum(1),
    ]


def few_ones(draw: np.random.Generator, extent: int) -> np.ndarray:
    """Rows of zeros with up to 6 ones in each: no sum or product is too large for any dtype."""
    rows = np.zeros((ROWS, extent), np.int64)
    for row in rows:
        row[draw.integers(0, extent, 6)] = 1
    return rows


def check(case: Case) -> None:
    """Compare all of them with NumPy."""
    draw = np.random.default_rng(case.extent)
    x = few_ones(draw, case.extent)
    lhs, rhs = draw.integers(0, 2, (ROWS, DEPTH)), draw.integers(0, 2, (DEPTH, case.extent))

    def program(x: Array, lhs: Array, rhs: Array) -> list[Array]:
        return [*reductions(x), *loops(x, lhs, rhs)]

    arguments = [array(a.astype(case.dtype)) for a in (x, lhs, rhs)]
    results = rune.jit(program, device=case.device)(*arguments)

    for number, (a, b) in enumerate(zip(results, meant(x, lhs, rhs), strict=True)):
        np.testing.assert_array_equal(np.asarray(a).astype(np.float64), b, err_msg=str(number))


@pytest.mark.parametrize("case", SAMPLE, ids=str)
def test_reductions_scans_and_carries_of_any_extent_are_those_of_numpy(case: Case):
    check(case)
