"""Pad rows that units for matrices could not fetch in pieces, where the product pays for it.

Before   %2: bf16[4099,4099] = dot_general %0, %1          %0, %1: bf16[4099,4099]
After    %3: bf16[4099,4160] = pad %0                      (a view)
         %4: bf16[4099,4160] = in_memory %3                and so %5 of %1, with 4160 rows
         %6: bf16[4099,4160] = dot_general %4, %5
         %2: bf16[4099,4099] = slice %6

Pieces of 16 bytes are copied to shared memory without passing through registers, if they begin at a
multiple of 16 bytes. In rows of 4099 halves they do not, and a product of such rows takes ten times
as long. A vocabulary of 50257 words has such rows. Rows are padded to whole lines of memory, since
pieces across two lines take a third longer (4104: 370 µs; 4160: 270). Sums run on over the zeros;
rows and columns that were added to the result are cut off again.

Invariant: the same sums, with zeros added to some.
Cost: linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import field

import numpy as np

from rune.core.lower import Contraction
from rune.core.program import Definitions, Equation, Literal, Program, Var
from rune.core.types import ArrayType
from rune.dims import product
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.equations import apply, in_place_of
from rune.lowering.kernelize.product_time import LAUNCH, MEMORY
from rune.lowering.kernelize.tracing import generic, trace
from rune.ops.contraction import Axes, Numbers, free_axes
from rune.ops.memory import in_memory
from rune.ops.movement import inverse, pad, slice_, transpose
from rune.records import dataclass

PIECE_BYTES, LINE_BYTES = 16, 128
# Multiply-adds of a multiprocessor in a cycle, measured on an H100: through registers, and fetched.
THROUGH_REGISTERS, FETCHED = 54.0, 1_000.0

Growth = Mapping[int, int]  # elements to add at the end of an axis


def align_rows(program: Program, target: Target, stream_results: Container[Var] = ()) -> Program:
    """The program whose large products of half types read rows of whole pieces.

    stream_results: results that stay as they are
    """
    if not any(operation == "multiply" for operation, _ in target.native):
        return program
    rewrite = _Rewrite(target, program.definitions)
    for equation in program.equations:
        stays = bool(equation.results) and equation.results[0] in stream_results
        if stays or not rewrite.aligned(equation):
            rewrite.body.append(equation)
    return program.with_equations(rewrite.body, program.outputs)


@dataclass(slots=True)
class _Rewrite:
    """The equations so far, and the padded copies of operands that they have made."""

    target: Target
    definitions: Definitions
    body: list[Equation] = field(default_factory=list)
    copies: dict[tuple[Var, tuple[tuple[int, int], ...]], Var] = field(default_factory=dict)

    def aligned(self, equation: Equation) -> bool:
        """Write a product of padded operands in place of one; return False if that does not pay."""
        operands = tuple(x for x in equation.operands if isinstance(x, Var))
        if not isinstance(equation.primitive.lower, Contraction) or len(operands) != 2:
            return False
        if not all(("multiply", x.type.dtype) in self.target.native for x in operands):
            return False
        numbers: Numbers = equation.params["dimension_numbers"]
        runs = [_run(x, self.definitions) for x in operands]
        growths = _growths(operands, runs, numbers)
        if not _pays(operands, growths, equation, self.target):
            return False
        first = len(self.body)
        sides = [self.grown(x, run, growth) for x, run, growth in zip(operands, runs, growths, strict=True)]
        total = apply(self.body, equation.primitive, *sides, **equation.params)
        _cut_to(equation.results[0].type, total, self.body)
        self.body[first:] = in_place_of(equation, self.body[first:])
        return True

    def grown(self, x: Var, run: int, growth: Growth) -> Var:
        """An operand in memory with zeros at the end of some axes."""
        # One copy for all products that read it: forward and backward share weights.
        key = x, tuple(growth.items())
        if not growth:
            return x
        if key not in self.copies:
            self.copies[key] = _copy(x, run, growth, self.body)
        return self.copies[key]


def _run(x: Var, definitions: Definitions) -> int:
    """The axis along which an operand's memory runs; the last one if that is not certain."""
    indices = generic(x.type.shape)
    base, at = trace(x, indices, definitions)
    is_axis = bool(at) and at[-1] in indices
    axis = indices.index(at[-1]) if is_axis else x.type.ndim - 1
    return axis if is_axis and base.type.shape[-1] == x.type.shape[axis] else x.type.ndim - 1


