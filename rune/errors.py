"""Every error that rune raises, and the user's source line that goes with it.

A message reads `operation: cannot <action> (<specifics>)`, then an optional `hint:` line and the
line of the user's code. Each class also derives from the builtin exception that NumPy or JAX users
would catch. Frames inside the package never appear as the cause: `user_frame` skips them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

from rune.context import innermost, inside, put
from rune.frames import PASSED_OVER, Frame, is_passed_over
from rune.listing import names as _names
from rune.scopes import scope

R = TypeVar("R")

__all__ = ["ArgumentError", "AxisError", "BoundsError", "CacheWarning", "CheckError", "CollectiveError"]
__all__ += ["CompileError", "ConcretizationTypeError", "DataError", "DeletedArrayError", "DepthError"]
__all__ += ["DeviceError", "DimensionError", "DistributedError", "DtypeError", "EscapedTracerError", "FileError"]
__all__ += ["FileWarning", "Frame", "HostFallbackWarning", "KeyReuseError", "LayoutError", "MissingRule"]
__all__ += ["NaNError", "NonConcreteBooleanIndexError", "OutOfMemory", "PromotionError", "RuneError", "ShapeError"]
__all__ += ["ShardingTypeError", "TracerArrayConversionError", "TracerBoolConversionError", "TracerError"]
__all__ += ["TracerIntegerConversionError", "TransformError", "UnboundAxisError", "UnhandledEffect"]


def in_copied_context(function: Callable[..., R], *args: Any) -> R:
    """`function(*args)` in a copy of the context: the caller does not see what it sets there.

    Python itself restores the caller's context, so an interrupt at any step cannot leave a variable
    set. A `with` block cannot guarantee that: an interrupt may arrive on entry to `__exit__`,
    before the variable is reset.
    """
    return copy_context().run(function, *args)


def set_line(frame: Frame | None) -> None:
    """Attribute later work in this context to this user's line; None: to the caller's."""
    put(Frame, frame)


def at_line(frame: Frame | None) -> inside[Frame]:
    """A block whose work is attributed to this user's line; None: to the caller's.

    With it, a rewritten program keeps the lines of the original.
    """
    return inside(Frame, frame)


def user_frame() -> Frame | None:
    """The line set by `at_line`, else the innermost frame outside the package, if any."""
    line = innermost(Frame)
    if line is not None:
        return line
    frame = sys._getframe(1)
    # This runs for every traced operation, and the cheap first test nearly always decides.
    while frame is not None and (frame.f_code.co_filename in PASSED_OVER or is_passed_over(frame)):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename == threading.__file__:
        return None  # in one of the package's own threads
    return Frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, scope())


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
    """Base of all errors that rune raises; the message includes the hint and the user's line.

    >>> try:
    ...     raise ShapeError("add: cannot broadcast (f32[3] and f32[4], axis 0: 3 against 4)")
    ... except TypeError as error:
    ...     str(error).splitlines()[0]
    'add: cannot broadcast (f32[3] and f32[4], axis 0: 3 against 4)'
    """

    def __init__(self, message: str, hint: str | None = None, frame: Frame | None = None):
        self.message, self.hint, self.frame = message, hint, frame or user_frame()
        super().__init__(with_context(message, hint, self.frame))

    def __reduce__(self) -> tuple[object, ...]:
        # `args` holds the full message, so __init__ would add the hint and the line a second time.
        return type(self).__new__, (type(self), *self.args), self.__dict__

    def restate(self, message: str | None = None, hint: str | None = None) -> None:
        """Replace the message or the hint; the user's line stays."""
        self.message, self.hint = message or self.message, hint or self.hint
        self.args = (with_context(self.message, self.hint, self.frame),)

    def locate(self) -> None:
        """Add the line of the current call if the error comes from a thread without user code."""
        self.frame = self.frame or user_frame()
        self.restate()


class ShapeError(RuneError, TypeError, ValueError):
    """Shapes that do not fit the operation, for which JAX raises TypeError, NumPy ValueError.

    >>> import rune, rune.numpy as rnp
    >>> rnp.ones(3) + rnp.ones(4)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.ShapeError: add: cannot broadcast shapes [3] and [4] (axis 0: 3 against 4)...
    """


class DtypeError(RuneError, TypeError, ValueError):
    """A dtype that the operation does not support: JAX raises TypeError or ValueError.

    >>> import rune, rune.numpy as rnp
    >>> rnp.bitwise_and(1.5, 2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.DtypeError: and: cannot take f32*[], f32*[] (bool or integer dtype required)...
    """


class PromotionError(DtypeError):
    """Two dtypes without a common dtype; a cast is necessary.

    >>> import rune, rune.numpy as rnp
    >>> with rune.numpy_dtype_promotion("strict"):
    ...     rnp.ones(2) + rnp.arange(2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.PromotionError: promote: cannot promote f32 and i32 (strict promotion)...
    """


class AxisError(RuneError, ValueError, IndexError):
    """An axis that the array does not have, or that is given twice.

    >>> import rune, rune.numpy as rnp
    >>> rnp.sum(rnp.ones(3), axis=1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.AxisError: sum: cannot find axis 1 of f32[3] (its axes are -1 to 0)...
    """


