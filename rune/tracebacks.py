"""Tracebacks of rune's errors, without rune's own frames.

If one of rune's errors ends a program or a cell of a notebook, Python prints only the user's lines,
because those inside the package add nothing to the message. RUNE_TRACEBACK=full shows all lines;
code that catches an error gets the full traceback.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any

from rune.frames import is_passed_over

NOTE = "(frames inside rune are hidden; RUNE_TRACEBACK=full shows them)"


def users_frames(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the package's frames; the full one if it has no others."""
    frames = []
    step = trace
    while step is not None:
        frames.append(step)
        step = step.tb_next
    users = [f for f in frames if not is_passed_over(f.tb_frame)]
    if not users:
        return trace
    trace_back: TracebackType | None = None
    for f in reversed(users):
        trace_back = TracebackType(trace_back, f.tb_frame, f.tb_lasti, f.tb_lineno)
    return trace_back


def _shortened(error: BaseException, trace: TracebackType | None) -> TracebackType | None:
    user_trace = users_frames(trace)
    if user_trace is not trace and NOTE not in getattr(error, "__notes__", ()):
        error.add_note(NOTE)
    return user_trace


def install(kinds: tuple[type[BaseException], ...]) -> None:
    """Shorten the tracebacks that Python and IPython print for uncaught errors of these kinds."""
    if os.environ.get("RUNE_TRACEBACK") == "full":
        return
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, kinds):  # Python's own hook prints the error's __traceback__
            error.__traceback__ = trace = _shortened(error, trace)
        before(kind, error, trace)

    sys.excepthook = hook
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        shell.set_custom_exc(kinds, _show_in_notebook)


def _show_in_notebook(
    shell: Any, kind: type[BaseException], error: BaseException, trace: Any, tb_offset: Any = None
) -> None:
    shell.showtraceback((kind, error, _shortened(error, trace)), tb_offset=tb_offset)
