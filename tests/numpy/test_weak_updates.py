"""A weakly typed array stays weak when part or all of it is overwritten, as in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp

INDICES: dict[str, Any] = {
    "...": ...,
    ":": slice(None),
    "::2": slice(None, None, 2),
    "None": None,
    "::-1": slice(None, None, -1),
    "(None, ...)": (None, ...),
}


@pytest.mark.parametrize("size", [1, 2, 7, 130])
@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("value", [2, rnp.float16(2), np.float32(2)], ids=["number", "array", "numpy"])
def test_a_weak_array_stays_weak_and_is_written(value: Any, way: Callable[[Any], Any], name: str, size: int):
    weak = rnp.full(size, 1.0)
    expected = np.ones(size, np.float32)
    expected[INDICES[name]] = 2

    result, successor = way(lambda x: ((y := x.at[INDICES[name]].set(value)), y + rnp.float16(1)))(weak)

    assert isinstance(result, rune.Array)
    assert result.weak_type
    assert successor.dtype == rnp.float16  # a weak f32 yields to f16
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(successor, expected + 1)


@pytest.mark.parametrize("index", [..., None, ()], ids=str)
def test_a_weak_number_that_is_overwritten_is_an_array(index: Any):
    result = rnp.asarray(1.0).at[index].set(2)

    assert isinstance(result, rune.Array)
    assert (result.weak_type, float(result)) == (True, 2.0)


@pytest.mark.parametrize("name", INDICES)
def test_a_strong_array_stays_strong(name: str):
    assert not rnp.ones(5).at[INDICES[name]].set(2).weak_type
