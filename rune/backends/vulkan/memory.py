"""Memory of one Vulkan device: blocks of a caching pool, copies in and out.

Where host and device share memory, it stays mapped, and the host copies bytes directly. Elsewhere
copies go through staging memory, in pieces, by commands of the device's queue.

The pool may reuse a block while commands that use it are pending, because later commands begin
after them. Only the host must wait, so the pool remembers the last submission that used each block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from rune.backends.shared.pool import Block, Pool
from rune.backends.shared.turns import Arena
from rune.backends.vulkan.commands import Commands
from rune.backends.vulkan.device import VulkanDevice
from rune.backends.vulkan.driver import Failure, api, c_array, check, is_out_of_memory, queue_counts, struct
from rune.backends.vulkan.memory_types import COHERENT, Types, choose
from rune.records import dataclass

SLAB_BYTES = 1 << 20  # drivers allow as few as 4096 allocations, so small blocks share one
KEPT_BYTES = 1 << 28  # the most to cache where the device uses the host's memory
PIECE_BYTES = 1 << 25  # of one staged copy
# Bits that the package's constants lack.
_BUFFER_HAS_ADDRESS = 0x20000  # VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT
_MEMORY_HAS_ADDRESS = 2  # VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT
_TRIES = 3  # blocks tried before the host waits for one


@dataclass(slots=True, eq=False)
class Chunk:
    """One allocation of the driver."""

    buffer: Any
    memory: Any
    address: int  # on the device
    bytes: int  # of the memory
    is_coherent: bool
    host: np.ndarray | None  # its bytes, where they are mapped
    home: VulkanMemory


def bytes_of(block: Block) -> np.ndarray:
    """The bytes of a mapped block."""
    return block.handle.host[block.offset : block.offset + block.bytes]


class VulkanMemory:
    """The memory of one open device: pools for arrays, for staged copies, and for tables."""

    def __init__(self, device: VulkanDevice):
        self.device = device
        self.choice = choice = choose(device.physical.memory_types)
        self.is_shared = choice.is_shared
        self.allocations = 0
        self.pool = self._pool(choice.arrays, self.is_shared)
        self.arena = Arena(self.pool)  # shared by calls that are submitted at once
        self.staging = self.pool if self.is_shared else self._pool(choice.staging, True)
        # Tables share the staging pool where its memory is the best for them, too.
        self.tables = self._pool(choice.tables, True)
        if choice.tables[0] is choice.staging[0]:
            self.tables = self.staging

    def pinned(self) -> Pool:
        """A new pool of staging memory, for a queue that has its own numbers of submissions."""
        return self._pool(self.choice.staging, True)

    def _pool(self, kinds: Types, is_mapped: bool) -> Pool:
        """A pool in the first of these types that fits."""
        heap = self.device.physical.heap_bytes[kinds[0].heap]
        is_hosts = self.is_shared or self.device.physical.cores is not None
        return Pool(
            self.device.name,
            self._allocator(kinds, is_mapped),
            self._free,
            limit_bytes=heap,
            largest_bytes=min(heap, self.device.physical.largest_allocation_bytes),
            slab_bytes=SLAB_BYTES,
            kept_bytes=KEPT_BYTES if is_hosts else None,
            settle=self.device.synchronize,
            number=lambda chunk, offset: chunk.address + offset,
        )

    def _allocator(self, kinds: Types, is_mapped: bool) -> Callable[[int], Chunk]:
        def allocate(nbytes: int) -> Chunk:
            buffer = self._buffer(nbytes)
            try:
                return self._back(buffer, kinds, is_mapped, nbytes)
            except Failure as failure:
                self.device.destroy("Buffer", buffer)
                raise self._as_python(failure) from failure

        return allocate

    def _buffer(self, nbytes: int) -> Any:
        vk = api()
        usage = (
            vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
            | _BUFFER_HAS_ADDRESS
            | vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT
            | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
            | vk.VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT
        )
        families = [*queue_counts(self.device.physical.family, self.device.physical.copies)]
        # For buffers no driver is known to make concurrent access slower. Exclusive ones would have
        # to change their owner before and after each copy.
        mode = vk.VK_SHARING_MODE_CONCURRENT if len(families) > 1 else vk.VK_SHARING_MODE_EXCLUSIVE
        info = struct(
            "VkBufferCreateInfo",
            size=nbytes,
            usage=usage,
            sharingMode=mode,
            queueFamilyIndexCount=len(families),
            pQueueFamilyIndices=c_array("uint32_t", families),
        )
        try:
            return self.device.create("Buffer", info)
        except Failure as failure:
            raise self._as_python(failure) from failure

    def _as_python(self, failure: Failure) -> Exception:
        """The error for the pool: MemoryError if the driver is out of memory."""
        if is_out_of_memory(failure.code):
            return MemoryError(str(failure))
        return self.device.failure(failure.code, "allocate memory")

    def _back(self, buffer: Any, kinds: Types, is_mapped: bool, nbytes: int) -> Chunk:
        """Allocate memory and bind a new buffer to it."""
        ffi, device = api().ffi, self.device
        needs = ffi.new("VkMemoryRequirements*")
        device.vk.vkGetBufferMemoryRequirements(device.handle, buffer, needs)
        kind = next(k for k in kinds if needs.memoryTypeBits >> k.number & 1)
        flags = struct("VkMemoryAllocateFlagsInfo", flags=_MEMORY_HAS_ADDRESS)
        info = struct("VkMemoryAllocateInfo", pNext=flags, allocationSize=needs.size, memoryTypeIndex=kind.number)
        memory = self._allocated(info)
        device.vk.vkBindBufferMemory(device.handle, buffer, memory, 0)
        about = struct("VkBufferDeviceAddressInfo", buffer=buffer)
        address = device.vk.vkGetBufferDeviceAddress(device.handle, about)
        host = self._map(memory, needs.size)[:nbytes] if is_mapped else None
        return Chunk(buffer, memory, address, needs.size, kind.has(COHERENT), host, self)

    def _allocated(self, info: object) -> object:
        """A new allocation. Counted, because a driver may exceed its own limit, and fail later."""
        device = self.device
        with device.lock:
            if self.allocations >= device.physical.most_allocations:
                raise Failure(api().VK_ERROR_TOO_MANY_OBJECTS, f"{self.allocations} allocations are all there may be")
            memory = device.create("DeviceMemory", info)
            self.allocations += 1
            return memory

    def _map(self, memory: Any, nbytes: int) -> np.ndarray:
        ffi, device = api().ffi, self.device
        pointer = ffi.new("void**")
        device.vk.vkMapMemory(device.handle, memory, 0, nbytes, 0, pointer)
        return np.frombuffer(ffi.buffer(pointer[0], nbytes), np.uint8)

    def _free(self, chunk: Chunk) -> None:
        with self.device.lock:
            self.device.destroy("Buffer", chunk.buffer)
            self.device.destroy("DeviceMemory", chunk.memory)
            self.allocations -= 1

    def mark(self, blocks: Iterable[Block], submission: int) -> None:
        """Remember that a submission uses the blocks."""
        with self.device.lock:
            for block in blocks:
                block.use(submission)

    # --- copies ------------------------------------------------------------------------------

    def take_idle(self, pool: Pool, nbytes: int, about: tuple[object, ...] = ()) -> Block:
        """A mapped block that no pending command uses."""
        busy: list[Block] = []
        for _ in range(_TRIES):
            block = pool.take(nbytes, about)
            if self.device.is_done(block.last_use):
                return block
            busy.append(block)
        first = min(busy, key=lambda b: b.last_use)
        self.device.wait(first.last_use)
        return first

    def upload(self, source: np.ndarray, about: tuple[object, ...] = ()) -> Block:
        """A new block with these bytes; the array may change afterwards."""
        if self.is_shared:
            block = self.take_idle(self.pool, source.size, about)
        else:
            block = self.pool.take(source.size, about)
        self.write(block, 0, source)
        return block

    def write(self, block: Block, at: int, source: np.ndarray) -> None:
        """Copy bytes into a block. Where the host writes it, no pending command may use the
        block."""
        if self.is_shared:
            start = block.offset + at
            block.handle.host[start : start + source.size] = source
            self.flush(block, at, source.size)
            return
        for start, end in _pieces(source.size):
            staging_block = self.take_idle(self.staging, end - start)
            bytes_of(staging_block)[...] = source[start:end]
            self.flush(staging_block, 0, end - start)
            self._copy(staging_block, 0, block, at + start, end - start)

    def read(self, block: Block, at: int, target: np.ndarray, writer: int) -> None:
        """Copy bytes out of a block, after waiting for the submission that writes them."""
        if self.is_shared:
            self.device.wait(writer)
            self.invalidate(block, at, target.size)
            start = block.offset + at
            target[...] = block.handle.host[start : start + target.size]
            return
        for start, end in _pieces(target.size):
            staging_block = self.staging.take(end - start)
            self.device.wait(self._copy(block, at + start, staging_block, 0, end - start))
            self.invalidate(staging_block, 0, end - start)
            target[start:end] = bytes_of(staging_block)

    def flush(self, block: Block, at: int, nbytes: int) -> None:
        """Make the host's writes visible to the device."""
        if not block.handle.is_coherent and nbytes:
            flush = self.device.vk.vkFlushMappedMemoryRanges
            check(flush(self.device.handle, 1, self._range(block, at, nbytes)), "vkFlushMappedMemoryRanges")

    def invalidate(self, block: Block, at: int, nbytes: int) -> None:
        """Make the device's writes visible to the host."""
        if not block.handle.is_coherent and nbytes:
            invalidate = self.device.vk.vkInvalidateMappedMemoryRanges
            check(invalidate(self.device.handle, 1, self._range(block, at, nbytes)), "vkInvalidateMappedMemoryRanges")

    def _range(self, block: Block, at: int, nbytes: int) -> object:
        """A range of a block, widened to multiples of an atom, which blocks do not share."""
        atom, start = self.device.physical.atom_bytes, block.offset + at
        first, end = start // atom * atom, -(-(start + nbytes) // atom) * atom
        size = min(end, block.handle.bytes) - first
        return struct("VkMappedMemoryRange", memory=block.handle.memory, offset=first, size=size)

    def _copy(self, source: Block, at: int, target: Block, to: int, nbytes: int) -> int:
        """Submit a copy between blocks; returns its number."""
        device = self.device
        with device.lock:
            commands = Commands(device)
            buffers = device.command_buffers(1)
            with commands.recording(buffers[0], api().VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT):
                self.record_copy(buffers[0], source, at, target, to, nbytes)
            number = device.submit(device.submission(c_array("VkCommandBuffer", list(buffers))))
            device.destructions.append((number, lambda: device.free_command_buffers(buffers)))
        self.mark((source, target), number)
        return number

    def record_copy(self, buffer: object, source: Block, at: int, target: Block, to: int, nbytes: int) -> None:
        """Record a copy between blocks into a command buffer."""
        region = struct("VkBufferCopy", srcOffset=source.offset + at, dstOffset=target.offset + to, size=nbytes)
        self.device.vk.vkCmdCopyBuffer(buffer, source.handle.buffer, target.handle.buffer, 1, region)


def _pieces(nbytes: int) -> Iterator[tuple[int, int]]:
    for start in range(0, nbytes, PIECE_BYTES):
        yield start, min(nbytes, start + PIECE_BYTES)
