"""cost: how long a kernel takes on a device, which parts that time has, and which one bounds it.

    cost(code, target)      dot_0: 9822.0 µs on H100 SXM, bound by L2; 912 groups of 256, ...

The model computes how long each part of the device would take alone: memory and each cache for the
bytes that pass through (footprints.py), load units for requests, lines and bank conflicts
(samples.py), arithmetic units for instructions (reading.py), a thread for its chain of waits, once
per wave of groups, and a unit for starting its groups. The longest time counts in full, the others
by OVERLAP, since they never overlap entirely.

Invariant: the same code and record give the same cost; nothing runs and nothing is timed. More work
           never costs less.
Cost:      some milliseconds, by the number of statements.
Not done:  clocks that fall under load, rows and channels of memory, instruction cache misses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from rune import dims, dtypes
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.target import Target
from rune.lowering.costs import samples as sampling
from rune.lowering.costs.devices import record_of
from rune.lowering.costs.footprints import Footprints, Room
from rune.lowering.costs.launch import Launch, number, shared_bytes, spread, typical_sizes
from rune.lowering.costs.occupancy import Occupancy, occupancy
from rune.lowering.costs.processors import Lanes, in_lanes
from rune.lowering.costs.reading import Block, Reader, Work, memory_of
from rune.lowering.costs.records import Cache, DeviceRecord
from rune.lowering.costs.registers import registers
from rune.lowering.costs.totals import Totals, totals
from rune.lowering.kernel.nodes import AddressSpace, Alloc, KernelCode
from rune.lowering.kernel.rewrite import walk
from rune.records import dataclass

OVERLAP = 1 / 8  # of the times of parts that do not bound
AHEAD = 4.0  # rounds whose loads wait together, since a compiler hoists loads
DEPENDENT_CYCLES = 2.0  # per instruction of a thread that runs alone; half of them wait for others
OF_PRODUCT = 128  # scalar operations per thread in one instruction of the matrix units
BARRIER_CYCLES = 30.0
SHARED_CYCLES = 30.0  # until a load from shared memory returns,
WRITTEN_OUT = 8.0  # the unrolled rounds at once (codegen/ahead.py)
# Cycles of a unit to start a group, and each of its subgroups. On an H100, and on an H200 with its
# faster memory, 65,536 groups that do little take 44 µs with 64 threads each, and 56 with 256.
START_CYCLES, START_SUBGROUP_CYCLES = 105.0, 6.0
SPILLED_REQUESTS = 2.0  # per register that a thread has too many: one store and one load


@dataclass(frozen=True, slots=True, repr=False)
class Cost:
    """What a launch costs.

    seconds:       predicted time, including the launch [s]
    parts:         the time of each part of the device, if it were the only one [s]
    bytes_through: bytes that each cache after the first serves, and memory, by name [B]
    flops:         scalar operations on floats, a multiply-add as two
    requests:      loads and stores of subgroups;  sectors: the mean that one of them touches
    registers, shared_bytes: of a thread, of a group
    groups, group_threads: of the launch; on a processor, points
    resident_groups: of a unit at the same time;  waves: how often all units are filled
    occupancy:     the resident threads of a unit as a share of the most that it holds
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
        """The part that takes the longest."""
        return max(self.parts, key=lambda name: self.parts[name])

    def __str__(self) -> str:
        groups = f"{self.groups} groups of {self.group_threads}" if self.group_threads > 1 else f"{self.groups} points"
        return (
            f"{self.name}: {1e6 * self.seconds:.1f} µs on {self.device}, bound by {self.bound}; "
            f"{groups}, {self.sectors:.1f} sectors a request, {self.registers} registers"
        )

    __repr__ = __str__


def cost(
    code: KernelCode, target: Target, record: DeviceRecord | None = None, sizes: Mapping[str, int] | None = None
) -> Cost:
    """What a launch of the kernel costs on a device.

    record: what the device can do; None for the table's record
    sizes:  values of symbolic sizes; each missing one counts with a typical value
    """
    record, numbers = record or record_of(target), typical_sizes(code, sizes)
    lanes = in_lanes(code, target) if record.is_processor else Lanes(code, frozenset(), 1, 1)
    return _Model(lanes.code, target, record, numbers, lanes).cost()


