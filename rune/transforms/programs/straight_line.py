"""A program as a straight line of NumPy's functions: what eager evaluation computes.

Eager evaluation promotes, indexes and types each operation anew, which takes most of the time of
small arrays. A line has the same functions on the same operands, and so the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TypeAlias

import numpy as np

from rune.backends.cpu.meanings import meaning
from rune.core.higher import equation_program
from rune.core.primitive import EXTENSION, Direct, Primitive
from rune.core.program import Atom, Equation, Literal, Program, Var
from rune.ops.contraction import dot_general, product_of

Line: TypeAlias = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
# A function, where its operands and results stand, and the dtypes of several results.
_Function: TypeAlias = Callable[..., np.ndarray | Sequence[np.ndarray]]
_Step: TypeAlias = tuple[_Function, Sequence[int], Sequence[int], Sequence[np.dtype] | None]


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
    steps: Sequence[_Step],
    start: Mapping[int, np.ndarray],
    inputs: Sequence[int],
    outputs: Sequence[int],
    args: Sequence[np.ndarray],
) -> list[np.ndarray]:
    values = {**start, **dict(zip(inputs, args, strict=True))}
    _take(steps, values)
    return [values[i] for i in outputs]


def _take(steps: Sequence[_Step], values: dict[int, np.ndarray]) -> None:
    with np.errstate(all="ignore"):
        for function, operands, results, dtypes in steps:
            out = function(*[values[i] for i in operands])
            if dtypes is None:
                values[results[0]] = np.asarray(out)
            else:
                values.update(zip(results, map(np.asarray, out, dtypes), strict=True))


class LineWriter:
    """The steps so far, the values there are before the first, and where variables stand."""

    def __init__(self) -> None:
        self.steps: list[_Step] = []
        self.start: dict[int, np.ndarray] = {}
        self._numbers = count()
        self._slots: dict[Var, int] = {}

    def slot(self, atom: Atom) -> int:
        """Where a value stands."""
        if isinstance(atom, Literal):
            number = next(self._numbers)
            self.start[number] = atom.value
            return number
        return self._slots.setdefault(atom, next(self._numbers))

    def add(
        self, function: _Function, operands: Sequence[Atom], results: Sequence[Atom], dtypes: Sequence[np.dtype] | None
    ) -> None:
        """One more step; of constants it is taken now. dtypes: of several results, None for one."""
        step = function, [*map(self.slot, operands)], [*map(self.slot, results)], dtypes
        if self.start.keys() >= {*step[1]}:
            _take([step], self.start)
        else:
            self.steps.append(step)

    def can_write(self, equation: Equation) -> bool:
        """Whether an equation is in the line now."""
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
        function = _function_of(equation) or partial(meaning(primitive), **equation.params)
        dtypes = [v.type.dtype for v in equation.results] if primitive.multiple_results else None
        self.add(function, equation.operands, equation.results, dtypes)
        return True

    def line(self, inputs: Sequence[int], outputs: Sequence[Atom]) -> Line:
        """The steps as a function of buffers."""
        return partial(_run, self.steps, self.start, inputs, [*map(self._result, outputs)])

    def _result(self, atom: Atom) -> int:
        """Where an output stands: constants are copied, for they are the next call's, too."""
        place = self.slot(atom)
        if place not in self.start:
            return place
        copy = next(self._numbers)
        self.steps.append((np.array, [place], [copy], None))
        return copy


def _function_of(equation: Equation) -> Callable[..., np.ndarray] | None:
    """The meaning of an equation, where it is shorter than that of its primitive."""
    if equation.primitive is dot_general:
        a, b = (atom.type for atom in equation.operands)
        return product_of(a, b, **equation.params)
    return None if equation.params else equation.primitive.reference


INLINED = ("custom_jvp", "custom_vjp")  # whose first program eager evaluation runs one by one


def _is_plain(primitive: Primitive) -> bool:
    """Whether eager evaluation runs what the primitive means in NumPy."""
    runs_otherwise = isinstance(primitive, Direct) and primitive.run is not None
    return not runs_otherwise and primitive.family != EXTENSION and primitive.effect is None
