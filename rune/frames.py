"""Which lines of a program are the user's: none of the package's, nor of libraries that say so."""

from __future__ import annotations

import os
import sys
from types import FrameType

__all__ = ["pass_over"]

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_libraries: set[str] = set()


def pass_over(file: str) -> None:
    """Name no line of this file in errors and programs, but the line that called it.

    For libraries that stand between a user and rune, as rune's own files do.

    >>> pass_over("/site-packages/layers/core.py")
    """
    _libraries.add(file)


def cell_name(file: str) -> str | None:
    """IPython's name of the cell whose code has this file, "Cell In[3]"; None for a file."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    words = None if shell is None else shell.compile.format_code_name(file)
    return None if words is None else " ".join(words)


def is_passed_over(frame: FrameType) -> bool:
    """Whether a frame outside of the package is not the user's: generated, or of such a library."""
    return frame.f_code.co_filename in _libraries or is_generated(frame)


def is_generated(frame: FrameType) -> bool:
    """Whether Python wrote the method, for a dataclass of the package."""
    file = frame.f_globals.get("__file__") or ""
    return frame.f_code.co_filename == "<string>" and file.startswith(PACKAGE)
