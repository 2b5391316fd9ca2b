"""Transforms of whole arrays by routines that serve all lengths: an eager call, step by step.

fft2     rows, then columns            rfftn    real rows, then columns
                                       irfftn   columns, then real rows

An axis for which there is no routine is transformed by NumPy, if there is one for another axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from rune.backends.cpu.fft import columns, groups, real_columns, reals, rows, twins
from rune.backends.cpu.fft.convolutions import order_of
from rune.backends.cpu.fft.stage_lists import stages_of
from rune.ops.complex_numbers import PART, WHOLE
from rune.ops.fourier import fft

Step = Callable[[np.ndarray], np.ndarray]
_Steps: TypeAlias = tuple[Step, Step, Callable[..., np.ndarray]]  # the last one takes the axis


def transform(shape: tuple[int, ...], dtype: np.dtype, kind: str, axes: Sequence[int], odd: bool) -> Step | None:
    """The transform `kind` of arrays of this shape; None if no step has a routine."""
    steps = _steps(shape, dtype, kind, axes, odd)
    if all(step.routine is None for step in steps):
        return None
    functions = [step.function() for step in steps]
    return functions[0] if len(functions) == 1 else partial(_in_turn, functions)


def is_routine(shape: tuple[int, ...], dtype: np.dtype, kind: str, axes: Sequence[int], odd: bool) -> bool:
    """Whether every step has a routine."""
    return all(step.routine is not None for step in _steps(shape, dtype, kind, axes, odd))


def _steps(shape: tuple[int, ...], dtype: np.dtype, kind: str, axes: Sequence[int], odd: bool) -> list[_Axis]:
    """The transforms along each axis, in turn."""
    *others, last = axes
    match kind:
        case "rfft":
            half = (*shape[:last], shape[last] // 2 + 1, *shape[last + 1 :])
            # The real axis first, and last in the inverse: so other axes have half the numbers.
            real_axis = _Axis(_from_reals(shape, dtype, last), "rfft", last, odd)
            return [real_axis, *_along(half, WHOLE[dtype], others, inverse=False, is_first=False)]
        case "irfft":
            real_axis = _Axis(None if odd else _to_reals(shape, dtype, last), "irfft", last, odd)
            return [*_along(shape, dtype, others, inverse=True), real_axis]
        case _:
            return _along(shape, dtype, axes, inverse=kind == "ifft")


class _Axis(NamedTuple):
    """The step along one axis, whose routine may be missing."""

    routine: Step | None
    kind: str
    axis: int
    odd: bool = False

    def function(self) -> Step:
        """The routine, or NumPy's function."""
        assert fft.reference is not None
        by_numpy = partial(fft.reference, kind=self.kind, axes=(self.axis,), odd=self.odd)
        return self.routine or by_numpy


def forget_tables() -> None:
    """Drop the tables of lengths; a transform that is under way has its own references."""
    calls = (module.call_for for module in (columns, groups, real_columns, reals, rows, twins))
    for tables in (*calls, rows.length_of, stages_of, order_of, reals.turns_of):
        tables.cache_clear()


def _in_turn(steps: Sequence[Step], x: np.ndarray) -> np.ndarray:
    for step in steps:
        x = step(x)
    return x


def _along(
    shape: tuple[int, ...], dtype: np.dtype, axes: Sequence[int], inverse: bool, is_first: bool = True
) -> list[_Axis]:
    """Steps along each axis, the last first.

    is_first: whether the first of them reads the operand itself
    """
    kind = "ifft" if inverse else "fft"
    # What a step has made belongs to the next one.
    by_columns = [columns.transformed, *[columns.in_place] * len(axes)][not is_first :]
    steps = zip(reversed(axes), by_columns, strict=False)
    return [_Axis(_complex(shape, dtype, axis, inverse, by), kind, axis) for axis, by in steps]


def _complex(
    shape: tuple[int, ...], dtype: np.dtype, axis: int, inverse: bool, by_columns: Callable[..., np.ndarray]
) -> Step | None:
    n, inner = shape[axis], math.prod(shape[axis + 1 :])
    if axis < len(shape) - 1:
        is_taken = columns.is_routine(n, inner, dtype)
        return partial(by_columns, axis=axis, inverse=inverse) if is_taken else None
    count = math.prod(shape[:-1])
    if twins.is_routine(count, n, dtype):
        return partial(twins.transformed, inverse=inverse)
    if groups.is_routine(count, n, dtype):
        return partial(groups.transformed, inverse=inverse)
    return partial(rows.transformed, inverse=inverse) if rows.is_routine(n, dtype) else None


def _from_reals(shape: tuple[int, ...], dtype: np.dtype, axis: int) -> Step | None:
    if axis == len(shape) - 1 and twins.is_real_routine(math.prod(shape[:-1]), shape[axis], dtype):
        return twins.from_reals
    return _real(shape, axis, shape[axis], dtype, (groups.from_reals, reals.transformed, real_columns.transformed))


def _to_reals(shape: tuple[int, ...], dtype: np.dtype, axis: int) -> Step | None:
    return _real(
        shape, axis, 2 * (shape[axis] - 1), PART[dtype], (groups.to_reals, reals.inverse, real_columns.inverse)
    )


def _real(shape: tuple[int, ...], axis: int, n: int, dtype: np.dtype, steps: _Steps) -> Step | None:
    """The step for n real numbers: for groups of rows, for single ones, or for columns."""
    inner = math.prod(shape[axis + 1 :])
    if axis < len(shape) - 1:
        is_taken = real_columns.is_routine(n, inner, dtype)
        return partial(steps[2], axis=axis) if is_taken else None
    if groups.is_real_routine(math.prod(shape[:-1]), n, dtype):
        return steps[0]
    return steps[1] if reals.is_routine(n, dtype) else None
