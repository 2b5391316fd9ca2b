"""Route dots to a library: dot_general -> routine_dot where the target has it and it pays.

Before   %2 = dot_general %0, %1 {dimension_numbers=(((0), (0)), ((), ()))}     f32[64,512] ...
After    %2 = routine_dot %0, %1 {batch=1, m=512, n=256, k=64, trans_a=True, trans_b=False, ...}

An operand is read where it lies if its elements, seen through views, are in row-major order as
[batch, m, k] or, transposed, [batch, k, m]. If one is not, and the target has strided_dot, the dot
becomes a strided_dot (walks.py): both operands are read through their views. Otherwise a kernel of
its own copies the operand into that order. Half types are converted to f32 and back, as the meaning
of dot_general says. For few rows, a dot that unpacks an operand of fewer bits stays: it reads those
bits, and no floats are written.

Invariant: the program computes the same values; a routine_dot's operands are in memory.
Cost: linear in the number of equations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.lower import Contraction, Convert, Routine, Scalar, View, Written
from rune.core.primitive import Primitive
from rune.core.program import Atom, Definitions, Equation, Program, Var, replace_equations
from rune.core.types import Shape
from rune.dims import Size, flat_index, product
from rune.lowering.codegen.target import Target
from rune.lowering.host_calls import CALLBACK, function_of, host_call
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.equations import apply
from rune.lowering.kernelize.tracing import generic, trace
from rune.lowering.kernelize.walks import (
    Axes,
    Operand,
    Walk,
    call_parameters,
    is_scattered,
    product_type,
    strided_dot,
    walk,
)
from rune.lowering.source_calls import source_call
from rune.ops.arithmetic import convert
from rune.ops.contraction import free_axes
from rune.ops.family import reshape
from rune.ops.movement import slice_, transpose

NATIVE = frozenset({dtypes.f32, dtypes.f64})
THROUGH_F32 = frozenset({dtypes.bf16, dtypes.f16})
UNPACKING = 64  # equations that are looked through for a conversion to more bits
PARAMETERS = ("batch", "m", "n", "k", "trans_a", "trans_b")


def _dot_reference(
    a: np.ndarray,
    b: np.ndarray,
    *,
    batch: int,
    m: int,
    n: int,
    k: int,
    trans_a: bool,
    trans_b: bool,
    shape: tuple[int, ...],
) -> np.ndarray:
    lhs = np.reshape(a, (batch, k, m) if trans_a else (batch, m, k))
    rhs = np.reshape(b, (batch, n, k) if trans_b else (batch, k, n))
    lhs = lhs.swapaxes(1, 2) if trans_a else lhs
    rhs = rhs.swapaxes(1, 2) if trans_b else rhs
    return np.matmul(lhs, rhs).reshape(shape)


routine_dot = Primitive("routine_dot", "routine", product_type, _dot_reference)


def is_routine(equation: Equation) -> bool:
    """True for equations that become calls of library routines."""
    return equation.primitive in (routine_dot, strided_dot) or is_call(equation)


def is_call(equation: Equation) -> bool:
    """True for equations that no fusion touches: calls, and kernels of given loops."""
    return equation.primitive in (host_call, source_call) or isinstance(equation.primitive.lower, Routine | Written)


def call_of(equation: Equation) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """The routine that an equation calls, and the static parameters of the call."""
    if equation.primitive is host_call:
        return CALLBACK, (("function", function_of(equation)),)
    if equation.primitive is source_call:
        kernel = equation.params["kernel"]
        return kernel.source.routine, (("kernel", kernel),)
    if isinstance(equation.primitive.lower, Routine):
        routine, types = equation.primitive.lower, (a.type for a in equation.operands)
        return routine.name, tuple(routine.call(*types, **equation.params).items())
    if equation.primitive is strided_dot:
        return "strided_dot", call_parameters(equation.params)
    return "dot", tuple((name, equation.params[name]) for name in PARAMETERS)


def route_dots(program: Program, target: Target) -> Program:
    """The program with a routine in place of every dot for which it pays."""
    if "dot" not in target.routines:
        return program
    definitions = program.definitions
    has_strided_dot = "strided_dot" in target.routines
    return replace_equations(program, lambda e: _route(e, definitions, has_strided_dot))


def _route(equation: Equation, definitions: Definitions, has_strided_dot: bool) -> list[Equation]:
    """The equations in place of a dot; an empty list if it stays."""
    if not isinstance(equation.primitive.lower, Contraction):
        return []
    dtype = equation.operands[0].type.dtype
    a, b = _sides(equation)
    m, n, k = a.size(a.rows), b.size(b.rows), a.size(a.contraction)
    is_routable = dtype in NATIVE | THROUGH_F32 and cost.is_routine_dot(m, n, k)
    # A dot of no elements is all zeros, or nothing: no routine is needed.
    if not is_routable or 0 in (*a.atom.type.shape, *b.atom.type.shape):
        return []
    if _unpacks(a, n, definitions) or _unpacks(b, m, definitions):
        return []
    if cost.is_generated_dot(m, n, k, _is_along_rows(a, b, definitions)):
        return []
    shape = equation.results[0].type.shape
    equations = _strided(a, b, shape, definitions) if has_strided_dot else None
    # Strided only where it saves a copy of an operand.
    equations = equations or _dense(a, b, shape, definitions)
    if dtype in THROUGH_F32:
        apply(equations, convert, equations[-1].results[0], dtype=dtype)
    equations[-1] = replace(equations[-1], results=equation.results, frame=equation.frame)
    return equations


def _dense(a: Operand, b: Operand, shape: Shape, definitions: Definitions) -> list[Equation]:
    """The product of operands in row-major order, which those in another order are packed into."""
    equations: list[Equation] = []
    lhs, trans_a = _ordered(a, False, definitions) or (_packed(a, False, equations), False)
    # A packed operand is written in the order that the routine reads without transposing.
    rhs, trans_b = _ordered(b, True, definitions) or (_packed(b, True, equations), False)
    if a.atom.type.dtype in THROUGH_F32:
        lhs, rhs = (apply(equations, convert, x, dtype=dtypes.f32) for x in (lhs, rhs))
    sizes = (a.size(a.batch), a.size(a.rows), b.size(b.rows), a.size(a.contraction))
    params = dict(zip(PARAMETERS, (*sizes, trans_a, trans_b)))
    apply(equations, routine_dot, lhs, rhs, shape=shape, **params)
    return equations


def _strided(a: Operand, b: Operand, shape: Shape, definitions: Definitions) -> list[Equation] | None:
    """The product of operands through their views, if one of them is not in row-major order.

    An operand that is not in memory, such as a repeated number, is packed, too.
    """
    sides = ((a, False), (b, True))
    natural = [walk(side, definitions) for side, _ in sides]
    reads = [w is not None and not is_scattered(w, right) for w, (_, right) in zip(natural, sides, strict=True)]
    is_ordered = [_ordered(side, right, definitions) is not None for side, right in sides]
    if all(is_ordered) or (None in natural and not any(r and not o for r, o in zip(reads, is_ordered, strict=True))):
        return None
    equations: list[Equation] = []
    # An operand in which no index runs on in memory is packed first, if the copy is not larger.
    lhs, right = (
        w if w is not None and read else _packed_walk(side, w, right, equations)
        for w, read, (side, right) in zip(natural, reads, sides, strict=True)
    )
    bases = [w.base for w in (lhs, right)]
    if a.atom.type.dtype in THROUGH_F32:
        bases = [apply(equations, convert, x, dtype=dtypes.f32) for x in bases]
    sizes = (a.size(a.batch), a.size(a.rows), b.size(b.rows), a.size(a.contraction))
    apply(equations, strided_dot, *bases, shape=shape, sizes=sizes, left=lhs.params, right=right.params)
    return equations


def _packed_walk(side: Operand, natural: Walk | None, right: bool, equations: list[Equation]) -> Walk:
    """The operand in row-major order, except for batch axes that only repeat it."""
    shape, batch = side.atom.type.shape, side.batch
    # A batch axis of step 0 repeats one matrix, which is packed once and has step 0 again.
    repeated_axes = tuple(axis for axis in batch if natural is not None and natural.steps[axis] == 0)
    one = apply(
        equations,
        slice_,
        side.atom,
        start=(0,) * len(shape),
        stride=(1,) * len(shape),
        limit=tuple(1 if axis in repeated_axes else d for axis, d in enumerate(shape)),
    )
    second, third = (side.contraction, side.rows) if right else (side.rows, side.contraction)
    order = (*batch, *second, *third)
    base = apply(equations, transpose, one, permutation=order)
    steps: dict[int, Size] = {}
    step: Size = 1
    for axis in reversed(order):
        steps[axis] = 0 if axis in repeated_axes else step
        step = step if axis in repeated_axes else step * shape[axis]
    return Walk(side, base, 0, tuple(steps[axis] for axis in range(len(shape))))


def _unpacks(side: Operand, rows: Size, definitions: Definitions) -> bool:
    """Whether an operand is computed from fewer bits, for so few rows that storing it does not pay.

    That is, a half type, or elementwise operations and views of a narrower dtype.
    """
    # With many rows the unpacked operand is read often enough to pay for storing it.
    if cost.count((rows,)) > cost.FEW_ROWS:
        return False
    if side.atom.type.dtype in THROUGH_F32:
        return True
    pending = [side.atom]
    for _ in range(UNPACKING):
        # Every way to the operand has been followed.
        if not pending:
            return False
        equation = definitions.get(pending.pop())
        if equation is None or not isinstance(equation.primitive.lower, Scalar | Convert | View):
            continue
        if is_unpacking(equation):
            return True
        # Scalars take no memory worth saving.
        pending += [x for x in equation.operands if x.type.shape]
    return False


def is_unpacking(equation: Equation) -> bool:
    """True for conversions to more bits."""
    if not isinstance(equation.primitive.lower, Convert):
        return False
    return equation.operands[0].type.dtype.itemsize < equation.results[0].type.dtype.itemsize


def _is_along_rows(a: Operand, b: Operand, definitions: Definitions) -> bool | None:
    """Whether elements to be added lie side by side in the larger operand, as far as is known."""
    is_right = cost.count((a.size(a.rows),)) < cost.count((b.size(b.rows),))
    ordered = _ordered(b if is_right else a, is_right, definitions)
    # The routine expects the right operand with its columns side by side.
    return None if ordered is None else ordered[1] == is_right


def _sides(equation: Equation) -> tuple[Operand, Operand]:
    contracting, batch = equation.params["dimension_numbers"]
    a, b = (
        Operand(atom, tuple(bs), free_axes(atom.type.ndim, cs, bs), tuple(cs))
        for atom, cs, bs in zip(equation.operands, contracting, batch)
    )
    return a, b


def _ordered(side: Operand, right: bool, definitions: Definitions) -> tuple[Atom, bool] | None:
    """The array to read, and whether it is transposed; None if its elements lie in neither order.

    Transposed is [batch, k, rows] on the left, and [batch, rows, k] on the right.
    """
    # An axis of one element adds nothing to a place, however long its step would be.
    indices = tuple(0 if d == 1 else i for d, i in zip(side.atom.type.shape, generic(side.atom.type.shape)))
    base, base_indices = trace(side.atom, indices, definitions)
    half = side.atom.type.dtype in THROUGH_F32
    if not isinstance(base, Var) or half or _count(base) != _count(side.atom):
        return None
    position = flat_index(base_indices, base.type.shape)
    rows_first = position == _position(side, indices, (side.rows, side.contraction))
    rows_last = position == _position(side, indices, (side.contraction, side.rows))
    if not rows_first and not rows_last:
        return None
    # Transposed means that the contracted axis is not where the routine expects it.
    return base, rows_first if right else not rows_first


def _count(atom: Atom) -> Size:
    return product(atom.type.shape)


def _position(side: Operand, indices: tuple, order: tuple[Axes, Axes]) -> Size:
    axes = (*side.batch, *order[0], *order[1])
    return flat_index((indices[a] for a in axes), (side.atom.type.shape[a] for a in axes))


def _packed(side: Operand, right: bool, equations: list[Equation]) -> Var:
    """A view of the operand in the order that the routine reads."""
    second, third = (side.contraction, side.rows) if right else (side.rows, side.contraction)
    order = (*side.batch, *second, *third)
    transposition = apply(equations, transpose, side.atom, permutation=order)
    shape = (side.size(side.batch), side.size(second), side.size(third))
    return apply(equations, reshape, transposition, shape=shape)
