"""Arrays that a jitted function closes over follow its arguments, and arguments their in_shardings.

Where JAX has a rule, it is that of jax 0.10.2 on eight devices of the host.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import Mesh, NamedSharding, P, SingleDeviceSharding, make_mesh
from tests.support.sampling import IS_WHOLE

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


@pytest.mark.parametrize("origin", PLACES)
def test_without_committed_arguments_a_function_runs_on_the_default_device(origin: str):
    table, other = rune.device_put(TABLE, PLACES[origin]), rune.device_put(TABLE + 1, PLACES["another"])
    functions = rune.jit(lambda x: x * table + other), rune.jit(lambda: X * table + other)

    for function, args in zip(functions, [(X,), ()], strict=True):
        for _ in range(3):
            result = function(*args)
            assert (result.device, result.committed) == (CPUS[0], False)
            np.testing.assert_array_equal(result, X * TABLE + (TABLE + 1))


# A function and what it is given -> results that are computed with the function's constant.
WAYS: dict[str, Any] = {
    "jit in jit": lambda f, x: rune.jit(lambda x: f(x) + 1)(x),
    "grad": lambda f, x: rune.grad(lambda x: f(x).sum())(x),
    "jvp": lambda f, x: rune.jvp(f, (x,), (x,)),
    "vjp": lambda f, x: rune.vjp(f, x)[1](x),
    "vmap": lambda f, x: rune.vmap(f)(x.reshape(2, 12)),
    "grad of grad": lambda f, x: rune.grad(lambda x: rune.grad(lambda x: (f(x) ** 2).sum())(x).sum())(x),
    "vmap of grad": lambda f, x: rune.vmap(rune.grad(lambda x: f(x).sum()))(x.reshape(2, 12)),
    "scan": lambda f, x: lax.scan(lambda c, _: (f(c), c), x, None, length=2),
    "cond": lambda f, x: lax.cond(x[0] < 1, f, lambda x: x, x),
    "checkpoint": lambda f, x: rune.grad(lambda x: rune.checkpoint(f)(x).sum())(x),
}


# Before it is compiled, a loop, a branch or a checkpoint has the constant as an operand, as in JAX.
ONLY_COMPILED = ("scan", "cond", "checkpoint")
PAIRS = [("another", "a device"), ("a mesh of others", "a mesh"), ("a mesh", "another"), ("a grid", "a mesh")]


@pytest.mark.parametrize(("number", "way"), [*enumerate(WAYS)])
def test_a_constant_follows_arguments_through_transformations(number: int, way: str):
    size = 24 if "vmap" in way else 12
    x, table = np.arange(size, dtype="f"), np.sin(np.arange(12, dtype="f"))
    expected = WAYS[way](rune.jit(lambda x: x * table), rnp.asarray(x))

    for origin, place in PAIRS if IS_WHOLE else [PAIRS[number % len(PAIRS)]]:
        constant, argument = rune.device_put(table, PLACES[origin]), rune.device_put(x, PLACES[place])
        function = functools.partial(WAYS[way], rune.jit(functools.partial(rnp.multiply, constant)))
        for call in (rune.jit(function),) if way in ONLY_COMPILED else (rune.jit(function), function):
            result = call(argument)

            leaves = rune.tree.leaves(result)
            assert {leaf.sharding.device_set for leaf in leaves} == {argument.sharding.device_set}
            rune.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6), result, expected)


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


# --- arguments ----------------------------------------------------------------------------------

AROUND = Mesh(CPUS[2:6], ("x",))
REVERSED = Mesh(CPUS[3::-1], ("x",))
FOUR = {"others": LAST, "some of them": AROUND, "another order": REVERSED, "the same": FIRST}


@pytest.mark.parametrize("spec", [P("x"), P(None, "x"), P()], ids=repr)
@pytest.mark.parametrize("target", FOUR)
def test_an_argument_moves_to_as_many_devices_of_in_shardings(target: str, spec: P):
    x, sharding = np.arange(24, dtype="f").reshape(4, 6)[:, :4], NamedSharding(FOUR[target], spec)
    argument = rune.device_put(x, NamedSharding(FIRST, spec))
    double = rune.jit(lambda x: 2 * x, in_shardings=sharding)

    for result in (double(argument), double(argument), rune.jit(lambda x: double(x) + 0)(x)):
        assert result.sharding.is_equivalent_to(sharding, 2)
        np.testing.assert_array_equal(result, 2 * x)
    gradient = rune.grad(lambda x: (double(x) * x).sum())
    np.testing.assert_array_equal(rune.jit(gradient, in_shardings=sharding)(argument), 4 * x)


def test_an_argument_moves_beside_one_that_is_there():
    one, two = (rune.device_put(X, NamedSharding(mesh, P("x"))) for mesh in (FIRST, LAST))
    add = rune.jit(lambda x, y: x + y, in_shardings=(NamedSharding(LAST, P("x")), None))

    assert add(one, two).sharding.device_set == {*CPUS[4:]}
    np.testing.assert_array_equal(add(one, two), X + X)
    with pytest.raises(rune.errors.DeviceError, match="cannot combine arrays on different devices"):
        add(one, one)


@pytest.mark.parametrize("place", ["another", "a grid"])
def test_an_argument_on_more_or_fewer_devices_does_not_move(place: str):
    double = rune.jit(lambda x: 2 * x, in_shardings=NamedSharding(LAST, P("x")))

    with pytest.raises(rune.errors.DeviceError, match="it is committed there"):
        double(rune.device_put(X, PLACES[place]))


def test_devices_in_another_order_are_other_devices():
    one, two = (rune.device_put(X, NamedSharding(mesh, P("x"))) for mesh in (FIRST, REVERSED))
    on_mesh = rune.shard_map(lambda x: 2 * x, mesh=FIRST, in_specs=P("x"), out_specs=P("x"))

    for combine in (rnp.add, rune.jit(rnp.add)):
        with pytest.raises(rune.errors.DeviceError, match="cannot combine arrays on different devices"):
            combine(one, two)
    for f in (on_mesh, rune.jit(on_mesh), lambda x: lax.with_sharding_constraint(x, NamedSharding(FIRST, P("x")))):
        with pytest.raises(rune.errors.DeviceError, match="it is committed there"):
            f(two)
    np.testing.assert_array_equal(
        rune.pmap(lambda x: 2 * x, devices=[*CPUS[:4]])(two.reshape(4, 3)), 2 * X.reshape(4, 3)
    )
