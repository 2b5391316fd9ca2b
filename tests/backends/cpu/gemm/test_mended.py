"""Products that meet denormal numbers: each sum is rounded once, however it is computed.

An element is special if its row of A or its column of B has a denormal number. The oracle of its
value is NumPy in f64, and that of the others the same product without the denormal numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from rune import dtypes
from rune.backends.cpu.gemm.library import Library, new_library
from rune.backends.cpu.gemm.pieces import pieces_of_dots
from rune.backends.cpu.gemm.product import DEPTH, Product
from rune.backends.cpu.gemm.shape import SCALARS, shape_for
from tests.backends.cpu.gemm.test_gemm import MACHINES, multiply
from tests.backends.cpu.gemm.test_small import dense, run, small_products
from tests.support.bits import assert_same_bits
from tests.support.sampling import each_value

pytestmark = each_value()

WAITING = {on: replace(MACHINES[on], waits_for_denormals=True) for on in ("host", "avx2")}
# Rows and columns at and past tiles, groups and vectors; p past a block of depth; a few rows.
# Batch, rows, p and columns.
EXTENTS = ((1, 1, 150, 33), (1, 4, 31, 9), (2, 9, 17, 65), (1, 33, 64, 130), (1, 49, 7, 31), (1, 13, 523, 17))
LAYOUTS = (*product((False, True), (False, True)),)
SMALLEST = 2.0**-149


def shrunk(x: np.ndarray, which: np.ndarray) -> np.ndarray:
    """The array with some elements denormal."""
    return np.where(which, x * np.float32(2.0**-131), x)


def everywhere(rng: np.random.Generator, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return shrunk(a, np.ones(a.shape, bool)), b


def in_rows_of_b(rng: np.random.Generator, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return a, shrunk(b, rng.random(b.shape[1])[:, None] < 0.3)


def here_and_there(rng: np.random.Generator, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return shrunk(a, rng.random(a.shape) < 0.02), shrunk(b, rng.random(b.shape) < 0.02)


PLACES = (everywhere, in_rows_of_b, here_and_there)


def operands(place: Callable, extents: tuple[int, int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    batch, m, k, n = extents
    rng = np.random.default_rng(m)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((batch, m, k), (batch, k, n)))
    return place(rng, a, b)


def new(on: str) -> Library:
    library = new_library(shape_for(WAITING[on], SCALARS[dtypes.f32]), 1, 0)
    products = (Product(m, n, k, ta, tb) for (_, m, k, n), (ta, tb) in product(EXTENTS, LAYOUTS))
    library.need(pieces_of_dots(library.shape, 1, products))
    return library


@pytest.fixture(scope="module")
def libraries() -> dict[str, Library]:
    return {on: new(on) for on in WAITING}


def laid_out(x: np.ndarray, is_transposed: bool) -> np.ndarray:
    return np.ascontiguousarray(x.swapaxes(1, 2)) if is_transposed else x


def is_denormal(x: np.ndarray) -> np.ndarray:
    return (x != 0) & (np.abs(x) < np.finfo(np.float32).smallest_normal)


def special_lines(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of A and the columns of B that have denormal numbers."""
    return np.any(is_denormal(a), axis=2, keepdims=True), np.any(is_denormal(b), axis=1, keepdims=True)


@pytest.mark.parametrize("on", WAITING)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_special_elements_are_rounded_once(libraries: dict[str, Library], on: str, place: Callable):
    address = libraries[on].address("dot")
    for extents, (ta, tb) in product(EXTENTS, LAYOUTS):
        a, b = operands(place, extents)
        exact = a.astype(np.float64) @ b.astype(np.float64)

        c = multiply(address, laid_out(a, ta), laid_out(b, tb), ta, tb)

        special = np.logical_or(*special_lines(a, b))
        # Blocks of depth are added in f32.
        terms = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
        rounding = 2.0**-23 * (terms if extents[2] > DEPTH else np.abs(exact)) + SMALLEST
        assert special.any()
        assert (np.abs(c - exact)[special] <= rounding[special]).all(), (extents, ta, tb)


@pytest.mark.parametrize("on", WAITING)
def test_other_elements_have_the_bits_of_a_product_without_denormal_numbers(libraries: dict[str, Library], on: str):
    address = libraries[on].address("dot")
    for extents, (ta, tb) in product(EXTENTS[2:], LAYOUTS):
        a, b = operands(here_and_there, extents)
        rows, columns = special_lines(a, b)
        without = np.where(rows, 0, a), np.where(columns, 0, b)

        c, plain = (multiply(address, laid_out(x, ta), laid_out(y, tb), ta, tb) for x, y in ((a, b), without))

        ordinary = ~np.logical_or(rows, columns)
        assert_same_bits(np.where(ordinary, c, 0), np.where(ordinary, plain, 0))


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_product_that_looks_first_has_the_same_bits(place: Callable):
    library, hints = new("host"), 0
    address, hint = library.address("dot"), len(library.shape.pieces)
    for extents, (ta, tb) in product(EXTENTS, LAYOUTS):
        a, b = (laid_out(x, t) for x, t in zip(operands(place, extents), (ta, tb), strict=True))
        library.table[hint] = None

        first = multiply(address, a, b, ta, tb)
        hints += library.table[hint] is not None

        assert_same_bits(first, multiply(address, a, b, ta, tb))
    assert hints


@pytest.mark.parametrize("on", WAITING)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_draft_has_the_bits_of_the_library(libraries: dict[str, Library], on: str, place: Callable):
    extents_of_drafts = [x for x in EXTENTS if math.prod(x) <= 50_000]
    cases = [*product(extents_of_drafts, LAYOUTS)]
    calls = [dense((batch, m, n, k), ta, tb) for (batch, m, k, n), (ta, tb) in cases]
    address = libraries[on].address("dot")
    for function, (extents, (ta, tb)) in zip(small_products(calls, WAITING[on]), cases, strict=True):
        a, b = (laid_out(x, t) for x, t in zip(operands(place, extents), (ta, tb), strict=True))
        batch, m, _, n = extents

        assert_same_bits(run(function, a, b, (batch, m, n)), multiply(address, a, b, ta, tb))


def test_infinities_and_nan_stay_beside_denormal_numbers(libraries: dict[str, Library]):
    a, b = operands(here_and_there, (1, 33, 64, 130))
    a[0, 3, 5], a[0, 7, 1], b[0, 2, 9] = np.inf, np.nan, -np.inf
    with np.errstate(all="ignore"):
        exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)

    c = multiply(libraries["host"].address("dot"), a, b, False, False)

    np.testing.assert_array_equal(np.isnan(c), np.isnan(exact))
    np.testing.assert_array_equal(c[np.isinf(exact)], exact[np.isinf(exact)])
