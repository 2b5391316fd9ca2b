"""Sums and products in bool: whether any element is true, and whether all are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp

SIZES = (0, 1, 2, 7, 127, 128, 129, 130)


def rows(size: int, dtype: str) -> np.ndarray:
    """Three rows: zeros with a few others, zeros alone, and others alone (256 wraps to 0 in u8)."""
    bits = np.random.default_rng(size).integers(0, 2, size)
    return np.stack([256 * bits if dtype == "int32" else bits, 0 * bits, 0 * bits + 2]).astype(dtype)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float32"])
@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
@pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eager", "compiled"])
def test_a_sum_in_bool_agrees_with_numpy(way: Callable[[Any], Any], name: str, dtype: str, size: int):
    x = rows(size, dtype)

    for axis in (0, 1, None):
        result, between = way(lambda x: ((y := getattr(rnp, name)(x, axis=axis, dtype=bool)), y + 1))(rnp.asarray(x))  # noqa: B023

        expected = getattr(np, name)(x, axis=axis, dtype=bool)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(between, expected + 1)


@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("size", SIZES)
def test_truth_values_are_counted_even_if_integers_are_not_promoted(name: str, size: int):
    x = rows(size, "bool")

    result = getattr(rnp, name)(rnp.asarray(x), axis=1, promote_integers=False)

    np.testing.assert_array_equal(result, getattr(np, name)(x, axis=1))
    assert result.dtype == rnp.int32  # as in JAX 0.10.2
