"""Calls of Python functions, put in the order of the program where they have side effects.

Before   = host_call %0 {...};  %2 = loop %1 {body: ... = host_call ...}
After    %t = host_call %0, false {...};  %2, %u = loop %1, %t {body takes and gives a token}

A call with side effects takes the token of the one before it and gives the next one, also through
loops and branches. So the order is a matter of data, which every later stage keeps.

Invariant: the calls happen once each, in order; values do not change.
Cost:      linear in the number of equations.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Library
from rune.core.primitive import Collective, Effect, Primitive
from rune.core.program import Atom, Equation, Literal, Program, Var, map_programs
from rune.core.side_effects import effect_of, program_effect
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.lowering.meetings import CollectiveCall, PlaceCall
from rune.lowering.passes import Pass
from rune.ops import add
from rune.ops.branch import branch
from rune.ops.loop import COUNTER, LoopParams, loop
from rune.records import dataclass

T = TypeVar("T")
# The value of a token is never read; it orders calls only by being passed along.
TOKEN = ArrayType((), dtypes.bool_)
CALLBACK = "callback"  # the routine of the plan's step


Call = Callable[[Sequence[np.ndarray], Sequence[ArrayType]], list[np.ndarray]]


@dataclass(frozen=True, slots=True, eq=False)
class HostFunction:
    """What the step of a plan calls: NumPy arrays, types of the results -> NumPy arrays.

    With `has_token` the last array in and the last result are the token. One that `borrows` keeps
    none of the arrays that it is given: they need not be copies. `operands` and `results` are the
    types that the program says, which the slots of the step must have (plan_check.py).
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
    """Bind a call whose order is not settled yet."""
    types = tuple(s.array_type for s in results)
    return host_call(*args, call=call, results=types, effect=effect, has_token=False)


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """The NumPy meaning of a primitive, as a host function."""

    primitive: Primitive
    params: tuple[tuple[str, object], ...]

    @property
    def borrows(self) -> bool:
        """Whether it keeps none of the arrays that it is given."""
        return isinstance(self.primitive.lower, Library) and self.primitive.lower.borrows

    def __call__(self, arrays: Sequence[np.ndarray], types: Sequence[ArrayType]) -> list[np.ndarray]:
        """The results, of the types that the plan holds."""
        reference = self.primitive.reference
        assert reference is not None
        # NaN and infinity are ordinary results, as in a kernel, so NumPy should not warn.
        with np.errstate(all="ignore"):
            results = reference(*arrays, **dict(self.params))
        results = results if self.primitive.multiple_results else (results,)
        return [np.asarray(x, t.dtype) for x, t in zip(results, types, strict=True)]

    def __str__(self) -> str:
        return self.primitive.name


