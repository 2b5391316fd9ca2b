"""Blocks that the results of one plan get again and again, without a request to the pool.

    stock = Stock(pool, request)
    stock.take()        a block that nothing else refers to; else one of the pool

A cached call of a small plan takes a block for each result while those of earlier calls have died.
By the pool that is a death, a release and a request: half of the host's time of a call. A stock
refers to the last few blocks that it gave, and gives one again when nobody else refers to it.

Only small blocks are stocked. The pool recalls all of them when its device is full, and counts as
cached what only a stock refers to; its peak includes them.
Invariant: a block that others may read in queues of their own is in no stock (`Pool.share`).
"""

from __future__ import annotations

from sys import getrefcount

from rune.backends.shared.pool import Block, Pool, Request

MOST = 4  # blocks of a stock: a program that replaces its state has two in turn
SMALL_BYTES = 1 << 16  # larger blocks are worth more to others than the time that a stock saves


class Stock:
    """The last blocks that were given for one request. Any thread may take one."""

    __slots__ = ("__weakref__", "_blocks", "_request", "pool")

    def __init__(self, pool: Pool, request: Request):
        self.pool, self._request = pool, request
        self._blocks: list[Block] = []
        pool.register(self)

    def take(self) -> Block:
        """A block that nobody else has. Errors: OutOfMemory."""
        # Two threads that look at one block at a time both see the other's reference, and pass on.
        for block in self._blocks:
            if getrefcount(block) == _UNUSED:
                next(self.pool.again)
                return block
        block = self.pool.serve(self._request)
        if self._request.room < SMALL_BYTES:
            with self.pool.lock:  # no recall comes in between
                # A new list, because other threads may be walking the old one.
                self._blocks = [block, *self._blocks[: MOST - 1]]
        return block

    def unused_bytes(self) -> int:
        """The bytes of blocks to which nobody else refers. Under the pool's lock."""
        unused = 0
        for block in self._blocks:
            unused += getrefcount(block) == _UNUSED
        return unused * self._request.room

    def recall(self) -> None:
        """Drop all references to blocks: the unused ones die. Under the pool's lock."""
        self._blocks = []


def _references() -> int:
    """The references to an object that only a list has, as the loop in `take` counts them."""
    (count,) = [getrefcount(block) for block in [object()]]
    return count


_UNUSED = _references()
