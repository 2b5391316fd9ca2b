"""Escaped tracers: traced values used after the end of their transformation, or outside it."""

from __future__ import annotations

from rune.core.interpreter import Interpreter, Tracer
from rune.core.leaks import ENDED_HINT
from rune.errors import EscapedTracerError

_ENDED = ("after its transformation ended", ENDED_HINT)
_OUTSIDE = ("outside its transformation", "a custom rule runs outside the derivative: pass it the value as an argument")


def escaped(tracer: Tracer) -> EscapedTracerError:
    """The error for a tracer used after the end of its transformation, or outside it."""
    origin = f"; it was made at {tracer.frame}" if tracer.frame else ""
    when, hint = _OUTSIDE if tracer.interpreter.live else _ENDED
    return EscapedTracerError(f"tracer: cannot use a traced value {tracer.type} {when}{origin}", hint)


def check_live(tracer: Tracer) -> None:
    """Raise EscapedTracerError if the tracer's transformation has ended."""
    if not tracer.interpreter.live:
        raise escaped(tracer)


def check_encloses(tracer: Tracer, outside: Interpreter | None) -> None:
    """Raise EscapedTracerError unless the tracer's interpreter is live, and encloses `outside`.

    An interpreter encloses itself.
    """
    check_live(tracer)
    while outside is not None and outside is not tracer.interpreter:
        outside = outside.parent
    if outside is None:
        raise escaped(tracer)
