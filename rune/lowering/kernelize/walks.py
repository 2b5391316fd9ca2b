"""Walks: where the elements of a product's operand lie, seen through its views.

A walk gives every axis of an operand a step: index j of an axis of step s adds s·j to the place of
an element. Slices, transpositions, broadcasts, reversals and windows are walks, alone and in any
combination; a padding is not, and is stored first. In a call, the axes of one role (batch, rows,
contraction) become the digits of one index, innermost first; axes that continue each other in
memory are joined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from rune.core.primitive import Primitive
from rune.core.program import Atom, Definitions, Var
from rune.core.types import ArrayType, Shape
from rune.dims import Dim, Size, evaluate, flat_index, product, substitute
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.tracing import generic, trace
from rune.records import dataclass

Axes = tuple[int, ...]
Digits = tuple[tuple[Size, Size], ...]  # (size, step), innermost first
SIZES = ("batch", "m", "n", "k")
ROLES = {"left": ("a_batch", "a_rows", "a_inner"), "right": ("b_batch", "b_columns", "b_inner")}
MAX_DIGITS = 8  # the record of a walk that the CPU passes to its routine has so many (DIGITS)
RUN = 4  # neighbours from which on a routine reads vectors


S = TypeVar("S", bound=Size)


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of a dot: its axes by role. `rows` are the free ones."""

    atom: Atom
    batch: Axes
    rows: Axes
    contraction: Axes

    def size(self, axes: Axes) -> Size:
        """Product of the sizes of `axes`."""
        return product(self.atom.type.shape[a] for a in axes)


@dataclass(frozen=True, slots=True)
class Walk:
    """Where the elements of an operand lie in `base`: offset + the sum of index times step."""

    side: Operand
    base: Var
    offset: Size
    steps: tuple[Size, ...]

    def digits(self, axes: Axes) -> Digits:
        """The index over these axes, in mixed radix."""
        digits: list[tuple[Size, Size]] = []
        for axis in reversed(axes):
            size, step = self.side.atom.type.shape[axis], self.steps[axis]
            if size == 1:
                continue
            # The axis goes on where the last digit ends, so both are one digit.
            if digits and step == digits[-1][0] * digits[-1][1]:
                digits[-1] = (digits[-1][0] * size, digits[-1][1])
            else:
                digits.append((size, step))
        return tuple(digits) or ((1, 0),)

    @property
    def params(self) -> tuple[Size, Digits, Digits, Digits]:
        """Offset, and the digits of the batch, row and contraction index."""
        side = self.side
        digits = self.digits
        return self.offset, digits(side.batch), digits(side.rows), digits(side.contraction)


def walk(side: Operand, definitions: Definitions) -> Walk | None:
    """How an operand is read through its views; None if that is not a walk."""
    indices = generic(side.atom.type.shape)
    base, base_indices = trace(side.atom, indices, definitions)
    if not isinstance(base, Var) or base.type.dtype != side.atom.type.dtype:
        return None
    place = flat_index(base_indices, base.type.shape)
    names = [str(index) for index in indices]
    # Read off at the origin and one step away along each axis; a walk if that gives every place.
    offset = _at(place, dict.fromkeys(names, 0))
    steps = tuple(_at(place, {n: int(n == name) for n in names}) - offset for name in names)
    linear = offset
    for step, index in zip(steps, indices, strict=True):
        linear = linear + step * index
    result = Walk(side, base, offset, steps)
    fits = linear == place and all(len(digits) <= MAX_DIGITS for digits in result.params[1:])
    return result if fits else None


def _at(place: Size, values: Mapping[str, Size]) -> Size:
    return substitute(place, values) if isinstance(place, Dim) else place


def is_scattered(natural: Walk, right: bool) -> bool:
    """Whether no index of an operand runs along memory, and a copy would not be larger than it."""
    _, _, rows, inner = natural.params
    if any(_run(digits) >= RUN for digits in ((rows, inner) if right else (inner,))):
        return False
    shape = natural.side.atom.type.shape
    once = tuple(d for d, step in zip(shape, natural.steps, strict=True) if step != 0)
    return cost.count(once) <= cost.count(natural.base.type.shape)


