"""Rows and columns at and past the number of elements that threads handle together.

On every executor; the oracle is NumPy in f64. Of the executors that share kernels, each takes every
third shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from tests.support.close import near, same
from tests.support.sampling import each_value, in_turn

DEVICES = [d.name for d in rune.devices() if d.target.backend != "null"]


def norm(xp: Any, x: Any) -> Any:
    """Rows scaled to length 1, and their former lengths: one result of points, and one of rows."""
    length = xp.sqrt(xp.sum(x * x, -1))
    return x / length[..., None], length


def softmax(xp: Any, x: Any) -> Any:
    weights = xp.exp(x - xp.max(x, -1, keepdims=True))
    return weights / xp.sum(weights, -1, keepdims=True)


def sums(xp: Any, x: Any) -> Any:
    """Sums of rows and of columns, several at once."""
    return xp.sum(x, -1), xp.max(x, -1), xp.sum(x * x, 0), xp.min(x, 0)


@each_value()
@in_turn("shape")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("function", [norm, softmax, sums])
@pytest.mark.parametrize(
    "shape",
    [(64, 32), (48, 100), (5, 131), (16, 256), (9, 1024), (8, 1028), (3, 4096), (2, 4100), (4, 9000), (2112, 100)],
)
def test_functions_of_rows_and_columns_agree_with_numpy(
    shape: tuple[int, int], function: Callable[..., Any], device: str
):
    x = np.random.default_rng(shape[1]).standard_normal(shape).astype(np.float32)

    results = rune.jit(lambda x: function(rnp, x), device=device)(x)

    near(function(np, x.astype(float)), results, relative=2e-5, absolute=2e-4, why="sums of thousands in f32")


@in_turn("columns")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("columns", [32, 60, 96, 128])
def test_sums_of_many_rows_and_long_columns_agree_with_numpy(columns: int, device: str):
    x = np.random.default_rng(columns).integers(-4, 5, (24_000, columns)).astype(np.float32)

    results = rune.jit(lambda x: (rnp.sum(x, 0), rnp.sum(x, 1)), device=device)(x)

    same((x.sum(0), x.sum(1)), results)


@each_value()
@in_turn("size", "dtype")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.bf16, dtypes.f16, dtypes.i8, dtypes.u16])
@pytest.mark.parametrize("size", [(1 << 20) - 3, 1 << 20])
def test_large_elementwise_results_agree_with_numpy(size: int, dtype: np.dtype, device: str):
    x, y = np.random.default_rng(0).integers(0, 11, (2, size)).astype(dtype)

    total, less = rune.jit(lambda x, y: (x + y, x < y), device=device)(x, y)

    same((x + y, x < y), (total, less))


def turned(xp: Any, x: Any) -> Any:
    """The transpose with a column and a row of the array."""
    return x.T * x[:, 0] - x[:1].T


def beside_itself(xp: Any, x: Any) -> Any:
    """The transpose plus the same elements in the order of the array."""
    return x.T + xp.reshape(x, x.T.shape)


@each_value()
@in_turn("shape")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f16, dtypes.i32, dtypes.u8, dtypes.c64])
@pytest.mark.parametrize("shape", [(1024, 1024), (1031, 1019), (2052, 517), (15, 70_001), (16, 65_544)])
@pytest.mark.parametrize("function", [turned, beside_itself])
def test_large_transpositions_agree_with_numpy(
    shape: tuple[int, int], dtype: np.dtype, function: Callable[..., Any], device: str
):
    x = np.random.default_rng(shape[0]).integers(0, 5, shape).astype(dtype)

    result = rune.jit(lambda x: function(rnp, x), device=device)(x)

    same(function(np, x), result)


@in_turn()
@pytest.mark.parametrize("device", DEVICES)
def test_large_transpositions_of_inner_axes_agree_with_numpy(device: str):
    x = np.random.default_rng(0).integers(-9, 9, (13, 301, 299)).astype(np.int32)

    result = rune.jit(lambda x: rnp.swapaxes(x, 1, 2) * 2, device=device)(x)

    same(x.swapaxes(1, 2) * 2, result)


@in_turn()
@pytest.mark.parametrize("device", DEVICES)
def test_a_result_that_takes_the_memory_of_an_argument_is_right(device: str):
    x = np.random.default_rng(0).standard_normal((1 << 9, 1 << 11)).astype(np.float32)
    function = rune.jit(lambda x: x / rnp.sqrt(rnp.sum(x * x, -1, keepdims=True)), device=device, donate_argnums=0)

    near(norm(np, x.astype(float))[0], function(rune.device_put(x, device)), relative=1e-5, why="sums in f32")


WITH_GROUPS = [d.name for d in rune.devices() if d.name in DEVICES and d.target.threads_per_workgroup > 1]


@each_value()
@in_turn("text")
@pytest.mark.parametrize("device", WITH_GROUPS)
@pytest.mark.parametrize(
    ("axis", "text"),
    [
        (1, "share(32, lanes=4)"),
        (1, "share(32, lanes=4, registers)"),
        (1, "share(64, registers)"),
        (1, "share(64, lanes=4, points=4)"),
        (1, "share(256, points=4)"),
        (1, "rows(i0=2) share(32, lanes=2, points=4)"),
        (0, "share(64, points=8, across)"),
        (0, "vectors(4, lanes=1) share(128, points=16, across)"),
        (0, "vectors(4, lanes=1)"),
    ],
)
def test_threads_share_rows_and_columns_in_every_way(axis: int, text: str, device: str):
    x = np.random.default_rng(axis).integers(-4, 5, (16, 256)).astype(np.float32)

    def function(x: Any) -> Any:
        return rnp.sum(x * x, axis)

    (name,) = rune.explain(function, device=device)(x).lowered.schedules

    same((x * x).sum(axis), rune.jit(function, device=device, schedule={name: text})(x))
