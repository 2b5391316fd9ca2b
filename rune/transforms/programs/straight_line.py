"""A program as a straight line of the NumPy functions that eager evaluation would call.

Eager evaluation promotes, looks up and types each operation anew, which takes most of the time for
small arrays. A line calls the same functions on the same operands, and so gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from rune import float_errors
from rune.backends.cpu.meanings import meaning_of
from rune.core.higher import equation_program
from rune.core.primitive import EXTENSION, Direct, Primitive
from rune.core.program import Atom, Equation, Literal, Program, Var

Line: TypeAlias = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
_Function: TypeAlias = Callable[..., np.ndarray | Sequence[np.ndarray]]
# Takes the operands of a function from all values so far.
_Operands: TypeAlias = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]
_Dtypes: TypeAlias = Sequence[np.dtype] | None  # for several results, () if they are arrays; None for one


def straight_line(program: Program) -> Line | None:
    """The program on buffers; None if NumPy's functions alone cannot run it.

    Loops, calls of compiled functions and effects cannot be part of a line.
    """
    writer = LineWriter()
    inputs = [writer.slot(v) for v in program.inputs]
    if program.constants or not all(map(writer.can_write, program.equations)):
        return None
    return writer.line(inputs, program.outputs)


def _run(
    steps: Sequence[tuple[_Function, _Operands, _Dtypes]],
    constants: Sequence[np.ndarray],
    outputs: Sequence[int],
    args: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """Constants, arguments and results of steps, in that order; they include the outputs."""
    values = [*constants, *args]
    # As in eager evaluation 1 / 0 is inf, and no warning.
    settings = float_errors.ignore()
    try:
        for function, operands, dtypes in steps:
            out = function(*operands(values))
            if dtypes is None:
                values.append(np.asarray(out))
            else:
                values.extend(map(np.asarray, out, dtypes) if dtypes else out)
    finally:
        float_errors.restore(settings)
    return [values[place] for place in outputs]


def _taking(places: Sequence[int]) -> _Operands:
    """A function that takes the values at these places."""
    if len(places) == 1:
        return itemgetter(slice(places[0], places[0] + 1))  # of one index it would return no sequence
    return itemgetter(*places) if places else lambda values: ()


class _Step(NamedTuple):
    """A function, its operands and results by number, and the dtypes of several results."""

    function: _Function
    operands: Sequence[int]
    results: Sequence[int]
    dtypes: _Dtypes


class LineWriter:
    """The steps so far, the values before the first step, and the numbers of variables."""

    def __init__(self) -> None:
        self.steps: list[_Step] = []
        self.start: dict[int, np.ndarray] = {}
        self._numbers = count()
        self._slots: dict[Var, int] = {}

    def slot(self, atom: Atom) -> int:
        """The number of a value."""
        if isinstance(atom, Literal):
            number = next(self._numbers)
            self.start[number] = atom.value
            return number
        # This leaves gaps in the numbers, which `line` replaces by places.
        return self._slots.setdefault(atom, next(self._numbers))

    def add(self, function: _Function, operands: Sequence[Atom], results: Sequence[Atom], dtypes: _Dtypes) -> None:
        """Add a step; one on constants is run now. dtypes: for several results, () if they are
        arrays, None for one."""
        step = _Step(function, [*map(self.slot, operands)], [*map(self.slot, results)], dtypes)
        # Constants are computed when the line is written, not in every call.
        if self.start.keys() >= {*step.operands}:
            values = [self.start[number] for number in step.operands]
            places = range(len(values), len(values) + len(results))
            outs = _run([(function, _taking(range(len(values))), dtypes)], (), places, values)
            self.start.update(zip(step.results, outs, strict=True))
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
        dtypes = [v.type.dtype for v in equation.results] if primitive.multiple_results else None
        self.add(function, equation.operands, equation.results, dtypes)
        return True

    def line(self, inputs: Sequence[int], outputs: Sequence[Atom]) -> Line:
        """The steps as a function of buffers."""
        results = [*map(self._result, outputs)]
        # The order in which `_run` has the values in its list.
        order = [*self.start, *inputs, *[number for step in self.steps for number in step.results]]
        places = {number: place for place, number in enumerate(order)}
        steps = [(s.function, _taking([places[n] for n in s.operands]), s.dtypes) for s in self.steps]
        return partial(_run, steps, [*self.start.values()], [places[number] for number in results])

    def _result(self, atom: Atom) -> int:
        """The number of an output: constants are copied, since the next call needs them, too."""
        number = self.slot(atom)
        if number not in self.start:
            return number
        copy = next(self._numbers)
        self.steps.append(_Step(np.array, [number], [copy], None))
        return copy


INLINED = ("custom_jvp", "custom_vjp")  # whose first program eager evaluation runs operation by operation


def _is_plain(primitive: Primitive) -> bool:
    """Whether eager evaluation runs the primitive's NumPy meaning."""
    has_own_run = isinstance(primitive, Direct) and primitive.run is not None
    return not has_own_run and primitive.family != EXTENSION and primitive.effect is None
