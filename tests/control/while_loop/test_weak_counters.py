"""The index of a counted loop is weak where it starts from a Python number, as in JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax


def total(carry: Any, steps: Any) -> Any:
    return lax.fori_loop(0, steps, lambda i, c: c + i, carry)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32", "int32", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_an_index_takes_the_dtype_of_what_it_is_added_to(dtype: str, steps: int):
    carry = rnp.asarray(3, dtype)

    for result in (total(carry, steps), total(carry, rnp.int32(steps)), rune.jit(total)(carry, steps)):
        assert result.dtype == carry.dtype
        assert float(result) == 3 + steps * (steps - 1) // 2


def test_an_index_that_starts_from_an_array_keeps_its_dtype():
    result = rune.jit(lambda n: lax.fori_loop(rnp.int32(0), n, lambda i, c: c + i, rnp.zeros(2)))(5)

    np.testing.assert_array_equal(result, [10, 10])
