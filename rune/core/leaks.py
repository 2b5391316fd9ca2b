"""Leaks: traced values that outlive their transformation, and the variables that hold them.

A traced value has no meaning once its transformation is over, so storing one is a mistake, which
is reported here when it is made rather than when the value is used. The search goes upwards from
the value, through containers and closures, to a variable of a module or of a function that is still
running. References of the package's own functions are ignored: they are about to be released.

Cost: one walk over all objects per level of containers, when the check is on.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from rune.core.values import Value
from rune.errors import EscapedTracerError

ENDED_HINT = "return the value from the transformed function instead of storing it outside"
LEVELS = 8  # of containers between a value and the variable that holds it
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def refuse_leaks(tracers: Sequence[Value]) -> None:
    """Raise EscapedTracerError if a variable of the user holds one of these traced values."""
    holder = holder_of(tracers) if tracers else None
    if holder is not None:
        tracer, name = holder
        origin = f"; it was made at {tracer.frame}" if tracer.frame else ""
        raise EscapedTracerError(
            f"tracer: found a traced value {tracer.type} kept after its transformation ended (in {name}{origin})",
            hint=ENDED_HINT,
        )


def holder_of(values: Sequence[Value]) -> tuple[Any, str] | None:
    """One of the values, and the variable that holds it; None if no variable does."""
    variables = _variables()
    origin = {id(v): v for v in values}  # for each object found, the value inside it
    frontier, visited = list(values), {id(values)}
    for _ in range(LEVELS):
        for referent in frontier:
            name = variables.get(id(referent))
            if name is not None:
                return origin[id(referent)], name
        containers = [x for x in gc.get_referrers(*frontier) if _is_container(x, visited)]
        # The lists of this search refer to the objects too, and are not part of the leak.
        visited |= {id(frontier), id(containers)}
        for container in containers:
            visited.add(id(container))
            content = next(x for x in gc.get_referents(container) if id(x) in origin)
            origin[id(container)] = origin[id(content)]
        frontier = containers
        if not frontier:
            return None
    return None


def _is_container(value: object, visited: set[int]) -> bool:
    return id(value) not in visited and not isinstance(value, FrameType)


def _variables() -> dict[int, str]:
    """The objects that variables of modules and of running functions hold, by id, with names."""
    variables: dict[int, str] = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) or ""
        if not file.startswith(_PACKAGE):
            name = getattr(module, "__name__", "?")
            variables.update((id(v), f"{k} of {name}") for k, v in list(vars(module).items()))
    for frame in _user_frames():
        place = f"{os.path.basename(frame.f_code.co_filename)} in {frame.f_code.co_name}"
        variables.update((id(v), f"{k} of {place}") for k, v in frame.f_locals.items())
    return variables


def _user_frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            yield frame
        frame = frame.f_back
