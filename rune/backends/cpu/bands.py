"""Writes bands: one function that runs all steps for some entries, for the worker pool.

@band.k(ptr words, i64 begin, i64 end)
    for block of entries in begin..end { every step, for this block }

The words are the addresses of all slots, then the first entry of this part of the band. Memory that
only passes values between steps of the band is that of the task's first block for all blocks: it
stays in the cache, and no other task uses it. Products call the routine for one entry each, which
runs alone, as the pool is busy with the band.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from rune.backends.cpu import pulse
from rune.backends.cpu.band import Band, is_even
from rune.backends.cpu.dots import write_entry
from rune.backends.cpu.frames import in_memory, read
from rune.backends.cpu.host import Host
from rune.backends.cpu.module import Module
from rune.backends.cpu.watch import Watch
from rune.dims import Size
from rune.lowering.arena import type_bytes
from rune.lowering.bands import Extent, bands_of_plan, extent_of
from rune.lowering.codegen.llvm.ir.names import identifier, pointer_to
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.codegen.llvm.render import Rendered
from rune.lowering.kernelize.walks import SIZES
from rune.lowering.plan import Call, Launch, Plan, Slot, Space, Step, slots_of
from rune.lowering.steps import slots_read, slots_written

BLOCK_BYTES = 1 << 19  # that pass between steps in one block: part of a second-level cache
PART_OPERATIONS = 1 << 31  # between two checks for signals, on each core: some 20 ms


class Run(Protocol):
    """The function that calls a band."""

    module: Module
    writer: Writer

    def pointer(self, slot: Slot) -> Value:
        """The address of a slot."""
        ...

    def hear(self) -> None:
        """Check for signals."""
        ...


# --- where ------------------------------------------------------------------------------------


def in_bands(plan: Plan, host: Host, kernels: Mapping[str, Rendered]) -> Sequence[Step | Band]:
    """The steps of a plan, those of bands together if this processor gains from it."""
    items: list[Step | Band] = []
    number = 0
    for place in bands_of_plan(plan):
        steps, entries = plan.steps[place.first : place.end], place.entries
        # With uneven shares the slowest core would cost more than a band saves (decision 0108).
        if is_even(entries, host.cores) and all(_is_divided(step, entries, kernels) for step in steps):
            band = Band(steps, entries, _passing(plan, place.first, place.end))
            items += [*plan.steps[number : place.first], band]
            number = place.end
    return [*items, *plan.steps[number:]]


def _is_divided(step: Step, entries: int, kernels: Mapping[str, Rendered]) -> bool:
    outer = kernels[step.kernel].outer if isinstance(step, Launch) else entries
    return isinstance(outer, int) and outer % entries == 0


def _passing(plan: Plan, first: int, end: int) -> frozenset[Slot]:
    """The slots in the arena that a band writes, and that nobody reads after it."""
    steps, later = plan.steps[first:end], plan.steps[end:]
    arena = [s for step in steps for s in slots_written(plan, step) if s.space is Space.ARENA]
    written = {place for s in arena if (place := extent_of(s, {})) is not None}
    # What another step reads later has to lie in its own place for every entry.
    dead = {place for place in written if not _is_read(place, plan, later)}
    return frozenset(s for step in steps for s in slots_of(step) if extent_of(s, {}) in dead)


def _is_read(place: Extent, plan: Plan, steps: Iterable[Step]) -> bool:
    """Whether some step reads this memory before another one has written all of it."""
    for step in steps:
        sources = [extent_of(slot, {}) for slot in slots_read(plan, step)]
        if any(source is None or place.meets(source) for source in sources):
            return True
        targets = [extent_of(slot, {}) for slot in slots_written(plan, step)]
        if any(t is not None and t.meets(place) and t.start <= place.start and place.end <= t.end for t in targets):
            return False
    return False


# --- code -------------------------------------------------------------------------------------


def write_band(run: Run, band: Band) -> None:
    """Call the function of a band, for as many entries at a time as take a short time."""
    module, writer = run.module, run.writer
    name = f"band.{len(module.functions)}"
    slots = list(dict.fromkeys(slot for step in band.steps for slot in slots_of(step)))
    module.add(f"internal void @{name}(ptr %words, i64 %begin, i64 %end)", _Entries(module, band, slots).write())
    words = [run.pointer(slot) for slot in slots]
    part, cores = _entries_of_part(band, module.host.cores), module.host.cores

    def run_part(first: Value) -> None:
        total = writer.call("i64", "@llvm.umin.i64", first.like(band.entries) - first, first.like(part))
        task = f"ptr @{name}, ptr {in_memory(writer, [*words, first]).text}"
        if cores == 1:
            writer.do(f"call void @{name}({task.split(', ')[1]}, i64 0, i64 {total.text})")
        else:
            chunk = total.ceil_div(cores)
            pool = pointer_to(module.host.parallel())
            writer.do(f"call void {pool}({task}, i64 {total.text}, i64 {chunk.text})")
        # A band of two milliseconds or less leaves the check to other steps.
        if pulse.is_available() and _operations(band.steps) * band.entries >= PART_OPERATIONS // 8:
            run.hear()

    end = -(-band.entries // part) * part
    writer.count_up(writer.constant("i64", 0), writer.constant("i64", end), part, run_part)


def _entries_of_part(band: Band, cores: int) -> int:
    share = max(1, PART_OPERATIONS // _operations(band.steps))
    return min(share * cores, band.entries)


def _operations(steps: Iterable[Step]) -> int:
    """Multiplications of the products of one entry."""
    calls = [dict(step.parameters) for step in steps if isinstance(step, Call)]
    return sum(math.prod(n for n in map(p.get, SIZES[1:]) if isinstance(n, int)) for p in calls)


class _Entries:
    """Writes the function of a band; for products, the run of one block of entries."""

    def __init__(self, module: Module, band: Band, slots: Sequence[Slot]):
        self.module, self.band, self.slots = module, band, slots
        self.writer = Writer(block="start")
        self.words = Value(self.writer, "ptr", "%words")
        self.first = read(self.words, "i64", len(slots))
        self.task = self.first + Value(self.writer, "i64", "%begin")  # its first entry
        self.begin = self.task  # of the block

    def write(self) -> Writer:
        """The function over begin..end."""
        writer = self.writer
        begin, end = (Value(writer, "i64", name) for name in ("%begin", "%end"))
        entry_bytes = sum({(s.offset, b): b for s in self.band.passing for b in [self.bytes(s)]}.values())
        size = max(1, BLOCK_BYTES // max(entry_bytes, 1))

        def block(number: Value) -> None:
            offset = number * size
            length = writer.call("i64", "@llvm.umin.i64", end - begin - offset, offset.like(size))
            self.begin = self.task + offset
            for step in self.band.steps:
                self.step(step, self.begin, self.begin + length)

        blocks = (end - begin).ceil_div(size)
        writer.count_up(writer.constant("i64", 0), blocks, 1, block)
        writer.do("ret void")
        return writer

    def step(self, step: Step, begin: Value, end: Value) -> None:
        """A step for the entries of a block."""
        if isinstance(step, Launch):
            kernel = self.module.kernels[step.kernel]
            assert isinstance(kernel.range, int)
            units = kernel.range // self.band.entries
            operands = ", ".join(f"ptr {self.pointer(slot).text}" for slot in step.slots)
            limits = f"i64 {(begin * units).text}, i64 {(end * units).text}"
            self.writer.do(f"call void @{identifier(kernel.name)}({operands}, {limits})")
        else:
            assert isinstance(step, Call)
            self.writer.count_up(begin, end, 1, lambda entry: write_entry(self, step, entry))

    def bytes(self, slot: Slot) -> int:
        """Bytes of one entry of a slot [B]."""
        count = type_bytes(slot.type)
        assert isinstance(count, int)
        return count // self.band.entries

    def pointer(self, slot: Slot) -> Value:
        """Where a slot would begin if the entries of this block had places of their own."""
        start = read(self.words, "ptr", self.slots.index(slot))
        if slot not in self.band.passing:
            return start
        return self.writer.item(start, "i8", (self.task - self.begin) * self.bytes(slot))

    def size(self, size: Size) -> Value:
        """A size, which is a number in a band."""
        assert isinstance(size, int)
        return self.writer.constant("i64", size)

    def watch(self, operations: Size) -> Watch:
        """No watch: signals are checked between parts of the band."""
        return Watch(Value(self.writer, "ptr", "null"), lambda _: None)
