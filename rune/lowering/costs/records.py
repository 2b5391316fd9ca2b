"""DeviceRecord: the rates and capacities of a device on which the cost of a kernel depends.

A device is `units` that compute side by side (multiprocessors, compute units, cores). Threads of a
unit run in subgroups, in step; on a processor a subgroup is one vector register. Memory is a
sequence of caches, the nearest first, and the main memory behind them. Figures of a unit are per
unit and per cycle; figures of shared caches and memory are per device and per second.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rune import dtypes
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Cache:
    """One level of cache.

    capacity_bytes: of one unit's cache, or of the one that all share [B]
    is_shared:      whether there is one for all units
    rate:           bytes that it serves to all units together [B/s]; the requests of subgroups to
                    the first level are counted separately
    latency_cycles: from a load to its value [cycles]
    holds_shared:   whether the shared memory of groups reduces it
    sets:           that low bits of an address select; 1 if other bits count as well
    """

    name: str
    capacity_bytes: int
    is_shared: bool
    rate: float
    latency_cycles: float
    holds_shared: bool = False
    sets: int = 1


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """A device in numbers.

    units:               multiprocessors, compute units or cores
    clock_hz:            cycles of a unit in a second [1/s]
    subgroup_threads:    threads that run in step; 1 on a processor
    unit_threads:        threads that a unit holds at a time, at most
    unit_groups:         groups that a unit holds at a time, at most
    unit_registers:      of 32 bits, for all threads of a unit; 0: unknown, and no limit
    thread_registers:    of 32 bits, of one thread at most: more spill to memory; the vector
                         registers of a processor
    shared_bytes:        on-chip memory of a unit, for its groups [B]
    shared_cycle_bytes:  bytes that it serves in a cycle, without conflicts [B]
    banks:               of that memory, each of which serves a word of 4 bytes in a cycle
    cycle_requests:      loads and stores of a subgroup that a unit starts in a cycle
    cycle_lines:         lines that these may touch in a cycle, together
    cycle_instructions:  instructions of a subgroup that a unit starts in a cycle
    operations:          additions, or multiply-adds, of a unit in a cycle, by dtype
    special_operations:  roots, reciprocals and the like of a unit in a cycle
    matrix_flops:        of the units for matrix products, by dtype of the factors; a multiply-add
                         is two [1/s]
    matrix_share:        of matrix_flops that products of one subgroup at a time reach
    together_share:      of matrix_flops that products of four subgroups together reach
    line_bytes, sector_bytes: the size of a cache line, and of the smallest transfer [B]
    unit_cycle_bytes:    bytes that a unit gets in a cycle from beyond its own cache [B]
    caches, memory_rate, memory_latency_cycles: memory, as far as a kernel can reach it [B/s]
    start_lines:         of a processor: the time to find one more run of lines, in lines
    launch_ns:           the time of one more kernel in a plan [ns]
    source:              where the numbers come from
    """

    name: str
    units: int
    clock_hz: float
    subgroup_threads: int
    unit_threads: int
    unit_groups: int
    unit_registers: int
    thread_registers: int
    shared_bytes: int
    shared_cycle_bytes: int
    banks: int
    cycle_requests: float
    cycle_lines: float
    cycle_instructions: float
    operations: Mapping[np.dtype, float]
    special_operations: float
    matrix_flops: Mapping[np.dtype, float]
    line_bytes: int
    sector_bytes: int
    unit_cycle_bytes: float
    caches: tuple[Cache, ...]
    memory_rate: float
    memory_latency_cycles: float
    launch_ns: float
    source: str
    matrix_share: float = 1.0
    together_share: float = 1.0
    start_lines: float = 0.0

    @property
    def is_processor(self) -> bool:
        """Whether its threads are the lanes of vector registers."""
        return self.subgroup_threads == 1

    def rate(self, dtype: np.dtype) -> float:
        """Operations on a dtype that a unit does in a cycle.

        Narrow floats without units of their own are computed as f32, integers in words.
        """
        if dtype in self.operations:
            return self.operations[dtype]
        if dtype in dtypes.FLOATING:
            return self.operations[dtypes.f32]
        return self.operations[dtypes.i32] / max(1, dtype.itemsize // 4)

    def flops(self, dtype: np.dtype) -> float:
        """The rate of all units except matrix units; a multiply-add counts as two. Units: 1/s."""
        return 2 * self.units * self.clock_hz * self.rate(dtype)


__all__ = ["Cache", "DeviceRecord"]
