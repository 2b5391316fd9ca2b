"""Arenas with guards between their values.

The offsets of a plan are moved apart: values that share memory still share it, and others no longer
touch. After each value, and before the first, are bytes that no kernel may write, or pages that no
kernel may even read. Plans with symbolic offsets stay as they are.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rune.backends.cpu.host import Host
from rune.backends.cpu.run import CpuExecutable
from rune.backends.shared import host_memory
from rune.backends.shared.work import Work
from rune.dims import Size
from rune.lowering.arena import ALIGNMENT, type_bytes
from rune.lowering.plan import Branch, Call, Copy, Launch, Loop, Plan, Slot, Space, Step, slots_of
from tests.support.guarded_memory import CANARY, MARK, PAGE, Guards

# Bytes of an arena whose values are moved apart; with canaries, small ones, which no test counts.
MOST_BYTES = {Guards.CANARIES: host_memory.LARGE_BYTES - 1, Guards.AFTER: 1 << 26, Guards.BEFORE: 1 << 26}
_WORD = 8  # bytes of the largest element, to which ends are aligned

Ranges = list[tuple[int, int]]


class _Symbolic(Exception):
    """An offset or a size is known only in a call."""


@dataclass
class _Layout:
    """Where values go: the bytes in use so far, and their end."""

    guards: Guards
    end: int = 0
    used: Ranges = field(default_factory=list)

    def place(self, nbytes: int) -> int:
        """The offset for this many bytes, after the values placed so far and a guard."""
        if self.guards is Guards.CANARIES:
            start = -(-self.end // ALIGNMENT) * ALIGNMENT + CANARY
        else:
            start = -(-self.end // PAGE) * PAGE + PAGE
        if self.guards is Guards.AFTER:
            words = -(-nbytes // _WORD)
            start += -words * _WORD % PAGE
        self.end = start + nbytes
        self.used.append((start, self.end))
        return start

    @property
    def total(self) -> int:
        """Bytes of the arena, with a guard at its end."""
        unit, guard = (ALIGNMENT, CANARY) if self.guards is Guards.CANARIES else (PAGE, PAGE)
        return -(-self.end // unit) * unit + guard


def spread(plan: Plan, guards: Guards) -> tuple[Plan, Ranges]:
    """The plan with its values apart, and the gaps between; unchanged if that is impossible."""
    layout = _Layout(guards)
    try:
        spread_plan = _relocated_plan(plan, layout)
    except _Symbolic:
        return plan, []
    if not spread_plan.arena_bytes or layout.total > MOST_BYTES[guards]:
        return plan, []
    spread_plan = replace(spread_plan, arena_bytes=layout.total)
    ends = [0, *(end for _, end in layout.used)]
    starts = [*(start for start, _ in layout.used), layout.total]
    return spread_plan, [(a, b) for a, b in zip(ends, starts, strict=True) if a < b]


def _relocated_plan(plan: Plan, layout: _Layout) -> Plan:
    """The plan at new offsets; inner plans are moved as parts of the outer arena."""
    sizes: dict[Size, int] = {}
    for slot in (s for step in plan.steps for s in slots_of(step) if s.space is Space.ARENA):
        offset, nbytes = slot.offset, type_bytes(slot.type)
        if not isinstance(offset, int) or not isinstance(nbytes, int):
            raise _Symbolic
        sizes[offset] = max(sizes.get(offset, 0), nbytes)
    places = {offset: layout.place(nbytes) for offset, nbytes in sizes.items()}

    def at(slot: Slot) -> Slot:
        in_arena = slot.space is Space.ARENA
        return replace(slot, offset=places[slot.offset]) if in_arena else slot

    steps = tuple(_moved_step(step, at, layout) for step in plan.steps)
    return replace(plan, steps=steps, arena_bytes=layout.total if layout.used else 0)


def _moved_step(step: Step, at: Callable[[Slot], Slot], layout: _Layout) -> Step:
    def each(slots: Sequence[Slot]) -> tuple[Slot, ...]:
        return tuple(map(at, slots))

    match step:
        case Launch():
            return replace(step, slots=each(step.slots))
        case Call():
            return replace(step, outputs=each(step.outputs), inputs=each(step.inputs))
        case Copy():
            return replace(step, target=at(step.target), source=at(step.source))
        case Loop():
            condition = None if step.condition is None else _relocated_plan(step.condition, layout)
            return replace(
                step,
                arguments=each(step.arguments),
                results=each(step.results),
                offset=0,
                holds=None if step.holds is None else at(step.holds),
                condition=condition,
                body=_relocated_plan(step.body, layout),
            )
        case Branch():
            branches = tuple(_relocated_plan(b, layout) for b in step.branches)
            return replace(
                step,
                number=at(step.number),
                arguments=each(step.arguments),
                results=each(step.results),
                branches=branches,
                offset=0,
            )


@dataclass
class GuardedArenas:
    """The arenas of one executable, and the gaps that no kernel may have written."""

    gaps: Ranges
    arenas: list[np.ndarray]

    def damaged(self) -> list[tuple[int, int]]:
        """The gaps in which a byte has changed."""
        return [(a, b) for arena in self.arenas for a, b in self.gaps if (arena[a:b] != MARK).any()]


def guard_arenas(guards: Guards, executables: list[GuardedArenas]) -> None:
    """Give all executables such arenas, and add each executable's to `executables`."""
    begin, new_arena = CpuExecutable.__init__, CpuExecutable.new_arena

    def begin_apart(self: CpuExecutable, plan: Plan, host: Host, work: Work) -> None:
        # A clock identifies the steps by their identity.
        spread_plan, gaps = spread(plan, guards) if host.clock is None else (plan, [])
        begin(self, spread_plan, host, work)
        vars(self)["gaps"] = gaps  # its copies for other devices have them, too
        if guards is Guards.CANARIES and gaps:
            executables.append(GuardedArenas(gaps, self._arenas))

    def guarded_arena(self: CpuExecutable, nbytes: int) -> np.ndarray:
        gaps = vars(self).get("gaps", [])
        if gaps and guards is not Guards.CANARIES:
            return _arena_of_pages(nbytes, gaps)
        arena = new_arena(self, nbytes)
        for a, b in gaps:
            arena[a:b] = MARK
        return arena

    CpuExecutable.__init__, CpuExecutable.new_arena = begin_apart, guarded_arena


def _arena_of_pages(nbytes: int, gaps: Ranges) -> np.ndarray:
    """Memory whose pages that lie entirely in gaps cannot be accessed."""
    arena = np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)
    library = ctypes.CDLL(None, use_errno=True)
    for a, b in gaps:
        first, last = -(-a // PAGE) * PAGE, b // PAGE * PAGE
        if first < last:
            address = ctypes.c_void_p(arena.ctypes.data + first)
            code = library.mprotect(address, ctypes.c_size_t(last - first), 0)
            assert code == 0, f"mprotect: errno {ctypes.get_errno()}"
    return arena
