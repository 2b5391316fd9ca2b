"""What a thread does in all its rounds, summed over the blocks of a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import numpy as np

from rune import dtypes
from rune.lowering.costs.reading import Block, Touch
from rune.lowering.costs.records import DeviceRecord
from rune.lowering.kernel.nodes import AddressSpace
from rune.lowering.lanes.rounds import UNROLL
from rune.records import dataclass

ROUND = 2.0  # instructions per round of a loop: to count, and to test for the end
UNROLLED = 4  # rounds of an inner loop that a compiler unrolls
# On a processor, per round: the requests of a sum without a register, which is read and written,
# and the vectors in addition to the sums. With 128 sums in 32 registers, a product took 2.5 cycles
# instead of 0.8.
SPILLED_REQUESTS, BESIDE = 3.0, 3
ADDITION = 4.0  # cycles from one addition of a sum to the next


@dataclass(slots=True)
class Totals:
    """Sums for one thread; requests are those of its subgroup.

    products:       scalar operations of matrix units, by the dtype of the factors and by how many
                    subgroups compute together
    request_cycles: of the load units of one unit;  sectors: of global memory alone
    """

    of_dtype: dict[np.dtype, float] = field(default_factory=dict)
    special: float = 0.0
    flops: float = 0.0
    products: dict[tuple[np.dtype, int], float] = field(default_factory=dict)
    requests: float = 0.0
    sectors: float = 0.0
    shared_requests: float = 0.0
    request_cycles: float = 0.0
    waiting_cycles: float = 0.0

    @property
    def instructions(self) -> float:
        """The number of all instructions except loads and stores."""
        return sum(self.of_dtype.values())


def totals(block: Block, record: DeviceRecord, registers: int = 1) -> Totals:
    """The sums over a block and all blocks inside it. registers: of a processor's vector"""
    sums = Totals()
    for part, times in _blocks(block, 1.0):
        for dtype, count in part.work.instructions.items():
            unit = dtype if dtype in record.operations else _unit(dtype)
            sums.of_dtype[unit] = sums.of_dtype.get(unit, 0.0) + times * count
        looping = times * ROUND / (1 if part.inner else UNROLLED)
        if part.var is not None and not part.is_unrolled:
            sums.of_dtype[dtypes.i32] = sums.of_dtype.get(dtypes.i32, 0.0) + looping
        sums.special += times * part.work.special
        for kind, count in part.work.products.items():
            sums.products[kind] = sums.products.get(kind, 0.0) + times * count
        sums.flops += times * part.work.flops * part.lanes
        if record.is_processor:
            _add_sums(part, times, registers, sums, record)
        for touch in part.touches:
            _add(touch, times * touch.share, sums, record)
    return sums


def _add_sums(part: Block, times: float, registers: int, sums: Totals, record: DeviceRecord) -> None:
    """What it takes a processor to accumulate: sums without a register, additions that wait."""
    accumulated = part.work.sums.values()
    spills = max(0, len(accumulated) * registers + BESIDE - record.thread_registers) / registers
    sums.request_cycles += times * SPILLED_REQUESTS * spills / record.cycle_requests
    side_by_side = max(registers, UNROLL if part.lanes > 1 else 1)
    wait = max((ADDITION if dtype in dtypes.FLOATING else 1.0 for dtype in accumulated), default=0.0)
    sums.waiting_cycles += times * wait / side_by_side


def _unit(dtype: np.dtype) -> np.dtype:
    """The dtype whose units compute with numbers of this one."""
    return dtypes.f32 if dtype in dtypes.FLOATING else dtypes.i32


def _blocks(block: Block, times: float) -> Iterator[tuple[Block, float]]:
    """The block and every block inside it, and how often a thread runs each."""
    times *= block.rounds * block.share
    yield block, times
    for inner in block.inner:
        yield from _blocks(inner, times)


def _add(touch: Touch, times: float, sums: Totals, record: DeviceRecord) -> None:
    if touch.space is AddressSpace.SHARED:
        sums.shared_requests += times
        sums.request_cycles += times * max(touch.requests.conflicts, 1 / record.cycle_requests)
        return
    sums.requests += times
    sums.sectors += times * touch.requests.sectors
    # A fetch goes directly into shared memory, and passes once.
    passing = 0.0 if touch.is_fetch else touch.requests.sectors * record.sector_bytes / record.shared_cycle_bytes
    sums.request_cycles += times * max(1 / record.cycle_requests, touch.requests.lines / record.cycle_lines, passing)


__all__ = ["Totals", "totals"]
