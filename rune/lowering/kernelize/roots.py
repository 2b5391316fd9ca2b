"""Roots: the stored values, and which elements of other values each of them reads.

A root runs over the axes of its value (or, for a part of a concatenation or padding, over the
ranges of that part). A walk from a generic element, through everything that is not stored, finds
what the root reads, as index expressions over its axes. Fusion decides by these alone.

Writes are split where a view at the root has conditions on one axis: the ranges between the
breakpoints become roots of their own, and within each of them the conditions are decided.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import Enum

from rune import dims
from rune.core.lower import Contraction, Cumulative, Piece, Reduction, Scatter, View, Written
from rune.core.program import Atom, Equation, Program, Var
from rune.core.side_effects import effect_of
from rune.dims import Dim, Size, symbol
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.routines import is_routine
from rune.lowering.kernelize.scores import Sink
from rune.lowering.kernelize.stored import Reads, Storage, memory_operands
from rune.lowering.kernelize.views import Indices, Resolution, Show, breakpoints, rename, resolve
from rune.ops.branch import is_control
from rune.ops.contraction import free_axes
from rune.records import dataclass, replace

Request = tuple[Atom, Indices]


class Kind(Enum):
    """How a root is computed."""

    __hash__ = object.__hash__  # which is not Python code: sets of kinds are asked for every edge

    MAP = "map"
    REDUCE = "reduce"
    DOT = "dot"
    SCAN = "scan"
    SCATTER = "scatter"
    WINDOW = "window"
    STREAM = "stream"
    ROUTINE = "routine"
    WRITTEN = "written"
    CONTROL = "control"


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """A stored value, or a range of one, and how it reads others.

    `reads`: for each stored value or input, the distinct index tuples over the symbols i0, i1, ...
    of the axes (reduced axes and integers read from memory have symbols of their own).
    """

    number: int
    var: Var
    equation: Equation
    kind: Kind
    offsets: Indices
    sizes: tuple[Size, ...]
    work: int  # points of evaluation, typically
    reads: Mapping[Var, tuple[Indices, ...]] = field(default_factory=dict)
    parallel: tuple[int, ...] = ()  # axes whose points are independent of each other
    cuts: tuple[tuple[Size, ...], ...] = ()  # for each axis, where conditions change

    @property
    def is_whole(self) -> bool:
        """False for a root that is one of several ranges of its value."""
        return self.sizes == self.var.type.shape


def axis_symbols(sizes: Iterable[Size], prefix: str = "i") -> Indices:
    """The symbols of a root's axes; 0 for an axis of one point."""
    return tuple(0 if size == 1 else symbol(f"{prefix}{k}", 0, _last(size)) for k, size in enumerate(sizes))


def _last(size: Size) -> Size:
    return max(0, size - 1) if isinstance(size, int) else size - 1


def kind_of(equation: Equation, storage: Storage) -> Kind:
    """How a stored equation is computed."""
    # What it is in this program comes before what its primitive is: a reduction may be a sink of a
    # stream, and a view may change its operand in place.
    if isinstance(equation.primitive.lower, Written):
        return Kind.WRITTEN
    if is_routine(equation):
        return Kind.ROUTINE
    if equation.results[0] in storage.sinks:
        return Kind.STREAM
    if is_control(equation):
        return Kind.CONTROL
    if isinstance(equation.primitive.lower, View) and equation.results[0] in storage.in_place:
        return Kind.WINDOW
    match equation.primitive.lower:
        case Reduction():
            return Kind.REDUCE
        case Contraction():
            return Kind.DOT
        case Cumulative():
            return Kind.SCAN
        case Scatter():
            return Kind.SCATTER
        case _:
            return Kind.MAP


def reduced_sizes(equation: Equation) -> tuple[Size, ...]:
    """The sizes of the axes that a reduction or dot sums over."""
    shape = equation.operands[0].type.shape
    if isinstance(equation.primitive.lower, Contraction):
        return tuple(shape[a] for a in equation.params["dimension_numbers"][0][0])
    return tuple(shape[a] for a in sorted(equation.params["axes"]))


def reduction_operand(equation: Equation, indices: Indices, inner: Indices) -> Request:
    """The operand of a reduction at the result's `indices` and the reduced axes' `inner`."""
    axes = sorted(equation.params["axes"])
    free_indices, reduced_indices = iter(indices), iter(inner)
    operand = equation.operands[0]
    position = tuple(next(reduced_indices) if a in axes else next(free_indices) for a in range(operand.type.ndim))
    return operand, position


