"""Streams on units for matrices: the products of attention of halves, and of its gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes
from rune import numpy as rnp
from rune.lowering.codegen.target import natively
from rune.lowering.kernel.nodes import MatrixProduct
from rune.lowering.kernel.rewrite import walk
from rune.lowering.kernels import Reduce, Stream
from tests.lowering.test_streams import GPU, lowered, run, streams_of
from tests.support.attention import Case, attention, gradient, rounded, slopes_in_a_direction
from tests.support.close import near
from tests.support.sampling import each_value

HALVES = (dtypes.bf16, dtypes.f16)
UNITS = replace(GPU, native=natively(multiply=HALVES, fetch=HALVES))
# Whole tiles and not; one part and more; rows in one subgroup and in several.
HALF_CASES = (
    Case(1, 64, 128, 1, 1, 64),
    Case(1, 70, 131, 2, 1, 16),
    Case(2, 17, 257, 1, 1, 32),
    Case(1, 33, 192, 1, 1, 48),
)


@each_value()
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("case", HALF_CASES, ids=str)
def test_units_make_both_products_of_halves(case: Case, dtype: Any, causal: bool):
    arrays, mask = case.arrays(dtype), case.causal() if causal else None
    codes = lowered(attention(is_causal=causal), *arrays, device=UNITS).codes
    products = [s for code in codes.values() for s in walk(code.body) if isinstance(s, MatrixProduct)]
    assert {s.a.buffer.split("_")[-1] for s in products} == {"rows", "0"}

    out = run(attention(is_causal=causal), *arrays, device=UNITS)[0]
    near(case.values(mask, arrays=arrays), out.astype(np.float64), relative=2e-2, why="weights are rounded")


def slopes_of_squares(q: Any, k: Any, v: Any) -> Any:
    return rune.grad(lambda q, k, v: rnp.sum(rounded(q, k, v).astype("f32") ** 2), (0, 1, 2))(q, k, v)


@each_value()
@pytest.mark.parametrize("function", [slopes_of_squares, slopes_in_a_direction])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("case", HALF_CASES, ids=str)
def test_units_make_all_products_of_gradients(case: Case, dtype: Any, function: Any):
    arrays, mask = case.arrays(dtype), case.causal()
    direction = case.cotangent().astype(dtype)
    args = [*arrays, direction] if function is slopes_in_a_direction else arrays
    result = lowered(function, *args, device=UNITS)
    for kernel in result.kernels.kernels.values():
        for stream in (s for s in kernel.body if isinstance(s, Stream)):
            products = {
                (s.a.buffer, s.b.buffer) for s in walk(result.codes[kernel.name].body) if isinstance(s, MatrixProduct)
            }
            dots = sum(isinstance(p, Reduce) for p in (*stream.scores, *stream.weights))
            assert len(products) == dots + sum(bool(s.columns) for s in stream.sums)

    cotangent = 2 * case.values(mask, arrays=arrays) if function is slopes_of_squares else direction.astype(np.float64)
    expected = case.gradients(mask, cotangent=cotangent, arrays=arrays)
    for actual, exact in zip(run(function, *args, device=UNITS), expected, strict=True):
        scale = np.abs(exact).max()
        near(exact / scale, actual.astype(np.float64) / scale, relative=0, absolute=3e-2, why="halves, thrice")


def test_gradients_of_halves_store_no_wider_copies():
    case = Case(1, 33, 70, 2, 2, 16)
    arrays = [x.astype(dtypes.bf16) for x in (*case.arrays(), case.cotangent())]
    result = lowered(gradient(), *arrays, device=UNITS)

    assert len(result.kernels.steps) == len(streams_of(result)) == 3
    out = run(gradient(), *arrays, device=UNITS)
    for actual, expected in zip(out, case.gradients(None), strict=True):
        near(expected, actual.astype(np.float64), relative=1e-1, absolute=2e-2, why="halves, thrice")


def test_infinite_and_nan_halves_keep_their_weights():
    case = Case(1, 17, 70, 1, 1, 16)
    q, k, v = case.arrays(dtypes.bf16)
    v[0, 69, 0, 0], v[0, 5, 0, 1], v[0, 69, 0, 2] = np.inf, -np.inf, np.nan
    # Scores of -1000 and less: zeros beyond the end would be larger.
    q[0, :, 0, 0], k[0, :, 0, 0] = 100, -40

    out = run(attention(), q, k, v, device=UNITS)[0].astype(np.float64)
    special = np.array([np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(out[0, :, 0, :3], np.tile(special, (17, 1)))
    assert np.all(np.isfinite(out[0, :, 0, 3:]))


def test_sizes_that_are_not_multiples_of_a_tile_use_no_matrix_units():
    codes = lowered(attention(), *Case(1, 64, 64, 1, 1, 24).arrays(dtypes.bf16), device=UNITS).codes

    assert not any(isinstance(s, MatrixProduct) for code in codes.values() for s in walk(code.body))
