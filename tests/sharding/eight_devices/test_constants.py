"""Arrays that a jitted function closes over follow its arguments, as constants of JAX do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import Mesh, NamedSharding, P, SingleDeviceSharding, make_mesh

CPUS = make_mesh((8,), ("x",)).devices
FIRST, LAST = Mesh(CPUS[:4], ("x",)), Mesh(CPUS[4:], ("x",))
GRID = Mesh(CPUS.reshape(4, 2), ("a", "b"))
PLACES = {
    "a device": SingleDeviceSharding(CPUS[0]),
    "another": SingleDeviceSharding(CPUS[3]),
    "a mesh": NamedSharding(FIRST, P("x")),
    "a mesh of others": NamedSharding(LAST, P("x")),
    "a grid": NamedSharding(GRID, P("b")),
}
X, TABLE = np.arange(12, dtype="f"), np.sin(np.arange(12, dtype="f"))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("origin", PLACES)
def test_a_constant_follows_the_arguments(origin: str, place: str):
    table, x = rune.device_put(TABLE, PLACES[origin]), rune.device_put(X, PLACES[place])
    function = rune.jit(lambda x: x * table)

    for _ in range(3):  # once traced, once looked up, once by native code
        result = function(x)
        assert result.sharding.device_set == x.sharding.device_set
        np.testing.assert_array_equal(np.asarray(result), X * TABLE)


def test_a_constant_follows_arguments_that_move():
    table = rune.device_put(TABLE, PLACES["another"])
    function = rune.jit(lambda x: x * table)

    for place in (*PLACES.values(), *PLACES.values()):
        result = function(rune.device_put(X, place))
        assert result.sharding.device_set == place.device_set
        np.testing.assert_array_equal(np.asarray(result), X * TABLE)


def test_without_committed_arguments_a_function_runs_where_its_constant_is():
    table = rune.device_put(TABLE, PLACES["another"])

    assert rune.jit(lambda x: x * table)(X).sharding.device_set == {CPUS[3]}
    assert rune.jit(lambda: table * 2)().sharding.device_set == {CPUS[3]}


def test_a_constant_follows_to_the_mesh_of_the_function():
    table = rune.device_put(TABLE, PLACES["another"])

    def laid_out(x: Any) -> Any:
        return lax.with_sharding_constraint(x * table, NamedSharding(LAST, P("x")))

    def body(x: Any) -> Any:
        return x * table[:3]

    expected = X.reshape(4, 3) * TABLE[:3]
    np.testing.assert_array_equal(np.asarray(rune.jit(laid_out)(X)), X * TABLE)
    on_mesh = rune.shard_map(body, mesh=LAST, in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_array_equal(np.asarray(rune.jit(on_mesh)(X.reshape(4, 3))), expected)


def test_arguments_on_different_devices_are_refused_despite_a_constant():
    table = rune.device_put(TABLE, PLACES["another"])
    x, y = rune.device_put(X, PLACES["a device"]), rune.device_put(X, PLACES["a mesh of others"])

    with pytest.raises(rune.errors.DeviceError, match="cannot combine arrays on different devices"):
        rune.jit(lambda x, y: x + y * table)(x, y)
    with pytest.raises(rune.errors.DeviceError, match="cannot combine arrays on different devices"):
        rnp.add(x, table)
