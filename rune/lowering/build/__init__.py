"""Build: from a kernel to loops, as a schedule says.

Accesses become flat (flatten); axes that every access walks as one are merged (collapse). Then come
the steps of the schedule: axes change places or are merged (order, merge); reductions are cut into
parts (parts); transpositions walk squares (squares), which groups of threads turn in shared memory
(turn); points compute several vectors of columns or several rows (vectors, rows), or for dots both
(tile, remainders). Groups read the operands of a dot into shared memory (stage, panels), also ahead
of time (buffers, twice), and multiply on units for matrices (units, teams). The domain becomes GRID
loops, and statements become loops within them (loops); the threads of a group share a point
(workgroups, barriers). A legal schedule (legal) keeps all values. The default schedule is chosen by
figures for each kind of device (heuristics, tile_choice, stage_choice, units_choice, teams_choice,
share_choice).

Invariant: the code computes what the kernel does, with sums in any order.
Cost: linear in the size of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rune.errors import ArgumentError
from rune.lowering import late_modules
from rune.lowering.build import loops
from rune.lowering.build.accesses import apart
from rune.lowering.build.aliases import alias_pairs
from rune.lowering.build.collapse import collapse_domain
from rune.lowering.build.flatten import flatten
from rune.lowering.build.heuristics import choices
from rune.lowering.build.lanes import ordered_loops
from rune.lowering.build.merge import merged
from rune.lowering.build.order import reordered
from rune.lowering.build.parts import choose_parts, parted
from rune.lowering.build.remainders import tiled
from rune.lowering.build.rows import choose_rows, in_rows
from rune.lowering.build.schedule import PLAIN, Schedule, Share
from rune.lowering.build.squares import choose_lines, choose_squares, squared
from rune.lowering.build.tile import tiled_domain
from rune.lowering.build.tile_choice import choose_tile
from rune.lowering.build.vectors import choose_lines as choose_line_vectors
from rune.lowering.build.vectors import choose_neighbours, choose_vectors, with_vectors
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import KernelCode, Kind, Stmt
from rune.lowering.kernel.rewrite import names_bound
from rune.lowering.kernel.rounds import are_few
from rune.lowering.kernels import Axis, Kernel, Stream
from rune.lowering.kernels_text import kernel_sizes
from rune.lowering.written import code_of, kernel_params
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Built:
    """The loops of a kernel, and the schedule by which they were built."""

    schedule: Schedule
    code: KernelCode


def build(kernel: Kernel, schedule: Schedule, target: Target) -> KernelCode:
    """The loops of a kernel for a target, as a schedule says.

    Errors: ArgumentError for a schedule that the kernel cannot have, with the step and the reason.
    """
    fixed_code = _fixed(kernel, target)
    if fixed_code is not None:
        if schedule != PLAIN:
            why = "a stream, or written as loops: no schedule lays it out"
            raise ArgumentError(f"schedule: cannot apply {schedule} to {kernel.name} ({why})")
        return fixed_code
    flat = flat_kernel(kernel)
    late_modules.legal_schedules().require_legal(flat, schedule, target)
    flat = rewritten(flat, schedule)
    domain, point = _points(flat, schedule)
    code = _code(kernel, flat, domain, point, schedule.share, target)
    return code if schedule.lanes is None else replace(code, scalar_loops=ordered_loops(code, schedule.lanes))


def build_by_default(kernel: Kernel, target: Target) -> Built:
    """The loops of a kernel for a target, by the schedule that is expected to be fast there."""
    code = _fixed(kernel, target)
    if code is not None:
        return Built(PLAIN, code)
    flat = flat_kernel(kernel)
    schedule = _default_walk(flat, target)
    flat = rewritten(flat, schedule)
    domain, point = _points(flat, schedule)
    if schedule.has_groups and not are_few(point, target):
        # The driver would silently end such long loops; threads that share a point have shorter
        # ones, and panels cannot be combined with that.
        schedule = Schedule(tile=choose_tile(flat, target))
        domain, point = _points(flat, schedule)
    if choices(target).has_groups and not schedule.has_groups:
        schedule = replace(schedule, share=late_modules.groups().choose_share(point, domain, schedule, target))
    return Built(schedule, _code(kernel, flat, domain, point, schedule.share, target))


def has_schedules(kernel: Kernel) -> bool:
    """Whether a schedule lays out the kernel's loops: not if they are given, nor for a stream."""
    return not kernel.code and not any(isinstance(s, Stream) for s in kernel.body)


