"""A program as a straight line of the NumPy functions that eager evaluation would call.

Eager evaluation promotes, looks up and types each operation anew, which takes most of the time for
small arrays. A line calls the same functions on the same operands, and so gives the same bits. It
is a Python function with a line of text for each of them: a loop over them would take as long as
the shorter ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rune import float_errors
from rune.backends.cpu.meanings import meaning_of
from rune.core.higher import equation_program
from rune.core.primitive import EXTENSION, Direct, Primitive
from rune.core.program import Atom, Equation, Literal, Program, Var

Line: TypeAlias = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]
_Function: TypeAlias = Callable[..., Any]

# What a step does with what its function returns: an array, a number, or several arrays.
_ARRAY, _NUMBER, _ARRAYS = "{0} = {1}({2})", "{0} = asarray({1}({2}))", "[{0}] = {1}({2})"
_BEFORE = ("settings = ignore()", "try:")  # as in eager evaluation 1 / 0 is inf, and no warning
_AFTER = ("finally:", "    restore(settings)")
_SCOPE: Mapping[str, object] = {"ignore": float_errors.ignore, "restore": float_errors.restore, "asarray": np.asarray}


def straight_line(program: Program) -> Line | None:
    """The program on buffers; None if NumPy's functions alone cannot run it.

    Loops, calls of compiled functions and effects cannot be part of a line.
    """
    writer = LineWriter()
    inputs = [writer.slot(v) for v in program.inputs]
    if program.constants or not all(map(writer.can_write, program.equations)):
        return None
    return writer.line(inputs, program.outputs)


class _Step(NamedTuple):
    """A function, its operands and results by number, and the text of the step."""

    function: _Function
    operands: Sequence[int]
    results: Sequence[int]
    text: str


def _typed(function: _Function, dtypes: Sequence[np.dtype]) -> _Function:
    """A function of several results, as arrays of these dtypes."""
    return lambda *operands: map(np.asarray, function(*operands), dtypes)


def _function(steps: Sequence[_Step], constants: Mapping[int, np.ndarray], inputs: str, outputs: str) -> Line:
    """The steps as a function of the inputs, in which value 3 is `v3`."""
    body = [s.text.format(_names(s.results), f"f{k}", _names(s.operands)) for k, s in enumerate(steps)]
    inside = [f"    {line}" for line in (*body, f"return [{outputs}]")]
    lines = ["def line(arrays):", f"[{inputs}] = arrays", *_BEFORE, *inside, *_AFTER]
    scope = {**_SCOPE, **{f"v{number}": constant for number, constant in constants.items()}}
    scope.update((f"f{k}", step.function) for k, step in enumerate(steps))
    exec("\n    ".join(lines), scope)
    line: Line = scope["line"]  # type: ignore[assignment]  # what the text defines
    return line


def _names(numbers: Sequence[int]) -> str:
    return ", ".join([f"v{number}" for number in numbers])


class LineWriter:
    """The steps so far, those on constants apart, the constants, and the numbers of variables."""

    def __init__(self) -> None:
        self.steps: list[_Step] = []
        # Constants are computed when the line is written, not in every call.
        self._constant_steps: list[_Step] = []
        self._literals: dict[int, np.ndarray] = {}
        self._constants: set[int] = set()  # numbers of literals, and of what is computed of them
        self._numbers = count()
        self._slots: dict[Var, int] = {}

    def slot(self, atom: Atom) -> int:
        """The number of a value."""
        if isinstance(atom, Literal):
            number = next(self._numbers)
            self._literals[number] = atom.value
            self._constants.add(number)
            return number
        # This leaves gaps in the numbers.
        return self._slots.setdefault(atom, next(self._numbers))

    def add(self, function: _Function, operands: Sequence[Atom], results: Sequence[Atom]) -> None:
        """Add a step whose function returns several arrays."""
        self._add(_Step(function, [*map(self.slot, operands)], [*map(self.slot, results)], _ARRAYS))

    def _add(self, step: _Step) -> None:
        if self._constants.issuperset(step.operands):
            self._constant_steps.append(step)
            self._constants.update(step.results)
        else:
            self.steps.append(step)

    def can_write(self, equation: Equation) -> bool:
        """Add an equation to the line. Returns False if NumPy's functions cannot compute it."""
        inner = equation_program(equation)
        if inner is not None and equation.primitive.name in INLINED and not inner.constants:
            self._slots.update(zip(inner.inputs, map(self.slot, equation.operands), strict=True))
            if not all(map(self.can_write, inner.equations)):
                return False
            self._slots.update(zip(equation.results, map(self.slot, inner.outputs), strict=True))
            return True
        primitive = equation.primitive
        if primitive.reference is None or not _is_plain(primitive):
            return False
        function = meaning_of(primitive, [a.type for a in equation.operands], equation.params)
        if primitive.multiple_results:
            self.add(_typed(function, [v.type.dtype for v in equation.results]), equation.operands, equation.results)
        else:
            self._add_single(function, equation.operands, equation.results[0])
        return True

    def _add_single(self, function: _Function, operands: Sequence[Atom], result: Var) -> None:
        # NumPy returns numbers in place of arrays of rank 0.
        text = _ARRAY if result.type.ndim else _NUMBER
        self._add(_Step(function, [*map(self.slot, operands)], [self.slot(result)], text))

    def line(self, inputs: Sequence[int], outputs: Sequence[Atom]) -> Line:
        """The steps as a function of buffers."""
        results = [*map(self._result, outputs)]
        computed = [number for step in self._constant_steps for number in step.results]
        values = _function(self._constant_steps, self._literals, "", _names(computed))(())
        constants = {**self._literals, **dict(zip(computed, values, strict=True))}
        return _function(self.steps, constants, _names(inputs), _names(results))

    def _result(self, atom: Atom) -> int:
        """The number of an output: constants are copied, since the next call needs them, too."""
        number = self.slot(atom)
        if number not in self._constants:
            return number
        copy = next(self._numbers)
        self.steps.append(_Step(np.array, [number], [copy], _ARRAY))
        return copy


INLINED = ("custom_jvp", "custom_vjp")  # whose first program eager evaluation runs operation by operation


def _is_plain(primitive: Primitive) -> bool:
    """Whether eager evaluation runs the primitive's NumPy meaning."""
    has_own_run = isinstance(primitive, Direct) and primitive.run is not None
    return not has_own_run and primitive.family != EXTENSION and primitive.effect is None
