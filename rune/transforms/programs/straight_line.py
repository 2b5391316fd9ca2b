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

from rune.core.higher import equation_program
from rune.core.primitive import EXTENSION, Direct, Primitive
from rune.core.program import Atom, Equation, Literal, Program, Var

Line: TypeAlias = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
# A function, where its operands and results stand, and the dtypes of several results.
_Step: TypeAlias = tuple[Callable[..., Sequence], Sequence[int], Sequence[int], Sequence[np.dtype] | None]


def straight_line(program: Program) -> Line | None:
    """The program on buffers; None if NumPy's functions alone cannot run it.

    Loops, calls of compiled functions and effects cannot be part of a line.
    """
    writer = _Writer()
    inputs = [writer.slot(v) for v in program.inputs]
    if program.constants or not writer.can_write(program):
        return None
    return partial(_run, writer.steps, writer.start, inputs, [*map(writer.slot, program.outputs)])


def _run(
    steps: Sequence[_Step],
    start: Mapping[int, np.ndarray],
    inputs: Sequence[int],
    outputs: Sequence[int],
    args: Sequence[np.ndarray],
) -> list[np.ndarray]:
    values = {**start, **dict(zip(inputs, args, strict=True))}
    with np.errstate(all="ignore"):
        for function, operands, results, dtypes in steps:
            out = function(*[values[i] for i in operands])
            if dtypes is None:
                values[results[0]] = np.asarray(out)
            else:
                values.update(zip(results, map(np.asarray, out, dtypes), strict=True))
    return [values[i] for i in outputs]


class _Writer:
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

    def can_write(self, program: Program) -> bool:
        """Whether every equation is in the line now."""
        return all(map(self._can_write, program.equations))

    def _can_write(self, equation: Equation) -> bool:
        inner = equation_program(equation)
        if inner is not None and equation.primitive.name in _INLINED and not inner.constants:
            self._slots.update(zip(inner.inputs, map(self.slot, equation.operands), strict=True))
            if not self.can_write(inner):
                return False
            self._slots.update(zip(equation.results, map(self.slot, inner.outputs), strict=True))
            return True
        primitive = equation.primitive
        if primitive.reference is None or not _is_plain(primitive):
            return False
        function = partial(primitive.reference, **equation.params) if equation.params else primitive.reference
        operands, results = ([*map(self.slot, atoms)] for atoms in (equation.operands, equation.results))
        dtypes = [v.type.dtype for v in equation.results] if primitive.multiple_results else None
        self.steps.append((function, operands, results, dtypes))
        return True


_INLINED = ("custom_jvp", "custom_vjp")


def _is_plain(primitive: Primitive) -> bool:
    """Whether eager evaluation runs what the primitive means in NumPy."""
    runs_otherwise = isinstance(primitive, Direct) and primitive.run is not None
    return not runs_otherwise and primitive.family != EXTENSION and primitive.effect is None
