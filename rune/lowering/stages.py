"""The stages of a lowering, applied in order: from a program to a plan.

    program -> decompose, simplify -> kernelize -> order -> build, optimise -> plan memory

lowering/pipeline.py has the passes of each stage, and the reasons for their order. With `check`,
the value is checked after each stage and after every pass: a failure names the pass and shows the
value before and after it. RUNE_DUMP=program,kernels prints these stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter

from rune.core.check import checker
from rune.core.program import Program
from rune.errors import ArgumentError
from rune.lowering import explain, late_modules, memory, pipeline
from rune.lowering.build import Built, build, build_by_default
from rune.lowering.build.schedule import parse
from rune.lowering.codegen.target import Target
from rune.lowering.explain import ASKED, DEFAULT, Lowered
from rune.lowering.kernel.check import checker as code_checker
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.rounds import require_few
from rune.lowering.kernel.text import to_text as code_text
from rune.lowering.kernelize import kernelize
from rune.lowering.kernels import Kernel, KernelProgram
from rune.lowering.legalize import slot_types
from rune.lowering.legalize.refuse import require_dtypes
from rune.lowering.order import with_steps_ordered
from rune.lowering.passes import Pass, run_passes
from rune.lowering.plan import Plan

# The loops that a search has found for a kernel, if any, and the origin of its schedule.
Stored = Callable[[Kernel], tuple[Built | None, str]]


def no_winner(kernel: Kernel) -> tuple[Built | None, str]:
    """No search has found anything for any kernel."""
    return None, DEFAULT


def stages(
    program: Program,
    target: Target,
    donated: Sequence[int] = (),
    *,
    schedules: Mapping[str, str] | None = None,
    stored: Stored = no_winner,
    check: bool = False,
    reproducible: bool = True,
) -> Lowered:
    """Lower a program, with the value of every stage.

    schedules: for some kernels by name, in the grammar of build/schedule.py
    stored:    the loops that a search has found for a kernel; without any, the default is used
    Errors: ArgumentError for a name that no kernel has, or a schedule that the kernel cannot have.
    """
    seconds: dict[str, float] = {}
    require_dtypes(program, target)
    with _timed(seconds, "simplified"):
        passes = pipeline.program_passes(target, reproducible=reproducible)
        simplified = run_passes(passes, program, checker() if check else _accept)
    with _timed(seconds, "kernels"):
        kernels = with_steps_ordered(kernelize(simplified, target))
        if check:
            late_modules.kernels_check().check(kernels)
    with _timed(seconds, "code"):
        loops = _built(kernels, target, schedules or {}, stored)
        kernel_passes = pipeline.kernel_passes(target)
        codes = {name: _through(kernel_passes, b.code, target, check=check) for name, (b, _) in loops.items()}
    with _timed(seconds, "plan"):
        plan = memory.plan_memory(kernels, codes, target.name, donated)
        plan = slot_types.kernel_types(slot_types.outer_types(plan, program))
        if check:
            late_modules.plan_types().check_types(plan)
            late_modules.plan_check().check_overlap(plan)
    kernel_schedules = {name: b.schedule for name, (b, _) in loops.items()}
    origins = {name: origin for name, (_, origin) in loops.items()}
    lowering = Lowered(program, simplified, kernels, kernel_schedules, origins, codes, plan, target, seconds)
    explain.dump(lowering)
    return lowering


def lower(program: Program, target: Target, donated: Sequence[int] = (), *, check: bool = False) -> Plan:
    """The plan of a program. Arguments are its inputs, then its constants.

    donated: numbers of arguments whose memory results may take over.
    """
    return stages(program, target, donated, check=check).plan


def optimised(code: KernelCode, target: Target, *, check: bool = False) -> KernelCode:
    """The loops of a kernel after all passes. Errors: DeviceError for too many rounds."""
    return _through(pipeline.kernel_passes(target), code, target, check=check)


def _through(passes: Sequence[Pass[KernelCode]], code: KernelCode, target: Target, *, check: bool) -> KernelCode:
    accept = code_checker() if check else _accept
    accept(code)
    code = run_passes(passes, code, accept, code_text)
    require_few(code, target)
    return code


def _built(
    kernels: KernelProgram, target: Target, schedules: Mapping[str, str], stored: Stored
) -> dict[str, tuple[Built, str]]:
    """The loops of each kernel, and the origin of its schedule."""
    unknown = [name for name in schedules if name not in kernels.kernels]
    if unknown:
        names = ", ".join(kernels.kernels) or "none"
        raise ArgumentError(f"schedule: cannot find the kernel {unknown[0]!r} of {kernels.name} (it has: {names})")
    requests = {name: parse(text) for name, text in schedules.items()}

    def built(kernel: Kernel) -> tuple[Built, str]:
        if kernel.name in requests:
            return Built(requests[kernel.name], build(kernel, requests[kernel.name], target)), ASKED
        winner, origin = stored(kernel)
        return winner or build_by_default(kernel, target), origin

    return {name: built(kernel) for name, kernel in kernels.kernels.items()}


def _accept(value: object) -> None:
    """Check nothing."""


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    start = perf_counter()
    yield
    seconds[stage] = perf_counter() - start
