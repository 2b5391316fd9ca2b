"""Letters: the correspondence of axes of operands and results, as in `ij,jk->ik`.

An axis that operands and result share may be split on all of them, and each device computes its
part. An axis that the operation sums over may be split too, followed by a sum over the devices. All
this is derived from how a primitive becomes kernel code (core/lower.py), and for movement from its
index expressions: `transpose` takes index 0 of the result as index 1 of the operand. The same goes
for gathers and scatters along axes that indices do not affect.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import count

from rune import dims, dtypes
from rune.core.lower import (
    Bitcast,
    Contraction,
    Convert,
    Cumulative,
    Exchange,
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
from rune.transforms.sharding.by_index import READS, indexed_axes

Letter = int | None  # None: an axis that must not be split
# The collectives that combine the devices' parts of a reduction, and those of truth values.
UNITED_BY: Mapping[str, Collective] = {"add": psum, "max": pmax, "min": pmin}
_UNITED_TRUTHS: Mapping[str, Collective] = {"or": pmax, "and": pmin}


@dataclass(frozen=True, slots=True)
class Letters:
    """A letter for each axis of the operands and of the results.

    reductions: the letters that the operation reduces over, and the collective that combines the
                parts
    parts:      for letters that denote the outer part of an axis, the length of that part
    indexed:    the letters of axes of the first operand that indices address (by_index.py)
    """

    operands: tuple[tuple[Letter, ...], ...]
    results: tuple[tuple[Letter, ...], ...]
    reductions: Mapping[int, Collective] = field(default_factory=dict)
    parts: Mapping[int, int] = field(default_factory=dict)
    indexed: frozenset[int] = frozenset()

    @property
    def read_by_index(self) -> frozenset[int]:
        """The indexed letters that no result has: elements along them are sent to all devices."""
        return self.indexed.difference(*self.results)


def letters_of(primitive: Primitive, types: Sequence[ArrayType], params: Params) -> Letters | None:
    """The letters of an operation; None if no axis may be split."""
    letters = letters_beside_indices(primitive, types, params)
    axes = indexed_axes(primitive, types, params) if letters is not None else []
    return letters if letters is None or not axes else _with_indexed(letters, axes, primitive)


def _with_indexed(letters: Letters, axes: Sequence[int], primitive: Primitive) -> Letters:
    """The letters with another for each axis that indices address; what is written has it too."""
    used = {letter for operand in (*letters.operands, *letters.results) for letter in operand}
    unused = count(1 + max((letter for letter in used if letter is not None), default=0))
    added = {axis: next(unused) for axis in axes if letters.operands[0][axis] is None}

    def with_added(axes: Sequence[Letter]) -> tuple[Letter, ...]:
        return tuple(added.get(axis, letter) for axis, letter in enumerate(axes))

    operands = (with_added(letters.operands[0]), *letters.operands[1:])
    results = letters.results if primitive in READS else tuple(map(with_added, letters.results))
    return replace(letters, operands=operands, results=results, indexed=frozenset(added.values()))


def letters_beside_indices(primitive: Primitive, types: Sequence[ArrayType], params: Params) -> Letters | None:
    """The same, with the axes that indices address left whole."""
    lower = primitive.lower
    match lower:
        case Scalar() | Convert() | Bitcast() | Parts():
            return _elementwise(types)
        case Reduction(combine=combine):
            # Without a collective that combines parts, as for a product, the reduced axes stay
            # whole.
            united_by = _UNITED_TRUTHS if types[0].dtype == dtypes.bool_ else UNITED_BY
            return _reduction(types[0].ndim, params["axes"], united_by.get(combine))
        case Cumulative():
            # Each element needs all before it, so the axis of the running sum stays whole.
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
        case Library():
            return _library(primitive, lower, types, params)
        case Exchange():
            return _between_devices(types, params)
    return None


def _library(primitive: Primitive, lower: Library, types: Sequence[ArrayType], params: Params) -> Letters:
    out = primitive.type_rule(*types, **params)
    results: Sequence[ArrayType] = out if primitive.multiple_results else (out,)
    shared_axes = frozenset(lower.shared(*types, **params))

    def letters(type: ArrayType, has_columns: bool) -> tuple[Letter, ...]:
        columns_axis = type.ndim - 1 if has_columns else None
        return tuple(axis if axis in shared_axes or axis == columns_axis else None for axis in range(type.ndim))

    operands = tuple(letters(type, number == lower.columns) for number, type in enumerate(types))
    return Letters(operands, tuple(letters(type, lower.columns is not None) for type in results))


def _between_devices(types: Sequence[ArrayType], params: Params) -> Letters:
    """A collective along another mesh axis: the axes that it splits or joins stay as they are."""
    operand: list[Letter] = [*range(sum(t.ndim for t in types))]
    result = [*operand]
    for name in ("scatter_axis", "split_axis"):
        if name in params:
            operand[params[name]] = None
            del result[params[name]]
    for name in ("axis", "concat_axis"):
        if name in params:
            result.insert(params[name], None)
    return Letters((tuple(operand),) * len(types), (tuple(result),))


def _position(rule: Rule, result: ArrayType, params: Params) -> Letters:
    """The result may be split along every axis whose index does not decide the value."""
    indices = [_index(n, size) for n, size in enumerate(result.shape)]
    value = rule(tuple(indices), **params)
    decide = {n for n, x in enumerate(indices) if isinstance(x, Dim) and _mentions(value, _name(x))}
    return Letters((), (tuple(None if n in decide else n for n in range(result.ndim)),))


def _elementwise(types: Sequence[ArrayType]) -> Letters:
    """Operands have the shape of the result, or rank 0."""
    result = tuple(range(max(t.ndim for t in types)))
    return Letters(tuple(result[: t.ndim] for t in types), (result,))


def _reduction(ndim: int, axes: Sequence[int], collective: Collective | None) -> Letters:
    operand = tuple(None if axis in axes and collective is None else axis for axis in range(ndim))
    result = tuple(axis for axis in range(ndim) if axis not in axes)
    return Letters((operand,), (result,), dict.fromkeys(axes, collective) if collective else {})


def _contraction(a_ndim: int, b_ndim: int, numbers: Numbers) -> Letters:
    """The result has the batch axes, then the free axes of the first and the second operand."""
    (contracted_a, contracted_b), (batch_a, batch_b) = numbers
    a, b = list(range(a_ndim)), list(range(a_ndim, a_ndim + b_ndim))
    for axis_a, axis_b in zip((*contracted_a, *batch_a), (*contracted_b, *batch_b), strict=True):
        b[axis_b] = a[axis_a]
    free_a = [x for n, x in enumerate(a) if n not in (*contracted_a, *batch_a)]
    free_b = [x for n, x in enumerate(b) if n not in (*contracted_b, *batch_b)]
    result = (*(a[n] for n in batch_a), *free_a, *free_b)
    # If a contracted axis is split, each device has a part of the sum, which psum completes.
    return Letters((tuple(a), tuple(b)), (result,), {a[n]: psum for n in contracted_a})


def _movement(rule: Rule, result: ArrayType, types: Sequence[ArrayType], params: Params) -> Letters | None:
    """The letters of a movement: an index that alone is the index of an operand's axis is shared.

    It must not occur in any other place. An axis is also shared if its outer part is an axis of an
    operand, or the outer part of one.
    """
    # The rule is applied to symbolic indices of one element: the places of each symbol show which
    # axes correspond.
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
            # An index that no operand has can be split anywhere; a bundle of indices only where an
            # axis of an operand is split.
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
    """Sizes of bundles of indices: one, and those whose count divides the axis of an operand."""
    yield 1
    if isinstance(size, int):
        counts = {math.gcd(d, size) for t in types for d in t.shape if isinstance(d, int) and d}
        yield from (size // n for n in sorted(counts, reverse=True) if 1 < n < size)


def _written(lower: Scatter, types: Sequence[ArrayType], params: Params) -> Letters | None:
    """The letters of a scatter: an index of the updates that alone is an index of the result.

    Updates whose place does not depend on an index are united: each device writes its part of them.
    """
    updates, unite = lower.updates, UNITED_BY.get(lower.combine or "")
    indices = [_index(n, size) for n, size in enumerate(types[updates].shape)]
    reads, conditions = _reads((lower.rule(tuple(indices), *types, **params),))
    reads.append((updates, tuple(indices)))
    if not _are_read(types, reads):
        return None
    operands: list[list[Letter]] = [[None] * t.ndim for t in types]
    reductions: dict[int, Collective] = {}
    for letter, size in enumerate(types[updates].shape):
        axes = _shared_axes(indices[letter], size, 1, reads, conditions, types)
        # Updates that overwrite cannot be united: chance would decide which device came last.
        if axes is None or (0 not in axes and unite is None):
            continue
        for operand, axis in axes.items():
            operands[operand][axis] = letter
        if 0 not in axes and unite is not None:
            reductions[letter] = unite
    return Letters(tuple(map(tuple, operands)), (tuple(operands[0]),), reductions)


Read = tuple[int, tuple[Size, ...]]  # the number of an operand, and the indices that are read


def _reads(pieces: Sequence[Piece]) -> tuple[list[Read], list[Size]]:
    """All values read from operands, with integers that decide positions, and the conditions."""
    reads = [(p.operand, p.indices) for p in pieces]
    reads += [(e.operand, e.indices) for p in pieces for e in p.elements]
    return reads, [x for p in pieces for b in p.where for x in (b.index, b.low, b.high)]


def _are_read(types: Sequence[ArrayType], reads: Sequence[Read]) -> bool:
    """Whether each operand is read; the axes of any other have a meaning only to the type rule."""
    return all(number in dict(reads) for number, t in enumerate(types) if t.shape)


def _shared_axes(
    index: Size, size: Size, unit: int, reads: Sequence[Read], conditions: Sequence[Size], types: Sequence[ArrayType]
) -> dict[int, int] | None:
    """For each operand, the axis along which one step corresponds to `unit` steps of the index.

    None if the index is also used in another way.
    """
    if not isinstance(index, Dim) or any(_mentions(x, _name(index)) for x in conditions):
        return None
    axes: dict[int, tuple[int, ...]] = {}
    for operand, indices in reads:
        steps = [_step(x, index, unit) for x in indices]
        moving_axes = tuple(axis for axis, step in enumerate(steps) if step != 0)
        if len(moving_axes) > 1 or axes.setdefault(operand, moving_axes) != moving_axes:
            return None
        # All steps of the index together must lead from one end of the axis to the other.
        if any(not _spans(types[operand].shape[axis], steps[axis], size, unit) for axis in moving_axes):
            return None
    return {operand: moving_axes[0] for operand, moving_axes in axes.items() if moving_axes}


def _spans(length: Size, step: int | None, size: Size, unit: int) -> bool:
    """Whether the length of an axis in steps is the size of the index in units."""
    if step == unit == 1:
        return length == size
    return isinstance(length, int) and isinstance(size, int) and step is not None and length * unit == step * size


def _step(x: Size, index: Dim, unit: int) -> int | None:
    """The growth of x when the index grows by `unit`; None if that is not constant."""
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
    """A symbol for the index along an axis; 0 for an axis of size 1, which has no other index."""
    return 0 if size == 1 else dims.symbol(f"axis{axis}", 0, size - 1 if isinstance(size, int) and size else None)


def _mentions(x: Size, name: str) -> bool:
    return isinstance(x, Dim) and name in {s.name for s in dims.symbols(x)}
