"""The lowering of a primitive to kernel code, as data: all that kernelize knows of a primitive.

Index expressions are `rune.dims` polynomials. A rule takes the index tuple of one output element
and returns the source of its value:

    Scalar(op)        elementwise: the scalar operation of that name (kernel/expr.py); rank-0
                      operands may stand beside ranked ones
    Convert()         elementwise cast to the result's dtype;  Bitcast() keeps the bits
    Parts()           elementwise on complex numbers, by their real and imaginary parts, into which
                      lowering/legalize splits it by the rules of ops/parts.py
    View(rule)        pure movement: rule(indices, *types, **params) -> Source. The value is that
                      of the first piece whose conditions hold, else of operand `fill` (rank 0)
    Position(rule)    iota: rule(indices, type, **params) -> Size, an integer that is then cast
    Reduction(combine)    over `axes` (a parameter), those axes removed
    Contraction()     dot_general: parameter `dimension_numbers` = ((ca, cb), (ba, bb))
    Cumulative(combine)   inclusive scan along `axis`, from the end if `reverse`
    Scatter(combine, rule)    operand, then for each element of the updates (operand `updates`, a
                      number) in row-major order: rule(update_indices, *types, **params) ->
                      Piece naming the element of operand 0; combine None overwrites
    Host()            a Python function, called when the program runs
    Library(shared, pays)    the primitive's NumPy meaning, called by plans of the CPU if that pays;
                      otherwise a kernel that its user wrote, or its `expand`
    Routine(name, call, pays)    a routine of the device, if the device has it and it pays;
                      otherwise the primitive's `expand`
    ByRoutine(name, pays, expand)    other primitives, one of them a Routine, if the device has
                      that; otherwise the primitive's own `expand`
    Written(rule)     a kernel that is written in kernel code: rule(*types, **params) -> the loops
                      from which lowering/written.py makes the kernel
    Exchange()        a collective between devices, called in the order of the program
    Control           a primitive that holds programs becomes a loop or a branch of the plan
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rune.core.source import Source as KernelSource
from rune.core.types import ArrayType
from rune.dims import Size
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """The condition low <= index < high."""

    index: Size
    low: Size
    high: Size


@dataclass(frozen=True, slots=True)
class Element:
    """An integer read from an operand. Index expressions refer to it by the symbol `name`.

    With `clamp` = (low, high) the value is first clamped to low..high, both inclusive.
    """

    name: str
    operand: int
    indices: tuple[Size, ...]
    clamp: tuple[Size, Size] | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """An element of an operand, and the conditions under which it is the value (all of `where`).

    `elements` are the data-dependent integers that `indices` and `where` mention.
    """

    operand: int
    indices: tuple[Size, ...]
    where: tuple[Bounds, ...] = ()
    elements: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """Pieces in order of precedence; `fill` is the operand used if the conditions of none hold."""

    pieces: tuple[Piece, ...]
    fill: int | None = None


Rule = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Scalar:
    """An elementwise scalar operation."""

    op: str


@dataclass(frozen=True, slots=True)
class Convert:
    """An elementwise conversion to the result's dtype."""


@dataclass(frozen=True, slots=True)
class Bitcast:
    """The same bits read as the result's dtype."""


@dataclass(frozen=True, slots=True)
class Parts:
    """An operation on the parts of complex numbers."""


@dataclass(frozen=True, slots=True)
class View:
    """Movement: `rule(indices, *types, **params) -> Source`."""

    rule: Rule


@dataclass(frozen=True, slots=True)
class Position:
    """A value computed from the index: `rule(indices, **params) -> Size`."""

    rule: Rule


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction over the parameter `axes`."""

    combine: str


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum of products over contracted axes, with batch axes leading."""


@dataclass(frozen=True, slots=True)
class Cumulative:
    """An inclusive scan along the parameter `axis`."""

    combine: str


@dataclass(frozen=True, slots=True)
class Scatter:
    """Elements of operand `updates` written into a copy of operand 0."""

    combine: str | None
    updates: int
    rule: Rule


@dataclass(frozen=True, slots=True)
class Host:
    """A Python function of arrays in the host's memory: parameters `call`, `results`, `effect`.

    call(numpy arrays, result types) returns NumPy arrays; `results` have shape and dtype.
    """


def always(*types: ArrayType, **params: object) -> bool:
    """The rule of a library that pays for every operand."""
    return True


def lanes_of_matrices(*types: ArrayType, **params: object) -> tuple[int, ...]:
    """The axes of a library's operands and results before the last two."""
    return tuple(range(max(t.ndim for t in types) - 2))


def lanes_of_rows(*types: ArrayType, **params: object) -> tuple[int, ...]:
    """The axes of a library's operands and results before the last one."""
    return tuple(range(max(t.ndim for t in types) - 1))


@dataclass(frozen=True, slots=True)
class Library:
    """NumPy's routine on the CPU; on other devices the primitive's `expand`.

    shared:  rule(*types, **params) -> the axes, by their common number in all operands and results,
             along which the routine treats each index independently
    pays:    rule(*types, **params) -> bool, whether the routine is faster on the CPU. A primitive
             without `expand`, for which lowering has no expansion either, is always computed on the
             host, with a warning for other devices
    borrows: whether the routine stores none of its arguments, so that they need not be copies
    sources: kernels for devices that compile their language, preferred there
    columns: the number of the operand whose last axis is the last one of each result, along which
             the routine treats each index independently, too; None without such an operand
    """

    shared: Rule
    pays: Rule = always
    borrows: bool = True
    sources: tuple[KernelSource, ...] = ()
    columns: int | None = None


@dataclass(frozen=True, slots=True)
class Routine:
    """A routine of the device, by its name among `Target.routines`; otherwise the `expand`.

    call:   rule(*types, **params) -> {name: size}, the static parameters of its call
    pays:   rule(*types, **params) -> bool, whether it takes these operands and is faster
    """

    name: str
    call: Rule
    pays: Rule


@dataclass(frozen=True, slots=True)
class ByRoutine:
    """Another expansion, for devices that have a routine. `pays` as in Routine."""

    name: str
    pays: Rule
    expand: Rule


@dataclass(frozen=True, slots=True)
class Written:
    """A kernel with handwritten loops: rule(*types, **params) -> Loops (lowering/written.py)."""

    rule: Rule


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective: an exchange between the devices that run the program."""


Lowering = (
    Scalar
    | Convert
    | Bitcast
    | Parts
    | View
    | Position
    | Reduction
    | Contraction
    | Cumulative
    | Scatter
    | Host
    | Library
    | Routine
    | ByRoutine
    | Written
    | Exchange
)
