"""Sorts without Python: the order of every dtype, ties, rows on all cores, and what NumPy keeps.

The oracle is NumPy's lexsort of numbers, with NaN after all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, ops
from rune.backends.cpu.library_calls import native_of
from rune.backends.cpu.sorting.keys import KEYS
from rune.lowering.plan import Call, all_steps
from rune.ops.complex_numbers import PART
from rune.ops.sorting import argsort
from tests.support.arrays import array

SHAPES = [(3, 67), (131,), (2, 1009)]
each_dtype = pytest.mark.parametrize("dtype", sorted(KEYS, key=dtypes.short), ids=dtypes.short)


def wild(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Any bits, and every second element one of few numbers, both zeros and NaN among them."""
    rng = np.random.default_rng(shape[-1])
    if dtype == dtypes.bool_:
        return rng.integers(0, 2, shape) > 0
    size = int(np.prod(shape))
    bits = np.frombuffer(rng.bytes(size * dtype.itemsize), PART.get(dtype, dtype))
    few = rng.choice([0.0, -0.0, np.nan, 1.0] if dtype in dtypes.INEXACT else [0, 1, 2, 3], bits.size)
    return np.where(rng.random(bits.size) < 0.5, bits, few.astype(bits.dtype)).view(dtype).reshape(shape)


def in_order(*keys: np.ndarray) -> np.ndarray:
    """The positions that sort rows by the keys, the first of which is the most significant."""
    columns = []
    for key in keys:
        for x in (np.real(key), np.imag(key)) if key.dtype in dtypes.COMPLEX else (key,):
            with np.errstate(invalid="ignore"):
                number = x.astype(np.float64) if x.dtype in dtypes.FLOATING else x
            columns += [number != number, np.where(number != number, 0, number)]
    return np.lexsort(columns[::-1], axis=-1)


def is_native(function: Callable[..., Any], *arrays: np.ndarray) -> list[bool]:
    """For each Python function among the steps of a plan, whether native code works without it."""
    plan = rune.explain(function)(*(array(x, x.dtype) for x in arrays)).plan
    return [native_of(s) is not None for s in all_steps(plan) if isinstance(s, Call) and s.routine == "callback"]


@each_dtype
def test_rows_of_every_dtype_are_sorted_with_ties_in_order(dtype: np.dtype):
    rows = [wild(shape, dtype) for shape in SHAPES]

    def orders_of(*arrays: Any) -> list[Any]:
        return [argsort(x) for x in arrays]

    orders = rune.jit(orders_of)(*(array(x, dtype) for x in rows))

    for order, x in zip(orders, rows, strict=True):
        np.testing.assert_array_equal(in_order(x), order)


@each_dtype
def test_sorted_elements_keep_their_bits(dtype: np.dtype):
    x = wild((3, 131), dtype)

    values = np.asarray(rune.jit(rnp.sort)(array(x, dtype)))

    assert values.tobytes() == np.take_along_axis(x, in_order(x), -1).tobytes()


@pytest.mark.parametrize(
    ("names", "num_keys"), [("i8 bool c128 i16 f64", 2), ("c64 u64 bf16 u8", 3), ("f64 i32", 1), ("u8 u16 i32", 3)]
)
def test_rows_move_together_by_several_keys_under_vmap_and_in_loops(names: str, num_keys: int):
    operands = [wild((17, 1031), dtypes.FROM_SHORT[name]) for name in names.split()]
    for x in operands[: num_keys - 1]:
        x[:, ::2] = x[:1, :1]  # so that later keys decide
    order = in_order(*operands[:num_keys])

    def sorted_row(*row: Any) -> Any:
        return ops.sort(*row, num_keys=num_keys)

    def in_a_loop(*rows: Any) -> Any:
        return rune.lax.scan(lambda carry, row: (carry, sorted_row(*row)), 0, rows)[1]

    for function in (rune.vmap(sorted_row), in_a_loop):
        for result, x in zip(rune.jit(function)(*(array(x, x.dtype) for x in operands)), operands, strict=True):
            assert np.asarray(result).tobytes() == np.take_along_axis(x, order, -1).tobytes()


@pytest.mark.parametrize(("count", "k"), [(131, 17), (131, 131), (1031, 20), (4099, 64), (4099, 1500)])
def test_the_largest_of_rows_in_any_order_come_last_first(count: int, k: int):
    numbers = np.random.default_rng(k).integers(-(1 << 31), 1 << 31, (2, count))
    kinds = [numbers, numbers % 50, numbers * 0, np.sort(numbers), np.sort(numbers)[:, ::-1]]

    for dtype in (dtypes.i32, dtypes.f32, dtypes.bf16, dtypes.u16, dtypes.f64):
        compiled = rune.jit(lambda x: ops.top_k(x, k=k))
        for kind in kinds:
            x = kind.astype(dtype)
            expected = np.argsort(-x.astype(np.float64), axis=-1, kind="stable")[:, :k]
            values, positions = compiled(array(x, dtype))
            np.testing.assert_array_equal(expected, positions)
            assert np.asarray(values).tobytes() == np.take_along_axis(x, expected, -1).tobytes()


@pytest.mark.parametrize(
    ("function", "shape", "expected"),
    [
        (rnp.argsort, (65_537,), [True]),
        (lambda x: rune.lax.top_k(x, 17), (3, 131), [True]),
        (rnp.sort, (2039,), [True]),
        (rnp.sort, (2051,), [False]),
        (rnp.sort, (4001, 5), [True]),
        (rnp.argsort, (0, 300), []),
    ],
)
def test_numpy_is_called_for_long_rows_of_plain_numbers_only(
    function: Callable[..., Any], shape: tuple[int, ...], expected: Sequence[bool]
):
    assert is_native(function, np.zeros(shape, np.float32)) == expected
