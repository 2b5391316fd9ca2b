"""A plan as one LLVM module: its kernels, `@run` over all steps, and Python's entry point.

    @run(ptr words)                           every step, in order (steps.py)
    @entry(ptr self, ptr argv, i64 count)     a CPython function of arrays: checks, then @run; for
                                              plans of symbolic sizes, and plans that check for
                                              signals (entry.py)

Cached calls go directly to `@run` (calls/), after checks of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rune.backends.cpu import compiler, kinds_of_calls, steps
from rune.backends.cpu.costs import cost_of
from rune.backends.cpu.crew.messages import SILENT, Talk
from rune.backends.cpu.entry import entry
from rune.backends.cpu.host import Host
from rune.backends.cpu.libraries import DOT, STRIDED_DOT
from rune.backends.cpu.module import Module, task_name
from rune.backends.cpu.scratch import Scratch, behind
from rune.backends.cpu.signature import Signature
from rune.dims import Size
from rune.lowering.codegen.llvm.ir.names import identifier
from rune.lowering.codegen.llvm.render import Rendered, render_in
from rune.lowering.factors import ROUTINES as FACTORS
from rune.lowering.lanes.layout import Layout, layout, one_by_one
from rune.lowering.plan import Branch, Call, Loop, Plan, all_steps
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Rendering:
    """The module's text, and that of each kernel."""

    text: str
    kernels: Mapping[str, str]
    cost: float | None = None  # estimated instructions; None if sizes or data decide
    has_entry: bool = True  # if not, it uses a shared one (array_checks.py, draft_entry.py)
    gives_up: bool = False  # whether a loop may end early (drafts.py)
    arena_bytes: Size = 0  # including work arrays (scratch.py)


Kernels = Mapping[str, Rendered]
Layouts = Mapping[str, Layout]
_CALLBACK, _TRANSFORM = "callback", "line_fft"


def layouts_of(plan: Plan, host: Host) -> Layouts:
    """The lanes of each kernel."""
    return {name: layout(code, host.machine.vector_bytes) for name, code in plan.kernels.items()}


def draft_layouts(plan: Plan, layouts: Layouts) -> Layouts:
    """The same with loops in lanes only where these order sums."""
    return {name: one_by_one(code, layouts[name]) for name, code in plan.kernels.items()}


def render_kernels(plan: Plan, host: Host) -> Kernels:
    """The kernels of a plan as IR."""
    return render_in_lanes(plan, host, layouts_of(plan, host))


def render_in_lanes(plan: Plan, host: Host, layouts: Layouts) -> Kernels:
    """The kernels of a plan as IR, in these lanes."""
    codes = {name: replace(code, name=f"kernel.{name}") for name, code in plan.kernels.items()}
    return {name: render_in(layouts[name], code, host.machine) for name, code in codes.items()}


def render_plan(plan: Plan, host: Host, kernels: Kernels) -> Rendering:
    """The plan as IR, with its kernels.

    Errors: CompileError for routines that the CPU does not have.
    """
    # First, so that routines are compiled together, and not one by one as steps need them.
    compile_routines(plan, host)
    scratch = _scratch_of(plan, host)
    module = Module(plan, host, kernels, talk_of(plan), scratch)
    steps.write_run(module)
    declarations = module.declarations.union(*(k.declarations for k in kernels.values()))
    # Sorted, because the text is part of the key of the code on disk.
    tasks = [_task(plan, name, kernels[name]) for name in sorted(module.split)]
    sources = {name: k.text for name, k in kernels.items()}
    has_entry = bool(plan.size_sources) or module.asks
    parts = [*module.functions, *([entry(plan, host.abi, module.asks, module.gives_up)] if has_entry else [])]
    parts += [] if host.clock is None else [host.clock.text()]
    text = "\n\n".join(["\n".join(sorted(declarations)), *sources.values(), *tasks, *parts])
    arena_bytes = plan.arena_bytes if scratch is None else scratch.first + scratch.bytes
    return Rendering(text, sources, _cost(plan, kernels), has_entry, module.gives_up, arena_bytes)


