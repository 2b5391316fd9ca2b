"""The memory that Vulkan devices use: as drivers list it, and on the device present.

The tables are typical of devices of each kind, properties and heap of each type; none is real.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rune.backends.vulkan import VulkanBackend
from rune.backends.vulkan.driver import api
from rune.backends.vulkan.memory_types import CACHED, COHERENT, NEAR, VISIBLE, MemoryType, choose
from rune.backends.vulkan.record import Recording
from rune.errors import OutOfMemory
from tests.backends.vulkan.cases import TARGETS, chain, counted, lowered, needs_device, opened, physical
from tests.support.close import same

HOST = VISIBLE | COHERENT
LAZY, PROTECTED, AMD_UNCACHED = 0x10, 0x20, 0xC0

# (properties, heap) of each type; the numbers of the types for arrays, staging and tables; shared.
DEVICES: dict[str, tuple[list[tuple[int, int]], tuple[int, int, int], bool]] = {
    "NVIDIA, a window of 256 MB": (
        [(0, 1), (NEAR, 0), (HOST, 1), (HOST | CACHED, 1), (NEAR | HOST, 2)],
        (1, 3, 4),
        False,
    ),
    "NVIDIA, all of its memory mapped": (
        [(0, 1), (NEAR, 0), (HOST, 1), (HOST | CACHED, 1), (NEAR | HOST, 0)],
        (1, 3, 4),
        False,
    ),
    "NVIDIA, an old driver": ([(0, 1), (NEAR, 0), (HOST, 1), (HOST | CACHED, 1)], (1, 3, 3), False),
    "AMD": (
        [
            (NEAR, 0),
            (NEAR | AMD_UNCACHED, 0),
            (HOST, 1),
            (NEAR | HOST, 2),
            (NEAR | HOST | AMD_UNCACHED, 2),
            (HOST | CACHED, 1),
            (HOST | CACHED | AMD_UNCACHED, 1),
        ],
        (0, 5, 3),
        False,
    ),
    "Intel, integrated": ([(NEAR | HOST | CACHED, 0)], (0, 0, 0), True),
    "Intel, integrated, three types": ([(NEAR, 0), (NEAR | HOST, 0), (NEAR | HOST | CACHED, 0)], (2, 2, 2), True),
    "Intel, discrete": ([(NEAR, 0), (HOST | CACHED, 1), (NEAR | HOST, 0)], (0, 1, 2), False),
    "Arm, coherent": ([(NEAR | HOST, 0), (NEAR | HOST | CACHED, 0), (NEAR | LAZY, 0)], (1, 1, 1), True),
    "Arm, cached memory is not coherent": (
        [(NEAR | HOST, 0), (NEAR | VISIBLE | CACHED, 0), (NEAR | LAZY, 0)],
        (1, 1, 0),
        True,
    ),
    "Qualcomm, cached memory is not coherent": (
        [(NEAR, 0), (NEAR | HOST, 0), (NEAR | VISIBLE | CACHED, 0)],
        (2, 2, 1),
        True,
    ),
    "cached memory of the host is not coherent": ([(NEAR, 0), (HOST, 1), (VISIBLE | CACHED, 1)], (0, 2, 1), False),
    "Apple": ([(NEAR, 0), (NEAR | HOST | CACHED, 0), (NEAR | LAZY, 0)], (1, 1, 1), True),
    "protected memory first": ([(NEAR | PROTECTED, 0), (NEAR, 0), (HOST, 1)], (1, 2, 2), False),
}


@pytest.mark.parametrize("name", DEVICES)
def test_the_best_memory_for_each_end_is_chosen(name: str):
    types, numbers, is_shared = DEVICES[name]

    choice = choose([MemoryType(n, flags, heap) for n, (flags, heap) in enumerate(types)])

    chosen_numbers = choice.arrays[0].number, choice.staging[0].number, choice.tables[0].number
    assert (chosen_numbers, choice.is_shared) == (numbers, is_shared)


def test_only_without_a_window_tables_are_in_the_hosts_memory():
    choices = {name: choose([MemoryType(n, *t) for n, t in enumerate(DEVICES[name][0])]) for name in DEVICES}

    far = [name for name, choice in choices.items() if not choice.has_near_tables]
    assert far == ["NVIDIA, an old driver", "cached memory of the host is not coherent", "protected memory first"]


# --- on the device present --------------------------------------------------------------------


def recording(executable: object) -> Recording:
    """The first recording of its only sizes."""
    (variant,) = executable._variants.values()  # type: ignore[attr-defined]
    return variant.recordings[0]


@needs_device
def test_a_table_that_the_host_can_write_is_in_the_devices_memory():
    for memory in (None, "staged"):
        with opened(memory) as backend:
            executable = backend.record(chain(3))
            executable([backend.copy_in(np.ones(5, np.float32))])

            assert backend.session().memory.choice.has_near_tables
            assert recording(executable).near is recording(executable).table


@needs_device
def test_without_such_memory_the_table_is_copied_at_the_head_of_each_call(monkeypatch: pytest.MonkeyPatch):
    with opened("apart") as backend:
        executable, x = backend.record(chain(3)), backend.copy_in(np.ones(5, np.float32))
        calls = counted(backend, monkeypatch)
        executable([x])
        replay = recording(executable)

        assert calls.index("vkCmdCopyBuffer") < calls.index("vkCmdDispatch")
        assert replay.near is not replay.table
        assert calls.count("vkQueueSubmit") == 1


@needs_device
def test_calls_after_each_other_have_their_own_arguments_in_a_copied_table():
    with opened("apart") as backend:
        executable = backend.record(chain(9))
        for k in range(50):
            y, _ = executable([backend.copy_in(np.full(30, k, np.float32))])
            same(np.full(30, k * 512, np.float32), backend.copy_out(y, y.type))


@needs_device
@pytest.mark.parametrize(
    ("name", "is_copied"), [("many steps", True), ("branches in steps", True), ("many steps of a while", False)]
)
def test_a_table_that_the_host_reads_is_copied_only_if_necessary(name: str, is_copied: bool):
    _, plan, arrays = lowered(name)
    with opened("apart") as backend:
        executable = backend.record(plan)
        executable([backend.copy_in(a) for a in arrays])
        tables = recording(executable)

        assert (tables.near is not tables.table) == is_copied


# --- memory that is flushed -------------------------------------------------------------------


@needs_device
@pytest.mark.parametrize("memory", ["cached apart", "cached and staged"])
def test_memory_that_is_not_coherent_is_flushed_and_invalidated(memory: str, monkeypatch: pytest.MonkeyPatch):
    x = np.arange(1000, dtype=np.float32)
    with opened(memory) as backend:
        executable = backend.record(chain(3))
        calls = counted(backend, monkeypatch)
        buffer = backend.copy_in(x[:100])
        assert calls.count("vkFlushMappedMemoryRanges") == 1
        y, _ = executable([buffer])
        assert "vkInvalidateMappedMemoryRanges" not in calls
        same(x[:100] * 8, backend.copy_out(y, y.type))
        assert calls.count("vkInvalidateMappedMemoryRanges") == 1


@needs_device
def test_coherent_memory_is_not_flushed(monkeypatch: pytest.MonkeyPatch):
    with opened("staged") as backend:
        calls = counted(backend, monkeypatch)
        x = backend.copy_in(np.ones(100, np.float32))
        backend.copy_out(x, x.type)

        assert not {"vkFlushMappedMemoryRanges", "vkInvalidateMappedMemoryRanges"} & set(calls)


@needs_device
@pytest.mark.parametrize(
    ("at", "nbytes", "first", "size"),
    [(0, 1, 0, 64), (63, 1, 0, 64), (63, 2, 0, 128), (64, 64, 64, 64), (200, 1000, 192, 1008), (990, 200, 960, 240)],
)
def test_a_flushed_range_is_whole_atoms_or_ends_with_the_memory(at: int, nbytes: int, first: int, size: int):
    with opened() as backend:
        memory = backend.session().memory
        memory.device.physical = replace(memory.device.physical, atom_bytes=64)
        block = memory.pool.take(1000)
        block.handle.bytes, block.offset = 1200, 0

        flush_range: Any = memory._range(block, at, nbytes)

        assert (flush_range.offset, flush_range.size) == (first, size)


# --- how many allocations there may be --------------------------------------------------------


def limited(most: int) -> VulkanBackend:
    """The first device, with at most this many allocations."""
    return VulkanBackend(TARGETS[0], replace(physical(), most_allocations=most))


@needs_device
def test_unused_allocations_are_freed_for_others():
    backend = limited(3)
    for megabytes in range(2, 20):  # each of a size that no other one has
        x = backend.copy_in(np.full(megabytes << 18, megabytes, np.float32))
        same(np.float32(megabytes), backend.copy_out(x, x.type)[-1])
        del x

    assert backend.session().memory.allocations <= 3
    backend.close()


@needs_device
def test_more_allocations_than_the_limit_are_out_of_memory():
    backend = limited(3)
    arrays = [backend.copy_in(np.ones(1 << 20, np.float32)) for _ in range(3)]
    with pytest.raises(OutOfMemory, match="3 allocations are all there may be"):
        backend.copy_in(np.ones(1 << 20, np.float32))
    del arrays
    backend.copy_in(np.ones(1 << 20, np.float32))
    backend.close()


@needs_device
def test_a_driver_that_counts_objects_is_out_of_memory(monkeypatch: pytest.MonkeyPatch):
    with opened() as backend:
        functions = backend.session().device.vk
        monkeypatch.setattr(functions, "vkAllocateMemory", lambda *args: api().VK_ERROR_TOO_MANY_OBJECTS)
        with pytest.raises(OutOfMemory, match="VK_ERROR_TOO_MANY_OBJECTS"):
            backend.copy_in(np.ones(1 << 22, np.float32))


@needs_device
def test_an_array_larger_than_one_allocation_is_refused_with_both_numbers():
    backend = VulkanBackend(TARGETS[0], replace(physical(), largest_allocation_bytes=1 << 20))
    with pytest.raises(OutOfMemory, match=r"cannot allocate 4000000 B .*one buffer has at most 1048576 B"):
        backend.copy_in(np.ones(1_000_000, np.float32))
    backend.close()