class BoundsError(RuneError, IndexError):
    """An index out of bounds, found inside `rune.debug.checks(bounds=True)`.

    >>> import rune, rune.numpy as rnp
    >>> with rune.debug.checks(bounds=True):  # doctest: +ELLIPSIS
    ...     rnp.arange(3)[rnp.array(5)]
    Traceback (most recent call last):
    rune.errors.BoundsError: gather: found index 5 out of bounds (axis 0 of i32[3])...
    """


class UnboundAxisError(RuneError, NameError):
    """A collective over an axis that no enclosing transformation names.

    >>> import rune, rune.numpy as rnp
    >>> rune.lax.psum(1.0, "i")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.UnboundAxisError: psum: cannot find the axis 'i' (no transformation ...
    """


class ArgumentError(RuneError, TypeError, ValueError):
    """An argument of the wrong kind: a string in jit, an unhashable static argument.

    >>> import rune, rune.numpy as rnp
    >>> rune.jit(lambda x: x)("text")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.ArgumentError: jit: cannot take str as an array (argument[0] = 'text')...
    """


class LayoutError(ArgumentError):
    """An array whose memory layout compiled code cannot read.

    >>> import rune, rune.numpy as rnp, numpy as np
    >>> rune.jit(rnp.sum)(np.arange(4.0)[::2])  # met and made dense: callers do not see it
    Array(2., f32[], cpu:0)
    """


class TransformError(RuneError, TypeError, ValueError):
    """A transformation that has no meaning: grad of a non-scalar or an integer.

    >>> import rune, rune.numpy as rnp
    >>> rune.grad(lambda x: 2 * x)(rnp.ones(2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.TransformError: grad: cannot differentiate a result f32[2] (scalar required)...
    """


class MissingRule(RuneError, NotImplementedError):
    """A primitive without the rule that a transformation needs; never a silent zero.

    >>> import rune, rune.numpy as rnp
    >>> rnp.take(rnp.ones(2), 0, mode="raise")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.MissingRule: take: cannot use mode='raise' (compiled programs raise nothing)...
    """


class TracerError(RuneError, TypeError):
    """A traced value where a concrete one is required: the base of the classes below.

    >>> issubclass(TracerIntegerConversionError, TracerError)
    True
    """


class ConcretizationTypeError(TracerError):
    """A traced value used where its number is needed.

    >>> import rune, rune.numpy as rnp
    >>> rune.jit(float)(1.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.ConcretizationTypeError: tracer: cannot convert a traced value ...
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value used as a Python truth value.

    >>> import rune, rune.numpy as rnp
    >>> rune.jit(lambda x: 1 if x > 0 else 0)(1.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.TracerBoolConversionError: tracer: cannot use a traced value as a truth value ...
    """


class TracerArrayConversionError(ConcretizationTypeError):
    """A traced value handed to NumPy.

    >>> import rune, numpy as np
    >>> rune.jit(np.sin)(1.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.TracerArrayConversionError: tracer: cannot hand a traced value to NumPy ...
    """


class TracerIntegerConversionError(ConcretizationTypeError):
    """A traced value used as a Python integer or index.

    >>> import rune, rune.numpy as rnp
    >>> rune.jit(range)(3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.TracerIntegerConversionError: tracer: cannot use a traced value as a Python ...
    """


class NonConcreteBooleanIndexError(TracerError, IndexError):
    """A traced boolean mask used as an index: the result's shape would depend on data.

    >>> import rune, rune.numpy as rnp
    >>> rune.jit(lambda x: x[x > 0])(rnp.ones(2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.NonConcreteBooleanIndexError: index: cannot index with a traced mask ...
    """


class EscapedTracerError(TracerError, RuntimeError):
    """A traced value used after its transformation has ended.

    >>> import rune
    >>> escaped = []
    >>> rune.jit(escaped.append)(1.0)
    >>> escaped[0] + 1  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.EscapedTracerError: tracer: cannot use a traced value f32*[] after its ...
    """


class DepthError(RuneError, RecursionError):
    """Transformations nested deeper than rune supports.

    >>> import rune
    >>> f = rune.jit(lambda x: f(x))
    >>> try:
    ...     f(1.0)
    ... except RecursionError as error:
    ...     print(error.message)
    trace: cannot nest transformations 301 deep (300 is the most)
    """


class DimensionError(RuneError, ValueError):
    """A symbolic dimension out of its declared range, or undecidable.

    >>> import rune, rune.numpy as rnp
    >>> rune.jit(rnp.sum, dims={"n": (1, 9)}, in_dims=("n",))(rnp.ones(10))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.DimensionError: jit: cannot run sum with n = 10 ...
    """


class HostFallbackWarning(UserWarning):
    """An operation that a device leaves to the host, which copies its operands there and back.

    Each operation gives the warning once. To silence it:

    >>> import rune, rune.numpy as rnp, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", HostFallbackWarning)
    ...     with rune.device("reference"):
    ...         eigenvalues = rnp.linalg.eigvals(rnp.eye(2))
    >>> print(eigenvalues)
    [1.+0.j 1.+0.j]
    """


