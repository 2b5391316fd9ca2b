"""The pipeline: from a program to a plan, all stages and pass lists on one page.

    program -> decompose, simplify -> kernelize -> order -> build, optimise -> plan memory

Every arrow is a pure function between immutable values that print, parse and check themselves.
With `check`, each stage's value is checked, and after every pass as well: a failure names the
pass and shows the value before and after it. RUNE_DUMP=program,kernels prints chosen stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from time import perf_counter

from rune.core.check import check_program
from rune.core.lower import Rule
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.errors import ArgumentError
from rune.lowering import explain, extremes, factorisations, host_calls, late_modules, live, memory, messages, scatters
from rune.lowering.build import Built, build, build_by_default
from rune.lowering.build.schedule import parse
from rune.lowering.codegen.target import Target
from rune.lowering.decompose import decompose
from rune.lowering.explain import ASKED, DEFAULT, Lowered
from rune.lowering.kernel.check import check as check_code
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.rounds import require_few
from rune.lowering.kernel.text import to_text as code_text
from rune.lowering.kernelize import kernelize
from rune.lowering.kernels import Kernel, KernelProgram
from rune.lowering.legalize import parts, storage, units
from rune.lowering.legalize.clamps import clamp_upwards_first
from rune.lowering.legalize.contraction import separate_products
from rune.lowering.legalize.refuse import require_dtypes
from rune.lowering.optimize import eliminate_common as common_code
from rune.lowering.optimize import eliminate_dead as dead_code
from rune.lowering.optimize import hoist_invariant, short_rows, simplify_index, sum_in_blocks, unroll
from rune.lowering.optimize.vectorize import vectorize
from rune.lowering.order import with_steps_ordered
from rune.lowering.passes import Pass, fixpoint, nested, run_passes
from rune.lowering.plan import Plan
from rune.lowering.simplify import (
    chosen_writes,
    eliminate_common,
    eliminate_dead,
    fold_constants,
    hoist_loops,
    narrow,
    simplify_algebra,
)
from rune.lowering.sorting import expansions as sorting

# The loops that a search has found, if any, and where a kernel's come from.
Stored = Callable[[Kernel], tuple[Built | None, str]]


def no_winner(kernel: Kernel) -> tuple[Built | None, str]:
    """No search has found anything for any kernel."""
    return None, DEFAULT


def _expansions(target: Target) -> Mapping[Primitive, Rule]:
    """What a device does in place of the primitives' own expansions."""
    rooms = (sorting, extremes, factorisations)
    return {primitive: rule for room in rooms for primitive, rule in room.expansions(target).items()}


def program_passes(target: Target, *, reproducible: bool = True) -> tuple[Pass[Program], ...]:
    """The passes over programs for a target. reproducible: the same bits on every run."""
    return (
        # First: what nothing reads need not have a lowering.
        live.PASS,
        # Then: everything later sees only primitives with a lowering.
        Pass(
            "decompose",
            "inline nested programs, expand primitives, write loops",
            partial(
                decompose,
                routines=target.routines,
                scatters=partial(scatters.expansion, target, reproducible),
                expansions=_expansions(target),
                device=target.name,
            ),
        ),
        # Before they get an order, which would keep them apart.
        messages.PASS,
        # Before anything moves: what has side effects gets an order.
        host_calls.PASS,
        # Before anything is simplified: real programs are all that later passes know.
        parts.PASS,
        # Together: a folded constant makes laws apply, and a law makes equations equal.
        nested(fixpoint(fold_constants.PASS, simplify_algebra.PASS, narrow.PASS, eliminate_common.PASS)),
        # Once equal conditions are one, and before anything asks how often a loop's array is read.
        nested(chosen_writes.PASS),
        # Inner loops first, so that what they give up may leave the outer ones as well.
        nested(hoist_loops.PASS),
        # Last: all of them leave equations that nothing needs.
        nested(eliminate_dead.PASS),
    )


def kernel_passes(target: Target) -> tuple[Pass[KernelCode], ...]:
    """The passes over kernel code for a target."""
    return (
        # Before all others, which then share what the elements of a product have in common.
        units.write_out(target),
        # Then: later passes share what the bit expressions of several values have in common.
        storage.legalize_storage(target),
        # Before expressions are taken apart, which hides what is clamped twice.
        clamp_upwards_first(target),
        # Where the types are the target's own: what it does not fuse is two operations.
        separate_products(target),
        # Before indices are simplified: it writes new ones.
        sum_in_blocks.PASS,
        # Before indices are simplified: their copies know more of theirs.
        short_rows.PASS,
        unroll.PASS,
        # Then: what bounds decide disappears before anything is moved.
        simplify_index.PASS,
        # After that: values that loops do not change leave them, and equal ones are computed once.
        hoist_invariant.PASS,
        common_code.PASS,
        dead_code.PASS,
        # Last: it marks loops and changes nothing else.
        vectorize(target),
    )


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
    """Lower a program and keep every stage.

    schedules: how the loops of some kernels are laid out, by name, in the grammar of
               build/schedule.py
    stored:    what a search has found for a kernel; where it has nothing there is the default.
    Errors: ArgumentError for a kernel that there is not, and a schedule that one cannot have.
    """
    seconds: dict[str, float] = {}
    require_dtypes(program, target)
    with _timed(seconds, "simplified"):
        passes = program_passes(target, reproducible=reproducible)
        simplified = run_passes(passes, program, check_program if check else _accept)
    with _timed(seconds, "kernels"):
        kernels = with_steps_ordered(kernelize(simplified, target))
        if check:
            late_modules.kernels_check().check(kernels)
    with _timed(seconds, "code"):
        built = _built(kernels, target, schedules or {}, stored)
        codes = {name: optimised(b.code, target, check=check) for name, (b, _) in built.items()}
    with _timed(seconds, "plan"):
        plan = memory.plan_memory(kernels, codes, target.name, donated)
        plan = storage.kernel_types(parts.outer_types(plan, program))
        if check:
            late_modules.plan_types().check_types(plan)
            late_modules.plan_check().check_overlap(plan)
    chosen = {name: b.schedule for name, (b, _) in built.items()}
    origins = {name: origin for name, (_, origin) in built.items()}
    lowered = Lowered(program, simplified, kernels, chosen, origins, codes, plan, target, seconds)
    explain.dump(lowered)
    return lowered


def lower(program: Program, target: Target, donated: Sequence[int] = (), *, check: bool = False) -> Plan:
    """The plan of a program. Arguments are its inputs, then its constants.

    donated: numbers of arguments whose memory results may take over.
    """
    return stages(program, target, donated, check=check).plan


def optimised(code: KernelCode, target: Target, *, check: bool = False) -> KernelCode:
    """The loops of a kernel after all passes. Errors: DeviceError for too many rounds."""
    accept = check_code if check else _accept
    accept(code)
    code = run_passes(kernel_passes(target), code, accept, code_text)
    require_few(code, target)
    return code


def _built(
    kernels: KernelProgram, target: Target, schedules: Mapping[str, str], stored: Stored
) -> dict[str, tuple[Built, str]]:
    """The loops of each kernel, and where its schedule comes from."""
    unknown = [name for name in schedules if name not in kernels.kernels]
    if unknown:
        names = ", ".join(kernels.kernels) or "none"
        raise ArgumentError(f"schedule: cannot find the kernel {unknown[0]!r} of {kernels.name} (it has: {names})")
    asked = {name: parse(text) for name, text in schedules.items()}

    def built(kernel: Kernel) -> tuple[Built, str]:
        if kernel.name in asked:
            return Built(asked[kernel.name], build(kernel, asked[kernel.name], target)), ASKED
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
