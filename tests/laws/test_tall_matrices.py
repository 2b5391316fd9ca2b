"""Functions of tall matrices and of many points make no array with as many columns as rows.

A product in the wrong order does: Bᵀ (Ȧ P) has an intermediate [M, M] where (Bᵀ Ȧ) P has [N, N],
and the gradient of a fit of 200,000 points took 160 GB. So does a system of few diagonals that is
solved as a full one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.scipy import interpolate, linalg

ROWS = 4_099
POINTS = np.linspace(0, 1, ROWS, dtype=np.float32)

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "pinv": rnp.linalg.pinv,
    "pinv of wide ones": lambda x: rnp.linalg.pinv(x.T),
    "lstsq": lambda x: rnp.linalg.lstsq(x, POINTS)[0],
    "polyfit": lambda x: rnp.polyfit(x[:, 0], POINTS, 3),
    "polyfit of values": lambda x: rnp.polyfit(POINTS, x, 3),
    "svd": lambda x: rnp.linalg.svd(x, full_matrices=False),
    "qr": rnp.linalg.qr,
    "polar": linalg.polar,
    "cond": rnp.linalg.cond,
    "matrix_rank": lambda x: x[0] * rnp.linalg.matrix_rank(x),
    "nuclear norm": lambda x: rnp.linalg.norm(x, "nuc"),
    "cov": lambda x: rnp.cov(x, rowvar=False),
    "corrcoef": lambda x: rnp.corrcoef(x, rowvar=False),
    "CubicSpline": lambda x: interpolate.CubicSpline(POINTS, x)(0.5),
    "CubicSpline of points": lambda x: interpolate.CubicSpline(x[:, 0], POINTS)(0.5),
    "periodic CubicSpline": lambda x: interpolate.CubicSpline(POINTS, x - x, bc_type="periodic")(0.5),
    "make_interp_spline": lambda x: interpolate.make_interp_spline(POINTS, x)(0.5),
}


def tangent(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: rune.jvp(f, (x,), (x + 1.0,))[1]


def gradient(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return rune.grad(lambda x: sum(rnp.sum(rnp.abs(leaf) ** 2) for leaf in rune.tree.leaves(f(x))))


@pytest.mark.parametrize("transform", [lambda f: f, tangent, gradient], ids=["value", "tangent", "gradient"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_intermediate_has_as_many_columns_as_rows(name, transform):
    program = rune.make_program(transform(FUNCTIONS[name]))(np.zeros((ROWS, 3), np.float32))
    assert f"{ROWS},{ROWS}" not in str(program).replace(" ", "")