def _fixed(kernel: Kernel, target: Target) -> KernelCode | None:
    """The loops that no schedule lays out."""
    if has_schedules(kernel):
        return None
    if kernel.code:
        return code_of(kernel)
    # A stream adds up before its peak is known, and has barriers of its own.
    flat = flatten(kernel)
    body = late_modules.streams().build_stream(flat, target)
    return KernelCode(kernel.name, kernel_params(kernel), tuple(kernel_sizes(kernel)), body, alias_pairs(flat))


def flat_kernel(kernel: Kernel) -> Kernel:
    """The kernel with flat accesses and as few axes as they allow, to which schedules refer."""
    return collapse_domain(flatten(kernel))


def rewritten(flat: Kernel, schedule: Schedule) -> Kernel:
    """The kernel after the first steps of a schedule, those from a kernel to a kernel."""
    if schedule.order is not None:
        flat = reordered(flat, schedule.order)
    if schedule.merge is not None:
        flat = merged(flat, schedule.merge)
    return flat if schedule.parts is None else parted(flat, schedule.parts)


def _default_walk(flat: Kernel, target: Target) -> Schedule:
    """The default schedule, without threads that share a point: they depend on its code."""
    choice, item = choices(target), _widest(flat)
    # The kernel gets the first form that it fits, so the most particular forms come first.
    squares = choose_squares(flat, choice.square_side, choice.square_lanes)
    if squares is not None:
        return choose_lines(flat, squares, target) or Schedule(squares=squares)
    if choice.turned_side and (turning := late_modules.groups().turning(flat, choice.turned_side, target)):
        return turning
    if lines := choose_line_vectors(flat, target):
        return Schedule(vectors=lines)
    lanes = choice.column_lanes or max(1, target.vector_bytes // item)
    vectors = choose_vectors(flat, lanes, choice.columns, target.cores * choice.column_points)
    # The threads of a GPU are its lanes: each reads neighbours at once in place of whole vectors.
    if vectors is None and choice.access_bytes:
        vectors = choose_neighbours(flat, choice.access_bytes, target.cores * choice.full_threads // 2)
    if vectors is not None:
        return Schedule(vectors=vectors)
    if choice.row_lanes > 1 and (rows := choose_rows(flat, target.cores * choice.full_threads * choice.row_lanes)):
        return Schedule(rows=rows)
    tile = choose_tile(flat, target)
    # The sums of a tile already stand side by side, so parts are for other reductions.
    if tile is None:
        parts = choose_parts(flat, choice.parts)
        if parts is not None:
            return Schedule(parts=parts)
    staging = late_modules.groups().staging(flat, target) if choice.has_groups else None
    return staging or Schedule(tile=tile)


def _points(flat: Kernel, schedule: Schedule) -> tuple[list[Axis], list[Stmt]]:
    """The axes of the grid, and what one of its points does."""
    output_dtypes = {b.name: b.type.dtype for b in flat.outputs}
    if schedule.squares is not None:
        return squared(flat, schedule.squares)
    if schedule.has_groups:
        return late_modules.groups().points(flat, schedule, output_dtypes)
    if schedule.tile is not None:
        return tiled_domain(flat, schedule.tile), tiled(flat, schedule.tile, output_dtypes)
    if schedule.vectors is not None:
        flat = with_vectors(flat, schedule.vectors)
    if schedule.rows is not None:
        flat = in_rows(flat, schedule.rows)
    point = loops.body(flat.body, loops.row_sizes(flat.body), output_dtypes)
    # Neighbours of one thread load first and compute later, so that their accesses can join.
    if schedule.vectors is not None and (schedule.vectors.lanes == 1 or schedule.vectors.neighbours > 1):
        point = list(apart(point, {a.name for a in flat.domain} | names_bound(point)))
    return list(flat.domain), point


def _code(
    kernel: Kernel, flat: Kernel, domain: Sequence[Axis], point: Sequence[Stmt], share: Share | None, target: Target
) -> KernelCode:
    """The code of a kernel: a point, or what the threads of a group do for it, within the grid."""
    divided_loops = None
    if share is not None:
        domain, point, divided_loops = late_modules.groups().shared(flat, domain, point, share, target)
    body = loops.nest(domain, [Kind.GRID] * len(domain), point)
    sizes = tuple(kernel_sizes(kernel))
    code = KernelCode(kernel.name, kernel_params(kernel), sizes, tuple(body), alias_pairs(flat))
    # Staged tiles have their barriers where they fill and read panels.
    return code if divided_loops is None else late_modules.groups().insert_barriers(code, divided_loops)


def _widest(kernel: Kernel) -> int:
    """Bytes of the widest element that the kernel reads or writes."""
    return max(b.type.dtype.itemsize for b in (*kernel.inputs, *kernel.outputs))
