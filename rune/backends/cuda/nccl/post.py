"""Enqueues a device's part of a collective: the swap before, NCCL's calls, the swap after.

All calls of a collective are one NCCL group. Swapped data lies in memory of the pool, which returns
to it at once: work that uses the memory next comes later on the same stream.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune.backends.cuda.graph import line
from rune.backends.cuda.launch import start
from rune.backends.cuda.nccl.calls import AllGather, AllReduce, Call, Part, Receive, ReduceScatter, Send, Swap
from rune.backends.cuda.nccl.communicators import Clique
from rune.backends.cuda.nccl.library import DataType, Library, Operation
from rune.backends.cuda.run import CudaQueue, address
from rune.backends.shared.pool import Block
from rune.records import dataclass

_THREADS = 256
_UNITS = (16, 8, 4, 1)  # bytes that a thread moves at once


@dataclass(frozen=True, slots=True, eq=False)
class Post:
    """A device's part for one operand, and the addresses of operand and result."""

    backend: CudaQueue
    clique: Clique
    place: int
    part: Part
    source: int
    target: int
    source_bytes: int
    target_bytes: int


def enqueue(library: Library, posts: Sequence[Post]) -> None:
    """Enqueue all posts on their streams. Errors: Refused by NCCL; DeviceError; OutOfMemory."""
    # Swaps before the group: inside it, NCCL only collects calls and starts them at its end.
    blocks = [_Laid(post) for post in posts]
    # NCCL needs some context to be current, and makes it current again at the end.
    with posts[0].backend.in_context, library.grouped():
        for block in blocks:
            for call in block.post.part.calls:
                _enqueue(library, call, block)
    for block in blocks:
        block.finish()


class _Laid:
    """A post whose operand has NCCL's layout. source, target: addresses for NCCL."""

    def __init__(self, post: Post):
        self.post = post
        self._memory: list[Block] = []
        self.source, self.target = post.source, post.target
        if post.part.before is not None:
            self.source = self._room(post.source_bytes)
            with post.backend.in_context:
                _swap(post.backend, post.part.before, self.source, post.source)
        if post.part.after is not None:
            self.target = self._room(post.target_bytes)

    def _room(self, nbytes: int) -> int:
        block = self.post.backend.pool.take(nbytes, ("collective",))
        self._memory.append(block)
        return address(block)

    def finish(self) -> None:
        """Swap the received data into the result, or fill it with zeros."""
        post = self.post
        if post.part.is_empty:
            with post.backend.in_context:
                post.backend.driver.memset_d8_async(post.target, 0, post.target_bytes, post.backend.stream)
        if post.part.after is not None:
            with post.backend.in_context:
                _swap(post.backend, post.part.after, post.target, self.target)


def _swap(backend: CudaQueue, swap: Swap, target: int, source: int) -> None:
    unit = next(u for u in _UNITS if not (swap.bytes | target | source) % u)
    pieces = swap.bytes // unit
    blocks = -(-swap.a * swap.b * pieces // _THREADS)
    words = target, source, swap.a, swap.b, pieces, unit
    start(backend.step_kernels.function("rune_swap"), (line(blocks), line(_THREADS)), words, backend.stream.handle)


def _enqueue(library: Library, call: Call, block: _Laid) -> None:
    """Make one call of NCCL."""
    post, source, target = block.post, block.source, block.target
    where = post.clique.handles[post.place], post.backend.stream.handle
    match call:
        case AllReduce(count, dtype, operation):
            library.call("ncclAllReduce", source, target, count, dtype, operation, *where)
        case ReduceScatter(count, dtype):
            library.call("ncclReduceScatter", source, target, count, dtype, Operation.SUM, *where)
        case AllGather(nbytes):
            library.call("ncclAllGather", source, target, nbytes, DataType.UINT8, *where)
        case Send(nbytes, offset, peer):
            library.call("ncclSend", source + offset, nbytes, DataType.UINT8, peer, *where)
        case Receive(nbytes, offset, peer):
            library.call("ncclRecv", target + offset, nbytes, DataType.UINT8, peer, *where)
