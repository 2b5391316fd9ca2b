"""The pool: blocks never overlap, freed blocks are reused, and a full device raises an error.

`Driver` stands in for the driver: it counts what it has allocated and refuses to free a block
twice.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.backends.shared.pool import SLAB_PARTS, SMALLEST_BYTES, TRACED_BYTES, Pool, size_class
from rune.errors import OutOfMemory


@dataclass
class Driver:
    """Raw memory: handles are numbers."""

    capacity: int = 1 << 62
    grants: dict[int, int] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def alloc(self, nbytes: int) -> int:
        self.calls.append("alloc")
        if sum(self.grants.values()) + nbytes > self.capacity:
            raise MemoryError
        handle = len(self.calls)
        self.grants[handle] = nbytes
        return handle

    def free(self, handle: int) -> None:
        self.calls.append("free")
        del self.grants[handle]

    def settle(self) -> None:
        self.calls.append("settle")

    def pool(self, **options) -> Pool:
        return Pool("test:0", self.alloc, self.free, settle=self.settle, **options)


SIZES = st.integers(0, 1 << 40)
# Take that many bytes, or drop the block of that number.
ACTIONS = st.lists(st.one_of(st.integers(0, 5000), st.integers(-30, -1)), max_size=60)


@given(SIZES)
def test_a_class_holds_its_request_and_wastes_at_most_an_eighth(nbytes):
    room = size_class(nbytes)

    assert room >= nbytes
    assert room % SMALLEST_BYTES == 0
    assert room <= max(SMALLEST_BYTES, nbytes + max(SMALLEST_BYTES, nbytes // 8))


@given(SIZES)
def test_a_class_is_its_own_class(nbytes):
    assert size_class(size_class(nbytes)) == size_class(nbytes)


@given(ACTIONS, st.sampled_from([0, 4096, 1 << 16]), st.sampled_from([None, 0, 4096]))
def test_live_blocks_never_overlap_and_the_counts_add_up(actions, slab, kept_bytes):
    driver = Driver()
    pool = driver.pool(slab_bytes=slab, kept_bytes=kept_bytes)
    live: list = []
    for action in actions:
        if action >= 0:
            live.append(pool.take(action))
        elif live:
            live.pop(action % len(live))
        spans = sorted((b.handle, b.offset, b.offset + size_class(b.bytes)) for b in live)
        for (h0, _, end), (h1, start, _) in itertools.pairwise(spans):
            assert h0 != h1 or end <= start
        assert all(end <= driver.grants[h] for h, _, end in spans)
        stats = pool.stats()
        assert stats.live_bytes == sum(size_class(b.bytes) for b in live)
        assert stats.live_bytes + stats.cached_bytes == sum(driver.grants.values())
        assert stats.live_bytes <= stats.peak_bytes
    live.clear()
    pool.trim()
    assert driver.grants == {}


def test_a_dead_block_is_reused_for_the_next_request_of_its_size_class():
    driver = Driver()
    pool = driver.pool()
    first = pool.take(1000)
    handle = first.handle
    del first

    assert pool.take(900).handle == handle
    assert driver.calls == ["alloc"]


def test_a_request_of_another_class_is_served_by_the_driver():
    driver = Driver()
    pool = driver.pool()
    pool.take(1000)

    pool.take(5000)
    assert driver.calls == ["alloc", "alloc"]


def test_a_dying_block_calls_no_driver():
    driver = Driver()
    pool = driver.pool(kept_bytes=0)
    block = pool.take(1 << 20)

    del block
    assert driver.calls == ["alloc"]


def test_small_blocks_are_cut_from_one_raw_allocation():
    driver = Driver()
    pool = driver.pool(slab_bytes=SLAB_PARTS * SMALLEST_BYTES)

    blocks = [pool.take(8) for _ in range(SLAB_PARTS)]
    assert driver.calls == ["alloc"]
    assert len({b.offset for b in blocks}) == SLAB_PARTS


def test_a_slab_is_kept_while_one_of_its_blocks_is_live():
    driver = Driver()
    pool = driver.pool(slab_bytes=SLAB_PARTS * SMALLEST_BYTES)
    block, neighbour = pool.take(8), pool.take(8)
    del neighbour

    assert pool.trim() == 0
    del block
    assert pool.trim() == SLAB_PARTS * SMALLEST_BYTES


def test_a_full_device_frees_its_cache_and_retries():
    driver = Driver(capacity=1 << 20)
    pool = driver.pool()
    pool.take(1 << 19)

    assert pool.take(1 << 20).bytes == 1 << 20
    assert driver.calls == ["alloc", "alloc", "settle", "free", "alloc"]


def test_pending_commands_are_waited_for_before_memory_is_given_back():
    driver = Driver()
    pool = driver.pool()
    pool.take(8)
    pool.trim()

    assert driver.calls == ["alloc", "settle", "free"]


def test_garbage_in_cycles_is_collected_before_a_request_fails():
    driver = Driver(capacity=1 << 20)
    pool = driver.pool()
    cycle: list = [pool.take(1 << 20)]
    cycle.append(cycle)
    del cycle

    assert pool.take(1 << 20).bytes == 1 << 20


def test_a_limit_is_kept_even_if_the_driver_would_grant_more():
    driver = Driver()
    pool = driver.pool(limit_bytes=1 << 20)
    block = pool.take(1 << 19)

    with pytest.raises(OutOfMemory):
        pool.take((1 << 19) + 1)
    assert block.bytes == 1 << 19
    assert driver.calls == ["alloc"]


def test_the_largest_possible_buffer_is_not_rounded_beyond_what_is_possible():
    driver = Driver()
    pool = driver.pool(largest_bytes=1_000_001)

    pool.take(1_000_001)
    assert list(driver.grants.values()) == [1_000_001]
    with pytest.raises(OutOfMemory, match=r"cannot allocate 1000002 B on test:0 \(one buffer has at most 1000001 B"):
        pool.take(1_000_002)


def test_a_request_that_no_buffer_can_hold_is_refused_before_the_cache_is_freed():
    driver = Driver()
    pool = driver.pool(largest_bytes=1_000_000)
    pool.take(900_000)

    with pytest.raises(OutOfMemory) as error:
        pool.take(1_000_001)

    assert pool.stats().cached_bytes > 0
    assert "an array is one buffer" in str(error.value)


def test_an_error_says_why_the_driver_refuses():
    def refuse(nbytes: int) -> object:
        raise MemoryError("4096 allocations are all there may be")

    with pytest.raises(OutOfMemory, match=r"\(4096 allocations are all there may be, used 0 B"):
        Pool("test:0", refuse, lambda handle: None).take(10)


def test_out_of_memory_states_requested_used_cached_free_and_limit_bytes():
    pool = Driver().pool(limit_bytes=1 << 20)
    block = pool.take(1 << 19)

    with pytest.raises(OutOfMemory) as error:
        pool.take(1 << 20)
    assert block.bytes
    assert error.value.message.startswith(
        "alloc: cannot allocate 1048576 B on test:0 "
        "(used 524288 B, cached 0 B, free 524288 B, limit 1048576 B; largest live buffers: "
    )


def test_out_of_memory_names_the_largest_live_buffers_what_made_them_and_the_line():
    pool = Driver().pool(limit_bytes=1 << 20)
    small = pool.take(1024, about=("f32[256]", "first"))
    large = pool.take(TRACED_BYTES, about=("f32[128,128]", "second"))

    with pytest.raises(OutOfMemory) as error:
        pool.take(1 << 20)
    listing = error.value.message.partition("largest live buffers: ")[2]
    line = test_out_of_memory_names_the_largest_live_buffers_what_made_them_and_the_line
    number = line.__code__.co_firstlineno + 3
    assert small.bytes < large.bytes
    assert listing == (f"f32[128,128] of second ({TRACED_BYTES} B, test_pool.py:{number}), f32[256] of first (1024 B))")


def test_the_peak_is_the_most_live_memory_and_can_be_reset():
    pool = Driver().pool()
    blocks = [pool.take(1024) for _ in range(3)]
    del blocks[1:]

    assert pool.stats().peak_bytes == 3 * 1024
    pool.reset_peak()
    assert pool.stats().peak_bytes == 1024


def test_requests_are_counted_and_those_that_reached_the_driver():
    pool = Driver().pool()
    for _ in range(5):
        pool.take(100)

    stats = pool.stats()
    assert (stats.allocations, stats.raw_allocations) == (5, 1)


def test_threads_take_and_drop_without_sharing_a_block():
    driver = Driver()
    pool = driver.pool(slab_bytes=4096, kept_bytes=1 << 14)
    live_places: set[tuple[int, int]] = set()
    clashes: list[object] = []

    def work(seed: int) -> None:
        for number in range(300):
            block = pool.take((seed * 997 + number * 131) % 3000)
            place = (block.handle, block.offset)
            if place in live_places:
                clashes.append(place)
            live_places.add(place)
            live_places.remove(place)
            del block

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert clashes == []
    assert pool.stats().live_bytes == 0
