"""Cuts: the axes along which the devices split an operation, and its parameters for a block."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from rune.core.axes import Name
from rune.core.lower import Scatter
from rune.core.primitive import Primitive
from rune.core.types import ArrayType, Shape
from rune.dims import Size
from rune.ops.creation import iota
from rune.ops.family import broadcast, reshape
from rune.ops.index_dims import IndexDims
from rune.ops.indexing import gather
from rune.ops.movement import slice_
from rune.ops.windows import dynamic_slice
from rune.records import dataclass
from rune.transforms.programs.call_rules import Params
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.letters import Letter, Letters
from rune.transforms.sharding.reshard import Layout, cuts_further
from rune.transforms.sharding.routes import route

Cuts = Mapping[Letter, tuple[Name, ...]]  # the mesh axes that cut each letter


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand as the devices have it.

    often: how often it is sent in each run of the operation, if another layout is needed
    """

    type: ArrayType
    layout: Layout
    often: float = 1.0


def cuts_of(letters: Letters, operands: Sequence[Operand], results: Sequence[ArrayType], region: Region) -> Cuts:
    """The mesh axes that split each letter: as many as possible, then those that send least.

    Of equal choices, that of the operand that is split most.
    """
    candidates = _candidates(letters, [x.layout for x in operands], region)
    turned = _turned(letters, operands, candidates, region)
    if len(candidates) == 1 and not turned:
        return candidates[0]
    work_letters = {letter for axes in letters.results for letter in axes}
    # Sums of products are work that is worth splitting; reads and writes at indices are not.
    work_letters |= letters.reductions.keys() if not letters.indexed else set()

    def cost(cuts: Cuts) -> tuple[int, float]:
        names = {name for letter, names in cuts.items() if letter in work_letters for name in names}
        return -region.size([*names]), _bytes_sent(letters, cuts, operands, results, region)

    first = best = min(candidates, key=cost)
    (first_work, first_sent), sums = cost(first), _bytes_of_sums(letters, first, results, region)
    best_work, least = first_work, first_sent
    for cuts in turned if first_sent else ():
        work, sent = cost(cuts)
        # Readers may want the result as it is now split. Of a sum they may want everything, or
        # parts, which are half of its bytes, and to which a turned result is exchanged: each
        # device sends its share of what it would send for everything.
        back = _bytes_of_results(letters, cuts, first, results, region)
        back_to_parts = back / -work if sums else back
        is_less = 2 * (sent + back_to_parts) <= first_sent - sums / 2 and sent + back < least
        # Devices add up parts so that none of them needs all of an operand, such as a weight.
        is_gathering = sums and _gathers(letters, cuts, operands, region)
        if work < best_work or (work == best_work and is_less and not is_gathering):
            best, best_work, least = cuts, work, sent + back
    return best


def _turned(letters: Letters, operands: Sequence[Operand], candidates: Sequence[Cuts], region: Region) -> list[Cuts]:
    """Ways to split an operation along one axis that operands are not split along: all turn to it.

    An operation along an axis, such as a sort, is then split along another one, and no device needs
    the whole array.
    """
    if letters.indexed or not all(letters.results):
        return []
    cuts = candidates[0]
    names_used = {name for names in cuts.values() for name in names}
    unused = max((n for x in operands for n in x.layout if names_used.isdisjoint(n)), key=region.size, default=())
    names = max((n for x in operands for n in x.layout), key=region.size, default=())
    return [*_turned_to(letters, operands, names, {}, region), *_turned_to(letters, operands, unused, cuts, region)]


def _turned_to(
    letters: Letters, operands: Sequence[Operand], names: tuple[Name, ...], cuts: Cuts, region: Region
) -> list[Cuts]:
    """The cuts with one letter split along these mesh axes, too; none without mesh axes."""
    if not names:
        return []
    lengths: dict[int, Size] = {}
    for x, axes in zip(operands, letters.operands, strict=True):
        for letter, size in zip(axes, x.type.shape, strict=True):
            if letter is not None and letter not in letters.reductions:
                lengths.setdefault(letter, letters.parts.get(letter, size))
    further = {x: {**cuts, x: (*cuts.get(x, ()), *names)} for x in set(lengths).intersection(*letters.results)}
    shared = [x for x in further if _is_divided(lengths[x], region.size(further[x][x]))]
    return [further[letter] for letter in sorted(shared, key=lambda x: (-lengths[x], x))]  # type: ignore[operator]


