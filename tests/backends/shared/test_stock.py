"""Stocks: a block is given again once nobody else has it, and the pool's counts do not show that.

Each claim is made of a pool over a driver that only counts (`Driver` of test_pool.py): which blocks
are given, what the pool counts of them, and that shortage, sharing and threads get what they would
get without a stock.
"""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from rune.backends.shared.pool import Block
from rune.backends.shared.stock import MOST, SMALL_BYTES, Stock
from tests.backends.shared.test_pool import Driver

# Take a block, or drop the block of that number.
ACTIONS = st.lists(st.one_of(st.none(), st.integers(0, 2 * MOST)), max_size=40)


def stock_of(nbytes: int, **options) -> tuple[Driver, Stock]:
    """A stock of blocks of this size, on a driver without a limit unless one is given."""
    driver = Driver(**options)
    pool = driver.pool()
    driver.calls.clear()
    return driver, Stock(pool, pool.request(nbytes, ("result",)))


def test_a_block_that_nobody_has_is_given_again():
    driver, stock = stock_of(100)
    first = stock.take()
    handle = first.handle
    del first

    assert stock.take().handle == handle
    assert driver.calls == ["alloc"]


@given(ACTIONS)
def test_no_block_is_given_to_two(actions):
    _, stock = stock_of(100)
    in_use: list[Block] = []
    for action in actions:
        if action is None:
            in_use.append(stock.take())
        elif in_use:
            del in_use[action % len(in_use)]
        assert len({(block.handle, block.offset) for block in in_use}) == len(in_use)


@given(ACTIONS)
def test_the_pool_counts_what_it_would_count_without_a_stock(actions):
    _, stock = stock_of(100)
    plain_pool = Driver().pool()
    request = plain_pool.request(100)
    pairs: list[tuple[Block, Block]] = []
    for action in actions:
        if action is None:
            pairs.append((stock.take(), plain_pool.serve(request)))
        elif pairs:
            del pairs[action % len(pairs)]
    stats, plain_stats = stock.pool.stats(), plain_pool.stats()

    assert (stats.live_bytes, stats.allocations) == (plain_stats.live_bytes, plain_stats.allocations)
    assert stats.cached_bytes == plain_stats.cached_bytes
    assert stats.live_bytes <= plain_stats.peak_bytes <= stats.peak_bytes


def test_several_stocks_have_blocks_of_their_own():
    driver, stock = stock_of(100)
    other = Stock(stock.pool, stock.pool.request(100))
    handles = [(stock.take().handle, other.take().handle) for _ in range(5)]

    assert len(set(handles)) == 1
    assert driver.calls == ["alloc", "alloc"]


def test_large_blocks_go_back_to_the_pool():
    _, stock = stock_of(SMALL_BYTES)
    block = stock.take()
    del block
    other = stock.pool.take(SMALL_BYTES)

    assert stock.pool.stats().raw_allocations == 1
    assert stock.take().handle != other.handle


def test_a_request_of_another_size_gets_the_memory_of_a_stock_when_the_device_is_full():
    driver, stock = stock_of(1024, capacity=1024)
    block = stock.take()
    del block

    assert stock.pool.take(512).bytes == 512
    assert driver.calls == ["alloc", "alloc", "settle", "free", "alloc"]


def test_a_shared_block_is_given_again_only_after_the_wait_for_others():
    waits: list[None] = []
    pool = Driver().pool(settle_others=lambda: waits.append(None))
    stock = Stock(pool, pool.request(100))
    block = stock.take()
    handle = block.handle
    pool.share(block)
    del block

    assert (stock.take().handle, len(waits)) == (handle, 1)


def test_threads_never_have_the_same_block_at_once():
    _, stock = stock_of(100)
    owners: dict[int, int] = {}
    faults: list[int] = []

    def work(number: int) -> None:
        for _ in range(300):
            block = stock.take()
            owners[block.handle] = number
            if owners[block.handle] != number:
                faults.append(block.handle)
            del block

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not faults