def dot_operands(equation: Equation, indices: Indices, inner: Indices) -> tuple[Request, Request]:
    """Both operands of a dot at the result's `indices` and the contracted axes' `inner`."""
    contracting, batch = equation.params["dimension_numbers"]
    start, requests = len(batch[0]), []
    for operand, cs, bs in zip(equation.operands, contracting, batch):
        at: dict[int, Size] = dict(zip(cs, inner)) | dict(zip(bs, indices))
        free = free_axes(operand.type.ndim, cs, bs)
        at |= dict(zip(free, indices[start:]))
        start += len(free)
        requests.append((operand, tuple(at[a] for a in range(operand.type.ndim))))
    return requests[0], requests[1]


def starts(equation: Equation, kind: Kind, indices: Indices, storage: Storage) -> list[Request]:
    """What a root of this equation requests at `indices` of its value."""
    match kind:
        case Kind.REDUCE:
            inner = axis_symbols(reduced_sizes(equation), "j")
            return [reduction_operand(equation, indices, inner)]
        case Kind.DOT:
            inner = axis_symbols(reduced_sizes(equation), "j")
            return list(dot_operands(equation, indices, inner))
        case Kind.STREAM:
            return stream_operands(storage.sinks[equation.results[0]], indices, None)
        # These read at places that depend on data or on the order of loops, so all counts as read.
        case Kind.SCATTER | Kind.SCAN | Kind.WINDOW:
            return [(a, axis_symbols(a.type.shape, "j")) for a in equation.operands]
        case Kind.ROUTINE | Kind.WRITTEN | Kind.CONTROL:
            read = memory_operands(equation, storage.definitions)
            return [(a, axis_symbols(a.type.shape, "j")) for a in read]
        case Kind.MAP:
            return needs(equation, indices, itertools.count(), storage.views.at)


def stream_operands(sink: Sink, indices: Indices, along: Indices | None) -> list[Request]:
    """What a sink requests at the result's `indices`, the scores first.

    along: indices of the reduced axes of the scores, in their order; a generic element if None
    """
    reduced_indices = axis_symbols((sink.scores.type.shape[a] for a in sink.along), "j") if along is None else along
    place = dict(zip(sink.along, reduced_indices))
    if isinstance(sink.equation.primitive.lower, Reduction):
        axes = sorted(sink.equation.params["axes"])
        return [reduction_operand(sink.equation, indices, tuple(place.get(a, 0) for a in axes))]
    contracted_axes = sink.equation.params["dimension_numbers"][0][sink.operand]
    requests = dot_operands(sink.equation, indices, tuple(place.get(a, 0) for a in contracted_axes))
    return [requests[sink.operand], requests[1 - sink.operand]]


def needs(equation: Equation, indices: Indices, fresh: Iterator[int], show: Show) -> list[Request]:
    """What one element of an equation requests."""
    if isinstance(equation.primitive.lower, Contraction):
        # A score: it is computed where it is needed.
        return [*dot_operands(equation, indices, axis_symbols(reduced_sizes(equation), f"_k{next(fresh)}_"))]
    if not isinstance(equation.primitive.lower, View):
        return [(operand, indices if operand.type.shape else ()) for operand in equation.operands]
    resolution = show(equation, indices)
    requests = [request for piece in resolution.pieces for request in _piece_needs(equation, piece, fresh)]
    if resolution.fill is not None:
        requests.append((equation.operands[resolution.fill], ()))
    return requests


def _piece_needs(equation: Equation, piece: Piece, fresh: Iterator[int]) -> list[Request]:
    if not piece.elements:
        return [(equation.operands[piece.operand], piece.indices)]
    requests = [(equation.operands[element.operand], element.indices) for element in piece.elements]
    # The same view reads other integers at other places, so each request names its own.
    named = rename(piece, {e.name: f"_e{next(fresh)}" for e in piece.elements})
    return [*requests, (equation.operands[named.operand], named.indices)]


def _walk(requests: list[Request], storage: Storage, cuts: dict[Dim, set[Size]]) -> Reads:
    """What is read from stored values and inputs; `cuts` gathers breakpoints of the axes."""
    # Dictionaries in place of sets: their order, and so the kernels, are the same in every process.
    reads: Reads = {}
    visited: set[Request] = set()
    fresh = itertools.count()
    pending = requests[::-1]
    while pending:
        request = pending.pop()
        atom, indices = request
        if not isinstance(atom, Var) or request in visited:
            continue
        visited.add(request)
        equation = storage.definitions.get(atom)
        if equation is None or atom in storage.values:
            reads.setdefault(atom, {})[indices] = None
            continue
        # A scalar has no axes, so it reads the same for every root.
        if atom in storage.scalar_reads:
            for var, positions in storage.scalar_reads[atom].items():
                reads.setdefault(var, {}).update(positions)
            continue
        if cuts and isinstance(equation.primitive.lower, View):
            gather_cuts(storage.views.at(equation, indices), equation, cuts)
        pending.extend(needs(equation, indices, fresh, storage.views.at))
    return reads


