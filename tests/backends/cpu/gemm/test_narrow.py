"""Products with few columns: rows in place, by runs and copied, and when they are chosen.

Inputs are small integers, as in test_strided.py: any order of the sum gives the exact result.
"""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.backends.cpu.gemm.blocks import HEIGHT
from rune.backends.cpu.gemm.product import COLUMNS, COLUMNS_OF_ROWS, DEPTH, NARROW, is_narrow, most_columns
from tests.backends.cpu.gemm.test_gemm import MACHINES, library
from tests.backends.cpu.gemm.test_strided import ONE, check, plain

LANES = 16
DEPTHS = (1, LANES - 1, LANES, LANES + 1, 3 * LANES, DEPTH - 1, DEPTH + 1, 2 * DEPTH + 5)


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64], ids=dtypes.short)
def test_rows_in_place_by_every_number_of_columns(dtype, on):
    pieces = library(on, dtype)

    for n in range(1, most_columns(pieces.shape.lanes) + 1):
        for m, k in zip((1, 2, 15, 16, 17, HEIGHT, HEIGHT + 1, 2 * HEIGHT + 7), DEPTHS, strict=True):
            by_rows, by_columns = (((n, 1),), ((k, n),)), (((n, k),), ((k, 1),))
            for right in (by_rows, by_columns):
                check(pieces.address("narrow_dot"), (*plain(1, m, k), ONE, *right), dtype)


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("run", [LANES, 6 * LANES, LANES + 8, 9])
def test_rows_of_several_runs(run, on):
    pieces = library(on, dtypes.f32)
    inner = ((run, 1), (3, 200), (2, 700))
    rows = ((7, 5), (8, 31))

    for n in range(1, most_columns(pieces.shape.lanes) + 1):
        check(pieces.address("narrow_dot"), (ONE, rows, inner, ONE, ((n, 1),), ((6 * run, n),)))


def test_steps_back_are_copied_and_batches_may_share_a_side():
    address = library("host", dtypes.f32).address("narrow_dot")

    check(address, (((4, 0),), ((70, 27),), ((27, -1),), ((4, 81),), ((3, 27),), ((27, 1),)))
    check(address, (((2, 0), (2, 1890)), ((70, 27),), ((27, 1),), ((4, 0),), ((3, -1),), ((27, 3),)))


@pytest.mark.parametrize("batch", [1, 3])
def test_a_product_split_between_cores_is_the_same(batch):
    address = library("host", dtypes.f32, 2).address("narrow_dot")

    check(address, (*plain(batch, 1031, 301), ((batch, 903),), ((3, 1),), ((301, 3),)))


def test_small_shallow_and_wide_products_are_not_narrow():
    rows, patches = ((64, 1),), ((96, 1), (3, 500))

    assert is_narrow(NARROW // 64, COLUMNS_OF_ROWS, 64, rows, LANES)
    assert not is_narrow(NARROW // 64 - 1, COLUMNS_OF_ROWS, 64, rows, LANES)
    assert not is_narrow(NARROW, COLUMNS_OF_ROWS, 63, rows, LANES)
    assert not is_narrow(NARROW, COLUMNS_OF_ROWS + 1, 640, rows, LANES)
    assert is_narrow(NARROW, COLUMNS, 288, patches, LANES)
    assert not is_narrow(NARROW, COLUMNS + 1, 288, patches, LANES)
    assert not is_narrow(NARROW, 3, 288, ((3, 1), (3, 500), (32, 900)), LANES)


@pytest.mark.parametrize("columns", [1, 3, 12, 13])
def test_images_of_few_channels_and_their_gradients_agree_with_sums_in_f64(columns: int):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 47, 51, 32)), rng.normal(size=(3, 3, 32, columns))
    ct = rng.normal(size=(2, 47, 51, columns))
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))

    def convolution(x, w):
        layout = ("NHWC", "HWIO", "NHWC")
        return rune.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout)

    @rune.jit
    def value_and_cotangents(x, w, ct):
        y, pullback = rune.vjp(convolution, x, w)
        return y, pullback(ct)

    y, (x_ct, w_ct) = value_and_cotangents(*(rnp.asarray(a, rnp.float32) for a in (x, w, ct)))

    outputs = np.pad(ct, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows_of_outputs = np.lib.stride_tricks.sliding_window_view(outputs, (3, 3), axis=(1, 2))
    np.testing.assert_allclose(y, np.einsum("bhwcij,ijcd->bhwd", windows, w), rtol=0, atol=2e-4)
    np.testing.assert_allclose(w_ct, np.einsum("bhwcij,bhwd->ijcd", windows, ct), rtol=0, atol=2e-3)
    np.testing.assert_allclose(
        x_ct, np.einsum("bhwdij,ijcd->bhwc", windows_of_outputs, w[::-1, ::-1]), rtol=0, atol=2e-4
    )