def _growths(operands: Sequence[Var], runs: Sequence[int], numbers: Numbers) -> list[dict[int, int]]:
    """What to add at the end of both operands' axes; both grow along an axis that is summed."""
    contracting, batch = numbers
    growths: list[dict[int, int]] = [{}, {}]
    for k, (x, run) in enumerate(zip(operands, runs, strict=True)):
        missing = _missing(x.type, run, contracting[k], batch[k])
        if missing:
            growths[k][run] = missing
            if run in contracting[k]:
                growths[1 - k][contracting[1 - k][contracting[k].index(run)]] = missing
    return growths


def _missing(type: ArrayType, run: int, contracting: Axes, batch: Axes) -> int:
    """Elements that a row lacks for whole lines; 0 for whole pieces and rows of several axes."""
    size = type.shape[run]
    kind = contracting if run in contracting else free_axes(type.ndim, contracting, batch)
    # Axes of one kind that follow each other are walked as one.
    if not isinstance(size, int) or run in batch or run - 1 in kind or size * type.dtype.itemsize % PIECE_BYTES == 0:
        return 0
    return -size % (LINE_BYTES // type.dtype.itemsize)


def _pays(operands: Sequence[Var], growths: Sequence[Growth], equation: Equation, target: Target) -> bool:
    """Whether units gain more than the copies of operands, and perhaps of the result, cost."""
    contracting, _ = equation.params["dimension_numbers"]
    result = equation.results[0].type
    copy_types = [x.type for x, growth in zip(operands, growths, strict=True) if growth]
    if any(not growth.keys() <= set(c) for growth, c in zip(growths, contracting, strict=True)):
        copy_types.append(result)
    sums = cost.count(tuple(operands[0].type.shape[i] for i in contracting[0]))
    products = cost.count(result.shape) * sums
    traffic = sum(2 * cost.count(t.shape) * t.dtype.itemsize for t in copy_types)
    gain = products / target.cores * (1 / THROUGH_REGISTERS - 1 / FETCHED)
    return bool(copy_types) and gain > len(copy_types) * LAUNCH + traffic / (MEMORY * target.cores)


def _copy(x: Var, run: int, growth: Growth, equations: list[Equation]) -> Var:
    """A copy of an operand with zeros at the end of some axes, contiguous along the same axis."""
    order = (*(k for k in range(x.type.ndim) if k != run), run)
    transposition = x if run == x.type.ndim - 1 else apply(equations, transpose, x, permutation=order)
    copy = apply(
        equations, in_memory, _padded(transposition, {order.index(k): n for k, n in growth.items()}, equations)
    )
    return copy if transposition is x else apply(equations, transpose, copy, permutation=inverse(order))


def _padded(x: Var, growth: Growth, equations: list[Equation]) -> Var:
    """An operand with zeros at the end of some axes."""
    zeros = (0,) * x.type.ndim
    high = tuple(growth.get(k, 0) for k in range(x.type.ndim))
    zero = Literal(np.zeros((), x.type.dtype), ArrayType((), x.type.dtype))
    return apply(equations, pad, x, zero, low=zeros, high=high, interior=zeros)


def _cut_to(type: ArrayType, x: Var, equations: list[Equation]) -> Var:
    """The value cut to the shape of `type`; the value itself if it has no more elements."""
    if product(x.type.shape) == product(type.shape):
        return x
    start, stride = (0,) * type.ndim, (1,) * type.ndim
    return apply(equations, slice_, x, start=start, limit=type.shape, stride=stride)


__all__ = ["align_rows"]
