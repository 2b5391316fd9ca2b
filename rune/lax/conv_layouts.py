"""Layouts and padding of convolutions: the roles of axes, and padding by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import listed, static_int, static_sizes
from rune.ops.jax_forms import ConvDimensionNumbers

Ints = tuple[int, ...]


ConvGeneralDilatedDimensionNumbers = ConvDimensionNumbers | Sequence[str] | None


def conv_dimension_numbers(
    lhs_shape: Sequence[Size], rhs_shape: Sequence[Size], dimension_numbers: ConvGeneralDilatedDimensionNumbers
) -> ConvDimensionNumbers:
    """The axes that `dimension_numbers` names, as ConvDimensionNumbers.

    Errors: ArgumentError for strings that do not name the axes, ShapeError for ranks that differ.

    >>> import rune
    >>> rune.lax.conv_dimension_numbers((1, 5, 5, 3), (3, 3, 3, 8), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    if len(lhs_shape) != len(rhs_shape):
        raise ShapeError(f"conv_dimension_numbers: cannot convolve {len(lhs_shape)} axes with {len(rhs_shape)}")
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        axes = tuple(range(len(lhs_shape)))
        return ConvDimensionNumbers(axes, axes, axes)
    if isinstance(dimension_numbers, list | tuple) and len(dimension_numbers) == 3:
        return _named(len(lhs_shape), *dimension_numbers)
    raise ArgumentError(
        f"conv_dimension_numbers: cannot use {dimension_numbers!r} (three strings required)",
        hint='for example ("NHWC", "HWIO", "NHWC")',
    )


def _named(rank: int, lhs: str, rhs: str, out: str) -> ConvDimensionNumbers:
    for spec, roles in ((lhs, "NC"), (rhs, "OI"), (out, "NC")):
        if len(spec) != rank or len(set(spec)) != rank or not set(roles) <= set(spec):
            raise ArgumentError(
                f"conv_dimension_numbers: cannot name {rank} axes by {spec!r} "
                f"(one letter for each required, {roles[0]} and {roles[1]} among them)"
            )
    spatial = [c for c in rhs if c not in "OI"]
    if any({c for c in spec if c not in "NC"} != set(spatial) for spec in (lhs, out)):
        raise ArgumentError(
            f"conv_dimension_numbers: cannot use {lhs!r}, {rhs!r}, {out!r} (spatial axes are named differently)"
        )
    return ConvDimensionNumbers(
        *(
            (*map(spec.index, roles), *map(spec.index, spatial))
            for spec, roles in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))
        )
    )


def conv_general_permutations(dimension_numbers: Sequence[str]) -> list[Ints]:
    """The axes of lhs, rhs and out by role, from three strings.

    Errors: none for three layouts of letters.

    >>> import rune
    >>> rune.lax.conv_general_permutations(("NWC", "WIO", "NWC"))
    [(0, 2, 1), (2, 1, 0), (0, 2, 1)]
    """
    lhs, rhs, out = dimension_numbers
    return [tuple(spec) for spec in _named(len(lhs), lhs, rhs, out)]


# --- padding ----------------------------------------------------------------------------------


def padtype_to_pads(
    in_shape: Sequence[Size], window_shape: Sequence[Size], window_strides: Sequence[int], padding: str
) -> list[tuple[Size, Size]]:
    """The (low, high) padding of each axis, from a name.

    padding: "VALID": none; "SAME": enough for ceil(size / stride) windows, the odd element at the
             end; "SAME_LOWER": the same with the odd element at the start.
    Errors: ArgumentError for any other name.

    >>> import rune
    >>> rune.lax.padtype_to_pads((8,), (4,), (1,), "SAME")
    [(1, 2)]
    """
    word = str(padding).upper()
    if word not in ("SAME", "SAME_LOWER", "VALID"):
        raise ArgumentError(f"padding: cannot use {padding!r} (SAME, SAME_LOWER, VALID, or pairs of numbers)")
    if word == "VALID":
        return [(0, 0)] * len(window_shape)
    pads: list[tuple[Size, Size]] = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = _same_total(size, window, stride)
        half, other = total // 2, total - total // 2
        pads.append((half, other) if word == "SAME" else (other, half))
    return pads


def _same_total(size: Size, window: Size, stride: int) -> Size:
    if stride == 1:
        return window - 1  # for any size, even a symbolic one
    count = -(-size // stride)
    total = (count - 1) * stride + window - size
    return total if not isinstance(total, int) else max(total, 0)


def pads_of(
    name: str, padding: object, shape: Sequence[Size], window: Sequence[Size], strides: Sequence[int]
) -> tuple[tuple[Size, Size], ...]:
    """Padding as pairs, from a name, pairs, or single numbers for both ends.

    Errors: ArgumentError for anything else, or the wrong number of entries.
    """
    if isinstance(padding, str):
        return tuple(padtype_to_pads(shape, window, strides, padding))
    entries = listed(name, "padding", padding)
    pairs = [static_sizes(name, "padding", p if isinstance(p, tuple | list | np.ndarray) else (p, p)) for p in entries]
    if len(pairs) != len(window) or any(len(p) != 2 for p in pairs):
        raise ArgumentError(f"{name}: cannot pad {len(window)} axes by {padding} (a pair for each required)")
    return tuple((low, high) for low, high in pairs)


def ints(name: str, parameter: str, values: Sequence[int] | None, rank: int) -> Ints:
    entries = [1] * rank if values is None else listed(name, parameter, values)
    numbers = tuple(static_int(name, parameter, v) for v in entries)
    if len(numbers) != rank or any(value < 1 for value in numbers):
        raise ArgumentError(f"{name}: cannot use {parameter} {numbers} for {rank} axes (one each, at least 1)")
    return numbers
