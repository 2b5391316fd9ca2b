"""cost: how long a kernel takes on a device, what it is made of, and what bounds it.

    cost(code, target)        matmul_0  2.4 ms, bound by f32 units: 16384 groups of 256 threads, ...

Every part of the device is asked how long it would take alone: memory and each cache for the bytes
that come through (footprints.py), the load units for requests, sectors and bank conflicts
(samples.py), arithmetic units for instructions (reading.py), and one thread for its chain of waits,
as often as groups follow each other. The longest counts in full, the others by OVERLAP, since they
never overlap entirely. More of anything never costs less.

Invariant: the same for the same code and record; nothing runs and nothing is timed.
Cost:      a millisecond or so, by the number of loads and stores of the code.
Not done:  clocks that fall under load, conflicts of rows in memory, instructions that do not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rune import dtypes
from rune.lowering.codegen.llvm_lanes import choose
from rune.lowering.codegen.target import Target
from rune.lowering.costs import samples as sampling
from rune.lowering.costs.devices import record_of
from rune.lowering.costs.footprints import Footprints
from rune.lowering.costs.launch import Launch, number, shared_bytes, spread, typical_sizes
from rune.lowering.costs.occupancy import Occupancy, occupancy
from rune.lowering.costs.reading import Block, Reader, Work, memory_of
from rune.lowering.costs.records import Cache, DeviceRecord
from rune.lowering.costs.registers import registers
from rune.lowering.costs.totals import Totals, totals
from rune.lowering.kernel.nodes import Alloc, KernelCode
from rune.lowering.kernel.rewrite import walk

OVERLAP = 1 / 8  # of the time of what does not bound
AHEAD = 4.0  # rounds whose loads wait together, since a compiler or a core goes ahead
DEPENDENT_CYCLES = 2.0  # of an instruction of a thread that runs alone; half of them wait for others
BARRIER_CYCLES = 30.0


@dataclass(frozen=True, slots=True)
class Cost:
    """What a launch costs.

    seconds:       predicted, its launch included [s]
    parts:         the time of each part of the device, if it were the only one [s]
    bytes_through: what comes through each cache and out of memory, by name [B]
    flops:         scalar operations on floats, a multiply-add as two
    requests:      loads and stores of subgroups;  sectors: that one of them touches, on average
    registers, shared_bytes: of a thread, of a group
    groups, group_threads: of the launch
    resident_groups: of a unit at the same time;  waves: how often all units are filled
    occupancy:     threads of a unit beside the most that it holds
    """

    name: str
    device: str
    seconds: float
    parts: Mapping[str, float]
    bytes_through: Mapping[str, float]
    flops: float
    requests: float
    sectors: float
    registers: int
    shared_bytes: int
    groups: int
    group_threads: int
    resident_groups: int
    waves: int
    occupancy: float

    @property
    def bound(self) -> str:
        """The part that takes longest."""
        return max(self.parts, key=lambda name: self.parts[name])

    def __str__(self) -> str:
        shape = f"{self.groups} groups of {self.group_threads}" if self.group_threads > 1 else f"{self.groups} points"
        return (
            f"{self.name}: {1e6 * self.seconds:.1f} µs on {self.device}, bound by {self.bound}; {shape}, "
            f"{self.sectors:.1f} sectors a request, {self.registers} registers"
        )


def cost(
    code: KernelCode, target: Target, record: DeviceRecord | None = None, sizes: Mapping[str, int] | None = None
) -> Cost:
    """What a launch of the kernel costs on a device.

    record: what the device can do; None for what the table says of it
    sizes:  of the symbolic ones; a typical value stands for each that is missing
    """
    return _Model(code, target, record or record_of(target), typical_sizes(code, sizes)).cost()


@dataclass(slots=True)
class _Model:
    code: KernelCode
    target: Target
    record: DeviceRecord
    sizes: Mapping[str, int]

    def cost(self) -> Cost:
        record, launch = self.record, spread(self.code, self.target, self.record, self.sizes)
        used = registers(self.code)
        shared = shared_bytes(launch.head)
        held = occupancy(launch, record, used, shared)
        block = self._read(launch)
        sums = totals(block, record)
        through = self._bytes_through(block, launch, held)
        parts = self._parts(launch, held, sums, through, block, max(0, used - record.thread_registers))
        longest = max(parts.values())
        seconds = longest + OVERLAP * (sum(parts.values()) - longest)
        launching = record.launch_ns * 1e-9
        return Cost(
            self.code.name,
            record.name,
            seconds + launching,
            {**parts, "launch": launching},
            through,
            sums.flops * _threads(launch, record),
            sums.requests * _subgroups(launch, record),
            sums.sectors / sums.requests if sums.requests else 0.0,
            used,
            shared,
            launch.groups,
            launch.group_threads,
            held.groups,
            held.waves,
            held.share,
        )

    # --- reading -----------------------------------------------------------------------------

    def _read(self, launch: Launch) -> Block:
        """What a thread does; of a processor, what all points do."""
        record, memory = self.record, memory_of(self.code)
        if record.is_processor:
            widest = max((p.dtype.itemsize for p in self.code.params), default=4)
            lanes = max(1, self.target.vector_bytes // widest)
            loops = choose(self.code.body, lanes).loops
            return Reader(record, memory, self.sizes, loops, lanes).block(
                self.code.body, sampling.processor_samples(self.sizes)
            )
        reader = Reader(record, memory, self.sizes)
        reader.origins.update((a.name, frozenset({a.name})) for a in (*launch.grid, *launch.threads))
        samples = sampling.of_launch(launch, record.subgroup_threads, self.sizes)
        return reader.block((*launch.head, *launch.body), samples)

    # --- memory ------------------------------------------------------------------------------

    def _bytes_through(self, block: Block, launch: Launch, held: Occupancy) -> dict[str, float]:
        """Bytes through each cache, and out of memory at last."""
        bytes_of = {p.name: p.dtype.itemsize * number(p.size, self.sizes) for p in self.code.params}
        bytes_of.update(
            (s.name, s.size * s.dtype.itemsize) for s in walk(self.code.body) if isinstance(s, Alloc)
        )
        prints = Footprints(bytes_of, self.record.sector_bytes, {})
        behind = (*(c.name for c in self.record.caches[1:]), "memory")
        return {
            name: self._through(prints, cache, block, launch, held)
            for name, cache in zip(behind, self.record.caches, strict=True)
        }

    def _through(
        self, prints: Footprints, cache: Cache, block: Block, launch: Launch, held: Occupancy
    ) -> float:
        if self.record.is_processor:
            shares = self.record.units if cache.is_shared else 1
            return prints.through(block, {}, cache.capacity_bytes / shares)
        if not cache.is_shared:
            capacity = cache.capacity_bytes / held.groups
            return launch.groups * prints.through(block, launch.group_extents(), capacity)
        resident = launch.resident_extents(held.groups * self.record.units)
        return prints.through(_in_waves(block, launch, resident), resident, cache.capacity_bytes)

    # --- time --------------------------------------------------------------------------------

    def _parts(
        self, launch: Launch, held: Occupancy, sums: Totals, through: Mapping[str, float], block: Block, spilled: int
    ) -> dict[str, float]:
        record = self.record
        # The unit with most to do has so many groups, or so large a share of a processor's points.
        groups = launch.groups if record.is_processor else -(-launch.groups // record.units)
        width = 1 if record.is_processor else -(-launch.group_threads // record.subgroup_threads)
        subgroups = 1 / min(record.units, max(1, launch.groups)) if record.is_processor else groups * width
        lanes = 1 if record.is_processor else record.subgroup_threads
        cycles = {
            "requests": sums.request_cycles + spilled * 2.0,
            "instructions": (sums.instructions + sums.requests) / record.cycle_instructions,
            "special units": sums.special * lanes / record.special_operations,
            **{f"{dtypes.short(d)} units": n * lanes / self._rate(d) for d, n in sums.of_dtype.items()},
        }
        parts = {name: subgroups * n / record.clock_hz for name, n in cycles.items()}
        rates = {c.name: c.rate for c in record.caches} | {"memory": record.memory_rate}
        parts |= {name: size / rates[name] for name, size in through.items()}
        first = next(iter(through.values()))
        if not record.is_processor:
            parts["path to units"] = (
                groups / max(1, launch.groups) * first / record.unit_cycle_bytes / record.clock_hz
            )
            parts["latency"] = held.waves * self._chain(block, through, sums, launch) / record.clock_hz
        return parts

    def _rate(self, dtype: np.dtype) -> float:
        """Operations of a unit in a cycle; of a processor, instructions on whole vectors."""
        if not self.record.is_processor:
            return self.record.rate(dtype)
        return max(0.5, self.record.rate(dtype) * dtype.itemsize / max(4, self.target.vector_bytes))

    def _chain(self, block: Block, through: Mapping[str, float], sums: Totals, launch: Launch) -> float:
        """Cycles of a thread that waits for whatever it needs."""
        return _chain(block, self._latency(through, sums, launch))

    def _latency(self, through: Mapping[str, float], sums: Totals, launch: Launch) -> float:
        """Cycles of a load on average, by how much comes from how far."""
        record = self.record
        sectors = sums.sectors * _subgroups(launch, record) * record.sector_bytes
        latencies = [*(c.latency_cycles for c in record.caches), record.memory_latency_cycles]
        bytes_of = [max(sectors, 1.0), *through.values()]
        # A load that goes further waits for the difference as well.
        shares = [1.0, *(min(1.0, size / bytes_of[0]) for size in bytes_of[1:])]
        steps = [latencies[0], *(b - a for a, b in zip(latencies, latencies[1:]))]
        return sum(share * step for share, step in zip(shares, steps, strict=True))


def _chain(block: Block, latency: float) -> float:
    loads = [t for t in block.touches if not t.writes and t.share and t.space is None]
    waits = (1 + max((t.depth for t in loads), default=0)) if loads else 0
    each = waits * latency / (AHEAD if block.rounds > 1 else 1.0)
    each += DEPENDENT_CYCLES * sum(block.work.instructions.values()) + BARRIER_CYCLES * block.work.barriers
    return block.rounds * block.share * (each + sum(_chain(b, latency) for b in block.inner))


def _in_waves(block: Block, launch: Launch, resident: Mapping[str, int]) -> Block:
    """The block of all resident threads, in loops over what is left of the grid."""
    for axis in reversed(launch.grid):
        rounds = -(-axis.extent // resident[axis.name])
        if rounds > 1:
            block = Block(axis.name, rounds, 1, 1.0, (), (block,), Work())
    return block


def _threads(launch: Launch, record: DeviceRecord) -> int:
    return 1 if record.is_processor else launch.points * (launch.group_threads if launch.threads else 1)


def _subgroups(launch: Launch, record: DeviceRecord) -> int:
    if record.is_processor:
        return 1
    return launch.groups * -(-launch.group_threads // record.subgroup_threads)


__all__ = ["Cost", "cost"]
