"""How a scatter is computed on a GPU: in integers, atomically, or by sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rune.core.types import ArrayType
from rune.lowering.stages import stages
from tests.support.gpus import H100
from tests.support.lowering import program_of


def kernels(elements: int, updates: int, width: int = 1, dtype: Any = np.float32, reproducible: bool = True) -> str:
    """The names of the kernels that add updates of this many rows."""
    shapes = ((elements, width), (updates,), (updates, width))
    kinds = (dtype, np.int32, dtype)
    types = [ArrayType(shape, np.dtype(kind)) for shape, kind in zip(shapes, kinds, strict=True)]
    program = program_of(lambda x, i, u: x.at[i].add(u), *types)
    return " ".join(stages(program, H100, reproducible=reproducible).codes)


def test_floats_are_summed_in_integers():
    assert "sum_integers" in kernels(1 << 20, 1 << 22)


def test_in_any_order_they_are_summed_atomically():
    assert "scatter_atomically" in kernels(1 << 20, 1 << 22, reproducible=False)


def test_integers_are_summed_atomically():
    assert "scatter_atomically" in kernels(1 << 20, 1 << 22, dtype=np.int32)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_many_updates_of_few_elements_are_sorted(dtype: Any):
    assert "combine_runs" in kernels(1000, 1 << 22, dtype=dtype)


def test_few_updates_of_few_elements_are_not():
    assert "sum_integers" in kernels(1000, 5000)


def test_few_updates_of_many_long_rows_are_sorted():
    assert "combine_runs" in kernels(1 << 15, 1 << 13, 512)


def test_numbers_of_64_bits_are_sorted():
    assert "combine_runs" in kernels(1 << 20, 1 << 22, dtype=np.float64)
