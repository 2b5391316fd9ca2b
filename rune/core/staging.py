"""Staging: run a function on tracers and write down the equations that it binds.

A value from outside (an array, or a tracer of an outer transformation) that is combined with a
tracer of the stage is captured: it becomes an extra leading input of the program, and its value is
returned beside the program. Rank-0 concrete values become literals. Each equation has the user's
line. Nothing is computed and no array is allocated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeGuard

import numpy as np

from rune import dtypes
from rune.core.captures import Captures
from rune.core.interpreter import Axis, Interpreter, Tracer, current, outermost, type_of
from rune.core.primitive import Primitive
from rune.core.program import Atom, Equation, Literal, Program, Var
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.core.varying import typed_equation
from rune.dims import UndecidedComparison
from rune.errors import Frame, TransformError, user_frame
from rune.records import dataclass

FlatFunction = Callable[..., Sequence[Any]]


class StageTracer(Tracer):
    """A variable of the program being written."""

    __slots__ = ("variable",)

    def __init__(self, interpreter: Stage, var: Var, frame: Frame | None):
        self.interpreter, self.variable, self.frame = interpreter, var, frame

    @property
    def type(self) -> ArrayType:
        """The variable's type."""
        return self.variable.type


class Stage(Interpreter):
    """Writes equations. Its tracers have arithmetic, by the outermost interpreter's `stage_tracer`.

    is_stored: whether a caller holds the program for as long as it is useful
    """

    __slots__ = ("captures", "equations", "inputs", "is_stored")

    def __init__(self, parent: Interpreter | None):
        super().__init__(parent)
        self.inputs: list[Var] = []
        self.equations: list[Equation] = []
        self.captures = Captures(parent, copies=not self.is_staged)
        self.is_staged, self.is_stored = True, False

    def inner(self) -> Stage:
        """A stage for a program that an equation of this one holds."""
        return Stage(self)

    def owns(self, value: Value) -> TypeGuard[StageTracer]:
        """Whether a value is a tracer of this stage."""
        return isinstance(value, StageTracer) and value.interpreter is self

    def atom(self, value: Value) -> Atom:
        """The variable or literal of a value."""
        return value.variable if self.owns(value) else as_literal(value) or self._capture(value)

    def _capture(self, value: Value) -> Var:
        return self.captures.variable(value)

    def write(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> Any:
        """Write one equation; its results are tracers."""
        atoms = tuple(map(self.atom, args))
        params, types = _typed(primitive, [a.type for a in atoms], params, self.is_typed)
        results, frame = tuple(map(Var, types)), user_frame()
        self.equations.append(Equation(primitive, atoms, dict(params), results, frame))
        tracers = [outermost().stage_tracer(self, v, frame) for v in results]
        return tracers if primitive.multiple_results else tracers[0]

    process = write  # a subclass may choose what it writes


@dataclass(frozen=True, slots=True)
class Staged:
    """A program and the values for its leading inputs."""

    program: Program
    captured: tuple[Value, ...]
    axes: Mapping[Hashable, Axis] = field(default_factory=dict)  # named axes outside that it uses

    @property
    def own_inputs(self) -> tuple[Var, ...]:
        """The inputs that are not captured."""
        return self.program.inputs[len(self.captured) :]

    def closed(self) -> Program:
        """The program with the captured arrays as its constants.

        Errors: TransformError if a traced value was captured: it belongs to one call alone.
        """
        for value in self.captured:
            if isinstance(value, Tracer):
                raise TransformError(
                    f"{self.program.name}: cannot close over a traced value {value.type}",
                    hint="pass it to the function as an argument",
                )
        return self.with_captured()

    def with_captured(self) -> Program:
        """The program with all captured values as its constants.

        A traced one belongs to a trace around the program, as what a custom rule closes over does.
        Where the program is bound, in that trace, it becomes an operand.
        """
        if not self.captured:
            return self.program
        constants = tuple(zip(self.program.inputs, self.captured, strict=False))
        return replace(self.program, inputs=self.own_inputs, constants=constants)


def _typed(
    primitive: Primitive, types: Sequence[ArrayType], params: Mapping[str, object], may_vary: bool
) -> tuple[Mapping[str, object], tuple[ArrayType, ...]]:
    try:
        if may_vary:
            return typed_equation(primitive, types, params)
        out = primitive.type_rule(*types, **params)
        return params, out if primitive.multiple_results else (out,)
    except UndecidedComparison as error:
        error.during(primitive.name, ", ".join(map(str, types)))
        raise


def as_literal(value: Any) -> Literal | None:
    """A literal for a rank-0 concrete value, else None."""
    if isinstance(value, Tracer):
        return None
    scalar = None if hasattr(value, "rank0") else dtypes.scalar_type(value)
    if scalar is not None:
        return Literal(np.asarray(value, scalar[0]), ArrayType((), *scalar))
    data = value if isinstance(value, np.ndarray | np.generic) else value.rank0()
    if data is None or np.ndim(data) != 0:
        return None
    return Literal(np.array(data), type_of(value))


def stage(function: FlatFunction, types: Sequence[ArrayType], name: str = "f") -> Staged:
    """The program of `function` on flat arguments of these types; it returns flat results."""
    return trace_program(Stage(current()), function, types, name)


def trace_program(stage: Stage, function: FlatFunction, types: Sequence[ArrayType], name: str) -> Staged:
    """The program that `function` writes on a new stage, with inputs of these types."""
    inputs = [new_input(stage, t) for t in types]
    return stage.trace(lambda: finish(stage, list(function(*inputs)), name))


def new_input(stage: Stage, type: ArrayType) -> StageTracer:
    """A tracer for one more input."""
    stage.inputs.append(Var(type))
    return outermost().stage_tracer(stage, stage.inputs[-1], user_frame())


def finish(stage: Stage, outputs: Sequence[Value], name: str) -> Staged:
    """The program that was written; captured values are its first inputs."""
    atoms = tuple(map(stage.atom, outputs))
    captured = stage.captures.entries.values()
    inputs = (*(var for var, _ in captured), *stage.inputs)
    program = Program(inputs, tuple(stage.equations), atoms, name=name)
    return Staged(program, tuple(value for _, value in captured), stage.axes)


def is_kept() -> bool:
    """Whether a program being written here, or one around it, will be held by a caller."""
    enclosing = _stage_around(current())
    while enclosing is not None and not enclosing.is_stored:
        enclosing = _stage_around(enclosing.parent)
    return enclosing is not None


def _stage_around(interpreter: Interpreter | None) -> Stage | None:
    """The innermost stage from this interpreter outwards."""
    while interpreter is not None and not isinstance(interpreter, Stage):
        interpreter = interpreter.parent
    return interpreter
