"""Sorting: the total order, and that every executor has it.

Claims, in reading order: the order puts NaN last, treats zeros alike, takes complex numbers by
parts and keeps ties; the reference and every executor have that order for every dtype
and for lengths that are no powers of two; one program serves every length; derivatives go where
elements go; what makes no sense is refused.
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, ops
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.ops.complex_numbers import PART
from rune.ops.sorting import argsort, order
from tests.support.arrays import array
from tests.support.close import same
from tests.support.sampling import in_turn

DEVICES = [d for d in rune.devices() if d.target.backend != "null"]
each_device = pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.name)
ORDERED = sorted(dtypes.ANY, key=dtypes.short)
each_dtype = pytest.mark.parametrize("dtype", ORDERED, ids=dtypes.short)


# --- the order --------------------------------------------------------------------------------


def compared(a: Any, b: Any) -> int:
    """-1, 0 or 1: the order, said once more, for two Python numbers."""
    if isinstance(a, complex):
        return compared(a.real, b.real) or compared(a.imag, b.imag)
    if a != a or b != b:
        return int(a != a) - int(b != b)
    return int(a > b) - int(a < b)


def in_order(row: np.ndarray) -> list[int]:
    """The positions that sort a row, by Python's stable sort."""
    wide = np.complex128 if row.dtype in dtypes.COMPLEX else object
    numbers = row.astype(wide).tolist()
    by_value = cmp_to_key(lambda i, j: compared(numbers[i], numbers[j]))
    return sorted(range(len(numbers)), key=by_value)


def row_of(dtype: np.dtype, size: int) -> np.ndarray:
    """Numbers with ties; of floats, NaN, infinities and both zeros as well."""
    rng = np.random.default_rng(size)
    low = 0 if dtype in dtypes.UNSIGNED or dtype == dtypes.bool_ else -3
    values = rng.integers(low, 2 if dtype == dtypes.bool_ else 4, size).astype(dtype)
    if dtype in dtypes.COMPLEX:
        values = values + 1j * rng.integers(-1, 2, size).astype(dtype)
    special = (
        np.array([0.0, np.nan, -0.0, -np.inf, np.inf, 0.0], np.float32).astype(dtype)
        if (dtype in dtypes.INEXACT)
        else values[:0]
    )
    values[: len(special)] = special[:size]
    return values[rng.permutation(size)]


@each_dtype
@pytest.mark.parametrize("size", [0, 1, 2, 9, order.SHORT, order.SHORT + 1])
def test_the_reference_has_the_order_of_the_numbers(dtype: np.dtype, size: int):
    if size and size < 6 and dtype in dtypes.INEXACT:
        pytest.skip("too short for what is special")
    row = row_of(dtype, size)

    assert order.permutation([row]).tolist() == in_order(row)


@pytest.mark.parametrize("dtype", sorted(dtypes.COMPLEX, key=dtypes.short), ids=dtypes.short)
@pytest.mark.parametrize("size", [2, 9, order.SHORT, order.SHORT + 1])
@pytest.mark.parametrize("special", [0.0, complex(np.nan, -1), complex(0, np.nan)], ids=str)
def test_rows_of_complex_numbers_are_sorted_by_both_parts(dtype: np.dtype, size: int, special: complex):
    parts = np.random.default_rng(size).choice([-0.0, 0.0, 1, -np.inf], (size, 2))
    row = parts.astype(PART[dtype]).view(dtype)[:, 0]
    row[0] = special

    same(row[in_order(row)].view(PART[dtype]), order.sorted_rows(row).view(PART[dtype]))


@in_turn("dtype")
@each_device
@each_dtype
def test_every_executor_sorts_in_the_order_of_the_reference(dtype: np.dtype, device: Any):
    if dtype not in device.target.program_dtypes:
        pytest.skip("not a dtype of the device")
    rows = np.stack([row_of(dtype, 13), row_of(dtype, 13)[::-1]])

    order = rune.jit(argsort, device=device.name)(array(rows, dtype))

    assert np.asarray(order).tolist() == [in_order(row) for row in rows]


@in_turn()
@each_device
def test_zeros_keep_their_signs_and_their_order(device: Any):
    x = np.array([0.0, 1.0, -0.0, -1.0, 0.0, -0.0], np.float32)

    sorted_values = rune.jit(rnp.sort, device=device.name)(x)

    assert np.signbit(sorted_values).tolist() == [True, False, True, False, True, False]


