"""Small products of drafts: loops over the digits of their walks, as functions of their own.

A general product is a dozen functions, which LLVM compiles in several milliseconds: longer than a
small product runs in a simple loop. So a draft computes it element by element, or as many at once
as a vector has lanes.

Invariant: the bits are those of blocks.py, exchanged.py and strided.py: each element is one chain
of fused multiply-adds over p, or, of a few rows, the sum of the lanes of one; special elements
(mended.py) are such a chain in f64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from operator import mul

from rune.backends.cpu.gemm.exchanged import is_exchanged
from rune.backends.cpu.gemm.mended import forget_denormals, is_denormal, met_denormals
from rune.backends.cpu.gemm.product import DEPTH, ROLES, Digits, is_narrow, is_of_few_rows
from rune.backends.cpu.gemm.shape import SCALARS, Shape, shape_for
from rune.backends.cpu.gemm.tile import Maker, maker, sum_of_lanes
from rune.lowering.codegen.llvm.ir.names import suffix
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.codegen.machine import Machine
from rune.lowering.kernelize.walks import SIZES, digits_of
from rune.lowering.plan import Call
from rune.records import dataclass, replace

MOST_COST = 1e6  # estimated instructions of a product, a third of a millisecond
_ROUND_COST = 12.0  # of one step of p for one vector; LLVM keeps nothing in registers
_GATHER_COST = 24.0  # the same if the lanes are apart in memory
_SUM_COST = 30.0  # of adding up lanes


@dataclass(frozen=True, slots=True)
class Axis:
    """A digit that A, B and C have in common: its size, and the steps of all three in elements."""

    size: int
    steps: tuple[int, int, int]


Axes = tuple[Axis, ...]  # innermost first
Places = tuple[Value, Value, Value]  # addresses in A, B and C


@dataclass(frozen=True, slots=True)
class Small:
    """A small product: loops `outer`, then vectors along `lanes`, then loops over p, `inner`.

    Lanes are columns of C, or, where a few rows are sums of lanes, p.
    """

    shape: Shape
    outer: Axes
    lanes: Axis
    inner: Axes
    sums_lanes: bool
    is_transposed: bool  # whether B takes the place of A, and A that of B
    mends: bool  # whether elements that meet denormal numbers are summed in f64

    @property
    def cost(self) -> float:
        """Estimated instructions."""
        results = math.prod(axis.size for axis in self.outer)
        vectors = -(-self.lanes.size // self.shape.lanes)
        if self.sums_lanes:
            return results * (vectors * _ROUND_COST + _SUM_COST)
        round_cost = _ROUND_COST if self.lanes.steps[1] in (0, 1) else _GATHER_COST
        return results * vectors * math.prod(axis.size for axis in self.inner) * round_cost

    def function(self, name: str) -> tuple[str, Writer]:
        """The head and the body of a function of the addresses of A, B and C."""
        make = maker(self.shape)
        a, b, c = make.pointers("a b c")
        slot = make.writer.allocate(self.shape.vector)
        if self.mends:
            forget_denormals(make.writer)
        element = partial(_sum_of_lanes if self.sums_lanes else _vectors, make, self, slot)
        _nest(make, self.outer, (b, a, c) if self.is_transposed else (a, b, c), element)
        make.writer.do("ret void")
        return f"internal void @{name}(ptr %a, ptr %b, ptr %c)", make.writer


def small_of(step: Call, machine: Machine) -> Small | None:
    """The call as a small product; None if it is large, or of open sizes."""
    dtype = step.outputs[0].type.dtype
    parameters = {name: n for name, n in step.parameters if isinstance(n, int)}
    if dtype not in SCALARS or len(parameters) < len(step.parameters):
        return None
    batch, m, n, k = sizes = [parameters[name] for name in SIZES]
    # Deeper products add up one chain for each block of depth, so their bits would be others.
    if min(sizes) < 1 or k > DEPTH:
        return None
    walks, shape = walks_of(step, parameters), shape_for(machine, SCALARS[dtype])
    if is_narrow(m, n, k, walks["a_inner"], shape.lanes):
        return None
    batches = _common(walks["a_batch"], walks["b_batch"], ((batch, m * n),))
    rows = _common(walks["a_rows"], ((m, 0),), ((m, n),))
    columns = _common(((n, 0),), walks["b_columns"], ((n, 1),))
    inner = _common(walks["a_inner"], walks["b_inner"], ((k, 0),))
    if not (batches and rows and columns and inner):
        return None
    # Tiles that walk are not mended.
    mends = shape.mends and not (step.routine != "dot" and is_exchanged(shape, m, n, k))
    small = replace(_loops_of(shape, batches, rows, columns, inner, step), mends=mends)
    return small if small.cost <= MOST_COST else None


def walks_of(step: Call, parameters: Mapping[str, int]) -> dict[str, Digits]:
    """The digits of each role; those of a dense product follow from its sizes."""
    if step.routine != "dot":
        return {role: digits_of(parameters, role) for role in ROLES}
    batch, m, n, k = (parameters[name] for name in SIZES)
    a_steps = (1, m) if parameters["trans_a"] else (k, 1)
    b_steps = (k, 1) if parameters["trans_b"] else (1, n)
    pairs = (batch, m * k), (m, a_steps[0]), (k, a_steps[1]), (batch, k * n), (n, b_steps[0]), (k, b_steps[1])
    return {role: (pair,) for role, pair in zip(ROLES, pairs, strict=True)}


def _common(*operands: Digits) -> Axes:
    """One index in digits that A, B and C have in common; empty if there are none.

    >>> [axis.steps for axis in _common(((6, 1),), ((2, 5), (3, 0)), ((6, 2),))]
    [(1, 5, 2), (2, 0, 4)]
    """
    ends = sorted({end for digits in operands for end in accumulate((size for size, _ in digits), mul)})
    axes, begin = [], 1
    for end in ends:
        if end % begin:
            return ()
        a, b, c = (_step_at(digits, begin) for digits in operands)
        axes.append(Axis(end // begin, (a, b, c)))
        begin = end
    return tuple(axis for axis in axes if axis.size > 1) or (Axis(1, (0, 0, 0)),)


def _step_at(digits: Digits, index: int) -> int:
    """How far an index, at which some digit begins or is divided, lies from index 0."""
    for size, step in digits:
        if index < size:
            return index * step
        index //= size
    return 0


def _loops_of(shape: Shape, batch: Axes, rows: Axes, columns: Axes, inner: Axes, step: Call) -> Small:
    """The loops of a product. One with a single column is computed as the transposed one."""
    parameters = dict(step.parameters)
    trans_a, trans_b = (bool(parameters.get(name)) for name in ("trans_a", "trans_b"))
    m, n = (math.prod(axis.size for axis in axes) for axes in (rows, columns))
    # Lanes are columns: a single column would use one lane of each vector.
    is_transposed = n == 1 and m > 1
    if is_transposed:
        m, n, trans_a, trans_b = n, m, False, not trans_a
        batch, rows, columns, inner = (tuple(map(_transposed, axes)) for axes in (batch, columns, rows, inner))
    # The general product sums lanes in this case, and a draft must give the same bits.
    if step.routine == "dot" and is_of_few_rows(m, n, trans_a, trans_b):
        return Small(shape, (*columns, *rows, *batch), inner[0], (), True, is_transposed, False)
    return Small(shape, (*columns[1:], *rows, *batch), columns[0], inner, False, is_transposed, False)


def _transposed(axis: Axis) -> Axis:
    a, b, c = axis.steps
    return Axis(axis.size, (b, a, c))


# --- code -------------------------------------------------------------------------------------


def _nest(make: Maker, axes: Sequence[Axis], places: Places, body: Callable[[Places], None]) -> None:
    """body(addresses) for all indices of the axes, the first of which is the innermost loop."""
    if not axes:
        body(places)
        return
    *inner, outer = axes

    def one(index: Value) -> None:
        _nest(make, inner, _advanced(make, places, outer, index), body)

    make.each(make.number(outer.size), one)


def _advanced(make: Maker, places: Places, axis: Axis, index: Value) -> Places:
    """The addresses `index` steps on."""
    a, b, c = (
        make.at(place, index * step) if step and axis.size > 1 else place
        for place, step in zip(places, axis.steps, strict=True)
    )
    return a, b, c


def _each_vector(make: Maker, axis: Axis, places: Places, body: Callable[[Places, int], None]) -> None:
    """body(addresses, number of lanes) for the vectors of an axis, the last of which may be
    partial."""
    lanes = make.shape.lanes
    full, remainder = divmod(axis.size, lanes)
    make.each(make.number(full), lambda v: body(_advanced(make, places, axis, v * lanes), lanes))
    if remainder:
        body(_advanced(make, places, axis, make.number(full * lanes)), remainder)


def _vectors(make: Maker, small: Small, slot: Value, places: Places) -> None:
    """Neighbouring columns of one row of C, a vector at a time."""
    shape, writer = make.shape, make.writer

    def vector(places: Places, count: int) -> None:
        def step(places: Places) -> None:
            x = writer.splat(make.scalar(places[0]), shape.lanes)
            y = _lanes_from(make, places[1], small.lanes.steps[1], count)
            writer.store(x.fma(y, writer.load(shape.vector, slot)), slot)

        writer.store(writer.constant(shape.vector, 0.0), slot)
        _nest(make, small.inner, places, step)
        total = writer.load(shape.vector, slot)
        known = None if count == shape.lanes else make.number(count)
        make.put(total, places[2], known)
        if small.mends:
            writer.either(met_denormals(writer), partial(mend, places, count, known, total))

    def mend(places: Places, count: int, known: Value | None, total: Value) -> None:
        special = _Special(make, shape.lanes)

        def step(places: Places) -> None:
            x = writer.splat(make.scalar(places[0]), shape.lanes)
            special.add(x, _lanes_from(make, places[1], small.lanes.steps[1], count))

        _nest(make, small.inner, places, step)
        make.put(writer.select(special.flags, special.total.cast("fptrunc", "float"), total), places[2], known)
        forget_denormals(writer)

    _each_vector(make, small.lanes, places, vector)


def _lanes_from(make: Maker, at: Value, step: int, count: int) -> Value:
    """`count` elements, `step` apart, and 0 in the other lanes; with step 0 one in all lanes."""
    shape, writer = make.shape, make.writer
    if step == 0:
        return writer.splat(make.scalar(at), shape.lanes)
    if step == 1:
        return make.vector(at, None if count == shape.lanes else make.number(count))
    pointers = f"<{shape.lanes} x ptr>"
    offsets = writer.iota(shape.lanes, "i64") * step
    address = f"getelementptr {shape.scalar}, ptr {at.text}, {offsets.type} {offsets.text}"
    name = f"@llvm.masked.gather.{suffix(shape.vector)}.v{shape.lanes}p0"
    alignment, zero = writer.constant("i32", shape.bytes), writer.constant(shape.vector, 0.0)
    mask = make.mask(make.number(count))
    return writer.call(shape.vector, name, writer.emit(pointers, address), alignment, mask, zero)


def _sum_of_lanes(make: Maker, small: Small, slot: Value, places: Places) -> None:
    """One element of C, from neighbours in A and B."""
    shape, writer = make.shape, make.writer

    def step(places: Places, count: int) -> None:
        x, y = (_lanes_from(make, place, 1, count) for place in places[:2])
        writer.store(x.fma(y, writer.load(shape.vector, slot)), slot)

    def mend() -> None:
        special = _Special(make, shape.lanes)
        _each_vector(make, small.lanes, places, lambda p, n: special.add(*(_lanes_from(make, x, 1, n) for x in p[:2])))
        total = sum_of_lanes(special.total).cast("fptrunc", "float")
        writer.either(writer.any_lane(special.flags), lambda: writer.store(total, places[2]))
        forget_denormals(writer)

    writer.store(writer.constant(shape.vector, 0.0), slot)
    _each_vector(make, small.lanes, places, step)
    writer.store(sum_of_lanes(writer.load(shape.vector, slot)), places[2])
    if small.mends:
        writer.either(met_denormals(writer), mend)


class _Special:
    """The lanes that meet denormal numbers, and the sums of their products in f64."""

    def __init__(self, make: Maker, lanes: int) -> None:
        writer = make.writer
        self._types = f"<{lanes} x i32>", f"<{lanes} x double>"
        self._places = [writer.allocate(type) for type in self._types]
        for type, place in zip(self._types, self._places, strict=True):
            writer.store(writer.constant(type, 0), place)

    def add(self, x: Value, y: Value) -> None:
        """Add products of lanes."""
        (flags, total), writer = self._values(), x.writer
        writer.store(flags | is_denormal(x) | is_denormal(y), self._places[0])
        writer.store(x.cast("fpext", "double").fma(y.cast("fpext", "double"), total), self._places[1])

    def _values(self) -> tuple[Value, Value]:
        flags, total = (place.writer.load(type, place) for type, place in zip(self._types, self._places, strict=True))
        return flags, total

    @property
    def flags(self) -> Value:
        """An i1 for each lane."""
        return self._values()[0].compare("ne", 0)

    @property
    def total(self) -> Value:
        """The sums so far."""
        return self._values()[1]
