"""The values inside a cond that a checkpoint around it saves.

Values saved in a branch go into slots that the branches share by type; a branch fills slots that
it does not use with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rune.control.programs import slots_for, types_of, with_inputs, with_slots
from rune.core.program import Equation, Program, Var
from rune.core.sizes import Sizes, type_with_sizes
from rune.core.types import ArrayType
from rune.transforms.checkpoint.saved_values import Keeps, Replay, split_kept


def keep_of_cond(equation: Equation, keeps: Keeps, sizes: Sequence[Sizes]) -> Replay | None:
    """The rule of cond. sizes: the values of the sizes of each branch."""
    branches: tuple[Program, ...] = equation.params["branches"]
    splits = [split_kept(b, keeps) for b in branches]
    if all(f.equations == a.equations for f, a, _ in splits):  # nothing inside is saved
        return None
    if not any(a.equations for _, a, _ in splits):  # everything inside is saved
        return Replay(equation, None, equation.results)
    slots, places = slots_for([types_of(saved_variables) for _, _, saved_variables in splits])
    count, operands = len(equation.results), len(branches[0].inputs)
    forward, recomputation = [], []
    for (forward_part, replay_part, saved_variables), branch_slots in zip(splits, places, strict=True):
        forward.append(with_slots(forward_part, count, branch_slots, slots))
        replay_types = (*replay_part.input_types[:operands], *slots)
        # Every replayed branch takes all slots, and reads its own.
        input_positions = (*range(operands), *(operands + i for i in branch_slots))
        recomputation.append(with_inputs(replay_part, input_positions, replay_types))
        assert len(saved_variables) == len(branch_slots)
    slot_vars = tuple(Var(_outside(i, t, places, sizes)) for i, t in enumerate(slots))
    return Replay(
        replace(equation, results=(*equation.results, *slot_vars), params={"branches": tuple(forward)}),
        replace(equation, operands=(*equation.operands, *slot_vars), params={"branches": tuple(recomputation)}),
        slot_vars,
    )


def _outside(slot: int, type: ArrayType, places: Sequence[Sequence[int]], sizes: Sequence[Sizes]) -> ArrayType:
    """The type of a slot, in the sizes of the equation."""
    # Any branch that fills the slot will do: in the sizes of the equation their types agree.
    owner = next(i for i, branch_slots in enumerate(places) if slot in branch_slots)
    return type_with_sizes(type, sizes[owner])
