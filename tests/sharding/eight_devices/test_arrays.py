"""Sharded arrays: what they hold, and what operations make of them."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.errors import DeviceError, ShapeError
from rune.sharding import Mesh, NamedSharding, P, SingleDeviceSharding, make_mesh
from tests.sharding.layouts import LAYOUTS, MESHES
from tests.support.sampling import each_value


def numbers(shape: tuple[int, ...]) -> np.ndarray:
    return np.sin(np.arange(math.prod(shape), dtype="f") * 1.3).reshape(shape)


def placed(x: Any, sharding: NamedSharding) -> rune.Array:
    return rune.device_put(rnp.asarray(x), sharding)


def possible(mesh: str, spec: tuple[Any, ...], shape: tuple[int, ...]) -> NamedSharding | None:
    """The sharding of a layout; None of one that is refused."""
    try:
        sharding = NamedSharding(make_mesh(*MESHES[mesh]), P(*spec))
        sharding.shard_shape(shape)
    except ValueError:
        return None
    return sharding


@pytest.mark.parametrize("mesh", MESHES)
def test_shards_are_the_blocks_of_the_array(mesh: str):
    for layout in LAYOUTS:
        sharding = possible(*layout) if layout[0] == mesh else None
        if sharding is not None:
            x = numbers(layout[2])
            array = placed(x, sharding)

            assert array.sharding == sharding
            assert [s.device for s in array.addressable_shards] == list(sharding.mesh.in_order)
            for shard in array.addressable_shards:
                np.testing.assert_array_equal(shard.data, x[shard.index])
                assert shard.data.devices() == {shard.device}
            np.testing.assert_array_equal(array, x)


def test_replicas_are_counted_in_the_order_of_the_mesh():
    mesh = make_mesh((4, 2), ("a", "b"))
    array = placed(numbers((8, 2)), NamedSharding(mesh, P("a")))

    assert [s.replica_id for s in array.addressable_shards] == [0, 1] * 4
    assert not array.is_fully_replicated


def test_an_array_on_one_device_is_its_own_shard():
    array = rnp.ones(3)

    (shard,) = array.addressable_shards
    assert shard.data is array
    assert array.sharding == SingleDeviceSharding("cpu:0")
    assert array.is_fully_replicated
    assert array.is_fully_addressable


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + 1.5,
    "of itself": lambda x: x * x - x,
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: x.sum(axis=1),
    "product": lambda x: x @ x.T,
    "transpose": lambda x: x.T,
    "reshape": lambda x: x.reshape(-1),
    "index": lambda x: x[3],
    "slice": lambda x: x[1:5, ::2],
    "sort": lambda x: rnp.sort(x, axis=0),
    "cumulative": lambda x: rnp.cumsum(x, axis=1),
    "where": lambda x: rnp.where(x > 0, x, 0.0),
    "concatenate": lambda x: rnp.concatenate([x, x]),
    "set": lambda x: x.at[2].set(7.0),
    "solve": lambda x: rnp.linalg.solve(x @ x.T + 8 * rnp.eye(8), x),
}
SPECS = [P(), P("a"), P(None, "b"), P("a", "b"), P(("a", "b")), P("b", None)]


@each_value()
@pytest.mark.parametrize("spec", SPECS, ids=repr)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_on_sharded_arrays_compute_what_they_compute_on_others(name: str, spec: P):
    operation, x = OPERATIONS[name], numbers((8, 6))
    array = placed(x, NamedSharding(make_mesh((4, 2), ("a", "b")), spec))
    expected = operation(rnp.asarray(x))

    np.testing.assert_allclose(operation(array), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(rune.jit(operation)(array), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_derivatives_and_batches_of_sharded_arrays_are_those_of_others(spec: P):
    x = numbers((8, 6))
    array = placed(x, NamedSharding(make_mesh((4, 2), ("a", "b")), spec))

    def loss(v: Any) -> Any:
        return (rnp.sin(v @ v.T) ** 2).sum()

    np.testing.assert_allclose(rune.grad(loss)(array), rune.grad(loss)(x), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(rune.jit(rune.grad(loss))(array), rune.grad(loss)(x), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(rune.vmap(rnp.cumsum)(array), np.cumsum(x, axis=1), rtol=1e-5, atol=1e-5)


def test_elementwise_operations_stay_where_the_shards_are():
    sharding = NamedSharding(make_mesh((4, 2), ("a", "b")), P("a", "b"))
    array = placed(numbers((8, 6)), sharding)

    assert (rnp.sin(array) * 2 + array).sharding == sharding
    assert rune.jit(lambda v: rnp.exp(v) - v)(array).sharding == sharding
    assert rune.grad(lambda v: (v**3).sum())(array).sharding == sharding


def test_arrays_of_two_layouts_of_one_mesh_combine():
    mesh = make_mesh((4, 2), ("a", "b"))
    x = numbers((8, 6))
    rows = placed(x, NamedSharding(mesh, P("a")))
    columns = placed(x, NamedSharding(mesh, P(None, "b")))

    np.testing.assert_allclose(rows - 2 * columns, -x, rtol=1e-6)


def test_jit_lays_arguments_and_results_out():
    mesh = make_mesh((4, 2), ("a", "b"))
    rows, columns = NamedSharding(mesh, P("a")), NamedSharding(mesh, P(None, "b"))
    f = rune.jit(lambda x, y: (x + y, x @ y.T), in_shardings=(rows, None), out_shardings=(columns, rows))
    x = numbers((8, 6))

    total, product = f(x, x)

    assert (total.sharding, product.sharding) == (columns, rows)
    np.testing.assert_allclose(total, 2 * x, rtol=1e-6)
    np.testing.assert_allclose(product, x @ x.T, rtol=1e-5, atol=1e-5)


def test_a_constraint_inside_a_jitted_function_lays_a_value_out():
    rows = NamedSharding(make_mesh((8,), ("a",)), P("a"))
    x = numbers((16,))

    result = rune.jit(lambda v: lax.with_sharding_constraint(v * 2, rows) + 1)(x)

    assert result.sharding == rows
    np.testing.assert_allclose(result, 2 * x + 1, rtol=1e-6)
    np.testing.assert_allclose(
        rune.grad(lambda v: (lax.with_sharding_constraint(v, rows) ** 2).sum())(x), 2 * x, rtol=1e-6
    )


def test_a_constraint_in_a_loop_lays_its_values_out():
    rows = NamedSharding(make_mesh((8,), ("a",)), P("a"))

    def step(carry: Any, row: Any) -> Any:
        carry = lax.with_sharding_constraint(carry * row, rows)
        return carry, carry.sum()

    x, w = numbers((16,)), 1 + numbers((3,))
    last, sums = rune.jit(lambda v: lax.scan(step, v, w))(x)

    np.testing.assert_allclose(last, x * w.prod(), rtol=1e-5)
    np.testing.assert_allclose(sums, x.sum() * np.cumprod(w), rtol=1e-4)


def test_an_array_is_made_of_blocks_that_a_function_gives():
    sharding = NamedSharding(make_mesh((4, 2), ("a", "b")), P("a"))
    x, indices = numbers((8, 3)), []

    def block(index: tuple[slice, ...]) -> np.ndarray:
        indices.append(index)
        return x[index]

    array = rune.make_array_from_callback(x.shape, sharding, block)

    np.testing.assert_array_equal(array, x)
    assert len(indices) == 4


def test_an_array_is_made_of_arrays_on_the_devices():
    sharding = NamedSharding(make_mesh((8,), ("a",)), P("a"))
    x = numbers((16,))
    shards = placed(x, sharding).addressable_shards

    array = rune.make_array_from_single_device_arrays((16,), sharding, [s.data for s in reversed(shards)])

    np.testing.assert_array_equal(array, x)
    with pytest.raises(ShapeError, match=r"cannot use f32\[2\] on cpu:0 as a block of \[24\] by P\('a'\)"):
        rune.make_array_from_single_device_arrays((24,), sharding, [s.data for s in shards])


def test_pickle_and_copies_keep_the_contents():
    x = numbers((8, 3))
    array = placed(x, NamedSharding(make_mesh((8,), ("a",)), P("a")))

    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array)), x)
    np.testing.assert_array_equal(rnp.array(array), x)
    assert float(array[3, 1]) == x[3, 1]
    assert array.tolist() == x.tolist()


def test_keys_and_narrow_dtypes_are_sharded_too():
    sharding = NamedSharding(make_mesh((8,), ("a",)), P("a"))
    keys = rune.random.split(rune.random.key(3), 8)

    np.testing.assert_array_equal(rune.random.key_data(rune.device_put(keys, sharding)), rune.random.key_data(keys))
    for dtype in ("bf16", "f16", "i8", "bool", "c64"):
        x = rnp.arange(16).astype(dtype)
        np.testing.assert_array_equal(placed(x, sharding), x)


def test_a_committed_array_of_another_device_is_refused():
    array = rune.device_put(numbers((8,)), NamedSharding(make_mesh((4,), ("a",)), P("a")))
    elsewhere = rune.device_put(numbers((8,)), "cpu:7")

    with pytest.raises(DeviceError, match="cannot combine arrays on different devices"):
        _ = array + elsewhere


@pytest.mark.parametrize("device", ["cpu:7", "cpu:0", "eight", "others"])
def test_an_array_that_is_committed_elsewhere_is_refused_by_a_mesh_as_in_compiled_code(device: str):
    meshes = {"eight": make_mesh((8,), ("a",)), "others": Mesh(["cpu:4", "cpu:5", "cpu:6", "cpu:7"], "a")}
    where = NamedSharding(meshes[device], P("a")) if device in meshes else device
    elsewhere, mesh = rune.device_put(numbers((8,)), where), make_mesh((4,), ("a",))
    double = rune.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("a"), out_specs=P("a"))

    for f in (double, rune.jit(double), lambda x: rune.lax.with_sharding_constraint(x, NamedSharding(mesh, P("a")))):
        with pytest.raises(DeviceError, match="it is committed there"):
            f(elsewhere)


def test_an_array_on_the_devices_of_a_mesh_or_on_none_is_laid_out_by_shard_map():
    mesh, x = make_mesh((4,), ("a",)), numbers((8,))
    double = rune.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("a"), out_specs=P("a"))

    for array in (rune.device_put(x, NamedSharding(mesh, P())), rnp.asarray(x), x):
        np.testing.assert_array_equal(double(array), 2 * x)


def test_a_compiled_result_has_the_words_of_the_sharding_that_was_asked_for():
    sharding = NamedSharding(make_mesh((4, 2), ("a", "b")), P("a", None))

    assert rune.jit(lambda x: 2 * x, out_shardings=sharding)(numbers((8, 3))).sharding == sharding


def test_a_mesh_of_devices_of_several_makers_holds_an_array():
    names = [d.name for d in rune.devices() if d.name in ("cpu:0", "opencl:0", "vulkan:0", "wgpu:0")]
    mesh = Mesh(names, "a")
    x = numbers((len(names) * 3,))
    array = placed(x, NamedSharding(mesh, P("a")))

    np.testing.assert_allclose(rnp.sin(array) + 1, np.sin(x) + 1, rtol=1e-5)
    total = rune.shard_map(lambda v: lax.psum(v, "a"), mesh=mesh, in_specs=P("a"), out_specs=P(), check_vma=False)
    np.testing.assert_allclose(total(array), x.reshape(-1, 3).sum(axis=0), rtol=1e-5, atol=1e-6)


def test_blocks_of_sixty_four_bits_make_an_array_of_sixty_four():
    sharding = NamedSharding(make_mesh((8,), ("a",)), P("a"))
    x = rnp.asarray(np.arange(16) / 3, "float64")

    y = rune.make_array_from_callback((16,), sharding, lambda index: x[index])

    assert y.dtype == "float64"
    np.testing.assert_array_equal(y, x)
    assert rune.make_array_from_process_local_data(sharding, x).dtype == "float64"
