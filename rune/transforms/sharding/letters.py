"""Letters: which axes of an operation's operands and result are one, as in `ij,jk->ik`.

An axis that operands and result share may be cut on all of them, and each device computes its
part. One that the operation sums over may be cut, too: a sum over the devices follows. All that is
read off how a primitive becomes kernel code (core/lower.py); of movement, off its index
expressions: `transpose` takes index 0 of the result as index 1 of the operand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rune import dims
from rune.core.lower import Contraction, Convert, Cumulative, Parts, Piece, Reduction, Scalar, Source, View
from rune.core.primitive import Collective, Primitive, Rule
from rune.core.types import ArrayType
from rune.dims import Dim, Size
from rune.ops.collectives import pmax, pmin, psum
from rune.ops.contraction import Numbers
from rune.transforms.programs.call_rules import Params

Letter = int | None  # None: an axis that has to be whole
# What the devices do with their parts of a reduction.
UNITED_BY: Mapping[str, Collective] = {"add": psum, "max": pmax, "min": pmin}


@dataclass(frozen=True, slots=True)
class Letters:
    """A letter for each axis of the operands and of the result.

    united: the letters that the operation reduces over, and what unites the devices' parts
    """

    operands: tuple[tuple[Letter, ...], ...]
    result: tuple[Letter, ...]
    united: Mapping[int, Collective] = field(default_factory=dict)


def letters_of(primitive: Primitive, types: Sequence[ArrayType], params: Params) -> Letters | None:
    """The letters of an operation of one result; None if every axis has to be whole."""
    lower = primitive.lower
    match lower:
        case Scalar() | Convert() | Parts():
            return _elementwise(types)
        case Reduction(combine=combine):
            return _reduction(types[0].ndim, params["axes"], UNITED_BY.get(combine))
        case Cumulative():
            axes = tuple(None if axis == params["axis"] else axis for axis in range(types[0].ndim))
            return Letters((axes,), axes)
        case Contraction():
            return _contraction(types[0].ndim, types[1].ndim, params["dimension_numbers"])
        case View(rule=rule):
            return _movement(rule, primitive.type_rule(*types, **params), types, params)
    return None


def _elementwise(types: Sequence[ArrayType]) -> Letters:
    """Rank-0 operands stand beside those that have the shape of the result."""
    result = tuple(range(max(t.ndim for t in types)))
    return Letters(tuple(result[: t.ndim] for t in types), result)


def _reduction(ndim: int, axes: Sequence[int], united: Collective | None) -> Letters:
    operand = tuple(None if axis in axes and united is None else axis for axis in range(ndim))
    result = tuple(axis for axis in range(ndim) if axis not in axes)
    return Letters((operand,), result, dict.fromkeys(axes, united) if united else {})


def _contraction(a_ndim: int, b_ndim: int, numbers: Numbers) -> Letters:
    """The result has the batch axes, then the free ones of the first operand and the second."""
    (contracted_a, contracted_b), (batch_a, batch_b) = numbers
    a, b = list(range(a_ndim)), list(range(a_ndim, a_ndim + b_ndim))
    for axis_a, axis_b in zip((*contracted_a, *batch_a), (*contracted_b, *batch_b), strict=True):
        b[axis_b] = a[axis_a]
    free_a = [x for n, x in enumerate(a) if n not in (*contracted_a, *batch_a)]
    free_b = [x for n, x in enumerate(b) if n not in (*contracted_b, *batch_b)]
    result = (*(a[n] for n in batch_a), *free_a, *free_b)
    return Letters((tuple(a), tuple(b)), result, {a[n]: psum for n in contracted_a})


def _movement(rule: Rule, result: ArrayType, types: Sequence[ArrayType], params: Params) -> Letters:
    """An index that stands alone where operands are read, and nowhere else, is a shared axis."""
    indices = [_index(n, size) for n, size in enumerate(result.shape)]
    source: Source = rule(tuple(indices), *types, **params)
    operands: list[list[Letter]] = [[None] * t.ndim for t in types]
    letters: list[Letter] = [None] * result.ndim
    for letter, size in enumerate(result.shape):
        axes = _shared_axes(indices[letter], size, source.pieces, types)
        if axes is not None:
            letters[letter] = letter
            for piece, axis in zip(source.pieces, axes, strict=True):
                if axis is not None:
                    operands[piece.operand][axis] = letter
    return Letters(tuple(map(tuple, operands)), tuple(letters))


def _shared_axes(
    index: Size, size: Size, pieces: Sequence[Piece], types: Sequence[ArrayType]
) -> list[int | None] | None:
    """For each piece the axis that the index names; None if pieces are read in other ways, too."""
    if not isinstance(index, Dim):
        return None
    axes = [_axes_read_by(index, piece) for piece in pieces]
    fitting = [a is not None and _agree(a, types[p.operand], size) for a, p in zip(axes, pieces, strict=True)]
    return [a[0] if a else None for a in axes] if all(fitting) else None


def _index(axis: int, size: Size) -> Size:
    """A symbol for the index along an axis; the number of the only one, if there is one."""
    return 0 if size == 1 else dims.symbol(f"axis{axis}", 0, size - 1 if isinstance(size, int) and size else None)


def _axes_read_by(index: Dim, piece: Piece) -> tuple[int, ...] | None:
    """The axes of an operand whose index it is; None if it decides what is read in another way."""
    name = next(iter(dims.symbols(index))).name
    others = [x for b in piece.where for x in (b.index, b.low, b.high)]
    others += [x for e in piece.elements for x in e.indices]
    read = tuple(axis for axis, x in enumerate(piece.indices) if _is(x, index))
    others += [x for axis, x in enumerate(piece.indices) if axis not in read]
    return None if any(_mentions(x, name) for x in others) else read


def _agree(axes: tuple[int, ...], operand: ArrayType, size: Size) -> bool:
    """Whether the axis of the operand, if there is one, is the whole axis of the result."""
    return len(axes) <= 1 and all(operand.shape[axis] == size for axis in axes)


def _is(x: Size, index: Dim) -> bool:
    difference = x - index
    return isinstance(difference, int) and difference == 0


def _mentions(x: Size, name: str) -> bool:
    return isinstance(x, Dim) and name in {s.name for s in dims.symbols(x)}
