"""Guards: what code that runs on symbolic sizes found out of them by `==`, or could not.

`==` of a size compares structure, so `n == 7` is False in a trace that serves n = 7 too. While
somebody watches, each such question that code outside the package asks is noted; looking a size up
in a set or a dictionary asks it silently, of every key, and is an error then.

The package's own code is not watched: what it does holds for all values of the symbols.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from numbers import Number
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeVar

from rune.context import innermost, put
from rune.errors import DimensionError, in_copied_context

if TYPE_CHECKING:
    from rune.dims.algebra import Dim

R = TypeVar("R")


class Questions(list[tuple["Dim", Any]]):
    """Sizes, each with what it was found not to be."""


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = os.path.join(_LIBRARY, "site-packages") + os.sep
# Not empty while anybody watches, in whatever context: sizes ask this first, since it costs less.
watchers: list[Questions] = []


def watched(function: Callable[..., R], *args: object) -> tuple[R, Questions]:
    """`function(*args)`, and the questions that were asked meanwhile."""
    return in_copied_context(_watch, function, args)


def _watch(function: Callable[..., R], args: Sequence[object]) -> tuple[R, Questions]:
    asked = Questions()
    put(Questions, asked)
    watchers.append(asked)
    try:
        return function(*args), asked
    finally:
        watchers.pop()  # whichever: only their number counts


def ask_equal(size: Dim, other: object) -> None:
    """Called by `size == other`."""
    asked = innermost(Questions)
    if asked is not None and size is not other and _is_from_outside():
        if isinstance(other, Number) or type(other) is type(size):
            asked.append((size, other))


def ask_hash(size: Dim) -> None:
    """Called by `hash(size)`. Errors: DimensionError where the size is used as a key outside."""
    if innermost(Questions) is not None and _is_from_outside():
        raise DimensionError(
            f"hash: cannot look up the dimension {size} in a set or a dictionary "
            f"(it may equal a key, and would not be found)"
        )


def _is_from_outside() -> bool:
    """Whether code outside the package asks, itself or through Python's own library."""
    # This function, the one that asks, the method of Dim; then whoever compares or hashes.
    frame = sys._getframe(3)
    while frame.f_back is not None and _is_between(frame.f_code):
        frame = frame.f_back
    return not frame.f_code.co_filename.startswith(_PACKAGE)


def _is_between(code: CodeType) -> bool:
    """Whether code belongs to Python's library, or a method that it wrote for a dataclass."""
    if code.co_filename == "<string>":
        return code.co_name in ("__eq__", "__hash__")
    library = code.co_filename.startswith(("<frozen", _LIBRARY))
    return library and not code.co_filename.startswith((_INSTALLED, _PACKAGE))
