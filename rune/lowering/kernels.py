"""Kernels: what is computed together, before loops and memory are decided.

A Kernel runs its body once for every point of `domain`, in any order and in parallel. The body is a
flat sequence; a statement may run over inner axes of its own, in their order:

    Let     name = value                                     a scalar of this point
    Reduce  name = combine over axes: value                  a scalar of this point
    Fill    name[axes] = value                               a scratch row of this point
    Write   output[indices] = value, for all axes            with `condition`, only where it holds;
                                                             with `combine`, read-modify-write
    Scan    output[indices] = running combine along axis     an inclusive scan
    Stream  sums over axes, computed while the largest of the scores is not known yet

`lets` are scalars of one inner point. Buffers are arrays: a Load has one index per axis. A kernel
may load from its own output what the same point has written before. Different points of the domain
never access the same element, nor do the inner points of an unordered Write. An output that
`in_place` pairs with an input starts out with the contents of that input, and the kernel changes
some of them. A kernel whose threads work together has `code` instead, over the same buffers.

A KernelProgram is the steps of one program over numbered Values: invocations of kernels, calls of
library routines, and loops and branches, whose bodies are KernelPrograms again. Equal kernels are
one kernel, which several steps invoke, in the program or in bodies.

Invariant: `kernels_check.check` accepts it, and `kernels_text.parse` reads back what it prints.
Not said here: loop order, tiling, which axes become vectors (build); offsets (memory).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from rune.core.types import ArrayType
from rune.dims import Dim, Size, product, symbol
from rune.errors import Frame
from rune.lowering.kernel.expr import Expr
from rune.lowering.kernel.nodes import Let
from rune.lowering.kernel.rewrite import Body
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis that a kernel runs over: 0 <= name < size."""

    name: str
    size: Size

    @property
    def symbol(self) -> Dim:
        """The symbol that stands for the position in index expressions."""
        return symbol(self.name, 0, self.size - 1)


Axes = tuple[Axis, ...]
Indices = tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array that a kernel reads or writes."""

    name: str
    type: ArrayType


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduction over `axes`, of the dtype of `value`. `contract`: a dot, see Accumulate."""

    name: str
    combine: str
    axes: Axes
    lets: tuple[Let, ...]
    value: Expr
    contract: bool = False

    @property
    def dtype(self) -> np.dtype:
        """The dtype of accumulator and result."""
        return self.value.dtype