@dataclass(slots=True)
class _Model:
    code: KernelCode
    target: Target
    record: DeviceRecord
    sizes: Mapping[str, int]
    lanes: Lanes

    def cost(self) -> Cost:
        record, launch = self.record, spread(self.code, self.target, self.record, self.sizes)
        register_count, group_bytes = registers(self.code), shared_bytes(launch.head)
        fill = occupancy(launch, record, register_count, group_bytes)
        block = self._read(launch)
        sums = totals(block, record, self.lanes.registers)
        if not record.is_processor:
            spills = max(0, register_count - record.thread_registers)
            sums.request_cycles += SPILLED_REQUESTS * spills / record.cycle_requests
        prints = self._footprints()
        through = self._bytes_through(prints, block, launch, fill)
        traffic = self._with_starts(through, prints, block, launch, fill)
        parts = {**self._times_of_units(launch, sums), **self._times_of_memory(launch, traffic)}
        # A processor's core runs on while it waits for loads, and has no groups to start.
        if not record.is_processor:
            starts = START_CYCLES + START_SUBGROUP_CYCLES * _subgroups_of_group(launch, record)
            parts["starts"] = -(-launch.groups // record.units) * starts / record.clock_hz
            parts["latency"] = fill.waves * _chain(block, self._latency(launch, sums, through)) / record.clock_hz
        longest = max(parts.values())
        launching = 1e-9 * record.launch_ns
        return Cost(
            name=self.code.name,
            device=record.name,
            seconds=longest + OVERLAP * (sum(parts.values()) - longest) + launching,
            parts={**parts, "launch": launching},
            bytes_through=through,
            flops=sums.flops * _threads(launch, record),
            requests=sums.requests * _subgroups(launch, record),
            sectors=sums.sectors / sums.requests if sums.requests else 0.0,
            registers=register_count,
            shared_bytes=group_bytes,
            groups=launch.groups,
            group_threads=launch.group_threads,
            resident_groups=fill.groups,
            waves=fill.waves,
            occupancy=fill.share,
        )

    def _read(self, launch: Launch) -> Block:
        """What a thread does; on a processor, what all points do."""
        memory = memory_of(self.code)
        if self.record.is_processor:
            lanes = self.lanes
            reader = Reader(self.record, memory, self.sizes, self._neighbours, lanes.loops, lanes.count)
            return reader.block(self.code.body, sampling.of_processor(self.sizes))
        thread = dims.symbol(launch.threads[0].name, 0, launch.group_threads - 1) if launch.threads else 0
        reader = Reader(self.record, memory, self.sizes, self._neighbours, thread=thread)
        reader.origins.update((a.name, frozenset({a.name})) for a in (*launch.grid, *launch.threads))
        samples = sampling.of_launch(launch, self.record.subgroup_threads, self.sizes)
        return reader.block((*launch.head, *launch.body), samples)

    def _neighbours(self, dtype: np.dtype) -> int:
        """The most elements in one access of the target's language."""
        pieces = CUDA_C.pieces if self.target.language == "cuda" else {}
        return pieces.get(dtype, ("", 1))[1]

    # --- memory ------------------------------------------------------------------------------

    def _footprints(self) -> Footprints:
        bytes_of = {p.name: p.dtype.itemsize * number(p.size, self.sizes) for p in self.code.params}
        bytes_of |= {s.name: s.size * s.dtype.itemsize for s in walk(self.code.body) if isinstance(s, Alloc)}
        return Footprints(bytes_of, self.record.sector_bytes)

    def _with_starts(
        self, through: dict[str, float], prints: Footprints, block: Block, launch: Launch, fill: Occupancy
    ) -> dict[str, float]:
        """The bytes, plus the time, in bytes, of the starts where a walk continues elsewhere."""
        if not self.record.is_processor:
            return through
        starts = prints.starting(block, self.record.start_lines, self.lanes.registers)
        starting = self._bytes_through(starts, block, launch, fill)
        nearest = next(iter(through))  # which is filled in time, wherever a walk continues
        return {**starting, nearest: through[nearest]}

    def _bytes_through(self, prints: Footprints, block: Block, launch: Launch, fill: Occupancy) -> dict[str, float]:
        """The bytes that pass through each cache, by the name of what serves them."""
        servers = (*(c.name for c in self.record.caches[1:]), "memory")
        return {
            name: self._through(prints, cache, block, launch, fill)
            for name, cache in zip(servers, self.record.caches, strict=True)
        }

    def _through(self, prints: Footprints, cache: Cache, block: Block, launch: Launch, fill: Occupancy) -> float:
        if self.record.is_processor:
            total = prints.through(block, {}, Room(math.inf))
            # A shared cache that all of it fits into still has it from the kernels before.
            if cache.is_shared and total <= cache.capacity_bytes:
                return 0.0
            share = self.record.units if cache.is_shared else 1
            return prints.through(block, {}, Room(cache.capacity_bytes / share, cache.sets))
        if cache.is_shared:
            resident = launch.resident_extents(fill.groups * self.record.units)
            return prints.through(_in_waves(block, launch, resident), resident, Room(cache.capacity_bytes))
        # The groups of a unit are not consecutive, so they share nothing in its cache.
        capacity = cache.capacity_bytes / fill.groups - cache.holds_shared * shared_bytes(launch.head)
        return launch.groups * prints.through(block, launch.group_extents(), Room(capacity))

    # --- time --------------------------------------------------------------------------------

    def _times_of_units(self, launch: Launch, sums: Totals) -> dict[str, float]:
        """The time of the unit that has the most to do, for each of its parts. Units: s."""
        record = self.record
        products = sum(n for (_, subgroups), n in sums.products.items() if subgroups == 1) / OF_PRODUCT
        cycles = {
            "requests": sums.request_cycles,
            "instructions": (sums.instructions + sums.requests + products) / record.cycle_instructions,
            "special units": sums.special * record.subgroup_threads / record.special_operations,
            **{f"{dtypes.short(d)} units": n / self._rate(d) for d, n in sums.of_dtype.items()},
            **{f"{dtypes.short(d)} matrix units": n / self._matrix_rate(d, s) for (d, s), n in sums.products.items()},
        }
        if record.is_processor:
            cycles["sums"] = sums.waiting_cycles
        return {name: self._share(launch) * n / record.clock_hz for name, n in cycles.items()}

    def _share(self, launch: Launch) -> float:
        """Subgroups of the unit with the most of them; on a processor, its share of all points."""
        if self.record.is_processor:
            return 1 / min(self.record.units, max(1, launch.groups))
        return -(-launch.groups // self.record.units) * _subgroups_of_group(launch, self.record)

    def _rate(self, dtype: np.dtype) -> float:
        """Instructions of a subgroup, or on vectors of a processor, that a unit runs in a cycle."""
        if not self.record.is_processor:
            return self.record.rate(dtype) / self.record.subgroup_threads
        return self.record.rate(dtypes.f32) * dtypes.f32.itemsize / max(dtypes.f32.itemsize, self.target.vector_bytes)

    def _matrix_rate(self, dtype: np.dtype, subgroups: int) -> float:
        """Scalar operations per thread of a subgroup that the matrix units do in a cycle."""
        record = self.record
        share = record.matrix_share if subgroups == 1 else record.together_share
        peak = share * record.matrix_flops[dtype] / record.units
        return peak / record.clock_hz / record.subgroup_threads

    def _times_of_memory(self, launch: Launch, through: Mapping[str, float]) -> dict[str, float]:
        """Seconds for the bytes through each cache, and on the path to the busiest unit."""
        record = self.record
        rates = {c.name: c.rate for c in record.caches} | {"memory": record.memory_rate}
        times = {name: size / rates[name] for name, size in through.items()}
        share = -(-launch.groups // record.units) / max(1, launch.groups)
        path = share * next(iter(through.values())) / record.unit_cycle_bytes / record.clock_hz
        return {**times, "path to units": path}

    def _latency(self, launch: Launch, sums: Totals, through: Mapping[str, float]) -> float:
        """The mean cycles of a load, by how much comes from which distance."""
        record = self.record
        latencies = [*(c.latency_cycles for c in record.caches), record.memory_latency_cycles]
        requested_bytes = max(1.0, sums.sectors * _subgroups(launch, record) * record.sector_bytes)
        # Bytes from further away wait for the difference as well.
        shares = (min(1.0, size / requested_bytes) for size in through.values())
        return latencies[0] + sum(share * (b - a) for share, (a, b) in zip(shares, pairwise(latencies)))


def _chain(block: Block, latency: float) -> float:
    """The cycles of a thread that waits for everything it needs."""
    loads = [t for t in block.touches if not t.writes and t.share and t.space is None and not t.is_fetch]
    waits = 1 + max(t.depth for t in loads) if loads else 0
    # No compiler moves loads ahead of a barrier.
    is_ahead = block.rounds > 1 and not block.work.barriers
    cycles = waits * latency / (AHEAD if is_ahead else 1.0)
    if any(t.space is AddressSpace.SHARED and not t.writes for t in block.touches):
        cycles += SHARED_CYCLES / (WRITTEN_OUT if is_ahead else 1.0)
    cycles += DEPENDENT_CYCLES * sum(block.work.instructions.values()) + BARRIER_CYCLES * block.work.barriers
    cycles += sum(_chain(b, latency) for b in block.inner)
    # Barriers wait for the fetches of the round before, unless the round has taken long enough.
    if block.work.barriers and _fetches(block):
        cycles = max(cycles, latency)
    return block.rounds * block.share * cycles


def _fetches(block: Block) -> bool:
    return any(t.is_fetch for t in block.touches) or any(map(_fetches, block.inner))


def _in_waves(block: Block, launch: Launch, resident: Mapping[str, int]) -> Block:
    """The block of all resident threads, in loops over the rest of the grid."""
    for axis in reversed(launch.grid):
        rounds = -(-axis.extent // resident[axis.name])
        if rounds > 1:
            block = Block(axis.name, rounds, axis.extent, 1, 1.0, (), (block,), Work())
    return block


def _threads(launch: Launch, record: DeviceRecord) -> int:
    """The threads of a launch; one on a processor, which runs all points."""
    return 1 if record.is_processor else launch.points * (launch.group_threads if launch.threads else 1)


def _subgroups_of_group(launch: Launch, record: DeviceRecord) -> int:
    return -(-launch.group_threads // record.subgroup_threads)


def _subgroups(launch: Launch, record: DeviceRecord) -> int:
    return 1 if record.is_processor else launch.groups * _subgroups_of_group(launch, record)


__all__ = ["Cost", "cost"]
