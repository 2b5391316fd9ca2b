"""Memory of a CUDA device: pinned pieces, copies both ways, what is freed, the cache on disk."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.backends import cuda
from rune.backends.cuda.staging import MOST, MOST_ARRIVING, SIZES, Staging
from rune.core.types import ArrayType
from rune.errors import OutOfMemory
from tests.backends.cuda.fake import BASE, FakeCuda, plan_for
from tests.backends.plans import run
from tests.support.close import same
from tests.support.lowering import f32


def test_a_host_array_may_change_while_its_copy_is_pending(device: Any, fake: FakeCuda):
    x = np.arange(6, dtype=np.float32)

    buffer = device.copy_in(x)
    x[:] = -1

    assert fake.queue
    same(np.arange(6, dtype=np.float32), device.copy_out(buffer, buffer.type))


def test_pinned_pieces_are_used_in_turn_and_not_before_their_copy_is_done(fake: FakeCuda):
    fake.context.push()
    staging = Staging(fake.driver, fake.driver.Stream(), lambda: None)
    parts = [np.full(3, k, np.uint8) for k in range(3 * MOST)]

    for k, part in enumerate(parts):
        staging.send(BASE + 3 * k, part)
    fake.drain()

    same(np.concatenate(parts), fake.at(BASE, 9 * MOST))
    assert [len(ring.pieces) for ring in staging._leaving] == [MOST, 0]


def test_a_large_array_is_sent_in_pieces(fake: FakeCuda):
    fake.context.push()
    data = np.random.default_rng(0).integers(0, 256, 2 * SIZES[-1] + 5).astype(np.uint8)

    Staging(fake.driver, fake.driver.Stream(), lambda: None).send(BASE, data)
    fake.drain()

    assert fake.log == ["htod"] * 3
    same(data, fake.at(BASE, data.size))


def test_a_copy_to_the_host_runs_while_the_host_continues(device: Any, fake: FakeCuda):
    x = device.copy_in(np.arange(6, dtype=np.float32))

    finish = device.start_copy_out(x, x.type)

    assert fake.queue
    same(np.arange(6, dtype=np.float32), finish())


def test_a_fetched_array_has_its_values_from_when_the_copy_began(device: Any):
    x = device.copy_in(np.arange(6, dtype=np.float32))

    finish = device.start_copy_out(x, x.type)
    device.send(x.memory, 0, np.zeros(24, np.uint8))

    same(np.arange(6, dtype=np.float32), finish())


def test_any_number_of_copies_may_be_pending_and_awaited_in_any_order(device: Any):
    count = 2 * MOST_ARRIVING[SIZES[0]] + 3
    arrays = [device.copy_in(np.full(4, k, np.float32)) for k in range(count)]

    waits = [device.start_copy_out(x, x.type) for x in arrays]

    for k in np.random.default_rng(0).permutation(count):
        same(np.full(4, k, np.float32), waits[k]())


def test_an_array_larger_than_the_pinned_pieces_is_fetched_in_pieces(fake: FakeCuda):
    fake.context.push()
    data = fake.memory[: (MOST_ARRIVING[SIZES[-1]] + 1) * SIZES[-1] + 5]
    data[...] = np.random.default_rng(0).integers(0, 256, data.size)
    staging = Staging(fake.driver, fake.driver.Stream(), lambda: None)
    host = np.zeros(data.size, np.uint8)

    staging.fetch(host, BASE)()

    same(data, host)
    assert [len(ring.pieces) for ring in staging._arriving] == [1, MOST_ARRIVING[SIZES[-1]]]


def test_a_thread_that_waits_for_the_device_does_not_block_senders(device: Any, fake: FakeCuda):
    x = device.copy_in(np.arange(6, dtype=np.float32))
    finish = device.start_copy_out(x, x.type)
    buffers: list[Any] = []

    def settle() -> None:
        buffers.append(device.copy_in(np.ones(3, np.float32)))

    device.staging._settle = settle
    finish()
    assert len(buffers) == 1


def test_out_of_memory_names_the_largest_live_buffers(device: Any):
    big = device.copy_in(np.zeros(1 << 24, np.uint8))

    with pytest.raises(OutOfMemory, match=r"cannot allocate 67108864 B on cuda:0 \(used") as error:
        device.alloc(ArrayType((1 << 24,), dtypes.f32))
    assert "largest live buffers: u8[16777216]" in str(error.value)
    assert big.shape == (1 << 24,)


def test_programs_and_graphs_are_destroyed_once_nothing_runs(device: Any, fake: FakeCuda):
    executable = device.record(plan_for(rnp.sin, f32(4)))
    for _ in range(2):
        executable([device.copy_in(np.ones(4, np.float32))])
    del executable
    gc.collect()
    assert "cuModuleUnload" not in fake.log

    device.record(plan_for(rnp.cos, f32(4)))

    assert {"cuModuleUnload", "cuGraphExecDestroy"} <= set(fake.log)


def test_compiling_running_and_freeing_again_and_again_leaves_nothing(device: Any, fake: FakeCuda):
    plan = plan_for(rnp.sin, f32(4))

    def cycle() -> None:
        run(device, plan, np.ones(4, np.float32))

    cycle()
    cycle()
    gc.collect()
    before, log_length = device.memory_stats().live_bytes, len(fake.log)
    for _ in range(20):
        cycle()
    gc.collect()

    later = fake.log[log_length:]
    assert device.memory_stats().live_bytes == before
    assert later.count("cuModuleLoadData") == later.count("cuModuleUnload") == 20
    assert "mem_alloc" not in later


def test_another_patch_of_the_compiler_finds_no_cached_code(
    device: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(cuda, "compile_source", lambda source, name, arch: f"0: {name} for {arch}".encode())
    with rune.configure(cache_dir=str(tmp_path)):
        device.build("code", "f", "sm_90")
        monkeypatch.setattr(cuda, "compile_source", lambda source, name, arch: b"1: compiled again")
        device.build("code", "f", "sm_90")
        monkeypatch.setattr(cuda, "full_version", lambda: "13.5.38")
        executable = device.build("code", "f", "sm_90")

    assert executable.image == b"1: compiled again"