@in_turn("size")
@each_device
@pytest.mark.parametrize("size", [2, 31, 33, 1000])
def test_lengths_other_than_powers_of_two_are_sorted(size: int, device: Any):
    x = np.random.default_rng(size).integers(0, size, size).astype(np.int32)

    order = rune.jit(argsort, device=device.name)(x)

    np.testing.assert_array_equal(np.argsort(x, kind="stable"), order)


@pytest.mark.parametrize("device", ["cpu", "reference:0"])
def test_one_program_sorts_every_length(device: str):
    sort = rune.jit(rnp.sort, device=device, dims={"n": (1, 100)})

    for size in (1, 6, 77):
        x = np.random.default_rng(size).normal(size=size).astype(np.float32)
        np.testing.assert_array_equal(np.sort(x), sort(x))
    assert sort.cache_size() == 1


def test_the_program_does_not_grow_with_the_length():
    def lines(size: int) -> int:
        stages = rune.explain(argsort, device="reference:0")(np.zeros(size, np.float32))
        return str(stages["simplified"]).count("\n")

    assert lines(1_000) == lines(100_000)


def test_narrow_keys_are_sorted_in_one_word_and_wide_keys_word_by_word():
    small, wide = np.array([3, 1, 2], np.int16), np.array([3.0, -1.0, np.nan])

    assert len(order.words_of(small)) == 1
    assert len(order.words_of(wide)) == 2
    assert order.permutation([wide]).tolist() == [1, 0, 2]


# --- top_k, several operands ------------------------------------------------------------------


@in_turn()
@each_device
def test_top_k_takes_the_first_of_tied_elements_and_puts_nan_first(device: Any):
    x = np.array([1.0, 5.0, np.nan, 5.0, -2.0], np.float32)

    values, positions = rune.jit(lambda v: ops.top_k(v, k=4), device=device.name)(x)

    assert np.asarray(positions).tolist() == [2, 1, 3, 0]
    np.testing.assert_array_equal(x[[2, 1, 3, 0]], values)


# The bits of 1, -NaN, -0, 0, NaN, 2, -inf, inf, the least numbers below and above 0, and -1; and
# the positions that top_k of jax 0.10.2 gives for them.
BITS = {
    np.float32: "3f800000 ffc00000 80000000 0 7fc00000 40000000 ff800000 7f800000 80000001 1 bf800000",
    np.float16: "3c00 fe00 8000 0 7e00 4000 fc00 7c00 8001 1 bc00",
}
ORDER_OF_JAX = [4, 7, 5, 0, 9, 3, 2, 8, 10, 6, 1]


def hard_numbers(dtype: Any, repeats: int) -> np.ndarray:
    words = [int(word, 16) for word in BITS[dtype].split()]
    return np.tile(np.array(words, f"u{np.dtype(dtype).itemsize}").view(dtype), repeats)


@in_turn()
@each_device
@pytest.mark.parametrize("repeats", [1, 29], ids=["short", "long"])
@pytest.mark.parametrize("dtype", BITS)
def test_top_k_compares_every_bit_as_jax_does(device: Any, dtype: Any, repeats: int):
    x = hard_numbers(dtype, repeats)
    expected = [k + len(ORDER_OF_JAX) * n for k in ORDER_OF_JAX for n in range(repeats)]

    _, positions = rune.jit(lambda v: ops.top_k(v, k=x.size - 1), device=device.name)(x)

    assert np.asarray(positions).tolist() == expected[:-1]


@pytest.mark.parametrize("dtype", BITS)
def test_an_eager_top_k_compares_every_bit(dtype: Any):
    assert order.largest(hard_numbers(dtype, 1), 11).tolist() == ORDER_OF_JAX
    assert order.largest(hard_numbers(dtype, 1).astype(np.float64), 11).tolist() == ORDER_OF_JAX


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("k", [1, 7, 2000])
def test_an_eager_top_k_of_many_numbers_compares_every_bit(dtype: Any, k: int):
    x = hard_numbers(dtype, 2999)
    expected = [ORDER_OF_JAX[0] + len(ORDER_OF_JAX) * n for n in range(k)]

    assert order.largest(x, k).tolist() == expected


