"""Calls of Python functions as equations: callbacks of users, library routines, collectives.

An equation `host_call` has the function, the types of its results, and whether it takes a token
from the call before it and returns one for the next (call_order.py adds tokens).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Library
from rune.core.primitive import Collective, Effect, Primitive
from rune.core.program import Equation, Var
from rune.core.types import ArrayType
from rune.core.value_keys import Parameters
from rune.core.values import Value
from rune.lowering.meetings import CollectiveCall, PlaceCall
from rune.records import dataclass

T = TypeVar("T")
# The value of a token is never read; it orders calls only by being passed along.
TOKEN = ArrayType((), dtypes.bool_)
CALLBACK = "callback"  # the routine of the plan's step


Call = Callable[[Sequence[np.ndarray], Sequence[ArrayType]], list[np.ndarray]]
Meaning = Callable[..., np.ndarray | Sequence[np.ndarray]]


@dataclass(frozen=True, slots=True, eq=False)
class HostFunction:
    """A function that a step of a plan calls: NumPy arrays, types of the results -> NumPy arrays.

    With `has_token`, the last argument and the last result are the token. A function that `borrows`
    keeps no array after the call, so its arguments need not be copies. `operands` and `results` are
    the types in the program, which the slots of the step must have (plan_types.py).
    """

    call: Call
    has_token: bool
    operands: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    borrows: bool = False

    def __call__(self, arrays: Sequence[np.ndarray], types: Sequence[ArrayType]) -> list[np.ndarray]:
        """The results."""
        if not self.has_token:
            return self.call(arrays, types)
        # The user's function knows nothing of tokens.
        return [*self.call(arrays[:-1], types[:-1]), np.zeros((), TOKEN.dtype)]

    def __str__(self) -> str:
        return str(self.call)


def _type_rule(*_types: ArrayType, results: Sequence[ArrayType], has_token: bool, **_: object) -> tuple[ArrayType, ...]:
    return (*results, *((TOKEN,) if has_token else ()))


host_call = Primitive("host_call", "host", _type_rule, multiple_results=True, effect=lambda *, effect, **_: effect)


def write_host_call(args: Sequence[Value], *, call: Any, results: Any, effect: Effect | None, **_: object) -> Any:
    """Bind a call, without a token so far."""
    types = tuple(s.array_type for s in results)
    return host_call(*args, call=call, results=types, effect=effect, has_token=False)


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """The NumPy meaning of a primitive, as a host function."""

    primitive: Primitive
    params: Parameters

    @property
    def borrows(self) -> bool:
        """Whether it keeps no reference to an argument after the call."""
        return isinstance(self.primitive.lower, Library) and self.primitive.lower.borrows

    def __call__(self, arrays: Sequence[np.ndarray], types: Sequence[ArrayType]) -> list[np.ndarray]:
        """The results, of the types in the plan."""
        assert self.primitive.reference is not None
        return self.by(self.primitive.reference, arrays, types)

    def by(self, function: Meaning, arrays: Sequence[np.ndarray], types: Sequence[ArrayType]) -> list[np.ndarray]:
        """The results of a function with the same meaning."""
        # NaN and infinity are ordinary results, as in a kernel, so NumPy should not warn.
        with np.errstate(all="ignore"):
            results = function(*arrays, **dict(self.params))
        results = results if self.primitive.multiple_results else (results,)
        return [np.asarray(x, t.dtype) for x, t in zip(results, types, strict=True)]

    def __str__(self) -> str:
        return self.primitive.name


def write_library_call(primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> Any:
    """Bind the call of a primitive's NumPy meaning."""
    result_types = primitive.type_rule(*map(type_of, args), **params)
    types = tuple(result_types) if primitive.multiple_results else (result_types,)
    call = LibraryCall(primitive, Parameters(sorted(params.items())))
    outs = host_call(*args, call=call, results=types, effect=None, has_token=False)
    return outs if primitive.multiple_results else outs[0]


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """An array, as a host function that returns it."""

    value: np.ndarray

    def __call__(self, arrays: Sequence[np.ndarray], types: Sequence[ArrayType]) -> list[np.ndarray]:
        """The array."""
        return [self.value]

    def __str__(self) -> str:
        return "constant"


def write_constant(value: Value) -> Var:
    """Bind an array that the program contains; it is passed to the device in every run."""
    type = type_of(value)
    call = Constant(np.asarray(value, type.dtype))
    (out,) = host_call(call=call, results=(type,), effect=None, has_token=False)
    return out.variable


def write_collective(primitive: Primitive, args: Sequence[Value], params: Mapping[str, Hashable]) -> Value:
    """Bind a collective of the devices of a mesh; all devices bind theirs in the same order."""
    type = primitive.type_rule(*map(type_of, args), **params)
    if not args:
        return host_call(call=PlaceCall(params["axis_name"]), results=(type,), effect=None, has_token=False)[0]
    assert isinstance(primitive, Collective)
    call = CollectiveCall(primitive, tuple(sorted(params.items())))
    return host_call(*args, call=call, results=(type,), effect=Effect.ORDERED, has_token=False)[0]


def function_of(equation: Equation) -> HostFunction:
    """The function that an equation calls."""
    call = equation.params["call"]
    inner = call.call if isinstance(call, AsComplex) else call
    return HostFunction(
        call,
        equation.params["has_token"],
        tuple(a.type for a in equation.operands),
        tuple(v.type for v in equation.results),
        # Only rune's own functions are known not to keep the arrays they receive.
        inner.borrows if isinstance(inner, LibraryCall) else isinstance(inner, CollectiveCall | PlaceCall),
    )


@dataclass(frozen=True, slots=True, eq=False)
class AsComplex:
    """A function of complex arrays, called with their parts side by side along a last axis.

    `operands` and `results` are those of the function itself: no token is among them.
    """

    call: Call
    operands: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]

    def __call__(self, arrays: Sequence[np.ndarray], types: Sequence[ArrayType]) -> list[np.ndarray]:
        """The results, complex ones as their parts."""
        operands = [_joined(a, t.dtype) for a, t in zip(arrays, self.operands, strict=True)]
        result_types = [
            t if t.dtype == result_type.dtype else result_type.with_shape(t.shape[:-1])
            for t, result_type in zip(types, self.results, strict=True)
        ]
        results = self.call(operands, result_types)
        return [_apart(x, t.dtype) for x, t in zip(results, types, strict=True)]

    def __str__(self) -> str:
        return str(self.call)


def _joined(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    # The two parts are neighbours, so the view reduces the last axis from 2 to 1.
    return array if array.dtype == dtype else np.asarray(array, order="C").view(dtype)[..., 0]


def _apart(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if array.dtype == dtype:
        return array
    # np.ascontiguousarray would add an axis to a single number.
    return np.asarray(array, order="C")[..., None].view(dtype)
