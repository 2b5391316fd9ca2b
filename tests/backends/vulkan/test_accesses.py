"""Accesses of neighbours on Vulkan devices: rows and columns of any length have NumPy's values.

Whether two elements are one access depends on where a row begins; whether a subgroup reads rows
together depends on the number of columns. So sizes are even and odd, and below and above the eight
threads of a subgroup.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax, nn
from tests.backends.vulkan.cases import needs_device
from tests.support.close import near, same
from tests.support.sampling import each_value

pytestmark = needs_device
DEVICE = "vulkan:0"
Function = Callable[..., Any]


def drawn(*shape: int) -> np.ndarray:
    """Values of a normal distribution, f32."""
    return np.random.default_rng(len(shape)).standard_normal(shape, np.float32)


def agree(expected: np.ndarray, actual: np.ndarray) -> None:
    near(expected, actual, relative=2e-5, why="sums in another order")


def on_device(function: Function, *arrays: np.ndarray) -> np.ndarray:
    return np.asarray(rune.jit(function, device=DEVICE)(*arrays))


@each_value()
@pytest.mark.parametrize("rows", [15, 16, 33])
@pytest.mark.parametrize("columns", [10, 16, 17, 48])
@pytest.mark.parametrize("inner", [1, 3, 16, 31, 50])
def test_products_of_any_sizes(rows: int, columns: int, inner: int):
    a, b = drawn(rows, inner), drawn(inner, columns)

    agree(a @ b, on_device(lambda a, b: a @ b, a, b))


@pytest.mark.parametrize("sizes", [(32, 48, 16), (31, 48, 17), (33, 46, 32)])
def test_products_of_transposed_matrices(sizes: tuple[int, int, int]):
    rows, columns, inner = sizes
    a, b = drawn(inner, rows), drawn(columns, inner)

    agree(a.T @ b.T, on_device(lambda a, b: a.T @ b.T, a, b))
    agree(a.T @ drawn(inner, columns), on_device(lambda a, c: a.T @ c, a, drawn(inner, columns)))


@pytest.mark.parametrize("inner", [6, 7, 12, 65])
def test_products_of_whole_tiles(inner: int):
    a, b = drawn(64, inner), drawn(inner, 512)

    agree(a @ b, on_device(lambda a, b: a @ b, a, b))
    agree(a @ b, on_device(lambda c, b: c.T @ b, np.ascontiguousarray(a.T), b))


def test_products_of_several_matrices():
    a, b = drawn(5, 33, 18), drawn(5, 18, 32)

    agree(a @ b, on_device(lambda a, b: a @ b, a, b))


@pytest.mark.parametrize("size", [9, 16, 17])
def test_a_convolution(size: int):
    x, w = drawn(2, 3, size, size), drawn(16, 3, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))

    result = on_device(lambda x, w: lax.conv(x, w, (1, 1), "VALID"), x, w)

    agree(np.einsum("ncijkl,ockl->noij", windows, w), result)


@pytest.mark.parametrize("columns", [1, 2, 15, 16, 17, 64, 67])
def test_rows_and_columns_of_any_length(columns: int):
    x = drawn(40, columns)
    weights = np.exp(x - x.max(1, keepdims=True))

    agree(x.sum(1), on_device(lambda x: x.sum(1), x))
    agree(x.sum(0), on_device(lambda x: x.sum(0), x))
    agree(np.cumsum(x, 1), on_device(lambda x: rnp.cumsum(x, 1), x))
    agree(weights / weights.sum(1, keepdims=True), on_device(nn.softmax, x))
    same(np.argmax(x, 1).astype(np.int32), on_device(lambda x: rnp.argmax(x, 1), x))


@each_value()
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint32, np.int16, np.float16, np.bool_])
@pytest.mark.parametrize("size", [1, 2, 3, 1000, 1001])
def test_elements_of_every_size_go_where_they_belong(dtype: Any, size: int):
    x = (100 * drawn(size, 4)).astype(dtype)

    same(x.T[::-1], on_device(lambda x: x.T[::-1], x))
    same(np.where(x.T > 0, x.T, 0).astype(dtype), on_device(lambda x: rnp.where(x.T > 0, x.T, 0).astype(x.dtype), x))


def test_a_result_in_its_arguments_memory():
    x = drawn(513, 64)
    double = rune.jit(lambda x: x * 2 - rnp.mean(x, axis=1, keepdims=True), device=DEVICE, donate_argnums=0)

    result = double(rune.device_put(x, DEVICE))

    agree(x * 2 - x.mean(1, keepdims=True), np.asarray(result))


def test_rows_that_all_columns_read_within_a_branch_and_a_loop_of_many_lengths():
    a, b, counts = drawn(16, 16), drawn(32, 16), np.arange(32, dtype=np.int32) % 5

    def lane(b: Any, count: Any) -> Any:
        product = a @ b
        power = lax.fori_loop(0, count, lambda _, c: a @ c / 4, b)
        return rnp.where(count > 2, product, power)

    expected = []
    for row, count in zip(b, counts):
        power = row
        for _ in range(count):
            power = a @ power / 4
        expected.append(a @ row if count > 2 else power)

    agree(np.stack(expected), on_device(rune.vmap(lane), b, counts))
