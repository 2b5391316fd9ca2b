"""Cuts: the axes along which the devices split an operation, and its parameters for a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from rune.transforms.programs.call_rules import Params
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.letters import Letter, Letters
from rune.transforms.sharding.reshard import Layout, cuts_further

Cuts = Mapping[Letter, tuple[Name, ...]]  # the mesh axes that cut each letter


def cuts_of(letters: Letters, layouts: Sequence[Layout], region: Region) -> Cuts:
    """The mesh axes that split each letter: those of the operand that is split most come first."""
    cuts: dict[Letter, tuple[Name, ...]] = {}
    order = sorted(range(len(layouts)), key=lambda n: -sum(map(len, layouts[n])))
    for operand in order:
        for letter, names in zip(letters.operands[operand], layouts[operand], strict=True):
            # A mesh axis can split only one letter: a device has one place along it.
            names_used = {name for others in cuts.values() for name in others}
            if letter is not None and names and letter not in cuts and not names_used & set(names):
                cuts[letter] = _dividing(names, letters.parts.get(letter, 0), region)
    return cuts


def cuts_for(target: Layout, letters: Letters, layouts: Sequence[Layout], region: Region) -> Cuts | None:
    """The cuts that yield the result in a layout; None if operands would have to be exchanged."""
    cuts = {letter: names for letter, names in zip(letters.results[0], target, strict=True) if names}
    if None in cuts or any(_dividing(n, letters.parts.get(x, 0), region) != n for x, n in cuts.items()):  # type: ignore[arg-type]
        return None
    for axes, layout in zip(letters.operands, layouts, strict=True):
        if not cuts_further(tuple(cuts.get(letter, ()) for letter in axes), layout):
            return None
    return cuts


def _dividing(names: tuple[Name, ...], length: int, region: Region) -> tuple[Name, ...]:
    """As many of the leading mesh axes as divide a length."""
    counts = range(len(names), 0, -1)
    return next((names[:n] for n in counts if length % region.size(names[:n]) == 0), ())


# Parameters that repeat sizes of the result; on a device they are those of its block.
_SIZES = {broadcast: "shape", reshape: "shape", iota: "shape", dynamic_slice: "sizes"}


def with_sizes_of(primitive: Primitive, params: Params, block: ArrayType) -> Params:
    """The parameters for a result of this type."""
    # An axis can be split only if a slice or a window takes all of it.
    if primitive in _SIZES:
        return {**params, _SIZES[primitive]: block.shape}
    if primitive is slice_:
        spans = zip(params["start"], params["stride"], block.shape, strict=True)
        return {**params, "limit": tuple(_limit(*span) for span in spans)}
    if primitive is gather or isinstance(primitive.lower, Scatter):
        return {**params, "slice_sizes": _window_sizes(primitive, params["dims"], params["slice_sizes"], block)}
    return params


def _limit(start: int, stride: int, size: Size) -> Size:
    """The end of a slice of this size. A symbolic size counts as not 0."""
    if stride == 1:
        return start + size
    return start + stride * (size - 1) + 1 if size else start


def _window_sizes(primitive: Primitive, dims: IndexDims, sizes: Shape, block: ArrayType) -> Shape:
    """The sizes of windows; axes that they span completely may be split."""
    window = dims.window_axes(len(sizes))
    axes = dims.offset if primitive is gather else window
    lengths = {axis: block.shape[n] for axis, n in zip(window, axes, strict=True) if axis not in dims.start_map}
    return tuple(min(size, lengths.get(axis, size)) for axis, size in enumerate(sizes))
