"""Rows that a subgroup reads by lines on Vulkan devices of the processor have NumPy's values.

Some lengths are read as lines of pairs, some as lines of single elements, some as neither; lengths
are at and past the smallest and the largest row that a subgroup handles.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import nn
from tests.backends.vulkan.cases import needs_device
from tests.support.close import near, same
from tests.support.sampling import in_turn

pytestmark = needs_device
DEVICE = "vulkan:0"
Function = Callable[..., Any]


def drawn(rows: int, columns: int) -> np.ndarray:
    """Values of a normal distribution, f32."""
    return np.random.default_rng(columns).standard_normal((rows, columns), np.float32)


def norm(x: Any) -> Any:
    """Rows of mean 0 and variance 1."""
    centred = x - x.mean(1, keepdims=True)
    return centred / ((centred * centred).mean(1, keepdims=True) + 1e-5) ** 0.5


def on_device(function: Function, *arrays: np.ndarray, **options: Any) -> Any:
    return rune.jit(function, device=DEVICE, **options)(*arrays)


@in_turn("columns")
@pytest.mark.parametrize("columns", [255, 256, 264, 1640])
def test_norms_and_softmaxes_of_rows(columns: int):
    x = drawn(33, columns)
    weights = np.exp(x - x.max(1, keepdims=True))

    near(norm(x.astype(float)), np.asarray(on_device(norm, x)), relative=2e-5, absolute=1e-5, why="sums of f32")
    near(weights / weights.sum(1, keepdims=True), np.asarray(on_device(nn.softmax, x)), relative=2e-5, why="the same")


@pytest.mark.parametrize("columns", [257, 272, 1000, 2048])
def test_sums_of_rows(columns: int):
    x = np.random.default_rng(columns).integers(-9, 10, (33, columns), np.int32)

    same(x.sum(1, dtype=np.int32), np.asarray(on_device(lambda x: rnp.sum(x, 1), x)))


@pytest.mark.parametrize("size", [4104, 1 << 20])
def test_sums_of_a_whole_array(size: int):
    x = np.random.default_rng(size).integers(-9, 10, size, np.int32)

    same(x.sum(dtype=np.int32), np.asarray(on_device(rnp.sum, x)))


def test_a_row_of_every_kind_of_words():
    words = np.random.default_rng(0).integers(0, 1 << 32, (9, 256), np.uint32)

    same(words.max(1), np.asarray(on_device(lambda x: rnp.max(x, 1), words)))
    same(words.view(np.int32).min(1), np.asarray(on_device(lambda x: rnp.min(x, 1), words.view(np.int32))))


def test_rows_with_nan_and_infinities_keep_them():
    x = drawn(8, 256)
    x[1, 130], x[2, 255], x[3, 0] = np.nan, np.inf, -np.inf

    same(x.max(1), np.asarray(on_device(lambda x: rnp.max(x, 1), x)))
    same(np.isnan(x.sum(1)), np.isnan(np.asarray(on_device(lambda x: rnp.sum(x, 1), x))))


def test_a_row_in_its_arguments_memory():
    x = drawn(33, 256)

    result = on_device(norm, rune.device_put(x, DEVICE), donate_argnums=0)

    near(norm(x.astype(float)), np.asarray(result), relative=2e-5, absolute=1e-5, why="sums of f32")


def test_rows_combined_with_rows_that_all_of_them_share():
    x, scale = drawn(6, 256), drawn(1, 256)[0]

    result = on_device(lambda x, scale: (x * scale).sum(1)[:, None] * scale, x, scale)

    near((x * scale).sum(1, dtype=float)[:, None] * scale, np.asarray(result), relative=1e-4, absolute=1e-4, why="sums")


@pytest.mark.parametrize(("rows", "columns"), [(256, 64), (96, 40), (130, 64), (64, 36)])
def test_transpositions(rows: int, columns: int):
    x = np.random.default_rng(rows).integers(-99, 99, (2, rows, columns), np.int32)

    same(x.swapaxes(1, 2) + 1, np.asarray(on_device(lambda x: x.swapaxes(1, 2) + 1, x)))
    same(x[0].T * 3 - x[1].T, np.asarray(on_device(lambda a, b: a.T * 3 - b.T, x[0], x[1])))


def test_softmaxes_and_sums_of_rows_that_are_cut_into_parts():
    x = drawn(40, 2064)
    x[1, 700], x[2], x[3, :688], x[4, 2063] = np.inf, -np.inf, -np.inf, np.nan
    with np.errstate(invalid="ignore"):
        weights = np.exp(x - x.max(1, keepdims=True))
    numbers = np.arange(40 * 2064, dtype=np.int32).reshape(40, 2064)

    result = np.asarray(on_device(nn.softmax, x))

    near(
        weights / weights.sum(1, keepdims=True), result, relative=2e-5, why="exponentials relative to a part's maximum"
    )
    same(numbers.sum(1, dtype=np.int32), np.asarray(on_device(lambda x: rnp.sum(x, 1), numbers)))


def test_points_that_read_lines_of_pairs():
    x = np.arange(1 << 20, dtype=np.int32).reshape(1024, 1024)

    same(x * 3 - x[::-1] + x[:, :1], np.asarray(on_device(lambda x: x * 3 - x[::-1] + x[:, :1], x)))


TURNED = [(16, 16), (24, 80), (64, 33), (96, 128), (101, 64), (128, 17), (1024, 2048), (8, 65536)]


@pytest.mark.parametrize("shape", TURNED)
def test_transpositions_of_columns_that_threads_share_and_of_others(shape: tuple[int, int]):
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)

    same(x.T + 3, np.asarray(on_device(lambda x: x.T + 3, x)))


@pytest.mark.parametrize("axes", [(0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
@pytest.mark.parametrize("shape", [(16, 24, 32), (32, 64, 8), (7, 16, 40)])
def test_transpositions_of_three_axes_combined_with_an_untransposed_array(
    shape: tuple[int, ...], axes: tuple[int, ...]
):
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    y = x.transpose(axes)[::-1].copy()

    same(x.transpose(axes) - 5 * y, np.asarray(on_device(lambda x, y: x.transpose(axes) - 5 * y, x, y)))


def test_a_transposition_of_a_reversed_array():
    x = drawn(64, 48)

    same(x[::-1, ::-1].T * 2, np.asarray(on_device(lambda x: x[::-1, ::-1].T * 2, x)))


SIXTEEN_LANES = """
import numpy as np, rune, rune.numpy as rnp
x = np.random.default_rng(0).standard_normal((256, 512), np.float32)
for f in (lambda x: x.T * 1, lambda x: x * 2, lambda x: rnp.flip(x, 1) * 2, lambda x: x[:, :509] * 2):
    np.testing.assert_array_equal(rune.jit(f, device="vulkan:0")(x), f(x))
"""


@in_turn()
def test_all_of_sixteen_lanes_write_their_values_where_the_driver_has_as_many():
    environment = os.environ | {"LP_NATIVE_VECTOR_WIDTH": "512", "RUNE_CACHE_DIR": ""}
    process = subprocess.run(
        [sys.executable, "-c", SIXTEEN_LANES], capture_output=True, text=True, timeout=600, env=environment
    )

    assert process.returncode == 0, process.stderr[-800:]