@pytest.mark.parametrize("shape", [(order.MANY - 1,), (order.MANY + 3,), (7, 6007), (3, 5, 2999)], ids=str)
@pytest.mark.parametrize("k", [1, 7, 60])
def test_an_eager_top_k_of_many_numbers_keeps_the_order_of_ties(shape: tuple[int, ...], k: int):
    n, rng = shape[-1], np.random.default_rng(k)
    wild = rng.integers(-(1 << 31), 1 << 31, shape)
    kinds = [wild, wild % 50, wild % 2, np.zeros_like(wild), np.sort(wild), np.sort(wild)[..., ::-1]]

    for numbers in [*kinds, np.where(np.arange(n) < n - k, 0, wild)]:
        expected = np.argsort(-numbers, axis=-1, kind="stable")[..., :k]

        assert (order.largest(numbers.astype(np.int32), k) == expected).all()


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("k", [1, 16, 17])
def test_a_compiled_top_k_by_passes_compares_every_bit(dtype: Any, k: int):
    x = hard_numbers(dtype, 29)

    values, positions = rune.jit(lambda v: ops.top_k(v, k=k))(x)

    expected = [ORDER_OF_JAX[0] + len(ORDER_OF_JAX) * n for n in range(k)]
    assert np.asarray(positions).tolist() == expected
    assert np.asarray(values).tobytes() == x[expected].tobytes()


@pytest.mark.parametrize(
    ("dtype", "shape", "k"),
    [
        (np.int8, (257,), 5),
        (np.uint8, (131, 65), 1),
        (np.int16, (3, 5, 1031), 5),
        (np.int32, (4096,), 1),
        (np.uint32, (2, 4099), 16),
        (dtypes.bf16, (10_007,), 5),
    ],
    ids=str,
)
def test_a_compiled_top_k_by_passes_keeps_the_order_of_ties(dtype: Any, shape: tuple[int, ...], k: int):
    compiled = rune.jit(lambda v: ops.top_k(v, k=k)[1])
    wild = np.random.default_rng(7).integers(0, 1 << 31, shape) - (0 if np.dtype(dtype).kind == "u" else 1 << 30)

    for numbers in (wild, wild % 50, np.zeros_like(wild), np.sort(wild), np.sort(wild)[..., ::-1]):
        x = numbers.astype(dtype)
        expected = np.argsort(-x.astype(np.float64), axis=-1, kind="stable")[..., :k]
        assert (np.asarray(compiled(x)) == expected).all()


@pytest.mark.parametrize("k", [1, 10, 999, 1000])
def test_the_reference_of_top_k_takes_the_last_elements_of_the_order_in_reverse(k: int):
    x = np.random.default_rng(k).integers(0, 50, 1000)

    expected = np.argsort(-x, kind="stable")[:k]

    for dtype in (np.int32, np.int64, np.float64):
        assert order.largest(x.astype(dtype), k).tolist() == expected.tolist()


def test_a_later_key_decides_where_earlier_keys_are_equal():
    first, second = np.array([1, 0, 1, 0]), np.array([2.0, 3.0, 1.0, 3.0])

    *_, third = ops.sort(first, second, np.arange(4), num_keys=2)

    assert np.asarray(third).tolist() == [1, 3, 2, 0]


def test_a_tangent_moves_with_its_element():
    x, dx = array(np.array([3.0, 1.0, 2.0])), array(np.array([30.0, 10.0, 20.0]))

    _, sorted_tangent = rune.jvp(rnp.sort, (x,), (dx,))
    _, pull = rune.vjp(lambda v: ops.top_k(v, k=2)[0], x)

    assert np.asarray(sorted_tangent).tolist() == [10.0, 20.0, 30.0]
    assert np.asarray(pull(array(np.array([7.0, 5.0])))[0]).tolist() == [7.0, 0.0, 5.0]


# --- refusals ---------------------------------------------------------------------------------


def test_arrays_of_different_shapes_are_not_sorted_together():
    with pytest.raises(ShapeError, match="shapes differ"):
        ops.sort(np.zeros(2), np.zeros(3), num_keys=1)


def test_a_rank_zero_array_cannot_be_sorted():
    with pytest.raises(ShapeError, match="at least one axis"):
        ops.sort(np.zeros(()), num_keys=1)


def test_top_k_refuses_to_take_more_elements_than_a_row_has():
    with pytest.raises(ArgumentError, match="cannot take 4 of 3"):
        ops.top_k(np.zeros(3), k=4)


def test_only_values_of_the_row_s_dtype_are_searched():
    with pytest.raises(DtypeError, match="dtypes differ"):
        ops.search_sorted(np.zeros(3), np.zeros(2, np.int32), side="left")
