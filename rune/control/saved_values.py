"""What a checkpoint around a loop or a branch keeps of what is inside.

    scan    values kept in the body are stacked over the steps; computed again, the loop takes
            them as rows, so that a carry which follows from them needs no step before it
    cond    values kept in a branch stand in slots that the branches share by type; a branch
            leaves zeros in those that are not its own

A while loop is computed again as a whole: how many rows to keep is known when it has run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rune.control.programs import slots_for, types_of, where_not, with_inputs, with_slots
from rune.core.program import Equation, Program, Var
from rune.core.sizes import Sizes, type_with_sizes
from rune.core.types import ArrayType
from rune.transforms.checkpoint.saved_values import Keeps, Replay, split_kept


def keep_of_scan(equation: Equation, keeps: Keeps, sizes: Sizes) -> Replay | None:
    """The rule of scan. sizes: what the sizes of its body are."""
    params = equation.params
    forward, again, kept = split_kept(params["body"], keeps)
    if forward.equations == again.equations:
        return None
    if not again.equations:  # all that is computed inside is kept: so is all that comes out
        return Replay(equation, None, equation.results)
    count, carries = len(again.outputs), params["carries"]
    # What is stacked as a result anyway is not stacked twice.
    stacked = dict(zip(again.outputs[carries:], equation.results[carries:], strict=True))
    more = [v for v in kept if v not in stacked]
    rows = [Var(_stacked(type_with_sizes(v.type, sizes), params["length"])) for v in more]
    whole = {**stacked, **dict(zip(more, rows, strict=True))}
    kept_rows = tuple(whole[v] for v in kept)
    saving = replace(
        equation, results=(*equation.results, *rows),
        params={**params, "body": replace(forward, outputs=(*forward.outputs[:count], *more))},
    )  # fmt: skip
    is_kept = tuple(i >= carries and a in kept for i, a in enumerate(again.outputs))
    replay = replace(
        equation, operands=(*equation.operands, *kept_rows),
        results=tuple(where_not(equation.results, is_kept)),
        params={**params, "body": replace(again, outputs=tuple(where_not(again.outputs, is_kept)))},
    )  # fmt: skip
    return Replay(saving, replay, tuple(dict.fromkeys(kept_rows)))


def _stacked(row: ArrayType, length: Any) -> ArrayType:
    return row.with_shape((length, *row.shape))


def keep_of_cond(equation: Equation, keeps: Keeps, sizes: Sequence[Sizes]) -> Replay | None:
    """The rule of cond. sizes: what the sizes of its branches are."""
    branches: tuple[Program, ...] = equation.params["branches"]
    splits = [split_kept(b, keeps) for b in branches]
    if all(f.equations == a.equations for f, a, _ in splits):
        return None
    if not any(a.equations for _, a, _ in splits):
        return Replay(equation, None, equation.results)
    slots, places = slots_for([types_of(kept) for _, _, kept in splits])
    count, operands = len(equation.results), len(branches[0].inputs)
    forward, again = [], []
    for (first, second, kept), own in zip(splits, places, strict=True):
        forward.append(with_slots(first, count, own, slots))
        given = (*second.input_types[:operands], *slots)
        again.append(with_inputs(second, (*range(operands), *(operands + i for i in own)), given))
        assert len(kept) == len(own)
    made = tuple(Var(_outside(i, t, places, sizes)) for i, t in enumerate(slots))
    return Replay(
        replace(
            equation, results=(*equation.results, *made), params={"branches": tuple(forward)}
        ),
        replace(
            equation, operands=(*equation.operands, *made), params={"branches": tuple(again)}
        ),
        made,
    )  # fmt: skip


def _outside(
    slot: int, type: ArrayType, places: Sequence[Sequence[int]], sizes: Sequence[Sizes]
) -> ArrayType:
    """The type of a slot, in the sizes of the equation."""
    owner = next(i for i, own in enumerate(places) if slot in own)
    return type_with_sizes(type, sizes[owner])
