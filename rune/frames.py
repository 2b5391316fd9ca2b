"""Which lines of a program are the user's: neither the package's nor those of `pass_over` files."""

from __future__ import annotations

import linecache
import os
import sys
from types import FrameType

from rune.records import dataclass

__all__ = ["Frame", "pass_over"]

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
PASSED_OVER: set[str] = set()  # files of such libraries, and those of the package, added when first met


def pass_over(file: str) -> None:
    """Attribute errors and equations from this file to the line that called it.

    For libraries between the user and rune, which are treated like rune's own files.

    >>> pass_over("/site-packages/layers/core.py")
    """
    PASSED_OVER.add(file)


def cell_name(file: str) -> str | None:
    """IPython's name for the cell with this file name, "Cell In[3]"; None for an ordinary file."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    words = None if shell is None else shell.compile.format_code_name(file)
    return None if words is None else " ".join(words)


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of the user's source from which an equation comes.

    >>> Frame("work/demo.py", 3, "step").short
    'demo.py:3'
    """

    file: str
    line: int
    function: str
    scope: str = ""  # of rune.named_scope

    @property
    def short(self) -> str:
        """The form in printed programs: `demo.py:3`, or `Cell In[3], line 2` in a notebook.

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
        location = f"{self.file}:{self.line}" if cell_name(self.file) is None else self.place
        place = f"{location} in {self.function}{scope}"
        return f"{place}: {source}" if source else place


def is_passed_over(frame: FrameType) -> bool:
    """Whether a frame belongs to the package, its generated methods, or a `pass_over` library."""
    file = frame.f_code.co_filename
    if file.startswith(PACKAGE):
        PASSED_OVER.add(file)
    return file in PASSED_OVER or (file == "<string>" and is_generated(frame))


def is_generated(frame: FrameType) -> bool:
    """Whether the code of a frame was generated for a dataclass of the package."""
    return (frame.f_globals.get("__file__") or "").startswith(PACKAGE)
