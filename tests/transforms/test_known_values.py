"""Inside ensure_compile_time_eval operations on known values run at once, even while tracing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp

TRANSFORMS = {
    "nothing": lambda f: f,
    "jit": rune.jit,
    "vmap": lambda f: lambda x: rune.vmap(f)(x[None])[0],
    "grad": lambda f: lambda x: rune.grad(lambda v: f(v).sum())(x),
    "jit of grad": lambda f: rune.jit(rune.grad(lambda v: f(v).sum())),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_known_number_is_one_of_pythons(name: str):
    def function(x: Any) -> Any:
        with rune.ensure_compile_time_eval():
            count = int(rnp.sum(rnp.arange(4)))
            sample = rune.random.permutation(rune.random.key(0), 5)
            assert type(sample) is rune.Array
            inside = x * count  # what is traced stays traced
        return inside + 1.0

    expected = [6, 6, 6] if "grad" in name else [1, 7, 13]

    np.testing.assert_array_equal(TRANSFORMS[name](function)(rnp.arange(3.0)), expected)


def test_it_decorates_functions():
    @rune.ensure_compile_time_eval()
    def size() -> int:
        return int(rnp.max(rnp.arange(5)))

    assert rune.jit(lambda x: x + size())(1.0) == 5
