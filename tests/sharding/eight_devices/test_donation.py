"""Donation on a mesh: each device writes results to its own blocks, which no other device reads.

A donated array is deleted in any case. Replicas that are one block of the host's memory, and blocks
that are views of what was laid out, keep what they show.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.errors import DeletedArrayError
from rune.sharding import NamedSharding, P, make_mesh

MESH = make_mesh((4, 2), ("data", "model"))
SPECS = [P("data"), P("data", "model"), P(None, "model"), P()]
MIB = 1 << 20

add_one = rune.jit(lambda x: x + 1, donate_argnums=0)


def laid_out(spec: P, shape: tuple[int, ...] = (8, 6)) -> Any:
    """The result of a call, which owns its blocks."""
    x = rune.device_put(np.arange(np.prod(shape), dtype="f").reshape(shape), NamedSharding(MESH, spec))
    return rune.jit(lambda x: x * 1.0)(x)


def addresses(x: Any) -> list[int]:
    return [b.ctypes.data for b in x.buffer.buffers]


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("shape", [(8, 6), (1024, 2048)], ids=["small", "large"])
def test_results_take_the_blocks_of_a_donated_array_again_and_again(spec: P, shape: tuple[int, ...]):
    x = laid_out(spec, shape)
    blocks, expected = addresses(x), np.asarray(x)

    for step in range(1, 4):
        x = add_one(x)
        assert addresses(x) == blocks
        np.testing.assert_array_equal(x, expected + step)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_donated_array_is_deleted_whether_its_blocks_could_be_used_or_not(spec: P):
    fresh = rune.device_put(np.ones((8, 6), "f"), NamedSharding(MESH, spec))

    np.testing.assert_array_equal(add_one(fresh), np.full((8, 6), 2.0))
    with pytest.raises(DeletedArrayError, match="was donated"):
        _ = fresh + 1


def test_all_donated_arrays_of_a_mesh_are_deleted_however_they_are_cut():
    w, x = laid_out(P(None, "model")), laid_out(P("data"))

    rune.jit(lambda w, x: w + x, donate_argnums=(0, 1))(w, x)

    assert (w.is_deleted(), x.is_deleted()) == (True, True)


def test_a_device_that_still_reads_a_message_is_not_overtaken():
    """Each device overwrites its block with the sum of all blocks."""
    body = rune.shard_map(lambda x: x + lax.psum(x, "data"), mesh=MESH, in_specs=P("data"), out_specs=P("data"))
    f, x = rune.jit(body, donate_argnums=0), laid_out(P("data"), (1024, 512))
    expected, blocks = np.asarray(x), addresses(x)

    for _ in range(3):
        x = f(x)
        expected = (expected.reshape(4, 256, 512) + expected.reshape(4, 256, 512).sum(0)).reshape(1024, 512)

    np.testing.assert_allclose(x, expected, rtol=1e-5)
    assert addresses(x) == blocks


def test_a_training_step_with_donated_weights_gives_the_same_weights():
    def step(w: Any, x: Any) -> Any:
        return w - 0.1 * rune.grad(lambda w: (rnp.tanh(x @ w) ** 2).sum())(w)

    x = laid_out(P("data")) / 48
    in_place, alone = rune.jit(step, donate_argnums=0), rune.jit(step)
    a, b = (rune.device_put(np.ones((6, 4), "f"), NamedSharding(MESH, P(None, "model"))) for _ in range(2))
    for _ in range(5):
        a, b = in_place(a, x), alone(b, x)

    np.testing.assert_array_equal(a, b)


def test_a_donated_shard_that_is_still_visible_keeps_its_contents():
    x = laid_out(P("data", "model"))
    expected, shard = np.asarray(x), x.addressable_shards[3].data
    view = np.asarray(x.addressable_shards[5].data)

    add_one(x)

    np.testing.assert_array_equal(shard, expected[2:4, 3:])
    np.testing.assert_array_equal(view, expected[4:6, 3:])


def test_an_array_that_was_laid_out_keeps_its_contents():
    host = rnp.arange(48.0).reshape(8, 6) * 1
    x = rune.device_put(host, NamedSharding(MESH, P("data")))

    add_one(add_one(x))

    np.testing.assert_array_equal(host, np.arange(48.0).reshape(8, 6))


def test_an_array_that_is_given_twice_is_read_before_it_is_written():
    x = laid_out(P("data"))
    expected = np.asarray(x)

    result = rune.jit(lambda a, b: (a + 1, b * 2), donate_argnums=0)(x, x)

    np.testing.assert_array_equal(result[0], expected + 1)
    np.testing.assert_array_equal(result[1], expected * 2)


def test_the_lanes_of_pmap_write_to_the_blocks_that_they_are_given():
    f = rune.pmap(lambda v: v + lax.psum(v, "i"), "i", donate_argnums=0)
    x = f(np.ones((8, 3), "f"))
    blocks = addresses(x)

    x = f(x)

    np.testing.assert_array_equal(x, np.full((8, 3), 81.0))
    assert addresses(x) == blocks


def test_devices_of_several_makers_take_donated_blocks():
    mesh = rune.sharding.Mesh(["cpu:0", "opencl:0"], "data")
    x = rune.device_put(np.arange(8.0, dtype="f"), NamedSharding(mesh, P("data")))
    f = rune.jit(lambda x: x * 2 + 1, donate_argnums=0)

    for _ in range(3):
        x = f(x)

    np.testing.assert_array_equal(x, np.arange(8.0) * 8 + 7)


def test_a_large_update_in_place_takes_no_memory():
    """Blocks of 8 MiB on eight devices."""
    update = rune.jit(lambda x, i: x.at[:, i].set(2.0), donate_argnums=0)
    x = update(laid_out(P("data"), (2048, 4096)), 0)
    before = rune.memory_stats("cpu:0")
    for i in range(1, 5):
        x = update(x, i)
    after = rune.memory_stats("cpu:0")

    assert (after.allocations, after.peak_bytes) == (before.allocations, before.peak_bytes)
    assert after.live_bytes - before.live_bytes < MIB
    np.testing.assert_array_equal(np.flatnonzero((np.asarray(x)[1:] == 2).all(0)), range(5))


def test_the_memory_of_sharded_arrays_is_counted():
    before = rune.memory_stats("cpu:0").live_bytes
    x = rune.device_put(np.ones((512, 1024), "f"), NamedSharding(MESH, P("data")))

    assert 2 * MIB <= rune.memory_stats("cpu:0").live_bytes - before < 3 * MIB
    del x
    assert rune.memory_stats("cpu:0").live_bytes - before < MIB