class CacheWarning(UserWarning):
    """Compiled kernels are not cached on disk: everything works, but compiles in each process.

    Each process gives the warning once. `rune.doctor()` tells the reason at any time.

    >>> import warnings
    >>> warnings.simplefilter("ignore", CacheWarning)  # for who knows, and does not mind
    """


class FileWarning(UserWarning):
    """A file that is skipped because it is damaged or truncated.

    >>> issubclass(FileWarning, UserWarning)  # simplefilter("error", FileWarning) raises it
    True
    """


class CheckError(RuneError):
    """A program, kernel or plan that breaks a rule of its language: a bug in rune.

    >>> raise CheckError("check: cannot accept kernel add_0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.CheckError: check: cannot accept kernel add_0...
    """


class CompileError(RuneError, RuntimeError):
    """Kernel source that a backend rejects; `source` is the complete source.

    >>> CompileError("opencl: cannot compile add_0", source="kernel void add_0").source
    'kernel void add_0'
    """

    def __init__(self, message: str, hint: str | None = None, frame: Frame | None = None, source: str = ""):
        super().__init__(message, hint, frame)
        self.source = source


class DeviceError(RuneError, RuntimeError, ValueError):
    """A device that is absent, or arrays on different devices.

    >>> import rune, rune.numpy as rnp
    >>> rune.device_put(rnp.ones(2), "nowhere")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.DeviceError: device: cannot find 'nowhere' (there are cpu:0...
    """


class CollectiveError(RuneError, RuntimeError):
    """Devices that cannot meet in a collective of their common program, or one of which failed.

    >>> str(CollectiveError("psum over 'data': cpu:1 cannot meet cpu:0 (in pmax)")).splitlines()[0]
    "psum over 'data': cpu:1 cannot meet cpu:0 (in pmax)"
    """


class DistributedError(RuneError, RuntimeError):
    """Processes that cannot continue a common program: one failed, left, or made another call.

    >>> DistributedError("sync_global_devices: cannot go on (process 2 left)").message
    'sync_global_devices: cannot go on (process 2 left)'
    """


class DataError(RuneError, RuntimeError):
    """A run of a pipeline that cannot continue: a worker died, or an earlier error ended it.

    >>> DataError("map: cannot go on (worker process 1 of 4 was ended by SIGKILL)").message
    'map: cannot go on (worker process 1 of 4 was ended by SIGKILL)'
    """


class OutOfMemory(RuneError, MemoryError, RuntimeError):
    """A request for more memory than is free on a device; the message gives the sizes.

    >>> raise OutOfMemory("opencl: cannot allocate 8 GiB (2 GiB free)")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.OutOfMemory: opencl: cannot allocate 8 GiB (2 GiB free)...
    """


class FileError(RuneError, ValueError):
    """A file that is damaged, truncated, or not of the kind that its name says.

    >>> FileError("load: cannot read w.npz (5 bytes)").message
    'load: cannot read w.npz (5 bytes)'
    """


class DeletedArrayError(RuneError, RuntimeError):
    """A donated array used again.

    >>> import rune, rune.numpy as rnp
    >>> x = rnp.ones(2)
    >>> y = rune.jit(lambda x: x + 1, donate_argnums=0)(x)
    >>> x + 1  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.DeletedArrayError: array: cannot read f32[2] (it was donated to a jitted call, ...
    """


class NaNError(RuneError, FloatingPointError):
    """A NaN or an infinity found inside `rune.debug.checks`.

    >>> import rune, rune.numpy as rnp
    >>> with rune.debug.checks(nans=True):  # doctest: +ELLIPSIS
    ...     rnp.log(rnp.array(-1.0))
    Traceback (most recent call last):
    rune.errors.NaNError: log: found NaN in its result f32*[] (first at [])...
    """

    result: int | None = None  # the number of the result that contains it, if any


class ShardingTypeError(RuneError):
    """Operands whose layouts along Explicit axes of a mesh do not determine that of the result.

    >>> raise ShardingTypeError("add: cannot lay out f32[8@a], f32[8@b]")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.ShardingTypeError: add: cannot lay out f32[8@a], f32[8@b]...
    """


class UnhandledEffect(RuneError, RuntimeError):
    """An effect without a handler: a random draw without a key, outside `rune.random.seed`.

    >>> import rune, rune.numpy as rnp
    >>> rune.jit(lambda: rune.random.normal(shape=(2,)))()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.UnhandledEffect: normal: cannot draw without a key here ...
    """


class KeyReuseError(RuneError, TypeError, ValueError):
    """A random key used twice, found under `rune.configure(check_keys=True)`.

    >>> import rune, rune.numpy as rnp
    >>> key = rune.random.key(0)
    >>> with rune.configure(check_keys=True):  # doctest: +ELLIPSIS
    ...     x, y = rune.random.normal(key), rune.random.normal(key)
    Traceback (most recent call last):
    rune.errors.KeyReuseError: key: cannot use a key twice (key<fry> [0, 0]; first used at...
    """


__dir__ = _names(globals())
