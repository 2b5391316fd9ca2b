"""Repeated products: compute equal rows, columns and batches of a product once.

Before   %1: f32[64,9] = broadcast %0 {axes=(1,)};  %2: f32[64,5] = dot_general %1, %x
After    %3: f32[1,9] = broadcast %0 {axes=(1,)};   %4: f32[1,5] = dot_general %3, %x
         %2: f32[64,5] = broadcast %4 {axes=(0, 1)}

An operand repeats along an axis that a broadcast has added, also if further movements leave the
axis alone. If the axis is free in the product, or a batch axis along which both operands repeat,
the result repeats along it, too. The cotangent of a sum is one number everywhere, so the gradients
of a convolution or a layer below a sum are computed for one image and one feature.

Not done: contracted axes, whose sums would be rounded differently.
Invariant: every value is a sum of the same products.  Cost: linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rune.core.program import Atom, Equation, Program, Var, replace_equations
from rune.lowering.passes import Pass
from rune.lowering.simplify.fold_constants import type_of_result
from rune.ops.contraction import dot_general, free_axes
from rune.ops.family import broadcast
from rune.ops.memory import in_memory
from rune.ops.movement import pad, reverse, slice_, transpose
from rune.ops.sliding import shear
from rune.records import replace

Axes = frozenset[int]
NONE: Axes = frozenset()


def repeated_products(program: Program) -> Program:
    """The program without repeated rows, columns or batches in its products."""
    if not any(equation.primitive is dot_general for equation in program.equations):
        return program
    values = _Values({}, {})
    return replace_equations(program, values.once)


class _Values:
    """The equations of the movements so far, and the axes along which their results repeat."""

    __slots__ = ("definitions", "repeats")

    def __init__(self, definitions: dict[Var, Equation], repeats: dict[Var, Axes]):
        self.definitions, self.repeats = definitions, repeats

    def along(self, atom: Atom) -> Axes:
        """The axes of more than one element along which an atom repeats."""
        return self.repeats.get(atom, NONE) if isinstance(atom, Var) else NONE

    def once(self, equation: Equation) -> list[Equation]:
        """The equations in place of one: itself, or a smaller product and its broadcast."""
        single = self.single_product(equation) if equation.primitive is dot_general else None
        if single is None:
            self.note(equation)
            return [equation]
        (result,) = equation.results
        params = {"shape": result.type.shape, "axes": tuple(range(result.type.ndim))}
        return [*single, Equation(broadcast, single[-1].results, params, (result,), equation.frame)]

    def note(self, equation: Equation) -> None:
        """Remember a movement."""
        axes = _REPEATS.get(equation.primitive)
        if axes is not None:
            (result,) = equation.results
            sizes = result.type.shape
            self.definitions[result] = equation
            along = axes(equation, self.along(equation.operands[0]))
            self.repeats[result] = frozenset(k for k in along if sizes[k] != 1)

    def single_product(self, equation: Equation) -> list[Equation] | None:
        """The product of operands of size 1 along axes that repeat; None if no axis does."""
        contracting, batch = equation.params["dimension_numbers"]
        along = [self.along(atom) for atom in equation.operands]
        common_batches = [i for i, (p, q) in enumerate(zip(*batch, strict=True)) if p in along[0] and q in along[1]]
        equations: list[Equation] = []
        operands: list[Atom] = []
        for atom, repeats, inner, batches in zip(equation.operands, along, contracting, batch, strict=True):
            free = free_axes(atom.type.ndim, inner, batches)
            axes = repeats & {*free, *(batches[i] for i in common_batches)}
            operands.append(self.single(atom, axes, equations))
        if not equations:
            return None
        return [*equations, _with_operands(equation, tuple(operands), equation.params)]

    def single(self, atom: Atom, axes: Axes, equations: list[Equation]) -> Atom:
        """The atom with size 1 along axes that repeat, by its movements with other parameters."""
        movements: list[tuple[Equation, Axes]] = []
        while axes:
            assert isinstance(atom, Var)
            equation = self.definitions[atom]
            movements.append((equation, axes))
            atom = equation.operands[0]
            axes = _sources(equation, axes) & self.along(atom)
        for equation, single_axes in reversed(movements):
            operands = (atom, *equation.operands[1:])
            equations.append(_with_operands(equation, operands, _params(equation, single_axes)))
            (atom,) = equations[-1].results
        return atom


def _with_operands(equation: Equation, operands: tuple[Atom, ...], params: Mapping[str, object]) -> Equation:
    new_equation = replace(equation, operands=operands, params=params)
    return replace(new_equation, results=(Var(type_of_result(new_equation)),))


def _params(equation: Equation, axes: Axes) -> Mapping[str, object]:
    """The parameters of a movement whose result has size 1 along `axes`."""
    params = equation.params
    if equation.primitive is broadcast:
        return {**params, "shape": tuple(1 if k in axes else d for k, d in enumerate(params["shape"]))}
    if equation.primitive is slice_:
        starts = tuple(0 if k in axes else start for k, start in enumerate(params["start"]))
        limits = tuple(1 if k in axes else limit for k, limit in enumerate(params["limit"]))
        return {**params, "start": starts, "limit": limits}
    return params


def _sources(equation: Equation, axes: Axes) -> Axes:
    """The axes of the operand that correspond to axes of the result."""
    params = equation.params
    if equation.primitive is broadcast:
        return frozenset(k for k, axis in enumerate(params["axes"]) if axis in axes)
    if equation.primitive is transpose:
        return frozenset(params["permutation"][k] for k in axes)
    return axes


# --- along which axes a movement repeats, given those of its operand ----------------------------


def _of_broadcast(equation: Equation, along: Axes) -> Axes:
    axes, sizes = equation.params["axes"], equation.operands[0].type.shape
    distinct = {axis for k, axis in enumerate(axes) if k not in along and sizes[k] != 1}
    return frozenset(range(equation.results[0].type.ndim)) - distinct


def _of_transpose(equation: Equation, along: Axes) -> Axes:
    return frozenset(k for k, axis in enumerate(equation.params["permutation"]) if axis in along)


def _of_pad(equation: Equation, along: Axes) -> Axes:
    widths = (equation.params[name] for name in ("low", "high", "interior"))
    return frozenset(
        k
        for k, axis_widths in enumerate(zip(*widths, strict=True))
        if k in along and all(width == 0 for width in axis_widths)
    )


def _of_shear(equation: Equation, along: Axes) -> Axes:
    axes = equation.params["axes"]
    ndim = equation.results[0].type.ndim
    return along - {*axes, *range(ndim - len(axes), ndim)}


_REPEATS: Mapping[object, Callable[[Equation, Axes], Axes]] = {
    broadcast: _of_broadcast,
    transpose: _of_transpose,
    pad: _of_pad,
    shear: _of_shear,
    slice_: lambda equation, along: along,
    reverse: lambda equation, along: along,
    in_memory: lambda equation, along: along,
}

PASS = Pass("repeated-products", "compute once what a product only repeats", repeated_products)
