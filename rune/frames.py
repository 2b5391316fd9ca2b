"""Which lines of a program are the user's: none of the package's, nor of libraries that say so."""

from __future__ import annotations

import linecache
import os
import sys
from types import FrameType

from rune.records import dataclass

__all__ = ["Frame", "pass_over"]

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
PASSED_OVER: set[str] = set()  # files of the package that were met, and of such libraries


def pass_over(file: str) -> None:
    """Name no line of this file in errors and programs, but the line that called it.

    For libraries that stand between a user and rune, as rune's own files do.

    >>> pass_over("/site-packages/layers/core.py")
    """
    PASSED_OVER.add(file)


def cell_name(file: str) -> str | None:
    """IPython's name of the cell whose code has this file, "Cell In[3]"; None for a file."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    words = None if shell is None else shell.compile.format_code_name(file)
    return None if words is None else " ".join(words)


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
        """The form in printed programs: `demo.py:3`, or `Cell In[3], line 2` of a notebook.

        With a scope, `demo.py:3 (net/layer)`.
        """
        return f"{self.place} ({self.scope})" if self.scope else self.place

    @property
    def place(self) -> str:
        """File and line, or cell and line."""
        cell = cell_name(self.file)
        return f"{os.path.basename(self.file)}:{self.line}" if cell is None else f"{cell}, line {self.line}"

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        scope = f" ({self.scope})" if self.scope else ""
        here = f"{self.file}:{self.line}" if cell_name(self.file) is None else self.place
        place = f"{here} in {self.function}{scope}"
        return f"{place}: {source}" if source else place


def is_passed_over(frame: FrameType) -> bool:
    """Whether a frame is not the user's: of the package, generated, or of such a library."""
    file = frame.f_code.co_filename
    if file.startswith(PACKAGE):
        PASSED_OVER.add(file)
    return file in PASSED_OVER or (file == "<string>" and is_generated(frame))


def is_generated(frame: FrameType) -> bool:
    """Whether Python wrote the method, for a dataclass of the package."""
    return (frame.f_globals.get("__file__") or "").startswith(PACKAGE)
