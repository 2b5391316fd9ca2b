"""The elements beyond the border of an array, by SciPy's modes.

reflect   d c b a | a b c d | d c b a          mirror    d c b | a b c d | c b a
nearest   a a a a | a b c d | d d d d          wrap      a b c d | a b c d | a b c d
constant  k k k k | a b c d | k k k k
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rune.numpy as rnp
from rune.array import Array
from rune.dims import Size
from rune.errors import ArgumentError, RuneError, ShapeError
from rune.typing import ArrayLike

_PADS = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


def require_mode(name: str, mode: str) -> None:
    """Errors: ArgumentError for an unknown mode."""
    if mode not in _PADS:
        raise ArgumentError(
            f"{name}: cannot use mode={mode!r}", hint="'reflect', 'mirror', 'nearest', 'wrap' or 'constant'"
        )


def padded(name: str, x: Array, widths: Sequence[tuple[Size, Size]], mode: str, cval: ArrayLike) -> Array:
    """`x` padded by `widths` before and after each axis; an axis without elements gets arbitrary
    ones.
    """
    require_mode(name, mode)
    if not any(a or b for a, b in widths):
        return x
    if _PADS[mode] == "constant" or 0 in x.shape:
        return rnp.pad(x, widths, mode="constant", constant_values=cval)
    return rnp.pad(x, widths, mode=_PADS[mode])


def inside(mode: str, index: Array, size: Size) -> Array:
    """The index in [0, size) of the element that a mode puts at an integer position beyond the
    border.
    """
    if mode in ("wrap", "grid-wrap"):
        return rnp.remainder(index, size)
    if mode in ("reflect", "grid-mirror"):
        turn = rnp.remainder(index, 2 * size)
        return rnp.minimum(turn, 2 * size - 1 - turn)
    if mode == "mirror":
        period = max(2 * size - 2, 1)
        turn = rnp.remainder(index, period)
        return rnp.minimum(turn, period - turn) if size > 1 else rnp.zeros_like(index)
    return rnp.clip(index, 0, size - 1)


def reach(name: str, size: Size, origin: int) -> tuple[Size, Size]:
    """How many elements a window of `size` reads before and after its own.

    Errors: ArgumentError for an empty window, or one that does not contain its own element.
    """
    if size < 1:
        raise ArgumentError(f"{name}: cannot use a window of {size} elements (1 or more)")
    before = size // 2 + origin
    if not 0 <= before < size:
        raise ArgumentError(
            f"{name}: cannot use origin={origin} (a window of {size}: from {-(size // 2)} to {(size - 1) // 2})"
        )
    return before, size - 1 - before


def number(name: str, argument: str, x: float | str) -> float:
    """A Python number. Errors: ArgumentError; ConcretizationTypeError for a traced one."""
    try:
        return float(x)
    except (TypeError, ValueError) as error:
        if isinstance(error, RuneError):
            raise
        raise ArgumentError(f"{name}: cannot use {argument}={x!r} (a number required)") from None


def per_axis(name: str, argument: str, setting: Any, axes: Sequence[int]) -> list[Any]:
    """One value for each axis, from one for all axes or a sequence.

    Errors: ShapeError for a sequence of another length.
    """
    is_list = isinstance(setting, list | tuple)
    if isinstance(setting, str) or (not is_list and rnp.ndim(setting) == 0):
        return [setting] * len(axes)
    if len(setting) != len(axes):
        raise ShapeError(f"{name}: cannot use {len(setting)} values as {argument} (one per axis required: {len(axes)})")
    return list(setting)
