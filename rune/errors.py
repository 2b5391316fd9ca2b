"""Every error that rune raises, and the user's source line that goes with it.

A message reads `operation: cannot <action> (<specifics>)`, then an optional `hint:` line and the
line of the user's own code. Each class also derives from the builtin that NumPy or JAX users
would catch. Frames inside the package are never shown as the cause: `user_frame` skips them.
"""

from __future__ import annotations

import linecache
import os
import sys
from contextvars import ContextVar
from dataclasses import dataclass

__all__ = [
    "ArgumentError", "AxisError", "BoundsError", "CheckError", "CompileError",
    "DeletedArrayError", "DeviceError", "DimensionError", "DtypeError", "EscapedTracerError",
    "Frame", "HostFallbackWarning", "KeyReuseError", "LayoutError", "MissingRule", "NaNError",
    "NonConcreteBooleanIndexError", "OutOfMemory", "RuneError", "ShapeError",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerError",
    "TracerIntegerConversionError", "TransformError", "UnboundAxisError", "UnhandledEffect",
]  # fmt: skip

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of the user's source: where an equation comes from."""

    file: str
    line: int
    function: str

    @property
    def short(self) -> str:
        """The form used in printed programs, `demo.py:3`."""
        return f"{os.path.basename(self.file)}:{self.line}"

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        place = f"{self.file}:{self.line} in {self.function}"
        return f"{place}: {source}" if source else place


_line: ContextVar[Frame | None] = ContextVar("rune_line", default=None)


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
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return None
    return Frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def with_context(message: str, hint: str | None = None, frame: Frame | None = None) -> str:
    """`message`, then the hint, then the user's line."""
    lines = [message]
    if hint:
        lines.append(f"hint: {hint}")
    frame = frame or user_frame()
    if frame:
        lines.append(f"at {frame}")
    return "\n".join(lines)


class RuneError(Exception):
    """Base of all errors raised by rune; the message carries the hint and the user's line.

    >>> try:
    ...     raise ShapeError("add: cannot broadcast (f32[3] and f32[4], axis 0: 3 against 4)")
    ... except TypeError as error:
    ...     str(error).splitlines()[0]
    'add: cannot broadcast (f32[3] and f32[4], axis 0: 3 against 4)'
    """

    def __init__(self, message: str, hint: str | None = None, frame: Frame | None = None):
        self.message, self.hint, self.frame = message, hint, frame or user_frame()
        super().__init__(with_context(message, hint, self.frame))

    def restate(self, message: str | None = None, hint: str | None = None) -> None:
        """Say it in other words, or with another hint; the user's line stays."""
        self.message, self.hint = message or self.message, hint or self.hint
        self.args = (with_context(self.message, self.hint, self.frame),)


class ShapeError(RuneError, TypeError, ValueError):
    """Shapes that do not fit the operation: JAX has TypeError for this, NumPy ValueError."""


class DtypeError(RuneError, TypeError):
    """A dtype without meaning for the operation."""


class AxisError(RuneError, ValueError, IndexError):
    """An axis that the array does not have, or has twice."""


class BoundsError(RuneError, IndexError):
    """An index out of bounds, found inside `rune.debug.checks(bounds=True)`."""


class UnboundAxisError(RuneError, NameError):
    """A collective over an axis that no transformation around it names."""


class ArgumentError(RuneError, TypeError, ValueError):
    """An argument of the wrong kind: a string in jit, an unhashable static argument."""


class LayoutError(ArgumentError):
    """An array that compiled code cannot read as it lies in memory."""


class TransformError(RuneError, TypeError):
    """A transformation asked for something without meaning: grad of a non-scalar or an integer."""


class MissingRule(RuneError, NotImplementedError):
    """A primitive without the rule that a transformation needs; never a silent zero."""


class TracerError(RuneError, TypeError):
    """A traced value used as a concrete one."""


class TracerBoolConversionError(TracerError):
    """A traced value used as a Python truth value."""


class TracerArrayConversionError(TracerError):
    """A traced value handed to NumPy."""


class TracerIntegerConversionError(TracerError):
    """A traced value used as a Python integer or index."""


class NonConcreteBooleanIndexError(TracerError, IndexError):
    """A traced boolean mask used as an index: the result's shape would depend on data."""


class EscapedTracerError(RuneError, RuntimeError):
    """A traced value used after its transformation had ended."""


class DimensionError(RuneError, ValueError):
    """A symbolic dimension out of its declared range, or undecidable."""


class HostFallbackWarning(UserWarning):
    """An operation that a device leaves to the host: its operands are copied there and back."""


class CheckError(RuneError):
    """A program, kernel or plan that breaks a rule of its own language: a bug in rune."""


class CompileError(RuneError, RuntimeError):
    """Kernel source that a backend refuses; `source` is the whole of it."""

    def __init__(
        self, message: str, hint: str | None = None, frame: Frame | None = None, source: str = ""
    ):
        super().__init__(message, hint, frame)
        self.source = source


class DeviceError(RuneError, RuntimeError):
    """A device that is absent, or arrays on different devices."""


class OutOfMemory(RuneError, MemoryError):
    """More memory asked than a device has: says asked, used and the limit."""


class DeletedArrayError(RuneError, RuntimeError):
    """A donated array used again."""


class NaNError(RuneError, FloatingPointError):
    """A NaN or an infinity found while `rune.debug.checks` looks for them."""

    result: int | None = None  # the number of the result in which it is seen, if in any


class UnhandledEffect(RuneError, RuntimeError):
    """An effect that no handler answers: a draw without a key, outside `rune.random.seed`."""


class KeyReuseError(RuneError, ValueError):
    """A random key used twice, found while `rune.configure(check_keys=True)` is on."""