def write_library_call(primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> Any:
    """Bind the call of a primitive's NumPy meaning."""
    result_types = primitive.type_rule(*map(type_of, args), **params)
    types = tuple(result_types) if primitive.multiple_results else (result_types,)
    call = LibraryCall(primitive, tuple(sorted(params.items())))
    outs = host_call(*args, call=call, results=types, effect=None, has_token=False)
    return outs if primitive.multiple_results else outs[0]


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """An array, as a host function that gives it."""

    value: np.ndarray

    def __call__(self, arrays: Sequence[np.ndarray], types: Sequence[ArrayType]) -> list[np.ndarray]:
        """The array."""
        return [self.value]

    def __str__(self) -> str:
        return "constant"


def write_constant(value: Value) -> Var:
    """Bind an array that the program brings along; it is handed over in every run."""
    type = type_of(value)
    call = Constant(np.asarray(value, type.dtype))
    (out,) = host_call(call=call, results=(type,), effect=None, has_token=False)
    return out.variable


def write_collective(primitive: Primitive, args: Sequence[Value], params: Mapping[str, Hashable]) -> Value:
    """Bind what the devices of a mesh tell each other; all of them do so in one order."""
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
        wanted = [
            t if t.dtype == result_type.dtype else result_type.with_shape(t.shape[:-1])
            for t, result_type in zip(types, self.results, strict=True)
        ]
        results = self.call(operands, wanted)
        return [_apart(x, t.dtype) for x, t in zip(results, types, strict=True)]

    def __str__(self) -> str:
        return str(self.call)


def _joined(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    # The two parts lie side by side; the view reduces the last axis from 2 to 1.
    return array if array.dtype == dtype else np.asarray(array, order="C").view(dtype)[..., 0]


def _apart(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if array.dtype == dtype:
        return array
    # A single number stays one: np.ascontiguousarray would give it an axis.
    return np.asarray(array, order="C")[..., None].view(dtype)


# --- order --------------------------------------------------------------------------------------


def in_order(program: Program) -> Program:
    """The program with a token from each call with side effects to the next."""
    if program_effect(program) is None:
        return program
    # The first call takes a constant as its token.
    first = Literal(np.zeros((), TOKEN.dtype), TOKEN)
    equations, _ = _thread(program.equations, first)
    return program.with_equations(equations, program.outputs)


def _thread(equations: Iterable[Equation], token: Atom) -> tuple[list[Equation], Atom]:
    threaded: list[Equation] = []
    for equation in itertools.chain.from_iterable(map(_rotated, equations)):
        # Loops and branches have the effect of the calls within them.
        if effect_of(equation) is not None:
            result = Var(TOKEN)
            equation = _behind(equation, token, result)
            token = result
        threaded.append(equation)
    return threaded, token


def _behind(equation: Equation, token: Atom, result: Var) -> Equation:
    """The equation, taking a token and giving the next."""
    operands = (*equation.operands, token)
    if equation.primitive is loop:
        return _loop_behind(equation, operands, result)
    if equation.primitive is branch:
        # Branches without calls get a token too, because all must have the same type.
        params = map_programs(equation.params, lambda b: _with_token(b, len(b.inputs), len(b.outputs)))
    else:
        params = {**equation.params, "has_token": True}
    results = (*equation.results, result)
    return replace(equation, operands=operands, results=results, params=params)


def _loop_behind(equation: Equation, operands: tuple[Atom, ...], result: Var) -> Equation:
    """The token is the last carry, before the arrays that the steps fill."""
    form = LoopParams.of(equation)
    condition, carries = form.condition, len(equation.operands) - form.consts
    threaded = replace(
        form,
        body=_with_token(form.body, 1 + len(equation.operands), carries),
        # The condition takes all carries; it makes no calls and ignores the token.
        condition=condition and replace(condition, inputs=(*condition.inputs, Var(TOKEN))),
    )
    results = _inserted(equation.results, carries, result)
    return replace(equation, operands=operands, results=results, params=threaded.params())


def _rotated(equation: Equation) -> list[Equation]:
    """A loop whose condition calls Python, with the condition computed before and in each step.

    Whether to go on is then a carry, and the condition of the loop only looks at it.
    """
    form = LoopParams.of(equation) if equation.primitive is loop else None
    condition = form and form.condition
    if form is None or condition is None or program_effect(condition) is None:
        return [equation]
    body, consts, count = form.body, form.consts, len(equation.operands)
    carries, t, zero, one = count - consts, Var(COUNTER), _integer(0), _integer(1)
    # The condition of step 0, computed before the loop.
    before, first = _copied(condition, (zero, *equation.operands))
    step = Equation(add, (body.inputs[0], one), {}, (t,))
    condition_operands = (t, *body.inputs[1 : 1 + consts], *body.outputs[:carries])
    after, again = _copied(condition, condition_operands)
    rotated = replace(
        form,
        body=replace(
            body,
            # Here TOKEN only stands for bool[], the type of the condition's answer.
            inputs=_inserted(body.inputs, 1 + count, Var(TOKEN)),
            equations=(*body.equations, step, *after),
            outputs=_inserted(body.outputs, carries, again),
        ),
        # The answer is the last carry, so the new condition returns its last input.
        condition=_last_input((*condition.input_types, TOKEN)),
    )
    results = _inserted(equation.results, carries, Var(TOKEN))
    operands = (*equation.operands, first)
    threaded = replace(equation, operands=operands, results=results, params=rotated.params())
    return [*before, threaded]


def _copied(program: Program, args: Sequence[Atom]) -> tuple[list[Equation], Atom]:
    """The equations of a program on these arguments, with variables of their own; its result."""
    env: dict[Atom, Atom] = dict(zip(program.inputs, args, strict=True))
    equations = []
    for equation in program.equations:
        operands = tuple(env.get(a, a) for a in equation.operands)
        # The equations are inlined twice, so each copy needs its own variables.
        results = tuple(Var(v.type) for v in equation.results)
        env.update(zip(equation.results, results, strict=True))
        equations.append(replace(equation, operands=operands, results=results))
    return equations, env.get(program.outputs[0], program.outputs[0])


def _last_input(types: Sequence[ArrayType]) -> Program:
    inputs = tuple(map(Var, types))
    return Program(inputs, (), inputs[-1:], name="condition")


def _integer(value: int) -> Literal:
    return Literal(np.asarray(value, COUNTER.dtype), COUNTER)


def _inserted(items: tuple[T, ...], at: int, item: T) -> tuple[T, ...]:
    return (*items[:at], item, *items[at:])


def _with_token(program: Program, at: int, out: int) -> Program:
    """The program with a token as input number `at` and output number `out`."""
    token = Var(TOKEN)
    equations, last = _thread(program.equations, token)
    inputs, outputs = _inserted(program.inputs, at, token), _inserted(program.outputs, out, last)
    return replace(program, inputs=inputs, equations=tuple(equations), outputs=outputs)


PASS = Pass("order-calls", "put calls with side effects in order", in_order)
