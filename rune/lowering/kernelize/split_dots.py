"""Long dots of few results are summed in parts, side by side, where one would leave a GPU idle.

Before   %2: f32[64,64] = dot_general %0, %1        %0: f32[64,65536], %1: f32[65536,64]
After    %3: f32[64,128,512] = split_axis %0        (views)
         %4: f32[128,512,64] = split_axis %1
         %5: f32[128,64,64] = dot_general %3, %4    the parts are a batch
         %2: f32[64,64] = reduce_sum %5

The parts depend on sizes and on the device alone, so the result is the same on every run. Half
types are summed in f32 from end to end.

Invariant: the same sums, in another order.
Cost: linear in the number of equations.
Source: M. Osama, D. Merrill, C. Cecka, M. Garland, J. Owens, "Stream-K", 2023 (fixed split).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from rune.core.lower import Contraction
from rune.core.program import Equation, Program, Var
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.two_step import apply, identity, part_size, split_axis
from rune.ops.arithmetic import convert
from rune.ops.contraction import Axes, Numbers, free_axes
from rune.ops.family import reduce_sum, wide

SIDE = 16  # of the tiles that groups of threads compute, where there are few points
GROUPS_PER_CORE = 2
FEWEST = 4  # parts: fewer are not worth another kernel
SHORTEST, LONGEST = 256, 4096  # sum of a part


def split_dots(program: Program, target: Target, streamed: Container[Var] = ()) -> Program:
    """The program with long dots of few results in parts.

    streamed: results that stay as they are
    """
    if not target.is_gpu:
        return program
    body: list[Equation] = []
    for equation in program.equations:
        stays = bool(equation.results) and equation.results[0] in streamed
        body += (equation,) if stays else _split(equation, target) or (equation,)
    return program.with_equations(body, program.outputs)


def _split(equation: Equation, target: Target) -> list[Equation]:
    """The equations in place of a dot; none where it stays."""
    operands = tuple(x for x in equation.operands if isinstance(x, Var))
    if not isinstance(equation.primitive.lower, Contraction) or len(operands) != 2:
        return []
    numbers: Numbers = equation.params["dimension_numbers"]
    part = choose(operands, numbers, target)
    if part is None:
        return []
    equations: list[Equation] = []
    sides = [_in_parts(x, c, d, part, equations) for x, c, d in zip(operands, *numbers, strict=True)]
    (a, b), contracting, batch = zip(*sides, strict=True)
    total = apply(equations, equation.primitive, a, b, dimension_numbers=(contracting, batch))
    total = apply(equations, reduce_sum, total, axes=(len(batch[0]) - 1,))
    (result,) = equation.results
    if total.type.dtype != result.type.dtype:
        apply(equations, convert, total, dtype=result.type.dtype)
    equations[-1] = replace(equations[-1], results=equation.results)
    return [replace(e, frame=equation.frame) for e in equations]


def _in_parts(
    x: Var, contracting: Axes, batch: Axes, part: tuple[int, int], equations: list[Equation]
) -> tuple[Var, Axes, Axes]:
    """An operand with one contracted axis in parts; its contracted and its batch axes."""
    number, size = part
    axis, dtype = contracting[number], wide(x.type.dtype)
    # Parts would be rounded to half types in memory.
    x = x if x.type.dtype == dtype else apply(equations, convert, x, dtype=dtype)
    x = apply(equations, split_axis, x, identity("add", x.type), axis=axis, size=size)
    # The parts stand where the axis was, and what each adds up behind them.
    within = tuple(i + (i >= axis) for i in contracting)
    return x, within, (*(i + (i > axis) for i in batch), axis)


def choose(operands: Sequence[Var], numbers: Numbers, target: Target) -> tuple[int, int] | None:
    """The number of the contracted axis that is cut, and the size of a part; None: none is."""
    contracting, batch = numbers
    shapes = [x.type.shape for x in operands]
    sums = [shapes[0][i] for i in contracting[0]]
    free = [tuple(s[i] for i in free_axes(len(s), c, d)) for s, c, d in zip(shapes, contracting, batch)]
    rows, columns = map(cost.count, free)
    groups = cost.count(tuple(shapes[0][i] for i in batch[0])) * -(-rows // SIDE) * -(-columns // SIDE)
    wanted, length = target.cores * GROUPS_PER_CORE, cost.count(tuple(sums))
    parts = min(max(-(-wanted // max(1, groups)), -(-length // LONGEST)), length // SHORTEST)
    is_idle = groups < wanted and parts >= FEWEST
    if not is_idle or min(rows, columns) < SIDE or not all(isinstance(n, int) for n in sums):
        return None
    number = max(range(len(sums)), key=lambda k: cost.count((sums[k],)))
    extent = cost.count((sums[number],))
    size = part_size(extent, -(-extent // parts))
    return (number, size) if size < extent else None