@dataclass(frozen=True, slots=True)
class Fill:
    """A scratch row over `axes`, private to the point of the domain."""

    name: str
    axes: Axes
    lets: tuple[Let, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class Write:
    """Elements of an output. `ordered`: inner points run in row-major order (scatter)."""

    output: str
    axes: Axes
    indices: Indices
    lets: tuple[Let, ...]
    value: Expr
    condition: Expr | None = None
    combine: str | None = None
    # Several updates of a scatter may change one element, and then their order matters.
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    """output[indices] = the values of all points of `axis` up to this one, combined.

    `value` has the accumulator's dtype, and is converted to the output's dtype when it is written.
    """

    output: str
    combine: str
    axis: Axis
    indices: Indices
    lets: tuple[Let, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class Peak:
    """The largest score. While a stream runs, the name means the largest one so far."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum of a stream: of `weight`, a scalar, or of rows weight * factor over `columns`.

    Whenever the peak grows, the sum so far is multiplied by exp(degree * (before - after)).
    """

    name: str
    weight: Expr
    degree: int
    columns: Axes = ()
    lets: tuple[Let, ...] = ()
    factor: Expr | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """Sums over `axes` in one pass. A sum without columns is a scalar, one with them a scratch row.

    scores:  scalars of an inner point, some of them dots, from which the peak is updated
    weights: scalars that may also depend on the peak
    While the peak is -inf it counts as 0, so that sums which depend on it do not become NaN.
    """

    axes: Axes
    scores: tuple[Let | Reduce, ...]
    peak: Peak | None
    weights: tuple[Let | Reduce, ...]
    sums: tuple[Sum, ...]


Statement = Let | Reduce | Fill | Write | Scan | Stream


@dataclass(frozen=True, slots=True, repr=False)
class Kernel:
    """inputs -> outputs, in parallel over `domain`."""

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    domain: Axes
    body: tuple[Statement, ...]
    in_place: tuple[tuple[str, str], ...] = ()
    code: Body = ()  # the loops, if they are written by hand; domain and body are then empty

    def __repr__(self) -> str:
        operands, results = (", ".join(f"{b.name}: {b.type}" for b in bs) for bs in (self.inputs, self.outputs))
        return f"Kernel({self.name}: ({operands}) -> ({results}))"


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a KernelProgram: its number, which no other value has, and its type."""

    # Identifies the value: two values of one type are not the same.
    number: int
    type: ArrayType

    def __str__(self) -> str:
        return f"%{self.number}"


@dataclass(frozen=True, slots=True)
class Invoke:
    """Run a kernel, with operands in the order of its inputs and results in that of its outputs."""

    kernel: str
    results: tuple[Value, ...]
    operands: tuple[Value, ...]
    # Not compared, since its origin does not change what a step does.
    frame: Frame | None = field(default=None, compare=False)  # the user's line it comes from


@dataclass(frozen=True, slots=True)
class Routine:
    """Call a library routine with static parameters."""

    routine: str
    results: tuple[Value, ...]
    operands: tuple[Value, ...]
    parameters: tuple[tuple[str, Any], ...]
    frame: Frame | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Repeat:
    """Run a body repeatedly: `count` times, or as long as `condition` yields true.

    operands:   `consts` values, then the first value of each carry
    results:    the last value of each carry, then arrays that the steps fill in place
    body:       step number i32[], consts, carries, arrays -> next carries, arrays
    condition:  step number, consts, carries -> bool[]
    """

    results: tuple[Value, ...]
    operands: tuple[Value, ...]
    consts: int
    body: KernelProgram
    condition: KernelProgram | None
    count: Size | None


@dataclass(frozen=True, slots=True)
class Choose:
    """Run the branch whose number is operand 0, or the nearest, on the other operands."""

    results: tuple[Value, ...]
    operands: tuple[Value, ...]
    branches: tuple[KernelProgram, ...]


KernelStep = Invoke | Routine | Repeat | Choose


@dataclass(frozen=True, slots=True)
class NotFused:
    """Why the kernel that computes `value` and a reader of it are separate kernels."""

    value: Value
    producer: str
    consumer: str
    why: str


@dataclass(frozen=True, slots=True, repr=False)
class KernelProgram:
    """Steps over values. A result may be an input, or a value under another type of equal size.

    `kernels` are those of its own steps and of the programs of its loops and branches.
    """

    name: str
    inputs: tuple[Value, ...]
    steps: tuple[KernelStep, ...]
    outputs: tuple[Value, ...]
    output_types: tuple[ArrayType, ...]
    kernels: Mapping[str, Kernel]
    not_fused: tuple[NotFused, ...] = ()

    def __repr__(self) -> str:
        operands = ", ".join(str(v.type) for v in self.inputs)
        results = ", ".join(map(str, self.output_types))
        return f"KernelProgram({self.name}: ({operands}) -> ({results}), kernels {', '.join(self.kernels) or 'none'})"


def inner_programs(step: KernelStep) -> tuple[KernelProgram, ...]:
    """The programs that a step runs: a condition, if there is one, and a body; or branches."""
    match step:
        case Repeat(body=body, condition=condition):
            return (body,) if condition is None else (condition, body)
        case Choose(branches=branches):
            return branches
        case _:
            return ()


def kernel_names(step: KernelStep) -> tuple[str, ...]:
    """The kernels that a step runs, including those of its programs."""
    if isinstance(step, Invoke):
        return (step.kernel,)
    return tuple(name for inner in inner_programs(step) for name in inner.kernels)


def inner_axes(statement: Statement) -> Axes:
    """The axes that a statement itself runs over."""
    match statement:
        case Let():
            return ()
        case Scan(axis=axis):
            return (axis,)
        case Stream(axes=axes):
            inner = (axis for part in stream_parts(statement) if not isinstance(part, Let) for axis in part_axes(part))
            return (*axes, *inner)
        case _:
            return statement.axes


def stream_parts(stream: Stream) -> tuple[Let | Reduce | Sum, ...]:
    """The parts of a stream at an inner point, without the peak."""
    return (*stream.scores, *stream.weights, *stream.sums)


def part_axes(part: Reduce | Sum) -> Axes:
    """The axes of a part of a stream."""
    return part.axes if isinstance(part, Reduce) else part.columns


def inner_lets(statement: Statement) -> tuple[Let, ...]:
    """The scalars of one inner point."""
    if isinstance(statement, Stream):
        parts = stream_parts(statement)
        return tuple(let for p in parts for let in ((p,) if isinstance(p, Let) else p.lets))
    return () if isinstance(statement, Let) else statement.lets


def expressions(statement: Statement) -> tuple[Expr, ...]:
    """Every expression of a statement."""
    lets = tuple(let.value for let in inner_lets(statement))
    if isinstance(statement, Stream):
        return (*lets, *_stream_values(statement))
    if isinstance(statement, Write) and statement.condition is not None:
        return (*lets, statement.value, statement.condition)
    return (*lets, statement.value)


def _stream_values(stream: Stream) -> Iterator[Expr]:
    yield from () if stream.peak is None else (stream.peak.value,)
    for part in stream_parts(stream):
        if isinstance(part, Reduce):
            yield part.value
        elif isinstance(part, Sum):
            yield part.weight
            yield from () if part.factor is None else (part.factor,)


def evaluations(statement: Statement) -> Iterator[tuple[Size, tuple[Expr, ...], int]]:
    """Numbers of points, the expressions evaluated at each point, and how many it combines."""
    if not isinstance(statement, Stream):
        yield points(inner_axes(statement)), expressions(statement), int(isinstance(statement, Reduce | Scan))
        return
    count = points(statement.axes)
    if statement.peak is not None:
        yield count, (statement.peak.value,), 1
    for part in stream_parts(statement):
        match part:
            case Let(value=value):
                yield count, (value,), 0
            case Reduce():
                yield count * points(part.axes), expressions(part), 1
            case Sum(weight=weight, factor=factor):
                yield count, (weight,), 0
                inner = (*(let.value for let in part.lets), *(() if factor is None else (factor,)))
                # A product and its sum.
                yield count * points(part.columns), inner, 1 if factor is None else 2


def points(axes: Axes) -> Size:
    """Number of points of some axes."""
    return product(axis.size for axis in axes)


def row_major(axes: Iterable[Axis]) -> Size:
    """The number of a point of some axes, the last axis running fastest."""
    place: Size = 0
    for axis in axes:
        place = place * axis.size + axis.symbol
    return place


def positions(number: Size, axes: Sequence[Axis]) -> tuple[dict[str, Size], Size]:
    """The position on each axis of the point with this number, and the number of their grid.

    The inverse of `row_major`: axes may be the last ones of several, which the grids run through.
    """
    at: dict[str, Size] = {}
    for axis in reversed(axes):
        at[axis.name], number = number % axis.size, number // axis.size
    return at, number
