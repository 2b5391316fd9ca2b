"""Which lines of a program are the user's: none of the package's, nor of libraries that say so."""

from __future__ import annotations

import linecache
import os
from dataclasses import dataclass
from types import FrameType

__all__ = ["pass_over"]

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_libraries: set[str] = set()


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


def pass_over(file: str) -> None:
    """Name no line of this file in errors and programs, but the line that called it.

    For libraries that stand between a user and rune, as rune's own files do.

    >>> pass_over("/site-packages/layers/core.py")
    """
    _libraries.add(file)


def is_passed_over(frame: FrameType) -> bool:
    """Whether a frame outside of the package is not the user's: generated, or of such a library."""
    return frame.f_code.co_filename in _libraries or is_generated(frame)


def is_generated(frame: FrameType) -> bool:
    """Whether Python wrote the method, for a dataclass of the package."""
    file = frame.f_globals.get("__file__") or ""
    return frame.f_code.co_filename == "<string>" and file.startswith(PACKAGE)