def _gathers(letters: Letters, cuts: Cuts, operands: Sequence[Operand], region: Region) -> bool:
    """Whether a device gets more of an operand than it has, in an operation split in this way."""
    layouts = zip(operands, operand_layouts(letters, cuts), strict=True)
    return any(_bytes(x.type, layout, region) > _bytes(x.type, x.layout, region) for x, layout in layouts)


def _is_divided(length: Size, devices: int) -> bool:
    return isinstance(length, int) and length > 0 and length % devices == 0


def _bytes_of_results(
    letters: Letters, cuts: Cuts, others: Cuts, results: Sequence[ArrayType], region: Region
) -> float:
    """The bytes that a device sends to bring results from one way to split them to another."""
    total = 0.0
    for type, axes in zip(results, letters.results, strict=True):
        source, target = (tuple(within(letters, way).get(letter, ()) for letter in axes) for way in (cuts, others))
        total += bytes_between(type, source, target, region)
    return total


def _candidates(letters: Letters, layouts: Sequence[Layout], region: Region) -> list[Cuts]:
    """Ways to split an operation: each operand comes first once, by indices or not."""
    order = sorted(range(len(layouts)), key=lambda n: -sum(map(len, layouts[n])))
    orders = [[first, *(n for n in order if n != first)] for first in order if any(layouts[first])] or [order]
    # What is summed need not be split if other letters can be.
    exclusions = dict.fromkeys((frozenset[int](), letters.indexed or frozenset(letters.reductions)))
    candidates: list[Cuts] = []
    for absent in exclusions:
        for operands in orders:
            cuts = _cuts(letters, layouts, operands, absent, region)
            if cuts not in candidates:
                candidates.append(cuts)
    return candidates


def _cuts(
    letters: Letters, layouts: Sequence[Layout], order: Sequence[int], absent: frozenset[int], region: Region
) -> Cuts:
    cuts: dict[Letter, tuple[Name, ...]] = {}
    for operand in order:
        for letter, names in zip(letters.operands[operand], layouts[operand], strict=True):
            # A mesh axis can split only one letter: a device has one place along it. What is read
            # by an index is sent anyway, and may be sent to where a part of the result is.
            is_read = letter in letters.read_by_index
            names_used = {n for x, others in cuts.items() if x not in letters.read_by_index for n in others}
            unused = names if is_read else _until(names, names_used)
            if letter is not None and letter not in absent and letter not in cuts and unused:
                cuts[letter] = region.dividing(unused, letters.parts.get(letter, 0))
    return cuts


def _bytes_sent(
    letters: Letters, cuts: Cuts, operands: Sequence[Operand], results: Sequence[ArrayType], region: Region
) -> float:
    """The bytes that a device sends to run an operation split in this way."""
    sides = zip(operands, operand_layouts(letters, cuts), strict=True)
    total = sum(x.often * bytes_between(x.type, x.layout, layout, region) for x, layout in sides)
    return total + _bytes_of_sums(letters, cuts, results, region)


def _bytes_of_sums(letters: Letters, cuts: Cuts, results: Sequence[ArrayType], region: Region) -> float:
    """The bytes that a device sends to unite parts of results."""
    inner, total = within(letters, cuts), 0.0
    united_names = [name for letter in letters.reductions for name in inner.get(letter, ())]
    read_names = [name for letter in letters.read_by_index for name in inner.get(letter, ())]
    for type, axes in zip(results, letters.results, strict=True):
        size = _bytes(type, [inner.get(letter, ()) for letter in axes], region)
        parts = [name for letter in axes for name in cuts.get(letter, ()) if name not in inner.get(letter, ())]
        for name in (*united_names, *read_names):
            # A sum is a scatter of sums, and a gather of them unless each device wants its part.
            total += (1 if name in parts else 2) * size * (1 - 1 / region.size([name]))
    return total


def bytes_between(type: ArrayType, source: Layout, target: Layout, region: Region) -> float:
    """The bytes that a device sends to bring an array from one layout to another."""
    if source == target:
        return 0.0
    return route(source, target, type.shape, region.mesh.shape).share * _bytes(type, (), region)


# A size that is known only at run time counts as this.
_NOMINAL = 1024


def _bytes(type: ArrayType, layout: Layout | list[tuple[Name, ...]], region: Region) -> float:
    """The bytes of a block."""
    sizes = (size if isinstance(size, int) else _NOMINAL for size in type.shape)
    return type.dtype.itemsize * math.prod(sizes) / region.size([name for names in layout for name in names])


def within(letters: Letters, cuts: Cuts) -> Cuts:
    """The cuts while an operation reads by indices: of these devices each reads for all."""
    sending = {name for letter in letters.read_by_index for name in cuts.get(letter, ())}
    if not sending:
        return cuts
    return {x: names if x in letters.indexed else _until(names, sending) for x, names in cuts.items()}


