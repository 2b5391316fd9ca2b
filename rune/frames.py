"""Lines of the user's source: where what is computed comes from, for errors, programs, profiles.

Frames inside the package are never shown as the cause: `user_frame` skips them.
"""

from __future__ import annotations

import linecache
import os
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeVar

from rune.scopes import scope

R = TypeVar("R")
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of the user's source: where an equation comes from.

    >>> Frame("work/demo.py", 3, "step").short
    'demo.py:3'
    """

    file: str
    line: int
    function: str
    scope: str = ""  # of rune.named_scope

    @property
    def short(self) -> str:
        """The form in printed programs, `demo.py:3`; with a scope, `demo.py:3 (net/layer)`."""
        place = f"{os.path.basename(self.file)}:{self.line}"
        return f"{place} ({self.scope})" if self.scope else place

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        scope = f" ({self.scope})" if self.scope else ""
        place = f"{self.file}:{self.line} in {self.function}{scope}"
        return f"{place}: {source}" if source else place


_line: ContextVar[Frame | None] = ContextVar("rune_line", default=None)


def in_copied_context(function: Callable[..., R], *args: Any) -> R:
    """`function(*args)` in a copy of the context: the variables it sets are the caller's no more.

    Python itself returns to the caller's context, so an interrupt cannot leave a variable set,
    whatever step it arrives at. A `with` block cannot promise that: an interrupt may arrive on
    entry to `__exit__`, before the variable is reset.
    """
    return copy_context().run(function, *args)


def set_line(frame: Frame | None) -> None:
    """What follows in this context is done for this line of the user's; None: the caller's."""
    _line.set(frame)


class at_line:
    """Inside the block, what is done is done for this line of the user's; None: for the caller's.

    So a program that is rewritten keeps the lines that it came from.
    """

    __slots__ = ("frame", "token")

    def __init__(self, frame: Frame | None):
        self.frame = frame

    def __enter__(self) -> None:
        self.token = _line.set(self.frame)

    def __exit__(self, error: object, value: object, traceback: object) -> None:
        _line.reset(self.token)


def user_frame() -> Frame | None:
    """The line of `at_line`, else the innermost frame outside the package, if there is one."""
    line = _line.get()
    if line is not None:
        return line
    frame = sys._getframe(1)
    # The first test decides nearly always, and operations that are traced wait for it.
    while frame is not None and (frame.f_code.co_filename.startswith(_PACKAGE) or is_passed_over(frame)):
        frame = frame.f_back
    if frame is not None and frame.f_code.co_filename == threading.__file__:
        return None  # in a thread of the package's
    if frame is None:
        return None
    return Frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, scope())


def pass_over(file: str) -> None:
    """Name no line of this file in errors and programs, but the line that called it.

    For libraries that stand between a user and rune, as rune's own files do.

    >>> pass_over("/site-packages/layers/core.py")
    """
    _libraries.add(file)


_libraries: set[str] = set()


def is_passed_over(frame: FrameType) -> bool:
    """Whether a frame outside of the package is not the user's: generated, or of such a library."""
    return frame.f_code.co_filename in _libraries or is_generated(frame)


def is_generated(frame: FrameType) -> bool:
    """Whether Python wrote the method, for a dataclass of the package."""
    file = frame.f_globals.get("__file__") or ""
    return frame.f_code.co_filename == "<string>" and file.startswith(_PACKAGE)