def gather_cuts(resolution: Resolution, equation: Equation, cuts: dict[Dim, set[Size]]) -> None:
    """Add the breakpoints of a view's conditions that depend on a single axis."""
    # Integers read from memory have no value yet when a kernel starts.
    known = {s for a in equation.operands for d in a.type.shape for s in dims.symbols(d)}
    for bounds in (b for piece in resolution.pieces for b in piece.where):
        for axis in dims.symbols(bounds.index):
            name = dims.symbol(axis.name, axis.low, axis.high)
            if name in cuts:
                points = breakpoints(bounds, name)
                # A range's size must be known before the kernel runs: from the shapes of operands.
                cuts[name].update(p for p in points if dims.symbols(p) <= known)


def find_roots(program: Program, storage: Storage) -> tuple[Root, ...]:
    """All roots of a program, each after those it reads."""
    roots: list[Root] = []
    for equation in storage.equations:
        for var in equation.results:
            if var not in storage.values:
                if not var.type.shape:
                    requests = needs(equation, (), itertools.count(), storage.views.at)
                    storage.scalar_reads[var] = _walk(requests, storage, {})
            elif not any(_is_empty(d) for d in var.type.shape):
                roots += _ranges(analyse(equation, var, storage), storage, len(roots))
    results = {a for a in storage.outputs if isinstance(a, Var)}
    results |= {v for e in storage.equations if effect_of(e) is not None for v in e.results}
    return _needed(roots, results)


def _needed(roots: list[Root], results: set[Var]) -> tuple[Root, ...]:
    """The roots that are read or are results: resolved, a view may show nothing of its operand."""
    needed_values, needed_roots = set(results), []
    # Roots read only earlier ones, so one walk from the end finds all that are needed.
    for root in reversed(roots):
        if root.var in needed_values:
            needed_roots.append(root)
            needed_values.update(root.reads)
    return tuple(replace(r, number=n) for n, r in enumerate(reversed(needed_roots)))


def _is_empty(size: Size) -> bool:
    return isinstance(size, int) and size == 0


def analyse(
    equation: Equation,
    var: Var,
    storage: Storage,
    number: int = 0,
    offsets: Indices = (),
    sizes: tuple[Size, ...] | None = None,
) -> Root:
    """The root of `var`, or of one range of it."""
    kind = kind_of(equation, storage)
    shape = var.type.shape if sizes is None else sizes
    if kind is Kind.WINDOW:
        # A window update runs over the update; the array around it stays as it is.
        shape = equation.operands[1].type.shape
    offsets = offsets or (0,) * len(shape)
    symbols = axis_symbols(shape)
    indices = tuple(o + s for o, s in zip(offsets, symbols))
    # Only a mapped root can be divided: every other kind combines or orders its elements.
    cuts: dict[Dim, set[Size]] = {s: set() for s in symbols if kind is Kind.MAP and isinstance(s, Dim)}
    if cuts and sizes is None and isinstance(equation.primitive.lower, View):
        gather_cuts(storage.views.at(equation, indices), equation, cuts)
    # Within a range every condition on its axes is decided, so it is not divided again.
    reads = _walk(starts(equation, kind, indices, storage), storage, cuts if sizes is None else {})
    work = cost.count(shape)
    if kind in (Kind.REDUCE, Kind.DOT, Kind.STREAM):
        work *= cost.count(reduced_sizes(equation))
    elif kind is Kind.SCATTER:
        work += max(cost.count(a.type.shape) for a in equation.operands)
    return Root(
        number,
        var,
        equation,
        kind,
        offsets,
        shape,
        work,
        {v: tuple(positions) for v, positions in reads.items()},
        stream_rows(storage.sinks[var]) if kind is Kind.STREAM else parallel_axes(equation, kind, shape),
        tuple(tuple(cuts.get(s, ())) if isinstance(s, Dim) else () for s in symbols),
    )


def parallel_axes(equation: Equation, kind: Kind, sizes: tuple[Size, ...]) -> tuple[int, ...]:
    """The axes of the value over which a kernel may run in parallel, except those of one point."""
    if kind is Kind.SCAN:
        return tuple(a for a in _longer(sizes) if a != equation.params["axis"])
    if kind is Kind.SCATTER:
        return tuple(scatter_axes(equation))
    return _longer(sizes)


def stream_rows(sink: Sink) -> tuple[int, ...]:
    """The axes of a sink's result that are rows of its scores, in the order of the scores."""
    places = sink.result_axes()
    return tuple(places[a] for a in sink.rows)


def _longer(sizes: tuple[Size, ...]) -> tuple[int, ...]:
    return tuple(k for k, size in enumerate(sizes) if size != 1)


