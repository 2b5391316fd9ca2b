"""Explain: the value of each stage of a lowering, and its costs, without running anything.

`Lowered` has the value after every stage, so that it can be printed, drawn, or checked again. Costs
are functions of the sizes if these are symbolic.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rune.core.graph import Graph
from rune.core.program import Program
from rune.dims import Size
from rune.errors import ArgumentError
from rune.lowering import late_modules
from rune.lowering.build.schedule import Schedule
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.text import to_text as code_text
from rune.lowering.kernels import KernelProgram
from rune.lowering.kernels_text import program_text
from rune.lowering.plan import Plan
from rune.lowering.steps import StepCost, numbered, step_costs, total
from rune.profiling import counted
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.lowering.costs import Cost

STAGES = ("program", "simplified", "kernels", "schedules", "code", "plan", "costs")
PREDICTIONS = "predictions"  # of times: not a stage, since it follows from the code and the device
GRAPHS = ("program", "simplified", "kernels", "plan")  # stages that can be drawn
# Where the schedule of a kernel comes from.
DEFAULT, ASKED, STORED = "default", "asked for", "winner of a search"
DUMP = "RUNE_DUMP"  # environment variable: stages to print, as in RUNE_DUMP=program,kernels


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of one run of a plan."""

    launches: Size  # kernels started
    calls: Size  # library routines called
    copies: Size
    bytes_moved: Size  # read and written by all steps [B]
    flops: Size  # scalar operations, a multiply-add as two
    arena_bytes: Size  # memory for intermediate values [B]
    live_peak_bytes: Size  # the most that is alive at once [B]


@dataclass(frozen=True, slots=True, repr=False)
class Lowered:
    """Every stage of one lowering, for a target.

    seconds: by the name of a stage. origins: where schedules come from, by kernel.
    """

    program: Program
    simplified: Program
    kernels: KernelProgram
    schedules: Mapping[str, Schedule]
    origins: Mapping[str, str]
    codes: Mapping[str, KernelCode]
    plan: Plan
    target: Target
    seconds: Mapping[str, float]

    def text(self, stage: str) -> str:
        """One stage as text."""
        match stage:
            case "program":
                return str(self.program)
            case "simplified":
                return str(self.simplified)
            case "kernels" | "kernel":
                return program_text(self.kernels)
            case "schedules":
                return "\n".join(f"{name}: {s}  # {self.origins[name]}" for name, s in self.schedules.items())
            case "code":
                return "\n".join(map(code_text, self.codes.values()))
            case "plan":
                return late_modules.plan_text().to_text(self.plan, codes=False)
            case "costs":
                return f"{costs_text(self.costs())}\n{steps_text(self.steps())}"
            case "predictions":
                return "\n".join(map(str, self.predictions().values()))
        names = ", ".join((*STAGES, PREDICTIONS, "source", "runners-up"))
        raise ArgumentError(f"explain: cannot show {stage!r} (stages: {names})")

    def graph(self, stage: str) -> Graph:
        """One stage as a graph."""
        match stage:
            case "program":
                return self.program.graph()
            case "simplified":
                return self.simplified.graph()
            case "kernels":
                return late_modules.graphs().kernels_graph(self.kernels)
            case "plan":
                return late_modules.graphs().plan_graph(self.plan)
        raise ArgumentError(f"explain: cannot draw {stage!r} (stages: {', '.join(GRAPHS)})")

    def predictions(self) -> dict[str, Cost]:
        """The predicted cost of a launch of each kernel, by the figures of the device."""
        cost = late_modules.costs().cost
        return {name: cost(code, self.target) for name, code in self.plan.kernels.items()}

    def steps(self) -> tuple[StepCost, ...]:
        """The cost of each step of the plan."""
        return step_costs(self.kernels, self.plan)

    def costs(self) -> Costs:
        """The costs of one run."""
        return costs(self.steps(), self.plan)

    def __repr__(self) -> str:
        return f"Lowered({self.plan!r})"

    def __str__(self) -> str:
        return "\n".join(f"-- {stage}{self._time(stage)}\n{self.text(stage)}" for stage in STAGES)

    def _time(self, stage: str) -> str:
        seconds = self.seconds.get(stage)
        return "" if seconds is None else f"  ({1e3 * seconds:.1f} ms)"


def dump(lowering: Lowered) -> None:
    """Print to stderr the stages that RUNE_DUMP names."""
    for stage in filter(None, os.environ.get(DUMP, "").split(",")):
        print(f"-- {stage}\n{lowering.text(stage.strip())}", file=sys.stderr)


# --- costs ------------------------------------------------------------------------------------


def costs(steps: Sequence[StepCost], plan: Plan) -> Costs:
    """The costs of one run of a plan, from those of its steps."""
    return Costs(
        launches=total(s.launches for s in steps),
        calls=total(s.calls for s in steps),
        copies=total(s.copies for s in steps),
        bytes_moved=total(s.bytes_moved for s in steps),
        flops=total(s.flops for s in steps),
        arena_bytes=plan.arena_bytes,
        live_peak_bytes=plan.live_peak_bytes,
    )


def costs_text(costs: Costs) -> str:
    """`2 kernels, 1 call, 0 copies; 256 bytes moved, ...`, and memory on a second line."""
    counts = ((costs.launches, "kernel"), (costs.calls, "call"), (costs.copies, "copy"))
    return (
        f"{', '.join(counted(*c) for c in counts)}; "
        f"{costs.bytes_moved} bytes moved, {costs.flops} operations\n"
        f"arena {costs.arena_bytes} bytes, {costs.live_peak_bytes} alive at once"
    )


def steps_text(steps: Sequence[StepCost]) -> str:
    """A line for each step: number, name, bytes read and written, operations."""
    rows = [("", "step", "bytes read", "written", "operations")]
    rows += [(number, s.name, str(s.bytes_read), str(s.bytes_written), str(s.flops)) for number, s in numbered(steps)]
    return "\n".join(_aligned(rows))


def _aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Rows with aligned columns: the first two to the left, amounts to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(c.ljust(w) if n < 2 else c.rjust(w) for n, (c, w) in enumerate(cells))


__all__ = ["GRAPHS", "STAGES", "Costs", "Lowered", "costs", "costs_text", "dump"]
