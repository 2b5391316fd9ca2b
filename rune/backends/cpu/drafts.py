"""Drafts: plans compiled at LLVM's lowest effort at first, and again once they are called often.

Code of the lowest effort computes the same bits (except for the sign of NaN, which IEEE 754 leaves
open), up to three times as slowly (matrix products eight times), and takes half as long to compile:
better for a plan that runs for milliseconds, because many plans are called once. The plan is
compiled again at full effort when native code is to make its calls, since these are many, or when
its calls have taken about as long as that compilation.

A draft runs on one core: compiling the pool of threads takes as long as a draft may run. Only
library routines, LAPACK and Fourier transforms, may take longer, and use all cores.

A `while` may run for hours. In a draft it gives up after as many steps as a draft may take (a share
of them in each round of a loop around it), and the final code begins the run again, which is
correct because a run has no side effects.

The final code of a long text takes seconds. There even many calls wait for it until they have taken
half as long with the draft.

Invariant: only plans whose work is known, except for such loops, begin as drafts. A plan that is
profiled, or runs in a crew, is compiled at full effort at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Self

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.draft_entry import draft_entry
from rune.backends.cpu.host import Host
from rune.backends.cpu.host_abi import GAVE_UP
from rune.backends.cpu.run import CpuExecutable, Entry, NativePlan, entry_of, plans
from rune.backends.cpu.signature import Signature
from rune.backends.shared.protocol import Buffer
from rune.backends.shared.work import Work
from rune.errors import OutOfMemory
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.backends.cpu.plan import Layouts, Rendering
    from rune.lowering.codegen.llvm.render import Rendered
    from rune.lowering.plan import Plan


# Costs of plans, imported for the first one that is compiled.
_costs = locks.late_module("rune.backends.cpu.costs")


class DraftExecutable(CpuExecutable):
    """A compiled plan whose code is a draft at first, if the plan is short."""

    code_host: Host  # for which the code is compiled: the entire device, or one core
    when_refined: Callable[[Self], object] | None = None  # called once, with the executable
    _kernels: Callable[[], Mapping[str, Rendered]]  # of the final code, as text
    _origin: Self | None = None  # the executable that this one is on another device

    def _compiled(self, plan: Plan, host: Host) -> tuple[Rendering, compiler.Code]:
        self._host, layouts = host, plans().layouts_of(plan, host)
        self._kernels = functools.cache(partial(plans().render_in_lanes, plan, host, layouts))
        self.code_host = self._host_for(plan, layouts)
        kernels = self.kernels_of_code(plan, layouts)
        return plans().compiled(plan, replace(self.code_host, call_back=host.call_back), kernels)

    def kernels_of_code(self, plan: Plan, layouts: Layouts) -> Mapping[str, Rendered]:
        """The kernels as text, with few loops in lanes for a draft that is short even so."""
        if self.code_host.effort == conventions.HURRY:
            one_by_one = plans().draft_layouts(plan, layouts)
            if _costs().is_short_one_by_one(plan, one_by_one, self._host.machine):
                return plans().render_in_lanes(plan, self._host, one_by_one)
        return self._kernels()

    def _host_for(self, plan: Plan, layouts: Layouts) -> Host:
        """The host for which the first code of a plan is compiled."""
        costs, host = _costs(), self._host
        # A crew refines its parts before it runs them, so their drafts would be made in vain.
        if self.talk.messages or costs.draft_cost(plan, layouts, host.machine) > costs.MOST_WORK:
            return host
        draft = host.of_effort(conventions.HURRY)
        return draft if plans().calls_others(plan) else draft.on_one_core()

    def _begin(self, signature: Signature, code: compiler.Code, host: Host, work: Work) -> None:
        super()._begin(signature, code, host, work)
        if self.is_draft:
            self._draft, self._seconds = code, 0.0
            self._refining = locks.reentrant()  # a signal handler may call the same plan
            del self._call  # uncovers the method of the class, which measures the draft's time

    def entry_into(self, signature: Signature, code: compiler.Code, host: Host) -> Entry:
        """The entry into the code. A draft's is in Python: it is called too seldom to compile
        one."""
        if code.effort == conventions.HURRY and not signature.has_entry:
            return draft_entry(signature, code.address("run"))
        return super().entry_into(signature, code, host)

    @property
    def is_draft(self) -> bool:
        """Whether calls run code of the lowest effort."""
        return self.code.effort == conventions.HURRY

    def _call(self, *arrays: Buffer) -> int:
        """Run the draft, unless its calls have taken long enough in all to replace it."""
        if self._seconds > self.patience:  # not at the end of the call, which may be the last
            self.refine()
            return self.native.call(*arrays)
        begin = perf_counter()
        answer = self.native.call(*arrays)
        if answer == GAVE_UP:
            self.refine()
            return self.native.call(*arrays)
        self._seconds += perf_counter() - begin
        return answer

    @property
    def patience(self) -> float:
        """The seconds that calls of the draft may take in all, before better code is worth its
        time."""
        return self._compile_time / 2 if self.is_waiting else conventions.PATIENCE

    @property
    def _compile_time(self) -> float:
        """The seconds that better code is expected to take."""
        return conventions.BYTE * len(self.code.binary)

    @property
    def is_waiting(self) -> bool:
        """Whether the draft makes calls itself, however many: better code takes long."""
        return self.is_draft and self._compile_time > conventions.LONG

    def __call__(self, arguments: Sequence[Buffer], donated: Sequence[int] = ()) -> list[Buffer]:
        """Run the plan. Errors: those of any plan; OutOfMemory if the final code cannot be
        compiled."""
        if donated and self.signature.gives_up:
            self.refine()  # a run that gave up may have overwritten a donated argument
        return super().__call__(arguments, donated)

    def for_native_calls(self, arguments: Sequence[Buffer]) -> NativePlan | None:
        """The plan for calls by native code, which are many: with the final code."""
        if self.is_waiting:
            return None
        self.refine()
        return super().for_native_calls(arguments)

    def refine(self) -> None:
        """Replace a draft by the final code. If memory is too short for LLVM, the draft stays.

        Errors: OutOfMemory if the draft may give up.
        """
        if not self.is_draft:
            return
        with self._refining:
            if self.is_draft:
                self._refine()

    def on(self, work: Work) -> Self:
        """The same code with its arenas, counted as work of another device. It is refined once for
        all devices."""
        twin = super().on(work)
        twin._origin = self._origin or self
        return twin

    def _refine(self) -> None:
        if self._origin is not None:
            self._follow(self._origin)
            return
        plan, host = self.plan, self._host
        try:
            rendering, code = plans().compiled(plan, host, self._kernels())
        except OutOfMemory:
            if self.signature.gives_up:
                raise
            self._seconds = 0.0  # so that it is tried again later
            return
        self._rendering = lambda: rendering
        self._replace(plans().signature_of(plan, rendering), code, host)
        if self.when_refined is not None:
            self.when_refined(self)

    def _follow(self, origin: Self) -> None:
        """Make calls run the final code of another device."""
        origin.refine()
        if origin.is_draft:
            self._seconds = 0.0  # memory was too short, so that it is tried again later
            return
        self.native, self.code, self.code_host = origin.native, origin.code, origin.code_host
        self._rendering = origin._rendering
        self._call = self.native.call

    def _replace(self, signature: Signature, code: compiler.Code, host: Host) -> None:
        """Make calls run this code.

        Other threads may be inside the draft, which lives as long as this object, or may have
        allocated memory for it. So the code is replaced before the layout, and gets another arena
        if theirs is too small.
        """
        entry: Entry = entry_of(signature, code, host.abi)
        # An earlier process may have lowered the program differently.
        if self.signature.arena_bytes != signature.arena_bytes:
            assert isinstance(signature.arena_bytes, int), "a plan of open sizes has no draft"
            entry = _WithArena(entry, signature.arena_bytes, self.new_arena)
        self.native, self.code, self.code_host = entry, code, host
        self._call = entry.call
        self.lay_out(signature)


@dataclass(frozen=True, slots=True)
class _WithArena:
    """An entry that replaces an arena of too few bytes."""

    entry: Entry
    nbytes: int
    new_arena: Callable[[int], Buffer]

    def call(self, *arrays: Buffer) -> int:
        *others, arena = arrays
        return self.entry.call(*others, arena if arena.size >= self.nbytes else self.new_arena(self.nbytes))
