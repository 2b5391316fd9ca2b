"""A whole plan as one LLVM module: its kernels, `@run` over all steps, and Python's entry point.

    @run(ptr words)                           every step, in order (steps.py)
    @entry(ptr self, ptr argv, i64 count)     a CPython function of arrays: checks, then @run; for
                                              plans of open sizes, and those that hear signals
                                              (entry.py)

Calls of kinds that were met before come to `@run` at once (calls/), when all has been checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rune.backends.cpu import steps
from rune.backends.cpu.costs import cost_of
from rune.backends.cpu.crew.talk import talk_of
from rune.backends.cpu.dots import compile_dots
from rune.backends.cpu.entry import entry
from rune.backends.cpu.factors import compile_factors
from rune.backends.cpu.host import Host
from rune.backends.cpu.spectra import scratch_of
from rune.backends.cpu.transforms import compile_transforms
from rune.dims import Size
from rune.lowering.codegen.llvm import Rendered, render
from rune.lowering.codegen.llvm_names import identifier
from rune.lowering.plan import Branch, Loop, Plan
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Rendering:
    """The module's text, and that of each kernel."""

    text: str
    kernels: Mapping[str, str]
    cost: float | None = None  # estimated instructions; None where sizes or data decide
    has_entry: bool = True  # or the one of all plans of fixed sizes serves (array_checks.py)
    arena_bytes: Size = 0  # with work arrays (spectra.py)


Kernels = Mapping[str, Rendered]


def render_kernels(plan: Plan, host: Host) -> Kernels:
    """The kernels of a plan as IR."""
    return {name: render(replace(code, name=f"kernel.{name}"), host.machine) for name, code in plan.kernels.items()}


def render_plan(plan: Plan, host: Host, kernels: Kernels) -> Rendering:
    """The whole plan as IR, around its kernels.

    Errors: CompileError for what the cpu does not have.
    """
    compile_dots(plan, {"dot": host.dot, "strided_dot": host.strided_dot})
    compile_transforms(plan, host.transform)
    compile_factors(plan, host.factors)
    scratch = scratch_of(plan, host.cores)
    module = steps.Module(plan, host, kernels, talk_of(plan), scratch)
    steps.write_run(module)
    declared = module.declared.union(*(k.declarations for k in kernels.values()))
    tasks = [_task(plan, name, kernels[name]) for name in sorted(module.split)]
    sources = {name: k.text for name, k in kernels.items()}
    has_entry = bool(plan.size_sources) or module.asks
    parts = [*module.functions, *([entry(plan, host.abi, module.asks)] if has_entry else [])]
    parts += [] if host.clock is None else [host.clock.text()]
    text = "\n\n".join(["\n".join(sorted(declared)), *sources.values(), *tasks, *parts])
    arena_bytes = plan.arena_bytes if scratch is None else scratch.first + scratch.bytes
    return Rendering(text, sources, _cost(plan, kernels), has_entry, arena_bytes)


def _cost(plan: Plan, kernels: Kernels) -> float | None:
    has_loops = any(isinstance(step, Loop | Branch) for step in plan.steps)
    return None if plan.size_sources or has_loops else cost_of(plan.steps, kernels)


def _task(plan: Plan, name: str, kernel: Rendered) -> str:
    """A kernel behind one pointer: an array of its pointers and sizes."""
    code = plan.kernels[name]
    types = ["ptr"] * len(code.params) + ["i64"] * len(code.sizes)
    lines, operands = [], []
    for k, type in enumerate(types):
        lines.append(f"  %a{k} = getelementptr i64, ptr %words, i64 {k}")
        lines.append(f"  %w{k} = load {type}, ptr %a{k}")
        operands.append(f"{type} %w{k}")
    # The pool counts from 0, and a part of the kernel begins where the last word says.
    lines += [f"  %a{len(types)} = getelementptr i64, ptr %words, i64 {len(types)}"]
    lines += [f"  %first = load i64, ptr %a{len(types)}"]
    lines += ["  %from = add i64 %first, %begin", "  %to = add i64 %first, %end"]
    operands += ["i64 %from", "i64 %to"]
    task = steps.task_name(name)
    head = f"define internal void @{task}(ptr %words, i64 %begin, i64 %end) #0 {{"
    call = f"  call void @{identifier(kernel.name)}({', '.join(operands)})"
    return "\n".join([head, *lines, call, "  ret void", "}"])
