"""The attributes of devices, shardings and processes that Orbax needs for checkpoints."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import xla_bridge
from jax.experimental import multihost_utils
from jax.experimental.layout import Format, Layout
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

X = np.arange(6, dtype=np.float32).reshape(2, 3)
DEVICE = jax.devices()[0]
LAST = jax.devices("reference")[0]
MESH = Mesh(np.array([LAST, DEVICE]), ("data",))
ROWS = NamedSharding(MESH, P("data"))


def test_a_device_has_one_memory():
    memory = DEVICE.default_memory()

    assert DEVICE.addressable_memories() == [memory] == [DEVICE.memory(memory.kind)]
    assert memory.addressable_by_devices() == [DEVICE]
    assert (memory.platform, memory.process_index) == (DEVICE.platform, DEVICE.process_index)
    assert SingleDeviceSharding(DEVICE).memory_kind == memory.kind


def test_a_memory_that_a_device_lacks_is_refused():
    with pytest.raises(ValueError, match="cannot use 'pinned_host'"):
        DEVICE.memory("pinned_host")


def test_a_client_lists_the_devices_of_its_platform():
    client = DEVICE.client

    assert client.platform == DEVICE.platform
    assert client.devices() == client.local_devices() == jax.devices(DEVICE.platform)
    assert (client.device_count(), client.local_device_count()) == (jax.device_count(), jax.local_device_count())
    assert (client.process_index(), client.runtime_type) == (0, "rune")
    assert client.platform_version.startswith(DEVICE.platform)


def test_devices_of_one_platform_have_equal_clients_as_has_its_backend():
    assert {d.client for d in jax.devices()} == {xla_bridge.get_backend()}
    assert xla_bridge.get_backend("reference") == LAST.client != DEVICE.client


def test_a_sharding_lists_its_devices_in_the_order_of_the_blocks():
    assert ROWS._addressable_device_assignment == (LAST, DEVICE) == tuple(ROWS.devices_indices_map((2, 3)))
    assert SingleDeviceSharding(LAST)._addressable_device_assignment == (LAST,)


@pytest.mark.parametrize("layout", [None, Layout((0, 1)), Layout.AUTO])
@pytest.mark.parametrize("sharding", [ROWS, SingleDeviceSharding(LAST)])
def test_an_array_is_put_where_the_sharding_of_a_format_says(layout, sharding):
    array = jax.device_put(X, Format(layout, sharding))

    assert array.sharding == sharding
    assert (np.asarray(array) == X).all()


def test_formats_may_be_the_leaves_of_a_prefix():
    arrays = jax.device_put({"a": X, "b": [X, X]}, {"a": Format(None, ROWS), "b": Format(None, None)})

    assert arrays["a"].sharding == ROWS
    assert [a.committed for a in arrays["b"]] == [False, False]


def test_a_result_of_jit_is_put_where_the_sharding_of_a_format_says():
    double = jax.jit(lambda x: x * 2, out_shardings=Format(None, ROWS))

    assert double(jnp.asarray(X)).sharding == ROWS


def test_no_step_is_one_at_which_a_scheduler_stops_the_processes():
    assert [multihost_utils.reached_preemption_sync_point(step) for step in range(3)] == [False] * 3
