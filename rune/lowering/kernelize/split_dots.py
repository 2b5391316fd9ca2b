"""Sum long dots of few results in parts, side by side, where one kernel would leave a GPU idle.

Before   %2: f32[64,64] = dot_general %0, %1        %0: f32[64,65536], %1: f32[65536,64]
After    %3: f32[64,128,512] = split_axis %0        (views)
         %4: f32[128,512,64] = split_axis %1
         %5: f32[128,64,64] = dot_general %3, %4    the parts are a batch
         %2: f32[64,64] = reduce_sum %5

The parts depend only on sizes and the device, so the result is the same on every run. Half types
are summed in f32 throughout.

Invariant: the same sums, in another order.
Cost: linear in the number of equations.
Source: M. Osama, D. Merrill, C. Cecka, M. Garland, J. Owens, "Stream-K", 2023 (fixed split).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from rune import dtypes
from rune.core.lower import Contraction
from rune.core.program import Equation, Program, Var, replace_equations
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.equations import apply, cast, identity, in_place_of, is_among
from rune.lowering.kernelize.product_time import FULL, LAUNCH, MEMORY, Product, parted, shortest
from rune.lowering.kernelize.two_step import Parallelism, part_size, split_axis
from rune.ops.contraction import Axes, Numbers, free_axes
from rune.ops.family import reduce_sum, wide
from rune.records import dataclass

SIDE, LARGE = 16, 64  # of the smallest and of large tiles that groups of threads compute
FEWEST = 2  # parts
SHORTEST, LONGEST = 64, 4096  # sum of a part
# Parts of halves are in f32, which units for matrices do not multiply, so only long ones pay.
SHORTEST_OF_HALVES = 1024
DIVISORS = 64  # the largest divisor of an axis that is tried


def split_dots(program: Program, target: Target, stream_results: Container[Var] = ()) -> Program:
    """The program with long dots of few results in parts.

    stream_results: results that stay as they are
    """
    if not target.is_gpu:
        return program
    return replace_equations(program, lambda e: [] if is_among(e, stream_results) else _split(e, target))


def _split(equation: Equation, target: Target) -> list[Equation]:
    """The equations in place of a dot; an empty list if it stays."""
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
    cast(equations, total, equation.results[0].type.dtype)
    return in_place_of(equation, equations)


def _in_parts(
    x: Var, contracting: Axes, batch: Axes, part: tuple[int, int], equations: list[Equation]
) -> tuple[Var, Axes, Axes]:
    """An operand with one contracted axis in parts, its contracted axes, and its batch axes."""
    number, size = part
    axis, dtype = contracting[number], wide(x.type.dtype)
    # The results of parts would be rounded to half types in memory.
    x = cast(equations, x, dtype)
    x = apply(equations, split_axis, x, identity("add", x.type), axis=axis, size=size)
    # The axis of parts is where the axis was, and the axis within a part comes after it.
    within = tuple(i + (i >= axis) for i in contracting)
    return x, within, (*(i + (i > axis) for i in batch), axis)


def choose(operands: Sequence[Var], numbers: Numbers, target: Target) -> tuple[int, int] | None:
    """The number of the contracted axis that is cut, and the size of a part; None without a cut."""
    contracting, batch = numbers
    shapes = [x.type.shape for x in operands]
    sums = [shapes[0][i] for i in contracting[0]]
    free = [tuple(s[i] for i in free_axes(len(s), c, d)) for s, c, d in zip(shapes, contracting, batch)]
    rows, columns = map(cost.count, free)
    batches, length = cost.count(tuple(shapes[0][i] for i in batch[0])), cost.count(tuple(sums))
    if min(rows, columns) < SIDE or not all(isinstance(n, int) for n in sums):
        return None
    # Parts of half types are added up in f32, which units for matrices do not multiply.
    halves = any(("multiply", x.type.dtype) in target.native for x in operands)
    scattered_operands = (
        sum(len(s) > len(c) + 1 + len(d) for s, c, d in zip(shapes, contracting, batch)) if len(sums) > 1 else 0
    )
    itemsize = max(wide(x.type.dtype).itemsize for x in operands)
    across = sum(contracting[k][-1:] == (len(s) - 1,) for k, s in enumerate(shapes))
    product = Product(batches, rows, columns, length, itemsize, across, scattered_operands)
    cut = _cut(product, tuple(map(cost.estimate, sums)), target, SHORTEST_OF_HALVES if halves else SHORTEST)
    return None if cut is None or cut.parts < FEWEST else (cut.number, cut.size)


@dataclass(frozen=True, slots=True)
class _Cut:
    """The number of an axis of the sum, the size of a part of it, and how many parts there are."""

    number: int
    size: int
    parts: int


def _cut(product: Product, sums: Sequence[int], target: Target, shortest_part: int) -> _Cut | None:
    """The cut that takes the least time, the sum of its results included; None if no cut pays."""
    tiles = max(1, product.batch * -(-product.rows // LARGE) * -(-product.columns // LARGE))
    full_groups, fewest = target.cores * FULL, -(-product.sums // LONGEST)
    most = min(product.sums // shortest_part, -(-full_groups * LARGE // (SIDE * tiles)))
    # Tiles that fill the device need no parts, unless a sum is longer than a part may be.
    if (tiles >= full_groups and fewest <= 1) or most < FEWEST:
        return None
    cuts = dict.fromkeys(_Cut(k, size, 1) for k, size in enumerate(sums) if fewest <= 1)
    for number, extent in enumerate(sums):
        for parts in _counts(extent, full_groups // tiles, most):
            size = part_size(extent, -(-extent // parts))
            cuts[_Cut(number, size, -(-extent // size))] = None
    # If no cut has that many parts, any cut will do.
    enough = [c for c in cuts if c.parts >= fewest] or list(cuts)
    return min(enough, key=lambda c: _time(product, c.parts, target), default=None)


def _counts(extent: int, filling: int, most: int) -> Iterator[int]:
    """Numbers of parts of an axis, up to `most`: divisors, powers of 2, and what fills a device."""
    for parts in range(2, min(extent, most) + 1):
        if (extent % parts == 0 and parts <= DIVISORS) or parts & (parts - 1) == 0 or parts == filling:
            yield parts


def _time(product: Product, parts: int, target: Target) -> float:
    """Cycles of the parts, and of their sum afterwards."""
    fetches_ahead = ("fetch", dtypes.f32) in target.native
    time = shortest(parted(product, parts), target.cores, ahead=fetches_ahead)
    if parts == 1:
        return time
    results = product.batch * product.rows * product.columns
    # Many parts are summed in two steps themselves (two_step.py).
    device = Parallelism.of(target)
    is_long = results * parts > cost.SPLIT_WORK and not device.shares(results * parts, results)
    launches = 1 + (is_long and results < device.columns)
    return time + launches * LAUNCH + results * product.itemsize * (2 * parts + 1) / (MEMORY * target.cores)