def _scratch_of(plan: Plan, host: Host) -> Scratch | None:
    routines, sizes = routines_of(plan), []
    if _CALLBACK in routines:
        sizes.append(kinds_of_calls.library_calls().scratch_bytes(plan, host.cores))
    if _TRANSFORM in routines:
        sizes.append(kinds_of_calls.transforms().scratch_bytes(plan, host.cores))
    return behind(plan, sizes)


def routines_of(plan: Plan) -> frozenset[str]:
    """The routines that a plan calls."""
    return frozenset(step.routine for step in all_steps(plan) if isinstance(step, Call))


def calls_others(plan: Plan) -> bool:
    """Whether a plan calls code whose cost is unknown: Python, LAPACK, transforms."""
    return bool(routines_of(plan) & {_CALLBACK, _TRANSFORM})


def compile_routines(plan: Plan, host: Host) -> None:
    """Compile all routines that a plan calls, those of one kind in one module."""
    routines, libraries = routines_of(plan), host.libraries
    if routines & {DOT, STRIDED_DOT}:
        kinds_of_calls.dots().compile_dots(plan, host)
    if _TRANSFORM in routines:
        kinds_of_calls.transforms().compile_transforms(plan, libraries.transform)
    if routines & {*FACTORS}:
        kinds_of_calls.factors().compile_factors(plan, libraries.factors)


def talk_of(plan: Plan) -> Talk:
    """The messages of a plan to other devices."""
    return kinds_of_calls.talks().talk_of(plan) if _CALLBACK in routines_of(plan) else SILENT


def calls_python(plan: Plan) -> bool:
    """Whether a step of the plan is a Python function."""
    return _CALLBACK in routines_of(plan) and kinds_of_calls.library_calls().calls_python(plan)


def signature_of(plan: Plan, rendering: Rendering) -> Signature:
    """The signature of a plan."""
    sizes = rendering.arena_bytes, plan.size_sources
    how = rendering.cost, calls_python(plan), rendering.has_entry, rendering.gives_up
    return Signature(plan.name, plan.arguments, plan.results, *sizes, plan.donations, *how)


def compiled(plan: Plan, host: Host, kernels: Kernels) -> tuple[Rendering, compiler.Code]:
    """The module of a plan as text and as machine code. Errors: CompileError, OutOfMemory."""
    rendering = render_plan(plan, host, kernels)
    return rendering, compiler.compile_module(plan.name, rendering.text, host.effort)


def _cost(plan: Plan, kernels: Kernels) -> float | None:
    has_loops = any(isinstance(step, Loop | Branch) for step in plan.steps)
    return None if plan.size_sources or has_loops else cost_of(plan.steps, kernels)


def _task(plan: Plan, name: str, kernel: Rendered) -> str:
    """A kernel as a task of the pool: its operands are in one array of words."""
    code = plan.kernels[name]
    types = ["ptr"] * len(code.params) + ["i64"] * len(code.sizes)
    lines, operands = [], []
    for k, type in enumerate(types):
        lines.append(f"  %a{k} = getelementptr i64, ptr %words, i64 {k}")
        lines.append(f"  %w{k} = load {type}, ptr %a{k}")
        operands.append(f"{type} %w{k}")
    # The pool counts from 0; the last word is the index at which this part of the kernel begins.
    lines += [f"  %a{len(types)} = getelementptr i64, ptr %words, i64 {len(types)}"]
    lines += [f"  %first = load i64, ptr %a{len(types)}"]
    lines += ["  %from = add i64 %first, %begin", "  %to = add i64 %first, %end"]
    operands += ["i64 %from", "i64 %to"]
    task = task_name(name)
    head = f"define internal void @{task}(ptr %words, i64 %begin, i64 %end) #0 {{"
    call = f"  call void @{identifier(kernel.name)}({', '.join(operands)})"
    return "\n".join([head, *lines, call, "  ret void", "}"])
