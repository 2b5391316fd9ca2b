"""A claim of the table of scalar operations: narrow formats are closed under some of them.

A claim is compared with NumPy in the register's wider format, on every number of the narrow one.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rune import dtypes
from rune.lowering.kernel.scalar import SCALAR_MEANING
from rune.lowering.scalar.table import OPERATIONS

BYTES = np.arange(256).astype(np.uint8)
# All numbers of a format, in the format that a wider register computes in.
NUMBERS = {
    dtypes.i8: BYTES.view(np.int8).astype(np.int32),
    dtypes.u8: BYTES.astype(np.int32),
    dtypes.f8_e5m2: BYTES.view(dtypes.f8_e5m2).astype(np.float32),
    dtypes.f8_e4m3: BYTES.view(dtypes.f8_e4m3).astype(np.float32),
}
# Of these, the bits of the narrow number count, and renderers see to that themselves.
BY_BITS = {"popcount", "clz", "nextafter"}
CLOSED = [
    (name, dtype)
    for (name, op), dtype in itertools.product(OPERATIONS.items(), NUMBERS)
    if dtype in op.closed_dtypes and name not in BY_BITS | {"select"}
]


def wide_results(name: str, dtype: np.dtype) -> np.ndarray:
    """The operation in the wider format, on all numbers or all pairs of them."""
    numbers = NUMBERS[dtype]
    pairs = (a.ravel() for a in np.meshgrid(numbers, numbers))
    return SCALAR_MEANING[name](*([numbers] if OPERATIONS[name].arity == 1 else pairs))


def holds(dtype: np.dtype, results: np.ndarray) -> bool:
    """Whether the narrow format has all these numbers."""
    with np.errstate(all="ignore"):
        back = results.astype(dtype).astype(results.dtype)
    return bool(((back == results) | np.isnan(back) & np.isnan(results)).all())


@pytest.mark.parametrize(("name", "dtype"), CLOSED, ids=str)
def test_a_closed_operation_gives_numbers_of_the_narrow_format(name: str, dtype: np.dtype):
    assert holds(dtype, wide_results(name, dtype))


@pytest.mark.parametrize("dtype", NUMBERS, ids=dtypes.short)
def test_sums_and_products_leave_a_narrow_format(dtype: np.dtype):
    for name in ("add", "sub", "mul"):
        assert dtype not in OPERATIONS[name].closed_dtypes
        assert not holds(dtype, wide_results(name, dtype))


def test_inexact_functions_are_not_among_the_operations_that_all_executors_compute_alike():
    inexact = {name for name, op in OPERATIONS.items() if not op.is_exact}

    assert {"exp", "log1p", "pow", "atan2", "rsqrt"} <= inexact
    assert inexact.isdisjoint({"add", "div", "sqrt", "rem", "fma", "floor", "nextafter"})
