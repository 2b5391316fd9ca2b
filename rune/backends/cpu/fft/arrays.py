"""Transforms of whole arrays by routines that serve all lengths: an eager call, step by step.

fft2     rows, then columns            rfftn    real rows, then columns
                                       irfftn   columns, then real rows

An axis for which there is no routine is transformed by NumPy, if there is one for another axis.
Compiled plans call the same routines, axis by axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from rune.backends.cpu.fft import columns, groups, odd_rows, real_columns, reals, rows, twins
from rune.backends.cpu.fft.convolutions import order_of
from rune.backends.cpu.fft.stage_lists import stages_of
from rune.backends.cpu.routine_calls import Call
from rune.backends.cpu.vector_routines import shape_of
from rune.backends.shared import host_memory
from rune.ops.complex_numbers import PART, WHOLE
from rune.ops.fourier import fft

Step = Callable[[np.ndarray], np.ndarray]


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


def routine_of(kind: str, outer: int, n: int, inner: int, dtype: np.dtype) -> Callable[[], Call] | None:
    """What gives the routine of arrays [outer, n, inner] along n; None if none takes them.

    n:     of real numbers, where the kind is a real one
    dtype: of the numbers' parts
    """
    if kind in ("fft", "ifft"):
        return _of_complex(kind == "ifft", outer, n, inner, dtype)
    name, half = {"rfft": "forward", "irfft": "inverse"}[kind], n // 2
    if inner > 1:
        is_taken = real_columns.is_routine(n, inner, dtype)
        return partial(real_columns.call_for, name, outer, half, inner, dtype) if is_taken else None
    if odd_rows.is_routine(outer, n, dtype):
        return partial(odd_rows.call_for, name, outer, n, dtype)
    # The inverse of real rows has no twins.
    if kind == "rfft" and twins.is_real_routine(outer, n, dtype):
        return partial(twins.call_for, name, outer, half, dtype)
    if groups.is_real_routine(outer, n, dtype):
        return partial(groups.call_for, name, outer, half, dtype)
    return partial(reals.call_for, name, outer, n, dtype) if reals.is_routine(n, dtype) else None


def _of_complex(inverse: bool, outer: int, n: int, inner: int, dtype: np.dtype) -> Callable[[], Call] | None:
    if inner > 1:
        is_taken = columns.is_routine(n, inner, WHOLE[dtype])
        return partial(columns.call_for, outer, n, inner, dtype, inverse) if is_taken else None
    for module in (twins, groups):
        if module.is_routine(outer, n, WHOLE[dtype]):
            return partial(module.call_for, "backward" if inverse else "complex", outer, n, dtype)
    return partial(rows.call_for, outer, n, dtype, inverse) if rows.is_routine(n, WHOLE[dtype]) else None


def _steps(shape: tuple[int, ...], dtype: np.dtype, kind: str, axes: Sequence[int], odd: bool) -> list[_Axis]:
    """The transforms along each axis, in turn."""
    *others, last = axes
    match kind:
        case "rfft":
            half = (*shape[:last], shape[last] // 2 + 1, *shape[last + 1 :])
            # The real axis first, and last in the inverse: so other axes have half the numbers.
            return [_Axis(shape, dtype, kind, last), *_along(half, WHOLE[dtype], "fft", others, is_first=False)]
        case "irfft":
            return [*_along(shape, dtype, "ifft", others), _Axis(shape, dtype, kind, last, odd)]
        case _:
            return _along(shape, dtype, kind, axes)


def _along(
    shape: tuple[int, ...], dtype: np.dtype, kind: str, axes: Sequence[int], is_first: bool = True
) -> list[_Axis]:
    """Steps along each axis, the last first. is_first: whether their operand is the caller's"""
    # What a step has made belongs to the next one.
    return [
        _Axis(shape, dtype, kind, axis, is_free=number > 0 or not is_first)
        for number, axis in enumerate(reversed(axes))
    ]


class _Axis(NamedTuple):
    """The step along one axis. is_free: whether it may write to its operand"""

    shape: tuple[int, ...]
    dtype: np.dtype
    kind: str
    axis: int
    odd: bool = False
    is_free: bool = False

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The operand as [outer, n, inner]; n of the real numbers, if the kind is a real one."""
        n = self.shape[self.axis]
        length = 2 * (n - 1) + self.odd if self.kind == "irfft" else n
        return math.prod(self.shape[: self.axis]), length, math.prod(self.shape[self.axis + 1 :])

    @property
    def routine(self) -> Callable[[], Call] | None:
        """What gives the routine, if there is one."""
        return routine_of(self.kind, *self.sizes, PART.get(self.dtype, self.dtype))

    def function(self) -> Step:
        """The step by the routine, or by NumPy's function."""
        assert fft.reference is not None
        if self.routine is None:
            return partial(fft.reference, kind=self.kind, axes=(self.axis,), odd=self.odd)
        _, n, inner = self.sizes
        length, dtype = {"rfft": (n // 2 + 1, WHOLE), "irfft": (n, PART)}.get(self.kind, (n, {}))
        shape = (*self.shape[: self.axis], length, *self.shape[self.axis + 1 :])
        # A vector of columns is read whole before it is written, and must not overlap another.
        in_place = self.is_free and inner > 1 and inner % shape_of(PART[self.dtype]).lanes == 0
        return partial(_run, self.routine, None if in_place else shape, dtype.get(self.dtype, self.dtype))


def _run(routine: Callable[[], Call], shape: tuple[int, ...] | None, dtype: np.dtype, x: np.ndarray) -> np.ndarray:
    """A step. shape: of the result; None if it may take the place of x"""
    if shape is None and x.flags.c_contiguous:
        return routine()(x, x)
    return routine()(x, host_memory.empty(shape or x.shape, dtype))


def _in_turn(steps: Sequence[Step], x: np.ndarray) -> np.ndarray:
    for step in steps:
        x = step(x)
    return x


def forget_tables() -> None:
    """Drop the tables of lengths; a transform that is under way has its own references."""
    calls = (module.call_for for module in (columns, groups, odd_rows, real_columns, reals, rows, twins))
    for tables in (*calls, rows.length_of, stages_of, order_of, reals.turns_of):
        tables.cache_clear()
