"""Products of views whose sides are exchanged: A packed, B read where it lies, C turned.

As in test_strided.py inputs are small integers, so that any order gives the exact result.
"""

from __future__ import annotations

import numpy as np
import pytest

from rune import dtypes
from rune.backends.cpu.gemm.blocks import HEIGHT
from rune.backends.cpu.gemm.exchanged import BLOCKS, is_exchanged
from rune.backends.cpu.gemm.product import DEPTH, ROLES, Product
from rune.backends.cpu.gemm.shape import SCALARS, Shape, shape_for
from rune.backends.cpu.gemm.strided import pieces_for
from tests.backends.cpu.gemm.test_gemm import LISTED, MACHINES, library, only
from tests.backends.cpu.gemm.test_strided import ONE, Digits, address_of, check, image, multiply, plain, total
from tests.support.sampling import each_value

pytestmark = each_value()

ALL = BLOCKS * DEPTH  # whose sums are turned at once
AROUND_ALL = (ALL - 1, ALL, ALL + 1)


def shape_of(on: str, dtype: np.dtype) -> Shape:
    return shape_for(MACHINES[on], SCALARS[dtype])


def check_exchanged(on: str, roles: tuple[Digits, ...], dtype: np.dtype = dtypes.f32, cores: int = 1) -> None:
    """The product, which must be an exchanged one."""
    _, rows, inner, _, columns, _ = roles
    assert is_exchanged(shape_of(on, dtype), total(rows), total(columns), total(inner)), roles
    check(address_of(on, dtype, cores), roles, dtype)


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64], ids=dtypes.short)
@pytest.mark.parametrize("stride", [1, 2])
def test_patches_of_an_image_for_any_number_of_filters(dtype, on, stride):
    shape = shape_of(on, dtype)
    columns, inner = image(24, 31, 3, stride)

    for filters in (shape.lanes, shape.lanes + 1, 31, shape.panel - 1, shape.panel, shape.panel + 1):
        check_exchanged(on, (*plain(1, filters, total(inner)), ONE, columns, inner), dtype)


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("count", [1, 5, HEIGHT - 1, HEIGHT, HEIGHT + 1, 2 * HEIGHT + 17])
def test_any_number_of_columns(on, count):
    for filters in (16, 23):
        for depth in (4, 200, DEPTH):
            roles = (*plain(1, filters, depth), ONE, ((count, 1),), ((depth, count),))
            if is_exchanged(shape_of(on, dtypes.f32), filters, count, depth):
                check_exchanged(on, roles)
    roles = (*plain(1, 16, 300), ONE, ((max(count, 20), 3),), ((300, 400),))
    check_exchanged(on, roles)


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("depth", [DEPTH - 1, DEPTH, DEPTH + 1, 2 * DEPTH, 3 * DEPTH + 7, *AROUND_ALL, 9 * DEPTH + 5])
def test_any_depth(on, depth):
    check_exchanged(on, (*plain(1, 33, depth), ONE, ((HEIGHT + 3, 1),), ((depth, HEIGHT + 3),)))


@pytest.mark.parametrize("on", MACHINES)
def test_pixels_that_are_summed_over(on):
    pixels, window = image(8, 30, 3, 1)

    check_exchanged(on, (*plain(1, 18, total(pixels)), ONE, window, pixels))


@pytest.mark.parametrize("on", MACHINES)
def test_filters_that_run_on_along_their_rows_or_along_nothing(on):
    columns, inner = image(20, 19, 3, 1)
    depth = total(inner)

    check_exchanged(on, (ONE, ((19, 1),), ((depth, 19),), ONE, columns, inner))
    check_exchanged(on, (ONE, ((19, 2),), ((depth, 61),), ONE, columns, inner))


def test_steps_back_and_batches_that_share_an_operand():
    columns, inner = image(20, 19, 3, 1)
    reverse = tuple((size, -step) for size, step in inner)
    depth, planes = total(inner), 20 * 361

    check_exchanged("host", (((3, 0),), ((21, depth),), ((depth, -1),), ((3, planes),), columns, reverse))
    check_exchanged("host", (((3, 21 * depth),), ((21, depth),), ((depth, 1),), ((3, 0),), columns, inner))


@pytest.mark.parametrize("batch", [1, 2, 3, 5])
@pytest.mark.parametrize("on", MACHINES)
def test_a_product_split_between_cores_is_the_same(on, batch):
    columns, inner = image(20, 30, 3, 1)
    _, rows, lhs = plain(1, 40, total(inner))
    planes = ((batch, 20 * 900),)

    check_exchanged(on, (((batch, 0),), rows, lhs, planes, columns, inner), cores=2)


