"""Route dots to a library: dot_general -> routine_dot where the target has it and it pays.

Before   %2 = dot_general %0, %1 {dimension_numbers=(((0), (0)), ((), ()))}     f32[64,512] ...
After    %2 = routine_dot %0, %1 {batch=1, m=512, n=256, k=64, trans_a=True, trans_b=False, ...}

An operand is read where it lies when its elements, seen through views, are in row-major order as
[batch, m, k] or, transposed, [batch, k, m]; else a view brings it into that order and becomes a
kernel of its own. Half types are converted to f32 and back, as dot_general's meaning says. For few
rows a dot that unpacks an operand of fewer bits stays: it reads those bits, and no floats.

Invariant: the program computes the same values; a routine_dot's operands are in memory.
Cost: linear in the number of equations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.lower import Contraction, Convert, Scalar, View
from rune.core.primitive import Primitive
from rune.core.program import Atom, Equation, Program, Var
from rune.core.types import ArrayType, Shape
from rune.dims import Size, product
from rune.lowering.codegen.target import Target
from rune.lowering.host_calls import CALLBACK, function_of, host_call
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.tracing import Definitions, flat_index, generic, trace
from rune.ops.arithmetic import convert
from rune.ops.contraction import free_axes
from rune.ops.family import reshape
from rune.ops.movement import transpose

Axes = tuple[int, ...]
NATIVE = frozenset({dtypes.f32, dtypes.f64})
THROUGH_F32 = frozenset({dtypes.bf16, dtypes.f16})
UNPACKING = 64  # equations that are looked through for a conversion to more bits
PARAMETERS = ("batch", "m", "n", "k", "trans_a", "trans_b")


def _dot_type(a: ArrayType, b: ArrayType, *, shape: Shape, **sizes: Any) -> ArrayType:
    return ArrayType(shape, a.dtype, a.weak and b.weak)


def _dot_reference(
    a: np.ndarray, b: np.ndarray, *, batch: int, m: int, n: int, k: int, trans_a: bool,
    trans_b: bool, shape: tuple[int, ...],
) -> np.ndarray:  # fmt: skip
    left = np.reshape(a, (batch, k, m) if trans_a else (batch, m, k))
    right = np.reshape(b, (batch, n, k) if trans_b else (batch, k, n))
    left = left.swapaxes(1, 2) if trans_a else left
    right = right.swapaxes(1, 2) if trans_b else right
    return np.matmul(left, right).reshape(shape)


routine_dot = Primitive("routine_dot", "routine", _dot_type, _dot_reference)


def is_routine(equation: Equation) -> bool:
    """True for equations that become calls of library routines."""
    return equation.primitive in (routine_dot, host_call)


def call_of(equation: Equation) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """The routine that an equation calls, and the static parameters of the call."""
    if equation.primitive is host_call:
        return CALLBACK, (("function", function_of(equation)),)
    return "dot", tuple((name, equation.params[name]) for name in PARAMETERS)


@dataclass(frozen=True, slots=True)
class _Operand:
    """One side of a dot: its axes by role. `rows` are the free ones."""

    atom: Atom
    batch: Axes
    rows: Axes
    contracted: Axes

    def size(self, axes: Axes) -> Size:
        """Product of the sizes of `axes`."""
        return product(self.atom.type.shape[a] for a in axes)


def route_dots(program: Program, target: Target) -> Program:
    """The program with every dot that pays done by a routine."""
    if "dot" not in target.routines:
        return program
    definitions = {v: e for e in program.equations for v in e.results}
    body = [new for e in program.equations for new in _route(e, definitions) or (e,)]
    return program.with_equations(body, program.outputs)


def _route(equation: Equation, definitions: Definitions) -> list[Equation]:
    """The equations in place of a dot; none where it stays."""
    if not isinstance(equation.primitive.lower, Contraction):
        return []
    dtype = equation.operands[0].type.dtype
    a, b = _sides(equation)
    m, n, k = a.size(a.rows), b.size(b.rows), a.size(a.contracted)
    routed = dtype in NATIVE | THROUGH_F32 and cost.is_routine_dot(m, n, k)
    if not routed or 0 in (*a.atom.type.shape, *b.atom.type.shape):
        return []
    if _unpacks(a, n, definitions) or _unpacks(b, m, definitions):
        return []
    made: list[Equation] = []
    left, trans_a = _in_order(a, False, definitions, made)
    right, trans_b = _in_order(b, True, definitions, made)
    if dtype in THROUGH_F32:
        left, right = (_apply(made, convert, x, dtype=dtypes.f32) for x in (left, right))
    shape = equation.results[0].type.shape
    sizes = dict(zip(PARAMETERS, (a.size(a.batch), m, n, k, trans_a, trans_b)))
    result = _apply(made, routine_dot, left, right, shape=shape, **sizes)
    if dtype in THROUGH_F32:
        _apply(made, convert, result, dtype=dtype)
    made[-1] = replace(made[-1], results=equation.results, frame=equation.frame)
    return made


def _unpacks(side: _Operand, rows: Size, definitions: Definitions) -> bool:
    """Whether an operand is made of fewer bits, for so few rows that storing it would not pay.

    Half types, and what elementwise operations and views make of a narrower dtype.
    """
    if cost.count((rows,)) > cost.FEW_ROWS:
        return False
    if side.atom.type.dtype in THROUGH_F32:
        return True
    pending = [side.atom]
    for _ in range(UNPACKING):
        atom = pending.pop() if pending else None
        equation = definitions.get(atom) if isinstance(atom, Var) else None
        if atom is None:
            return False
        if equation is None or not isinstance(equation.primitive.lower, Scalar | Convert | View):
            continue
        if is_unpacking(equation):
            return True
        pending += [x for x in equation.operands if x.type.shape]
    return False


def is_unpacking(equation: Equation) -> bool:
    """True for conversions to more bits."""
    if not isinstance(equation.primitive.lower, Convert):
        return False
    return equation.operands[0].type.dtype.itemsize < equation.results[0].type.dtype.itemsize


def _sides(equation: Equation) -> tuple[_Operand, _Operand]:
    contracting, batch = equation.params["dimension_numbers"]
    a, b = (
        _Operand(atom, tuple(bs), free_axes(atom.type.ndim, cs, bs), tuple(cs))
        for atom, cs, bs in zip(equation.operands, contracting, batch)
    )
    return a, b


def _apply(made: list[Equation], primitive: Primitive, *operands: Atom, **params: Any) -> Var:
    """Append an equation; its result."""
    result = Var(primitive.type_rule(*(a.type for a in operands), **params))
    made.append(Equation(primitive, operands, params, (result,)))
    return result


def _in_order(
    side: _Operand, right: bool, definitions: Definitions, made: list[Equation]
) -> tuple[Atom, bool]:
    """What to read, and whether transposed: [batch, k, rows] on the left, or on the right
    [batch, rows, k].
    """
    indices = generic(side.atom.type.shape)
    base, found = trace(side.atom, indices, definitions)
    half = side.atom.type.dtype in THROUGH_F32
    if isinstance(base, Var) and not half and _count(base) == _count(side.atom):
        position = flat_index(found, base.type.shape)
        rows_first = position == _position(side, indices, (side.rows, side.contracted))
        rows_last = position == _position(side, indices, (side.contracted, side.rows))
        if rows_first or rows_last:
            transposed = rows_first if right else not rows_first
            return base, transposed
    return _packed(side, right, made), False


def _count(atom: Atom) -> Size:
    return product(atom.type.shape)


def _position(side: _Operand, indices: tuple, order: tuple[Axes, Axes]) -> Size:
    axes = (*side.batch, *order[0], *order[1])
    return flat_index((indices[a] for a in axes), (side.atom.type.shape[a] for a in axes))


def _packed(side: _Operand, right: bool, made: list[Equation]) -> Var:
    """A view of the operand in the order that the routine reads."""
    second, third = (side.contracted, side.rows) if right else (side.rows, side.contracted)
    order = (*side.batch, *second, *third)
    moved = _apply(made, transpose, side.atom, permutation=order)
    shape = (side.size(side.batch), side.size(second), side.size(third))
    return _apply(made, reshape, moved, shape=shape)
