"""Finds the collectives of one device's plan, and numbers them for native code.

Collectives of the same kind and types have the same number, wherever in the plan they are, so that
devices in different branches can meet.
"""

from __future__ import annotations

from collections.abc import Hashable

from rune.backends.cpu.crew import moves
from rune.backends.cpu.crew.messages import Message, Talk
from rune.backends.cpu.spectra import spectrum_of
from rune.backends.shared.callbacks import function_of, is_callback
from rune.lowering.host_calls import AsComplex
from rune.lowering.meetings import CollectiveCall, PlaceCall
from rune.lowering.plan import Call, Plan, all_steps


def talk_of(plan: Plan) -> Talk:
    """The messages and axes of a plan."""
    messages: dict[Message, None] = {}
    axes: dict[Hashable, None] = {}
    others = 0
    for step in all_steps(plan):
        if isinstance(step, Call) and is_callback(step):
            message, place = message_of(step), place_of(step)
            if message is not None:
                messages[message] = None
            elif place is not None:
                axes[place.axis_name] = None
            elif spectrum_of(step) is None:
                others += 1
    return Talk(tuple(messages), tuple(axes), not others)


def message_of(step: Call) -> Message | None:
    """The message of a step; None if it is not a collective, or is one that only Python can run."""
    function = function_of(step)
    call = function.call
    # The last operand may be the token that orders calls; it has no bytes to exchange.
    operands = function.operands[: -1 if function.has_token else None]
    # The plan has complex operands as pairs of reals: the same bytes.
    if isinstance(call, AsComplex):
        call, operands = call.call, call.operands
    if not isinstance(call, CollectiveCall) or not moves.is_known(call, operands):
        return None
    return Message(call, operands)


def place_of(step: Call) -> PlaceCall | None:
    """The query for this device's place, if the step is one."""
    call = function_of(step).call
    return call if isinstance(call, PlaceCall) else None