@pytest.mark.parametrize("on", MACHINES)
def test_the_bits_are_those_of_fewer_rows_which_are_not_exchanged(on):
    shape, rng = shape_of(on, dtypes.f32), np.random.default_rng(1)
    columns, inner = image(70, 20, 3, 1)
    rows, depth, fewer = 6 * (shape.lanes - 1), total(inner), shape.lanes - 1
    assert is_exchanged(shape, rows, total(columns), depth)
    assert not is_exchanged(shape, fewer, total(columns), depth)
    a = rng.standard_normal(rows * depth).astype(np.float32)
    b = rng.standard_normal(70 * 400).astype(np.float32)
    address, offsets = address_of(on, dtypes.f32), {"a_offset": 0, "b_offset": 0}

    product = multiply(address, a, b, (*plain(1, rows, depth), ONE, columns, inner), offsets)[0]

    for first in range(0, rows, fewer):
        part = (*plain(1, fewer, depth), ONE, columns, inner)
        few = multiply(address, a[first * depth :][: fewer * depth].copy(), b, part, offsets)[0]
        assert (product[first : first + fewer] == few).all()


@pytest.mark.parametrize("on", MACHINES)
def test_a_nan_stays_in_its_row_and_column(on):
    columns, inner = ((90, 1),), ((40, 90),)
    a, b = np.ones((20, 40), np.float32), np.ones((40, 90), np.float32)
    a[7, 3], b[5, 60] = np.nan, np.nan
    roles = (*plain(1, 20, 40), ONE, columns, inner)
    assert is_exchanged(shape_of(on, dtypes.f32), 20, 90, 400)

    product = multiply(address_of(on, dtypes.f32), a, b, roles, {"a_offset": 0, "b_offset": 0})[0]

    bad = np.zeros((20, 90), bool)
    bad[7], bad[:, 60] = True, True
    assert (np.isnan(product) == bad).all()


def laid_out(m: int, n: int, k: int) -> list[tuple[Digits, ...]]:
    """Operands whose rows, or whose contracted index, run on in memory, or neither does."""
    return [
        (*plain(1, m, k), ONE, ((n, 1),), ((k, n),)),
        (ONE, ((m, 1),), ((k, m),), ONE, ((n, k),), ((k, 1),)),
        (ONE, ((m, 2),), ((k, 2 * m),), ONE, ((n, 2),), ((k, 2 * n),)),
        (ONE, ((1, 7), (m, 3 * k)), ((k, 3),), ONE, ((n, 2 * k),), ((1, 1), (k, 2))),
    ]


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("cores", [1, 2])
def test_a_product_of_views_calls_no_piece_that_its_sizes_do_not_list(on, cores):
    linked_library = library(on, dtypes.f32, cores)
    rng = np.random.default_rng(cores)
    random_sizes = [tuple(map(int, rng.choice(LISTED, 3))) for _ in range(40)]

    for m, n, k in [*random_sizes, (64, 784, 576), (16, 100, 500), (65, 70, 513), (130, 576, 1100)]:
        for roles in laid_out(m, n, k) if m * n * k < 1 << 20 else laid_out(m, n, k)[:1]:
            walks: dict[str, Digits] = dict(zip(ROLES, roles, strict=True))
            pieces = {"view_dot"} | pieces_for(linked_library.shape, cores, Product(m, n, k, walks=walks))
            with only(linked_library, pieces) as miss_count:
                check(address_of(on, dtypes.f32, cores), roles)
                assert not miss_count.value, (m, n, k, walks, pieces)


@pytest.mark.parametrize("on", MACHINES)
def test_unknown_sizes_of_views_list_what_any_size_would(on):
    shape = shape_of(on, dtypes.f32)

    for m in (1, 8, 17, 64, 100):
        for n, k in ((1, 1), (17, 300), (800, 600), (5, 1000)):
            for roles in laid_out(m, n, k):
                walks: dict[str, Digits] = dict(zip(ROLES, roles, strict=True))
                pieces = pieces_for(shape, 2, Product(m, n, k, walks=walks))
                for known in ((m, n, k), (None, n, k), (m, None, k), (m, n, None), (None, None, None)):
                    assert pieces <= pieces_for(shape, 2, Product(*known)), (m, n, k, known)