def _run(digits: Digits) -> int:
    size, step = digits[0]
    return cost.estimate(size) if step == 1 else 0


# --- the routine ------------------------------------------------------------------------------


def product_type(a: ArrayType, b: ArrayType, *, shape: Shape, **params: object) -> ArrayType:
    """The type rule of products, whose routines only know [batch, m, n]: `shape` is stated."""
    return ArrayType(shape, a.dtype, a.weak and b.weak)


def _reference(a: np.ndarray, b: np.ndarray, *, shape: tuple[int, ...], **params: object) -> np.ndarray:
    return strided_product(a, b, concrete_parameters(dict(call_parameters(params)), {})).reshape(shape)


def strided_product(a: np.ndarray, b: np.ndarray, parameters: Mapping[str, int]) -> np.ndarray:
    """The meaning of the routine, as [batch, m, n]; every size in `parameters` is a number."""
    rows, columns = (np.ravel(x)[_places(parameters, side)] for x, side in ((a, "left"), (b, "right")))
    return np.matmul(rows, columns.swapaxes(1, 2))


def _places(parameters: Mapping[str, int], side: str) -> np.ndarray:
    """Where the elements [batch, rows, contracted] of an operand lie."""
    batch, rows, inner = (_along(digits_of(parameters, role)) for role in ROLES[side])
    return _offset(parameters, side) + batch[:, None, None] + rows[:, None] + inner


def _offset(parameters: Mapping[str, int], side: str) -> int:
    return parameters["a_offset" if side == "left" else "b_offset"]


def _along(digits: Sequence[tuple[int, int]]) -> np.ndarray:
    index = np.arange(math.prod(size for size, _ in digits))
    total = np.zeros_like(index)
    for size, step in digits:
        total, index = total + index % size * step, index // size
    return total


strided_dot = Primitive("strided_dot", "routine", product_type, _reference)


def call_parameters(params: Mapping[str, Any]) -> tuple[tuple[str, Size], ...]:
    """The parameters of a call, each a size: `a_rows0` digits of size and `a_rows0_step`."""
    sizes: dict[str, Size] = dict(zip(SIZES, params["sizes"], strict=True))
    for side, (operand, roles) in zip("ab", ROLES.items(), strict=True):
        offset, *role_digits = params[operand]
        sizes[f"{side}_offset"] = offset
        for role, digits in zip(roles, role_digits, strict=True):
            for number, (size, step) in enumerate(digits):
                sizes |= {f"{role}{number}": size, f"{role}{number}_step": step}
    return tuple(sizes.items())


def digits_of(parameters: Mapping[str, Any], role: str) -> tuple[tuple[S, S], ...]:
    """The digits of one role of a call."""
    digits: list[tuple[S, S]] = []
    while f"{role}{len(digits)}" in parameters:
        name = f"{role}{len(digits)}"
        digits.append((parameters[name], parameters[f"{name}_step"]))
    return tuple(digits)


def concrete_parameters(parameters: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, int]:
    """The parameters of a call with the values of symbolic sizes."""
    return {name: evaluate(size, sizes) for name, size in parameters.items()}


def extent(parameters: Mapping[str, int], side: str) -> tuple[tuple[int, ...], int, int]:
    """The sizes [batch, rows, contraction] of an operand, and the range of places that it walks."""
    roles = [digits_of(parameters, role) for role in ROLES[side]]
    reaches = [(size - 1) * step for digits in roles for size, step in digits]
    start = _offset(parameters, side)
    counts = tuple(math.prod(size for size, _ in digits) for digits in roles)
    # Negative steps reach down from the offset, the others up.
    low, high = (sum(r for r in reaches if (r < 0) == down) for down in (True, False))
    return counts, start + low, start + high + 1
