"""Products of views: every way of packing and every remainder, with the host's tiles and others.

Inputs are small integers, so that any order of the sum gives the exact result. The oracle walks the
same digits in NumPy.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from rune import dtypes
from rune.backends.cpu.conventions import EFFORT
from rune.backends.cpu.gemm.blocks import HEIGHT
from rune.backends.cpu.gemm.product import DEPTH, DIGITS, ROLES, WORDS
from rune.backends.cpu.libraries import STRIDED_DOT, Libraries
from rune.errors import CompileError
from rune.lowering.kernelize.walks import SIZES, extent, strided_product
from tests.backends.cpu.gemm.test_gemm import MACHINES, library
from tests.support.sampling import each_value

pytestmark = each_value()

Digits = tuple[tuple[int, int], ...]


def address_of(on: str, dtype: np.dtype, cores: int = 1) -> int:
    """Products of views, of all pieces."""
    return library(on, dtype, cores).address("view_dot")


def total(digits: Digits) -> int:
    return int(np.prod([size for size, _ in digits]))


def check(address: int, roles: tuple[Digits, ...], dtype: np.dtype = dtypes.f32) -> None:
    """The product of operands just as long as their walks."""
    parameters = {"a_offset": 0, "b_offset": 0}
    for role, digits in zip(ROLES, roles, strict=True):
        for number, (size, step) in enumerate(digits):
            parameters |= {f"{role}{number}": size, f"{role}{number}_step": step}
    for side, name in (("left", "a_offset"), ("right", "b_offset")):
        parameters[name] = -extent(parameters, side)[1]  # steps back begin further on
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, extent(parameters, side)[2]).astype(dtype) for side in ("left", "right"))

    product = multiply(address, a, b, roles, parameters)

    assert (product == strided_product(a, b, parameters)).all(), roles


def multiply(address: int, a: np.ndarray, b: np.ndarray, roles: tuple, parameters: dict):
    batch, m, k = (total(d) for d in roles[:3])
    n = total(roles[4])
    words = np.zeros((len(ROLES), WORDS), np.int64)
    for row, digits in zip(words, roles, strict=True):
        row[0] = len(digits)
        row[1 : 1 + 2 * len(digits)] = np.ravel(digits)
    c = np.full((batch, m, n), np.nan, a.dtype)
    kinds = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 4 + [ctypes.c_void_p] * 2
    starts = [x[parameters[p] :].ctypes.data for x, p in ((a, "a_offset"), (b, "b_offset"))]
    call = ctypes.CFUNCTYPE(None, *kinds)(address)
    call(*starts, c.ctypes.data, batch, m, n, k, words.ctypes.data, None)
    return c


def plain(batch: int, rows: int, inner: int) -> tuple[Digits, Digits, Digits]:
    return ((batch, rows * inner),), ((rows, inner),), ((inner, 1),)


def image(channels: int, side: int, window: int, stride: int) -> tuple[Digits, Digits]:
    """Columns that are pixels, and the elements of a window: (size, step), innermost first."""
    out = (side - window) // stride + 1
    row, plane = side, side * side
    return ((out, stride), (out, stride * row)), ((window, 1), (window, row), (channels, plane))


ONE: Digits = ((1, 0),)


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64], ids=dtypes.short)
@pytest.mark.parametrize("stride", [1, 2])
def test_patches_of_an_image_as_columns(dtype, on, stride):
    address = address_of(on, dtype)

    for channels, side, window in ((1, 5, 2), (3, 9, 3), (2, 40, 3), (5, 23, 7)):
        columns, inner = image(channels, side, window, stride)
        for rows in (1, 3, 17):
            _, outer, lhs = plain(1, rows, total(inner))
            check(address, (ONE, outer, lhs, ONE, columns, inner), dtype)


@pytest.mark.parametrize("on", MACHINES)
def test_pixels_that_are_summed_over_run_along_p(on):
    address = address_of(on, dtypes.f32)
    pixels, window = image(4, 20, 3, 1)

    check(address, (*plain(1, 10, total(pixels)), ONE, window, pixels))


@pytest.mark.parametrize("on", MACHINES)
def test_an_operand_contiguous_along_no_index_is_gathered(on):
    address = address_of(on, dtypes.f32)

    for columns in (1, 5, 16, 50):
        check(address, (*plain(1, 9, 30), ONE, ((columns, 3),), ((30, 200),)))


@pytest.mark.parametrize("on", MACHINES)
def test_rows_of_the_left_side_walk_as_well(on):
    address = address_of(on, dtypes.f32)
    pixels, window = image(6, 15, 3, 2)
    right = ((8, 1),), ((total(window), 8),)

    check(address, (ONE, pixels, window, ONE, *right))  # packed element by element
    check(address, (ONE, window, ((13, 1), (13, 15)), ONE, ((8, 1),), ((169, 8),)))  # by runs


def test_steps_back_and_batches_that_share_an_operand():
    address = address_of("host", dtypes.f32)
    columns, inner = image(3, 11, 3, 1)
    reverse = tuple((size, -step) for size, step in inner)

    check(address, (((4, 0),), ((7, 27),), ((27, -1),), ((4, 363),), columns, inner))
    check(address, (((2, 0), (2, 189)), ((7, 27),), ((27, 1),), ((4, 363),), columns, reverse))


@pytest.mark.parametrize("on", MACHINES)
def test_products_beyond_every_block(on):
    address = address_of(on, dtypes.f32)
    columns, inner = image(DEPTH // 9 + 5, 30, 3, 1)

    check(address, (*plain(1, HEIGHT + 9, total(inner)), ONE, columns, inner))
    check(address, (*plain(1, 5, total(columns)), ONE, inner, columns))


@pytest.mark.parametrize("batch", [1, 3])
def test_a_product_split_between_cores_is_the_same(batch):
    columns, inner = image(20, 30, 3, 1)
    _, rows, lhs = plain(1, 40, total(inner))
    planes = ((batch, 20 * 900),)

    check(address_of("host", dtypes.f32, 2), (((batch, 0),), rows, lhs, planes, columns, inner))


def test_nothing_to_sum_is_zero():
    check(address_of("host", dtypes.f32), (ONE, ((3, 1),), ((0, 1),), ONE, ((4, 1),), ((0, 4),)))


def test_other_dtypes_are_refused():
    with pytest.raises(CompileError, match="strided_dot: cannot multiply i32"):
        Libraries(1, EFFORT, int).product(STRIDED_DOT, dtypes.i32, [])


def test_an_index_has_no_more_digits_than_there_are_words():
    assert WORDS == 1 + 2 * DIGITS
    assert SIZES == ("batch", "m", "n", "k")
