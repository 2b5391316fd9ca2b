"""A mesh of one device holds arrays that combine with those on the device itself, as in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import DeviceError
from rune.sharding import NamedSharding, P, make_mesh
from tests.support.close import near


def numbers(shape: tuple[int, ...]) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape) + 2


HOST = rune.devices("cpu")[0]
ONE = NamedSharding(make_mesh((1,), ("a",), devices=["cpu"]), P("a"))
ROWS = numbers((4, 3))
ON_DEVICE = rune.device_put(numbers((4,)), HOST)
ON_MESH = rune.device_put(ROWS, ONE)
COMBINED: dict[str, Callable[[Any, Any], Any]] = {
    "an operation": lambda x, y: x.T * y,
    "a sum": lambda x, y: x.sum(1) + y,
    "a call": lambda x, y: rune.jit(lambda x, y: x.T @ y)(x, y),
    "a call, the other way round": lambda x, y: rune.jit(lambda y, x: x.T @ y)(y, x),
    "a gradient": lambda x, y: rune.grad(lambda y: (x.T @ y).sum())(y),
    "lanes": lambda x, y: rune.vmap(lambda row, y: row * y)(x, y),
    "steps": lambda x, y: rune.lax.scan(lambda c, row: (c + row[1] * row[0].sum(), c), y[0], (x, y))[1],
    "a move": lambda x, y: rune.jit(lambda x, y: rune.device_put(x, HOST).T @ y)(x, y),
    "two layouts and a move": lambda x, y: rune.jit(lambda x, y: rune.device_put(y, HOST) + x.sum(1))(x, x[:, 0] + y),
}


@pytest.mark.parametrize("name", COMBINED)
def test_an_array_on_a_mesh_of_one_device_combines_with_one_on_the_device(name):
    combine = COMBINED[name]

    expected = combine(rnp.asarray(ROWS), rnp.asarray(numbers((4,))))

    near(combine(ON_MESH, ON_DEVICE), expected, relative=1e-6, why="sums in another order")


def test_results_of_a_device_and_a_mesh_of_it_are_on_the_mesh():
    assert (ON_DEVICE * ON_MESH[:, 0]).sharding.mesh == ONE.mesh == (ON_MESH[:, 0] * ON_DEVICE).sharding.mesh


def test_an_array_on_a_mesh_does_not_combine_with_one_on_another_device():
    elsewhere = rune.device_put(numbers((4,)), "reference")

    with pytest.raises(DeviceError, match="cannot combine arrays on different devices"):
        _ = ON_MESH[:, 0] * elsewhere
    with pytest.raises(DeviceError, match="cannot combine arrays on different devices"):
        rune.jit(lambda x, y: x[:, 0] * y)(ON_MESH, elsewhere)
