"""Letters: which axes of an operation's operands and result correspond, as in `ij,jk->ik`.

An axis that operands and result share may be split on all of them, and each device computes its
part. An axis that the operation sums over may be split too, followed by a sum over the devices. All
this is derived from how a primitive becomes kernel code (core/lower.py), and for movement from its
index expressions: `transpose` takes index 0 of the result as index 1 of the operand. The same goes
for gathers and scatters along axes that indices do not affect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from rune import dims
from rune.core.lower import (
    Bitcast,
    Contraction,
    Convert,
    Cumulative,
    Library,
    Parts,
    Piece,
    Position,
    Reduction,
    Scalar,
    Scatter,
    Source,
    View,
)
from rune.core.primitive import Collective, Primitive, Rule
from rune.core.types import ArrayType
from rune.dims import Dim, Size
from rune.ops.collectives import pmax, pmin, psum
from rune.ops.contraction import Numbers
from rune.records import dataclass
from rune.transforms.programs.call_rules import Params

Letter = int | None  # None: an axis that must not be split
# How the devices combine their parts of a reduction.
UNITED_BY: Mapping[str, Collective] = {"add": psum, "max": pmax, "min": pmin}


@dataclass(frozen=True, slots=True)
class Letters:
    """A letter for each axis of the operands and of the results.

    united: the letters that the operation reduces over, and how the devices' parts are combined
    parts:  of letters that stand for the outer part of an axis, how long that is
    """

    operands: tuple[tuple[Letter, ...], ...]
    results: tuple[tuple[Letter, ...], ...]
    united: Mapping[int, Collective] = field(default_factory=dict)
    parts: Mapping[int, int] = field(default_factory=dict)


def letters_of(primitive: Primitive, types: Sequence[ArrayType], params: Params) -> Letters | None:
    """The letters of an operation; None if no axis may be split."""
    lower = primitive.lower
    match lower:
        case Scalar() | Convert() | Bitcast() | Parts():
            return _elementwise(types)
        case Reduction(combine=combine):
            return _reduction(types[0].ndim, params["axes"], UNITED_BY.get(combine))
        case Cumulative():
            axes = tuple(None if axis == params["axis"] else axis for axis in range(types[0].ndim))
            return Letters((axes,), (axes,))
        case Contraction():
            return _contraction(types[0].ndim, types[1].ndim, params["dimension_numbers"])
        case View(rule=rule):
            return _movement(rule, primitive.type_rule(*types, **params), types, params)
        case Position(rule=rule):
            return _position(rule, primitive.type_rule(*types, **params), params)
        case Scatter():
            return _written(lower, types, params)
        case Library(shared=shared):
            return _library(primitive, types, params, frozenset(shared(*types, **params)))
    return None


def _library(primitive: Primitive, types: Sequence[ArrayType], params: Params, shared: frozenset[int]) -> Letters:
    out = primitive.type_rule(*types, **params)
    results: Sequence[ArrayType] = out if primitive.multiple_results else (out,)

    def letters(type: ArrayType) -> tuple[Letter, ...]:
        return tuple(axis if axis in shared else None for axis in range(type.ndim))

    return Letters(tuple(map(letters, types)), tuple(map(letters, results)))


def _position(rule: Rule, result: ArrayType, params: Params) -> Letters:
    """Whatever no index along an axis decides is the same for all of them."""
    indices = [_index(n, size) for n, size in enumerate(result.shape)]
    value = rule(tuple(indices), **params)
    decide = {n for n, x in enumerate(indices) if isinstance(x, Dim) and _mentions(value, _name(x))}
    return Letters((), (tuple(None if n in decide else n for n in range(result.ndim)),))


def _elementwise(types: Sequence[ArrayType]) -> Letters:
    """Rank-0 operands go with those that have the shape of the result."""
    result = tuple(range(max(t.ndim for t in types)))
    return Letters(tuple(result[: t.ndim] for t in types), (result,))


def _reduction(ndim: int, axes: Sequence[int], united: Collective | None) -> Letters:
    operand = tuple(None if axis in axes and united is None else axis for axis in range(ndim))
    result = tuple(axis for axis in range(ndim) if axis not in axes)
    return Letters((operand,), (result,), dict.fromkeys(axes, united) if united else {})


def _contraction(a_ndim: int, b_ndim: int, numbers: Numbers) -> Letters:
    """The result has the batch axes, then the free axes of the first and the second operand."""
    (contracted_a, contracted_b), (batch_a, batch_b) = numbers
    a, b = list(range(a_ndim)), list(range(a_ndim, a_ndim + b_ndim))
    for axis_a, axis_b in zip((*contracted_a, *batch_a), (*contracted_b, *batch_b), strict=True):
        b[axis_b] = a[axis_a]
    free_a = [x for n, x in enumerate(a) if n not in (*contracted_a, *batch_a)]
    free_b = [x for n, x in enumerate(b) if n not in (*contracted_b, *batch_b)]
    result = (*(a[n] for n in batch_a), *free_a, *free_b)
    # Where a contracted axis is cut, each device has a part of the sum, which psum completes.
    return Letters((tuple(a), tuple(b)), (result,), {a[n]: psum for n in contracted_a})


def _movement(rule: Rule, result: ArrayType, types: Sequence[ArrayType], params: Params) -> Letters | None:
    """An index that stands alone where operands are read, and nowhere else, is a shared axis.

    So is one whose outer part is that of an operand's axis, or is all of one.
    """
    # The rule is asked for one element with symbolic indices: where each of them is read shows
    # which axes correspond.
    indices = [_index(n, size) for n, size in enumerate(result.shape)]
    source: Source = rule(tuple(indices), *types, **params)
    reads, conditions = _reads(source.pieces)
    if not _are_read(types, reads):
        return None
    operands: list[list[Letter]] = [[None] * t.ndim for t in types]
    letters: list[Letter] = [None] * result.ndim
    parts: dict[int, int] = {}
    for letter, size in enumerate(result.shape):
        for unit in _units(size, types):
            axes = _shared_axes(indices[letter], size, unit, reads, conditions, types)
            # One index that no operand has can be cut anywhere; a bundle has to be that of an axis.
            if axes is None or (unit > 1 and not axes):
                continue
            letters[letter] = letter
            for operand, axis in axes.items():
                operands[operand][axis] = letter
            if isinstance(size, int) and any(types[n].shape[axis] != size for n, axis in axes.items()):
                parts[letter] = size // unit
            break
    return Letters(tuple(map(tuple, operands)), (tuple(letters),), {}, parts)


def _units(size: Size, types: Sequence[ArrayType]) -> Iterator[int]:
    """How many indices may go together: one, and as many as leave as many units as an axis has."""
    yield 1
    if isinstance(size, int):
        lengths = {d for t in types for d in t.shape if isinstance(d, int) and 1 < d < size}
        yield from (size // d for d in sorted(lengths, reverse=True) if size % d == 0)


def _written(lower: Scatter, types: Sequence[ArrayType], params: Params) -> Letters | None:
    """The same of a scatter: an index of the updates that stands alone where they are written.

    Updates that one index does not name a place for are united: devices write their part of them.
    """
    updates, unite = lower.updates, UNITED_BY.get(lower.combine or "")
    indices = [_index(n, size) for n, size in enumerate(types[updates].shape)]
    reads, conditions = _reads((lower.rule(tuple(indices), *types, **params),))
    reads.append((updates, tuple(indices)))
    if not _are_read(types, reads):
        return None
    operands: list[list[Letter]] = [[None] * t.ndim for t in types]
    united: dict[int, Collective] = {}
    for letter, size in enumerate(types[updates].shape):
        axes = _shared_axes(indices[letter], size, 1, reads, conditions, types)
        # Updates that overwrite cannot be united: which device came last would be chance.
        if axes is None or (0 not in axes and unite is None):
            continue
        for operand, axis in axes.items():
            operands[operand][axis] = letter
        if 0 not in axes and unite is not None:
            united[letter] = unite
    return Letters(tuple(map(tuple, operands)), (tuple(operands[0]),), united)


Read = tuple[int, tuple[Size, ...]]  # of which operand, and where


def _reads(pieces: Sequence[Piece]) -> tuple[list[Read], list[Size]]:
    """All values read from operands, with integers that decide positions, and the conditions."""
    reads = [(p.operand, p.indices) for p in pieces]
    reads += [(e.operand, e.indices) for p in pieces for e in p.elements]
    return reads, [x for p in pieces for b in p.where for x in (b.index, b.low, b.high)]


def _are_read(types: Sequence[ArrayType], reads: Sequence[Read]) -> bool:
    """Whether each operand is; of one that is not, only the type rule knows what its axes mean."""
    return all(number in dict(reads) for number, t in enumerate(types) if t.shape)


def _shared_axes(
    index: Size, size: Size, unit: int, reads: Sequence[Read], conditions: Sequence[Size], types: Sequence[ArrayType]
) -> dict[int, int] | None:
    """By operands, the axis along which one goes a step where the index goes `unit` further.

    None if something is also read in another way.
    """
    if not isinstance(index, Dim) or any(_mentions(x, _name(index)) for x in conditions):
        return None
    axes: dict[int, tuple[int, ...]] = {}
    for operand, indices in reads:
        steps = [_step(x, index, unit) for x in indices]
        named = tuple(axis for axis, step in enumerate(steps) if step != 0)
        if len(named) > 1 or axes.setdefault(operand, named) != named:
            return None
        # As many steps as the index takes lead from one end of the axis to the other.
        if any(not _spans(types[operand].shape[axis], steps[axis], size, unit) for axis in named):
            return None
    return {operand: named[0] for operand, named in axes.items() if named}


def _spans(length: Size, step: int | None, size: Size, unit: int) -> bool:
    """Whether an axis is as many steps long as the index has units."""
    if step == unit == 1:
        return length == size
    return isinstance(length, int) and isinstance(size, int) and step is not None and length * unit == step * size


def _step(x: Size, index: Dim, unit: int) -> int | None:
    """How much x grows for each `unit` that the index grows; None if that is not constant."""
    name = _name(index)
    if not _mentions(x, name):
        return 0
    if unit == 1 and x is index:
        return 1
    units = dims.symbol("units")
    growth = dims.substitute(x, {name: index + unit * units}) - x
    step = dims.coefficient(growth, "units")
    return step if isinstance(step, int) and step >= 0 and growth == step * units else None


def _name(index: Dim) -> str:
    return next(iter(dims.symbols(index))).name


def _index(axis: int, size: Size) -> Size:
    """A symbol for the index along an axis; the number of the only one, if there is one."""
    return 0 if size == 1 else dims.symbol(f"axis{axis}", 0, size - 1 if isinstance(size, int) and size else None)


def _mentions(x: Size, name: str) -> bool:
    return isinstance(x, Dim) and name in {s.name for s in dims.symbols(x)}
