"""Plans whose code LLVM has made in a hurry, until their calls are worth its effort.

What LLVM makes at its lowest effort gives the same numbers to the bit (but for the sign of NaN,
which IEEE 754 leaves open), up to three times as slowly (products of matrices eight times), and
is there in half of the time: the better bargain for a plan that runs for milliseconds, since many
are called once. The code is made again, with effort, when native code is to make the calls, which
are many then, or when the calls have taken as long as that may take.

Invariant: only plans whose work is known begin as drafts, since a `while` may run for hours. A plan
that is measured, or runs beside others, is compiled with effort at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Self

from rune import locks
from rune.backends.cpu import compiler
from rune.backends.cpu.costs import cost_of
from rune.backends.cpu.host import Host
from rune.backends.cpu.plan import Kernels, Rendering, render_kernels
from rune.backends.cpu.run import CpuExecutable, Form, Prepared, compiled, entry_of
from rune.backends.shared.protocol import Buffer
from rune.backends.shared.work import Work
from rune.errors import OutOfMemory
from rune.lowering.factors import factor_of, is_factor
from rune.lowering.kernelize.walks import SIZES
from rune.lowering.plan import Branch, Call, Loop, Plan, Step

MOST_WORK = 5e6  # estimated instructions of a draft, one or two milliseconds
PATIENCE = 0.01  # that calls of a draft may take together [s]
_FLOP_COST = 1 / 8  # of products and factorisations


def draft_cost(steps: Sequence[Step], kernels: Kernels) -> float:
    """What a run costs in a hurry; infinite where sizes or data decide. Units: instructions."""
    return sum(_step_cost(step, kernels) for step in steps)


def _step_cost(step: Step, kernels: Kernels) -> float:
    match step:
        case Loop():
            return draft_cost(step.body.steps, kernels) * (step.count if isinstance(step.count, int) else math.inf)
        case Branch():
            return max(draft_cost(plan.steps, kernels) for plan in step.branches)
        case Call(routine="dot" | "strided_dot"):
            sizes = [size for name, size in step.parameters if name in SIZES]
            return _FLOP_COST * math.prod(n if isinstance(n, int) else math.inf for n in (2, *sizes))
        case Call() if is_factor(step):
            return _FLOP_COST * factor_of(step).flops
        case Call():
            return 0.0  # code of others, or of transforms, which is as fast
        case _:
            cost = cost_of([step], kernels)
            return math.inf if cost is None else cost


class DraftExecutable(CpuExecutable):
    """A compiled plan whose code is a draft at first, if the plan is short."""

    when_refined: Callable[[Self], object] | None = None  # is told once

    def _compiled(self, plan: Plan, host: Host) -> tuple[Rendering, compiler.Code]:
        self._host, kernels = host, render_kernels(plan, host)
        is_short = not self.talk.messages and draft_cost(plan.steps, kernels) <= MOST_WORK
        draft = host.of_effort(compiler.HURRY if is_short else compiler.EFFORT)
        return compiled(plan, replace(draft, call_back=host.call_back), kernels)

    def _begin(self, form: Form, code: compiler.Code, host: Host, work: Work) -> None:
        super()._begin(form, code, host, work)
        if self.is_draft:
            self._draft, self._seconds = code, 0.0
            self._refining = locks.reentrant()  # a handler of signals may call the same plan
            del self._call  # the class has one that looks at the clock

    @property
    def is_draft(self) -> bool:
        """Whether calls run code that was made in a hurry."""
        return self.code.effort == compiler.HURRY

    def _call(self, *arrays: Buffer) -> int:
        """Run the draft, and replace it when its calls have taken long enough."""
        begin = perf_counter()
        answer = self.native.call(*arrays)
        self._seconds += perf_counter() - begin
        if self._seconds > PATIENCE:
            self.refine()
        return answer

    def for_native_calls(self, arguments: Sequence[Buffer]) -> Prepared | None:
        """The plan for calls by native code, which are many: with the code that stays."""
        self.refine()
        return super().for_native_calls(arguments)

    def refine(self) -> None:
        """Have the code that stays; without the memory to make it, the draft stays."""
        if not self.is_draft:
            return
        with self._refining:
            if self.is_draft:
                self._refine()

    def _refine(self) -> None:
        plan, host = self.plan, self._host
        try:
            _, code = compiled(plan, host, render_kernels(plan, host))
        except OutOfMemory:
            self._seconds = 0.0  # it is tried again later
            return
        # Other threads may be in the draft, which lives as long as this.
        self.native, self.code = entry_of(self.form, code, host.abi), code
        self._call = self.native.call
        if self.when_refined is not None:
            self.when_refined(self)
