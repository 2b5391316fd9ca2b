"""rune's matrix products: every layout and every remainder, with the host's tiles and with others.

Inputs are small integers, so that any order of the sum gives the exact result.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest

from rune import dtypes
from rune.backends.cpu import blas, threads
from rune.backends.cpu.compiler import Code, compile_module, machine
from rune.backends.cpu.conventions import EFFORT, HURRY
from rune.backends.cpu.gemm.blocks import HEIGHT
from rune.backends.cpu.gemm.library import Library, new_library
from rune.backends.cpu.gemm.pieces import pieces_for
from rune.backends.cpu.gemm.product import DEPTH, Product
from rune.backends.cpu.gemm.shape import SCALARS, shape_for
from rune.backends.cpu.libraries import DOT, Libraries
from rune.errors import CompileError
from rune.lowering.codegen.machine import Machine
from tests.support.sampling import each_value

pytestmark = each_value()

MACHINES = {"host": machine(), "avx2": Machine(32, False), "sse": Machine(16, False)}
SIZES = (0, 1, 2, 5, 8, 17, 50)
LISTED = (1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 48, 49, 64, 65, 80, 96, 100, 129, 176, 200, 385, 400, 460)
HARD = [(1, 400, 600), (49, 64, 64), (129, 64, 64), (400, 1, 64), (257, 120, 80), (16, 400, 64)]


def empty_library(on: str, dtype: np.dtype, cores: int = 1) -> Library:
    parallel = threads.parallel_address(threads.Share(0, 1, cores)) if cores > 1 else 0
    return new_library(shape_for(MACHINES[on], SCALARS[dtype]), cores, parallel)


@functools.cache
def library(on: str, dtype: np.dtype, cores: int = 1) -> Library:
    """All pieces."""
    linked_library = empty_library(on, dtype, cores)
    linked_library.need(linked_library.shape.pieces)
    return linked_library


def multiply(address: int, a: np.ndarray, b: np.ndarray, ta: bool, tb: bool) -> np.ndarray:
    """C of a batch, over memory filled with NaN."""
    batch, k, m = a.shape if ta else (a.shape[0], a.shape[2], a.shape[1])
    n = b.shape[1] if tb else b.shape[2]
    c = np.full((batch, m, n), np.nan, a.dtype)
    kinds = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 4 + [ctypes.c_bool] * 2 + [ctypes.c_void_p]
    call = ctypes.CFUNCTYPE(None, *kinds)(address)
    call(a.ctypes.data, b.ctypes.data, c.ctypes.data, batch, m, n, k, ta, tb, None)
    return c


def check(address: int, extents: tuple[int, int, int, int], ta: bool, tb: bool, dtype) -> None:
    batch, m, n, k = extents
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (batch, k, m) if ta else (batch, m, k)).astype(dtype)
    b = rng.integers(-3, 4, (batch, n, k) if tb else (batch, k, n)).astype(dtype)
    lhs, right = a.swapaxes(1, 2) if ta else a, b.swapaxes(1, 2) if tb else b
    with np.errstate(all="ignore"):  # NumPy's BLAS may compute on what it does not use
        expected = lhs @ right

    c = multiply(address, a, b, ta, tb)

    assert (c == expected).all(), (extents, ta, tb)


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64], ids=dtypes.short)
def test_every_small_product_in_every_layout(dtype, on):
    address = library(on, dtype).address("dot")

    for m, n, k in product(SIZES, SIZES, SIZES):
        for ta, tb in product((False, True), (False, True)):
            check(address, (1, m, n, k), ta, tb, dtype)


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64], ids=dtypes.short)
def test_panels_of_every_width_under_every_number_of_rows(dtype, on):
    address = library(on, dtype).address("dot")

    for m, n, k in product((6, 7, 8, 16, 33), (64, 65, 96, 112, 200), (1, 41)):
        for ta, tb in product((False, True), (False, True)):
            check(address, (1, m, n, k), ta, tb, dtype)


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_products_beyond_every_block(ta, tb, on):
    address = library(on, dtypes.f32).address("dot")

    check(address, (1, HEIGHT + 9, 40, DEPTH + 3), ta, tb, dtypes.f32)
    check(address, (1, 20, 1000, 2 * DEPTH + 17), ta, tb, dtypes.f32)
    check(address, (3, 33, 65, 70), ta, tb, dtypes.f32)


@pytest.mark.parametrize(
    "extents", [(1, 300, 40, 90), (1, 40, 300, 90), (9, 40, 40, 40), (1, 1, 2000, 300), (1, 2000, 1, 300)]
)
def test_a_product_split_between_cores_is_the_same(extents):
    for ta, tb in product((False, True), (False, True)):
        check(library("host", dtypes.f32, 2).address("dot"), extents, ta, tb, dtypes.f32)


def test_the_bits_do_not_depend_on_the_cores():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(1, 300, 700)).astype(np.float32)
    b = rng.normal(size=(1, 700, 200)).astype(np.float32)

    one, two = (multiply(library("host", dtypes.f32, n).address("dot"), a, b, False, False) for n in (1, 2))

    assert one.tobytes() == two.tobytes()


def test_a_nan_stays_in_its_row_and_column():
    a, b = np.ones((1, 9, 9), np.float32), np.ones((1, 9, 9), np.float32)
    a[0, 2, 3] = np.nan

    c = multiply(library("host", dtypes.f32).address("dot"), a, b, False, False)

    assert np.isnan(c[0, 2]).all()
    assert np.isfinite(np.delete(c[0], 2, axis=0)).all()


def test_other_dtypes_are_refused():
    with pytest.raises(CompileError, match="dot: cannot multiply i32"):
        Libraries(1, EFFORT, int).product(DOT, dtypes.i32, [])


@functools.cache
def counting() -> tuple[Code, ctypes.c_int64]:
    """A function @missed of any arguments that sets a number to 1."""
    calls = ctypes.c_int64(0)
    word = f"inttoptr (i64 {ctypes.addressof(calls)} to ptr)"
    text = f"define void @missed() {{\n  store i64 1, ptr {word}\n  ret void\n}}"
    return compile_module("missed", text), calls


@contextmanager
def only(linked_library: Library, pieces: set[str]) -> Iterator[ctypes.c_int64]:
    """The library without other pieces than these, and whether another was called."""
    code, calls = counting()
    calls.value, before = 0, list(linked_library.table)
    for place, name in enumerate(linked_library.shape.pieces):
        if name not in pieces and name != "dot":
            linked_library.table[place] = code.address("missed")
    yield calls
    linked_library.table[:] = before


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("cores", [1, 2])
def test_a_product_calls_no_piece_that_its_sizes_do_not_list(on, cores):
    linked_library = library(on, dtypes.f32, cores)
    rng = np.random.default_rng(cores)
    random_sizes = [tuple(map(int, rng.choice(LISTED, 3))) for _ in range(100)]

    for (m, n, k), ta, tb in product([*random_sizes, *HARD], (False, True), (False, True)):
        pieces = pieces_for(linked_library.shape, cores, Product(m, n, k, ta, tb))
        with only(linked_library, pieces) as miss_count:
            check(linked_library.address("dot"), (1, m, n, k), ta, tb, dtypes.f32)
            assert not miss_count.value, (m, n, k, ta, tb, pieces)


@pytest.mark.parametrize("on", MACHINES)
def test_unknown_sizes_list_what_any_size_would(on):
    shape = shape_for(MACHINES[on], SCALARS[dtypes.f32])

    for m, n, k, ta, tb in product(LISTED, LISTED, (1, 9), (False, True), (False, True)):
        pieces = pieces_for(shape, 2, Product(m, n, k, ta, tb))
        for known in ((None, n, k), (m, None, k), (m, n, None), (None, n, None)):
            assert pieces <= pieces_for(shape, 2, Product(*known, ta, tb)), (m, n, ta, tb, known)


def test_ten_columns_need_one_tile():
    shape = shape_for(Machine(64, True), SCALARS[dtypes.f32])

    pieces = pieces_for(shape, 2, Product(128, 10, 512))

    assert pieces == {"tiles", "tile1", "copy1"}


def test_a_blas_routine_serves_in_the_same_place():
    # A routine with BLAS's signature, written with ours: row-major, one matrix.
    @ctypes.CFUNCTYPE(
        None,
        *[ctypes.c_int] * 6,
        ctypes.c_float,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_float,
        ctypes.c_void_p,
        ctypes.c_int,
    )
    def sgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
        assert (order, alpha, beta) == (101, 1.0, 0.0)
        lhs = view(a, (k, lda) if ta == 112 else (m, lda))
        right = view(b, (n, ldb) if tb == 112 else (k, ldb))
        x, y = lhs.T if ta == 112 else lhs, right.T if tb == 112 else right
        view(c, (m, ldc))[:] = x @ y

    def view(address: int, shape: tuple[int, int]) -> np.ndarray:
        count = shape[0] * shape[1]
        return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address)).reshape(shape)

    address = ctypes.cast(sgemm, ctypes.c_void_p).value
    assert address is not None
    text = blas.dot_text(blas.Gemm(address, "i32"), dtypes.f32)
    module = compile_module("blas", text)

    for ta, tb in product((False, True), (False, True)):
        check(module.address("dot"), (2, 3, 4, 5), ta, tb, dtypes.f32)


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64], ids=dtypes.short)
def test_pieces_made_in_a_hurry_give_the_same_products(dtype, on):
    quick_library = new_library(shape_for(MACHINES[on], SCALARS[dtype]), 1, 0, HURRY)
    quick_library.need(quick_library.shape.pieces)

    for extents in ((1, 17, 17, 17), (2, 5, 65, 33), (1, 49, 64, 67), (1, 130, 3, 31)):
        for ta, tb in product((False, True), repeat=2):
            check(quick_library.address("dot"), extents, ta, tb, dtype)