def inner_places(root: Root, places: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of a root that run inside when `places` are the domain's."""
    scan_axes = (root.equation.params["axis"],) if root.kind is Kind.SCAN else ()
    return tuple(k for k, size in enumerate(root.sizes) if k in scan_axes or (size != 1 and k not in places))


def window_piece(equation: Equation, position: Indices) -> Piece:
    """The piece of a view that shows the update, at a position of the whole array."""
    return next(p for p in resolve(equation, position).pieces if p.operand == 1)


def scatter_piece(equation: Equation, indices: Indices) -> Piece:
    """Where the update at `indices` goes."""
    lower = equation.primitive.lower
    assert isinstance(lower, Scatter)
    return lower.rule(indices, *(a.type for a in equation.operands), **equation.params)


def scatter_axes(equation: Equation) -> dict[int, int]:
    """Axes of the result that one axis of the updates walks alone, as {axis: update axis}.

    Updates that differ there never touch the same element, in whatever order they run.
    """
    lower = equation.primitive.lower
    assert isinstance(lower, Scatter)
    updates = equation.operands[lower.updates].type.shape
    symbols = axis_symbols(updates, "j")
    piece_indices = scatter_piece(equation, symbols).indices
    shape = equation.results[0].type.shape
    return {
        axis: symbols.index(at)
        for axis, at in enumerate(piece_indices)
        if at in symbols and updates[symbols.index(at)] == shape[axis] != 1
    }


# --- ranges -----------------------------------------------------------------------------------


def _ranges(root: Root, storage: Storage, first: int) -> list[Root]:
    """The root itself, with its number, or the roots of its ranges."""
    cells = list(itertools.product(*_divisions(root)))
    if len(cells) == 1:
        return [replace(root, number=first, cuts=())]
    roots = []
    for cell in cells:
        offsets, sizes = tuple(o for o, _ in cell), tuple(s for _, s in cell)
        roots.append(analyse(root.equation, root.var, storage, first + len(roots), offsets, sizes))
    return roots


def _divisions(root: Root) -> list[list[tuple[Size, Size]]]:
    """The ranges of each axis that has cuts; where cells become too many, neighbours are joined.

    Ranges along the outer axes alone are worth having: in a stack of rolled arrays each part
    computes only itself, and only where the roll wraps is decided at each element.
    """
    axes, cells = [], 1
    for cuts, size in zip(root.cuts, root.sizes):
        axes.append(_few_ranges(cuts, size, cost.MAX_CELLS // cells))
        cells *= len(axes[-1])
    return axes


def _few_ranges(cuts: Iterable[Size], size: Size, most: int) -> list[tuple[Size, Size]]:
    """At most `most` ranges between cuts; within a joined one each element finds its own piece.

    >>> _few_ranges([1, 2, 4, 8, 16], 32, most=3)
    [(0, 8), (8, 8), (16, 16)]
    """
    inside = set(_inside(cuts, size))
    if len(inside) < most:
        return _intervals(cuts, size)
    # Comparing symbolic cuts takes all pairs of them, and each range asks all pieces again.
    numbers = sorted(c for c in inside if isinstance(c, int))
    if most == 1 or not isinstance(size, int) or len(numbers) < len(inside) or len(numbers) > cost.MAX_JOINED_CUTS:
        return [(0, size)]
    return [(a, b - a) for a, b in itertools.pairwise(_join_shortest([0, *numbers, size], most))]


def _join_shortest(boundaries: list[int], most: int) -> list[int]:
    """The boundaries of at most so many ranges, after joining the shortest neighbours first."""
    while len(boundaries) > most + 1:
        inner = range(1, len(boundaries) - 1)
        shortest = min(inner, key=lambda i: boundaries[i + 1] - boundaries[i - 1])
        boundaries = boundaries[:shortest] + boundaries[shortest + 1 :]
    return boundaries


def _intervals(cuts: Iterable[Size], size: Size) -> list[tuple[Size, Size]]:
    """(offset, size) of the ranges between cuts; one range where their order is not known."""
    inside = _inside(cuts, size)
    boundaries: list[Size] = [0]
    for cut in inside:
        if not all(_is_decided(cut, other) for other in (0, size, *inside)):
            return [(0, size)]
    while inside:
        # Cuts may be symbolic: the next one is at most each of the others.
        least = next(c for c in inside if all(dims.at_most(c, d) for d in inside))
        inside = [c for c in inside if c != least]
        boundaries.append(least)
    return [(a, b - a) for a, b in itertools.pairwise([*boundaries, size])]


def _inside(cuts: Iterable[Size], size: Size) -> list[Size]:
    return [c for c in cuts if not (dims.at_most(c, 0) or dims.at_most(size, c))]


def _is_decided(a: Size, b: Size) -> bool:
    return dims.at_most(a, b) is not None and dims.less(a, b) is not None
