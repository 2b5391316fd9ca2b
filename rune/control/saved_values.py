"""What a checkpoint around a loop or a branch saves of the values inside.

    scan    values saved in the body are stacked over the steps; the replayed loop reads them as
            rows, so a carry that can be computed from them needs no earlier step
    cond    values saved in a branch stand in slots that the branches share by type; a branch fills
            slots that it does not use with zeros

A while loop is replayed as a whole: how many rows there are to save is known only after it has run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rune.control.programs import omit, slots_for, types_of, with_inputs, with_slots
from rune.core.program import Equation, Program, Var
from rune.core.sizes import Sizes, type_with_sizes
from rune.core.types import ArrayType
from rune.transforms.checkpoint.saved_values import Keeps, Replay, split_kept


def keep_of_scan(equation: Equation, keeps: Keeps, sizes: Sizes) -> Replay | None:
    """The rule of scan. sizes: the values of its body's sizes."""
    params = equation.params
    forward, again, saved = split_kept(params["body"], keeps)
    if forward.equations == again.equations:  # nothing inside is saved
        return None
    if not again.equations:  # everything computed inside is saved, so the results are too
        return Replay(equation, None, equation.results)
    count, carries = len(again.outputs), params["carries"]
    # A saved value that is also a result is stacked once.
    result_vars = dict(zip(again.outputs[carries:], equation.results[carries:], strict=True))
    extra = [v for v in saved if v not in result_vars]
    rows = [Var(_stacked(type_with_sizes(v.type, sizes), params["length"])) for v in extra]
    stacked_vars = {**result_vars, **dict(zip(extra, rows, strict=True))}
    saved_rows = tuple(stacked_vars[v] for v in saved)
    saving = replace(
        equation, results=(*equation.results, *rows),
        params={**params, "body": replace(forward, outputs=(*forward.outputs[:count], *extra))},
    )  # fmt: skip
    is_saved = tuple(i >= carries and a in saved for i, a in enumerate(again.outputs))
    # The replayed loop has no results that were saved: they are there already.
    replay = replace(
        equation, operands=(*equation.operands, *saved_rows),
        results=tuple(omit(equation.results, is_saved)),
        params={**params, "body": replace(again, outputs=tuple(omit(again.outputs, is_saved)))},
    )  # fmt: skip
    return Replay(saving, replay, tuple(dict.fromkeys(saved_rows)))


def _stacked(row: ArrayType, length: Any) -> ArrayType:
    return row.with_shape((length, *row.shape))


def keep_of_cond(equation: Equation, keeps: Keeps, sizes: Sequence[Sizes]) -> Replay | None:
    """The rule of cond. sizes: the values of its branches' sizes."""
    branches: tuple[Program, ...] = equation.params["branches"]
    splits = [split_kept(b, keeps) for b in branches]
    if all(f.equations == a.equations for f, a, _ in splits):  # nothing inside is saved
        return None
    if not any(a.equations for _, a, _ in splits):  # everything is
        return Replay(equation, None, equation.results)
    slots, places = slots_for([types_of(saved) for _, _, saved in splits])
    count, operands = len(equation.results), len(branches[0].inputs)
    forward, again = [], []
    for (first, second, saved), branch_slots in zip(splits, places, strict=True):
        forward.append(with_slots(first, count, branch_slots, slots))
        again_types = (*second.input_types[:operands], *slots)
        # Every replayed branch takes all slots, and reads its own.
        read = (*range(operands), *(operands + i for i in branch_slots))
        again.append(with_inputs(second, read, again_types))
        assert len(saved) == len(branch_slots)
    slot_vars = tuple(Var(_outside(i, t, places, sizes)) for i, t in enumerate(slots))
    return Replay(
        replace(
            equation, results=(*equation.results, *slot_vars), params={"branches": tuple(forward)}
        ),
        replace(
            equation, operands=(*equation.operands, *slot_vars), params={"branches": tuple(again)}
        ),
        slot_vars,
    )  # fmt: skip


def _outside(
    slot: int, type: ArrayType, places: Sequence[Sequence[int]], sizes: Sequence[Sizes]
) -> ArrayType:
    """The type of a slot, in the sizes of the equation."""
    # Any branch that fills the slot will do: they agree on its type outside.
    owner = next(i for i, branch_slots in enumerate(places) if slot in branch_slots)
    return type_with_sizes(type, sizes[owner])
