"""to_device: a value on another device, as an equation.

    %1 = to_device %0 {device="opencl:0"}       committed to that device
    %1 = to_device %0 {device=None}             free again: on the device of its reader, or at home

`device_put` of a traced value binds it. The transpose of a move makes the cotangent free, so that
derivatives of operations before the move run where their own operands are. When compiled, a program
with moves becomes segments, one per device (partition.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune.array import Array, committed_to, default_place, on, put
from rune.core.higher import equations_within
from rune.core.interpreter import type_of
from rune.core.memo import per_program
from rune.core.primitive import Direct
from rune.core.program import Program
from rune.core.values import Value
from rune.dims import Size


def _run(x: Value, *, device: str | None) -> Array:
    place = default_place() if device is None else committed_to(on(device))
    if type(x) is Array and x.place.device is place.device:  # already there: the same memory
        return Array(x.buffer, x.type, place)
    value_type = type_of(x)
    return put(np.asarray(x, value_type.dtype), value_type, place)


def _batch(batched: Sequence[bool], size: Size, x: Value, *, device: str | None) -> tuple[Array, bool]:
    return to_device(x, device=device), batched[0]


to_device: Direct = Direct(
    "to_device",
    "movement",
    # A move changes only the place of a value.
    lambda x, device: x,
    reference=lambda x, device: x,
    jvp=(lambda dx, x, y, device: to_device(dx, device=device),),
    # The cotangent is free, not moved back: the device of x is not known here.
    transpose=lambda ct, linear, x, device: [to_device(ct, device=None)],
    batch=_batch,
    # In a loop that runs on this device already; partition.py refuses others.
    expand=lambda x, device: x,
    run=_run,
)


def has_moves(program: Program) -> bool:
    """Whether the program, or one inside it, moves a value or has a part on its own device."""
    return bool(devices_within(program))


@per_program
def devices_within(program: Program) -> frozenset[str | None]:
    """The devices of moves, None for one that makes a value free; and those of jitted functions."""
    return frozenset(e.params["device"] for e in equations_within(program) if "device" in e.params)
