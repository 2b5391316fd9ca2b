"""Eager functions of several operations leave an array split as their jitted forms do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import numpy as rnp
from rune.sharding import NamedSharding, P, make_mesh
from tests.support.sampling import each_value

LINE, GRID = make_mesh((8,), ("x",)), make_mesh((2, 4), ("a", "b"))
LAYOUTS = {
    "rows": NamedSharding(LINE, P("x")),
    "columns": NamedSharding(LINE, P(None, "x")),
    "both": NamedSharding(GRID, P("b", "a")),
}
# JAX's own functions of several operations are jitted, and keep these layouts.
OF_THE_SAME_LAYOUT: dict[str, Callable[[Any, Any], Any]] = {
    "roll": lambda lib, x: lib.roll(x, 1, 0),
    "roll back": lambda lib, x: lib.roll(x, -5, 0),
    "roll both axes": lambda lib, x: lib.roll(x, (2, 3), (0, 1)),
    "gradient": lambda lib, x: lib.gradient(x)[0],
    "gradient along one axis": lambda lib, x: lib.gradient(x, axis=1),
    "unwrap": lambda lib, x: lib.unwrap(x * 9, axis=0),
    "where": lambda lib, x: lib.where(x > 0.5, x, 0),
    "rot90 twice": lambda lib, x: lib.rot90(x, 2),
}
OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "pad": lambda lib, x: lib.pad(x, 4, mode="wrap"),
    "diff": lambda lib, x: lib.diff(x, axis=0, append=x[:1]),
    "tile": lambda lib, x: lib.tile(x, (2, 1)),
    "cov": lambda lib, x: lib.cov(x),
    "median": lambda lib, x: lib.median(x, axis=1),
    "trapezoid": lambda lib, x: lib.trapezoid(x, axis=0),
    "var": lambda lib, x: lib.var(x, axis=0),
    "tril": lambda lib, x: lib.tril(x),
}


@each_value()
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OF_THE_SAME_LAYOUT)
def test_a_result_of_the_same_shape_stays_split(layout: str, name: str):
    x = numbers(24, 16)
    out = OF_THE_SAME_LAYOUT[name](rnp, rune.device_put(x, LAYOUTS[layout]))

    np.testing.assert_allclose(out, OF_THE_SAME_LAYOUT[name](np, x), rtol=2e-5, atol=2e-5)
    assert out.sharding.is_equivalent_to(LAYOUTS[layout], 2)


@each_value()
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OTHERS)
def test_a_result_is_split_as_under_jit(layout: str, name: str):
    x, function = rune.device_put(numbers(24, 16), LAYOUTS[layout]), OTHERS[name]
    out, jitted = function(rnp, x), rune.jit(lambda x: function(rnp, x))(x)

    np.testing.assert_allclose(out, function(np, np.asarray(x)), rtol=2e-5, atol=2e-5)
    assert out.sharding.is_equivalent_to(jitted.sharding, out.ndim)


def numbers(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape), dtype="f") * 1.3).reshape(shape)


def test_a_call_that_is_wrong_has_the_error_of_the_function():
    x = rune.device_put(numbers(24, 16), LAYOUTS["rows"])

    for _ in range(3):
        with pytest.raises(rune.errors.ArgumentError, match="roll: cannot match 2 shifts to 3 axes"):
            rnp.roll(x, (1, 2), (0, 1, 0))


POSITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "flatnonzero": lambda lib, x: lib.flatnonzero(x > 0),
    "nonzero": lambda lib, x: lib.nonzero(x[:, 0] > 0)[0],
    "argwhere": lambda lib, x: lib.argwhere(x > 0.5),
    "where": lambda lib, x: lib.where(x > 0.3)[1],
    "ix_": lambda lib, x: lib.ix_(x[:, 1] > 0)[0],
    "unique": lambda lib, x: lib.unique(x > 0),
    "zeros of another shape": lambda lib, x: lib.zeros_like(x, shape=(7, 3)),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_a_result_of_any_size_is_whole_on_each_device(name: str):
    # The counts of positions are odd: no mesh divides them.
    x, function = numbers(23, 7)[:, :5], POSITIONS[name]
    copies = rune.device_put(x, NamedSharding(LINE, P()))
    rows = rune.device_put(np.resize(x, (24, 5)), LAYOUTS["rows"])

    for array in (copies, rows):
        out = function(rnp, array)
        np.testing.assert_array_equal(out, function(np, np.asarray(array)))
        assert out.sharding.is_equivalent_to(NamedSharding(LINE, P()), out.ndim)
