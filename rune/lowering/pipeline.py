"""The pipeline: every pass from a program to loops, in order, each with the reason for its place.

    program -> program_passes -> kernelize -> order -> build -> kernel_passes -> plan memory

Every arrow is a pure function between immutable values that print, parse and check themselves;
lowering/stages.py applies them. Any order of passes keeps every value; this order pays best.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial

from rune.core.lower import Rule
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.lowering import call_order, extremes, factorisations, late_modules, live, messages, sorting
from rune.lowering.codegen.target import Target
from rune.lowering.decompose import decompose
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.legalize import pairs, storage, units
from rune.lowering.legalize.clamps import clamp_upwards_first
from rune.lowering.legalize.contraction import separate_products
from rune.lowering.optimize import eliminate_common as common_code
from rune.lowering.optimize import eliminate_dead as dead_code
from rune.lowering.optimize import (
    hoist_invariant,
    join_rounds,
    short_rows,
    simplify_index,
    split_sums,
    sum_in_blocks,
    unroll,
)
from rune.lowering.optimize.vectorize import vectorize
from rune.lowering.passes import Pass, fixpoint, nested
from rune.lowering.simplify import (
    chosen_writes,
    constant_carries,
    eliminate_common,
    eliminate_dead,
    fold_constants,
    hoist_loops,
    narrow,
    repeated_products,
    simplify_algebra,
    single_writes,
    summed_products,
)


def program_passes(target: Target, *, reproducible: bool = True) -> tuple[Pass[Program], ...]:
    """The passes over programs for a target. reproducible: the same bits on every run."""
    return (
        # First: equations that nothing reads need no lowering.
        live.PASS,
        # Before a device expands scatters. Inner programs first: their constants are in them.
        nested(single_writes.PASS),
        # Then: everything later sees only primitives with a lowering.
        Pass(
            "decompose",
            "inline nested programs, expand primitives, write loops",
            partial(
                decompose,
                routines=target.routines,
                scatters=partial(_instead_of_scatter, target, reproducible),
                expansions=_expansions(target),
                device=target.name,
            ),
        ),
        # Before collectives get an order, which would keep them apart.
        messages.PASS,
        # Before anything moves: calls with side effects get an order.
        call_order.PASS,
        # Before anything is simplified: later passes know only real numbers.
        pairs.PASS,
        # Together: a folded constant makes laws apply, and a law makes equations equal.
        nested(fixpoint(fold_constants.PASS, simplify_algebra.PASS, narrow.PASS, eliminate_common.PASS)),
        # After broadcasts of broadcasts have been merged. It leaves broadcasts that nothing needs.
        nested(repeated_products.PASS),
        # After products along whose batch both sides repeat have become one product.
        nested(summed_products.PASS),
        # After equal conditions have been merged, and before reads of loops' arrays are counted.
        nested(chosen_writes.PASS),
        # Before anything leaves loops: what depends on a carry stays in them.
        nested(constant_carries.PASS),
        # Inner loops first, so that what leaves them may leave the outer ones as well.
        nested(hoist_loops.PASS),
        # Last: all of these leave equations that nothing needs.
        nested(eliminate_dead.PASS),
    )


def kernel_passes(target: Target) -> tuple[Pass[KernelCode], ...]:
    """The passes over kernel code for a target."""
    return (
        # First: the other passes then share what the elements of a product have in common.
        units.write_out(target),
        # Then: later passes share what the bit expressions of several values have in common.
        storage.legalize_storage(target),
        # Before expressions are taken apart, which hides that a value is clamped twice.
        clamp_upwards_first(target),
        # After types are the target's own: what it does not fuse becomes two operations.
        separate_products(target),
        # Before indices are simplified, since it writes new ones.
        sum_in_blocks.PASS,
        # Before indices are simplified: copies of a body have tighter bounds on theirs.
        short_rows.PASS,
        unroll.PASS,
        join_rounds.join_rounds(target),
        # After loops are written out or joined, which is what makes sums long.
        split_sums.split_sums(target),
        # Then: whatever bounds decide disappears before anything is moved.
        simplify_index.PASS,
        # After that: invariant values leave their loops, and equal values are computed once.
        hoist_invariant.PASS,
        common_code.PASS,
        dead_code.PASS,
        # Last: it marks loops and changes nothing else.
        vectorize(target),
    )


def _instead_of_scatter(
    target: Target, reproducible: bool, primitive: Primitive, *operands: ArrayType, **parameters: Hashable
) -> Rule | None:
    """The rule of a device in place of a scatter; None if it makes one change after another."""
    return late_modules.scatters().expansion(target, reproducible, primitive, *operands, **parameters)


def _expansions(target: Target) -> Mapping[Primitive, Rule]:
    """The rules of a device in place of the primitives' own expansions."""
    rooms = (sorting, extremes, factorisations)
    return {primitive: rule for room in rooms for primitive, rule in room.expansions(target).items()}
