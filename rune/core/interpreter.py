"""Dispatch by context: every `bind` calls the one current interpreter.

A transformation installs an interpreter and runs the user's function; operations bind primitives;
the interpreter processes them, usually by binding other primitives in its `parent`, the interpreter
that was current outside it. The outermost one evaluates. Values are concrete arrays (anything with
a `type`), NumPy arrays (typed constants of rules) and tracers; to an interpreter, the tracers of
all others are constants, so nested derivatives cannot be confused.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from rune import config, dtypes
from rune.core.depth import FLAT, make_room
from rune.core.jax_names import InterpreterNames, TracerNames
from rune.core.leaks import refuse_leaks
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size
from rune.errors import Frame, in_copied_context

if TYPE_CHECKING:
    from rune.core.primitive import Primitive
    from rune.core.staging import StageTracer

R = TypeVar("R")


class Axis(NamedTuple):
    """A named axis (axes.py), as the code inside it sees it.

    is_typed:    whether the types of values tell if these vary along it
    has_devices: whether each of its places is a device
    """

    size: Size
    is_typed: bool = False
    has_devices: bool = False


class Interpreter(InterpreterNames):
    """The meaning of primitives in one context. `parent` is the interpreter outside this one.

    axes:      the named axes outside this interpreter that code inside it has used
    is_typed:  whether types tell how values vary (varying.py)
    is_staged: whether this interpreter, or one outside it, writes a program

    stage_tracer: the class of the tracers of programs, known to the outermost interpreter
    """

    stage_tracer: ClassVar[type[StageTracer]]
    __slots__ = ("__weakref__", "axes", "depth", "is_staged", "is_typed", "live", "parent")

    def __init__(self, parent: Interpreter | None):
        self.parent = parent
        self.axes: dict[Hashable, Axis] = {}
        self.live = True
        self.is_typed: bool = parent is not None and parent.is_typed
        self.is_staged: bool = parent is not None and parent.is_staged
        self.depth = 0 if parent is None else parent.depth + 1
        if self.depth > FLAT:
            make_room(self.depth)

    def trace(self, function: Callable[..., R], *args: object) -> R:
        """`function(*args)` while this interpreter is current; its tracers are dead afterwards.

        It runs in a copy of the context (`errors.in_copied_context`), so that no interrupt can
        leave the interpreter current.
        Errors: EscapedTracerError if leaks are checked and the function stored a tracer.
        """
        return in_copied_context(_trace, self, function, args)

    def process(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> Any:
        """The result of `primitive` on `args`; a list for primitives with several results."""
        raise NotImplementedError(type(self).__name__)

    def named_axis(self, name: Hashable) -> Axis | None:
        """The axis of that name, if this interpreter names it."""
        return None


class Tracer(TracerNames):
    """A value inside a transformation. It has a type and an owner, and no arithmetic of its own."""

    __slots__ = ("__weakref__", "frame", "interpreter")
    interpreter: Interpreter
    frame: Frame | None

    @property
    def type(self) -> ArrayType:
        """Shape, dtype and weakness."""
        raise NotImplementedError


_current: ContextVar[Interpreter] = ContextVar("rune_interpreter")
_outermost: list[Interpreter] = []


def install_outermost(interpreter: Interpreter) -> None:
    """Set the evaluating interpreter: `rune/__init__.py` does so once.

    The language cannot import it, since it computes with arrays, which are defined in terms of the
    language.
    """
    _outermost[:] = [interpreter]


def outermost() -> Interpreter:
    """The interpreter that evaluates."""
    return _outermost[0]


def dispatch() -> tuple[ContextVar[Interpreter], Interpreter]:
    """The variable with the current interpreter, and the one that evaluates: for native code."""
    return _current, _outermost[0]


def current() -> Interpreter:
    """The current interpreter."""
    interpreter = _current.get(None)
    return _outermost[0] if interpreter is None else interpreter


def is_evaluating() -> bool:
    """True when no transformation is being traced in this context."""
    interpreter = _current.get(None)
    return interpreter is None or interpreter is _outermost[0]


class use:
    """Make an interpreter the current one inside the block, which must be part of a trace."""

    __slots__ = ("interpreter", "token")

    def __init__(self, interpreter: Interpreter):
        self.interpreter = interpreter

    def __enter__(self) -> None:
        self.token = _current.set(self.interpreter)

    def __exit__(self, error: object, value: object, traceback: object) -> None:
        _current.reset(self.token)


def _trace(interpreter: Interpreter, function: Callable[..., R], args: Sequence[Value]) -> R:
    _current.set(interpreter)
    try:
        result = function(*args)
    finally:
        interpreter.live = False
    if config.current().check_leaks:
        refuse_leaks([x for x in gc.get_referrers(interpreter) if isinstance(x, Tracer)])
    return result


def bind(primitive: Primitive, *args: Any, **params: object) -> Any:
    """Apply a primitive in the current context."""
    interpreter = _current.get(None)
    return (_outermost[0] if interpreter is None else interpreter).process(primitive, args, params)


def type_of(value: Any) -> ArrayType:
    """The type of an array, a tracer, a NumPy array or a Python scalar (weak)."""
    array_type = getattr(value, "type", None)
    if array_type is not None:
        return array_type
    scalar = dtypes.scalar_type(value)
    return ArrayType(value.shape, value.dtype) if scalar is None else ArrayType((), *scalar)


def literal(value: object, dtype: np.dtype) -> np.ndarray:
    """A typed rank-0 constant for use in rules."""
    return np.asarray(value).astype(dtype)


def literal_like(value: object, like: object) -> np.ndarray:
    """A typed rank-0 constant with the dtype of `like`."""
    return literal(value, type_of(like).dtype)


def is_differentiable(value: object) -> bool:
    """Whether `value` can carry a tangent."""
    return type_of(value).dtype in dtypes.INEXACT