def _until(names: tuple[Name, ...], ends: Collection[Name]) -> tuple[Name, ...]:
    return names[: next((n for n, name in enumerate(names) if name in ends), len(names))]


def operand_layouts(letters: Letters, cuts: Cuts) -> list[Layout]:
    """The layouts of the operands of an operation split in this way."""
    inner = within(letters, cuts)
    return [tuple(inner.get(letter, ()) for letter in axes) for axes in letters.operands]


def indexed_cut(letters: Letters, cuts: Cuts) -> dict[int, tuple[Name, ...]]:
    """The split axes of the first operand that are indexed, with the mesh axes that split them."""
    if not letters.indexed:
        return {}
    axes = enumerate(letters.operands[0])
    return {axis: cuts[letter] for axis, letter in axes if letter in letters.indexed and cuts.get(letter)}


def cuts_for(
    target: Layout, letters: Letters, operands: Sequence[Operand], result: ArrayType, region: Region
) -> Cuts | None:
    """The cuts that yield the result in a layout; None if operands would have to be exchanged.

    Updates of which devices have parts are exchanged if they are smaller than the array that the
    devices would add up.
    """
    cuts = cuts_of_result(target, letters, region)
    if cuts is None:
        return None
    for letter, names in zip(letters.operands[0], operands[0].layout, strict=True) if letters.read_by_index else ():
        if letter in letters.read_by_index and names:
            cuts[letter] = names
    layouts = operand_layouts(letters, cuts)
    if all(cuts_further(layout, x.layout) for layout, x in zip(layouts, operands, strict=True)):
        return cuts
    if not indexed_cut(letters, cuts) or not letters.reductions:
        return None
    devices = region.size([name for names in cuts.values() for name in names])
    is_less = _bytes_sent(letters, cuts, operands, [result], region) < _bytes(result, (), region) * (1 - 1 / devices)
    return cuts if is_less else None


def cuts_of_result(target: Layout, letters: Letters, region: Region) -> dict[Letter, tuple[Name, ...]] | None:
    """The cuts of an operation whose one result has a layout; None if it cannot be split so."""
    cuts = {letter: names for letter, names in zip(letters.results[0], target, strict=True) if names}
    if None in cuts or any(region.dividing(n, letters.parts.get(x, 0)) != n for x, n in cuts.items()):  # type: ignore[arg-type]
        return None
    return cuts


# Parameters that repeat sizes of the result; on a device they are those of its block.
_SIZES = {broadcast: "shape", reshape: "shape", iota: "shape", dynamic_slice: "sizes"}


def with_sizes_of(primitive: Primitive, params: Params, block: ArrayType, indexed_axes: Collection[int] = ()) -> Params:
    """The parameters for a result of this type.

    indexed_axes: those along which a device has a part of what windows address
    """
    # An axis can be split only if a slice or a window takes all of it.
    if primitive in _SIZES:
        return {**params, _SIZES[primitive]: block.shape}
    if primitive is slice_:
        spans = zip(params["start"], params["stride"], block.shape, strict=True)
        return {**params, "limit": tuple(_limit(*span) for span in spans)}
    if primitive is gather or isinstance(primitive.lower, Scatter):
        sizes = _window_sizes(primitive, params["dims"], params["slice_sizes"], block, indexed_axes)
        return {**params, "slice_sizes": sizes}
    return params


def _limit(start: int, stride: int, size: Size) -> Size:
    """The end of a slice of this size. A symbolic size counts as not 0."""
    if stride == 1:
        return start + size
    return start + stride * (size - 1) + 1 if size else start


def _window_sizes(
    primitive: Primitive, dims: IndexDims, sizes: Shape, block: ArrayType, indexed_axes: Collection[int]
) -> Shape:
    """The sizes of windows; axes that they span completely may be split."""
    window = dims.window_axes(len(sizes))
    axes = dims.offset if primitive is gather else window
    lengths = {axis: block.shape[n] for axis, n in zip(window, axes, strict=True) if axis not in indexed_axes}
    # An index may address an axis that its windows span, and has to be 0 then. Other windows along
    # such an axis are not split, and their size may not be comparable with a symbolic one.
    spanned = {axis: n for axis, n in lengths.items() if axis not in dims.start_map or _are_numbers(n, sizes[axis])}
    return tuple(min(size, spanned.get(axis, size)) for axis, size in enumerate(sizes))


def _are_numbers(*sizes: Size) -> bool:
    return all(isinstance(size, int) for size in sizes)
