"""Explain: what each stage of a lowering holds, and what it costs. Values and text, no running.

`Lowered` keeps the value after every stage, so that it can be printed, drawn, or checked again.
Costs are exact for static sizes and typical for symbolic ones.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rune.core.program import Literal, Program
from rune.dims import Size, product
from rune.lowering.kernel.expr import Op
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.rewrite import walk_expr
from rune.lowering.kernel.text import to_text as code_text
from rune.lowering.kernelize import cost
from rune.lowering.kernels import Invoke, KernelProgram, Reduce, Routine, expressions, points
from rune.lowering.kernels_text import program_text
from rune.lowering.memory import type_bytes
from rune.lowering.plan import Call, Copy, Launch, Plan, Slot
from rune.lowering.plan_text import slot_text
from rune.lowering.plan_text import to_text as plan_text

STAGES = ("program", "simplified", "kernels", "code", "plan")
DUMP = "RUNE_DUMP"  # environment variable: stages to print, as in RUNE_DUMP=program,kernels


@dataclass(frozen=True, slots=True)
class Costs:
    """What one run of the plan costs."""

    launches: int  # kernels started
    calls: int  # library routines called
    copies: int
    bytes_moved: Size  # read and written by all steps [B]
    flops: Size  # scalar operations, a multiply-add as two
    arena_bytes: Size  # memory for intermediate values [B]
    live_peak_bytes: Size  # the most that is alive at once [B]


@dataclass(frozen=True, slots=True)
class Lowered:
    """Every stage of one lowering. `seconds` by stage name."""

    program: Program
    simplified: Program
    kernels: KernelProgram
    codes: Mapping[str, KernelCode]
    plan: Plan
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
            case "code":
                return "\n".join(map(code_text, self.codes.values()))
            case "plan":
                return plan_text(self.plan, codes=False)
        raise ValueError(f"explain: cannot show {stage!r} (stages: {', '.join(STAGES)})")

    def costs(self) -> Costs:
        """What one run costs."""
        return costs(self.kernels, self.plan)

    def __str__(self) -> str:
        parts = [f"-- {stage}{self._time(stage)}\n{self.text(stage)}" for stage in STAGES]
        found = self.costs()
        parts.append(
            f"-- costs\n{found.launches} kernels, {found.calls} calls, {found.copies} copies, "
            f"{found.bytes_moved} bytes moved, {found.flops} operations, "
            f"arena {found.arena_bytes} bytes"
        )
        return "\n".join(parts)

    def _time(self, stage: str) -> str:
        seconds = self.seconds.get(stage)
        return "" if seconds is None else f"  ({1e3 * seconds:.1f} ms)"


def dump(lowered: Lowered) -> None:
    """Print to stderr the stages that RUNE_DUMP names."""
    for stage in filter(None, os.environ.get(DUMP, "").split(",")):
        print(f"-- {stage}\n{lowered.text(stage.strip())}", file=sys.stderr)


# --- costs ------------------------------------------------------------------------------------


def costs(program: KernelProgram, plan: Plan) -> Costs:
    """What one run of a plan costs."""
    kinds = [type(step) for step in plan.steps]
    return Costs(
        kinds.count(Launch),
        kinds.count(Call),
        kinds.count(Copy),
        _total(map(type_bytes, (s.type for step in plan.steps for s in _slots(step)))),
        _total(_flops(program, step) for step in program.steps),
        plan.arena_bytes,
        plan.live_peak_bytes,
    )


def _total(sizes: Iterable[Size]) -> Size:
    total: Size = 0
    for size in sizes:
        total = total + size
    return total


def _slots(step: Launch | Call | Copy) -> tuple[Slot, ...]:
    match step:
        case Launch(slots=slots):
            return slots
        case Call(outputs=outputs, inputs=inputs):
            return (*outputs, *inputs)
        case Copy(target=target, source=source):
            return (target, source)


def _flops(program: KernelProgram, step: Invoke | Routine) -> Size:
    if isinstance(step, Routine):
        sizes = dict(step.parameters)
        return 2 * product(sizes[name] for name in ("batch", "m", "n", "k"))
    kernel = program.kernels[step.kernel]
    outer, total = points(kernel.domain), 0
    for statement in kernel.body:
        inner = points(getattr(statement, "axes", ()))
        operations = sum(
            isinstance(part, Op) for e in expressions(statement) for part in walk_expr(e)
        )
        total = total + outer * inner * (operations + isinstance(statement, Reduce))
    return total


# --- graphs -----------------------------------------------------------------------------------


def _graph(name: str, lines: Iterable[str]) -> str:
    return "\n".join([f'digraph "{name}" {{', *(f"  {line}" for line in lines), "}"])


def _node(name: str, label: str, shape: str = "box") -> str:
    text = label.replace('"', "'").replace("\n", "\\n")
    return f'{name} [label="{text}", shape={shape}];'


def program_dot(program: Program) -> str:
    """The program as a graphviz graph: equations, and the values between them."""
    makers = {v: f"e{n}" for n, e in enumerate(program.equations) for v in e.results}
    lines: list[str] = []
    for number, var in enumerate((*program.inputs, *(v for v, _ in program.constants))):
        makers[var] = f"i{number}"
        lines.append(_node(f"i{number}", str(var.type), "ellipse"))
    for number, equation in enumerate(program.equations):
        lines.append(_node(f"e{number}", equation.primitive.name))
        for atom in equation.operands:
            if not isinstance(atom, Literal):
                lines.append(f'{makers[atom]} -> e{number} [label="{atom.type}"];')
    for number, atom in enumerate(program.outputs):
        lines.append(_node(f"o{number}", str(atom.type), "ellipse"))
        if not isinstance(atom, Literal):
            lines.append(f"{makers[atom]} -> o{number};")
    return _graph(program.name, lines)


def kernels_dot(program: KernelProgram) -> str:
    """The steps of a kernel program as a graph over values; reasons label unfused edges."""
    why = {(n.value, n.consumer): n.why for n in program.not_fused}
    lines = [_node(f"v{v.number}", f"{v}: {v.type}", "ellipse") for v in program.inputs]
    for number, step in enumerate(program.steps):
        name = step.kernel if isinstance(step, Invoke) else f"call {step.routine}"
        lines.append(_node(f"s{number}", name))
        for value in step.results:
            lines.append(_node(f"v{value.number}", f"{value}: {value.type}", "ellipse"))
            lines.append(f"s{number} -> v{value.number};")
        for value in step.operands:
            reason = why.get((value, name), "")
            lines.append(f'v{value.number} -> s{number} [label="{reason}"];')
    return _graph(program.name, dict.fromkeys(lines))


def plan_dot(plan: Plan) -> str:
    """The steps of a plan in order, each with the memory that it touches."""
    lines = []
    for number, step in enumerate(plan.steps):
        name = step.kernel if isinstance(step, Launch) else type(step).__name__.lower()
        touched = "\n".join(slot_text(s) for s in _slots(step))
        lines.append(_node(f"s{number}", f"{number}: {name}\n{touched}"))
        if number:
            lines.append(f"s{number - 1} -> s{number};")
    return _graph(plan.name, lines)


__all__ = [
    "Costs", "Lowered", "cost", "costs", "dump", "kernels_dot", "plan_dot", "program_dot",
]  # fmt: skip
