"""Fusion: which roots share a kernel.

A group runs over a domain. For each member it records which of the member's axes are the domain's;
the other axes run inside a point. One member may read another where both walk the domain's axes in
step: then every point of the domain computes all that it needs.

Reductions, dots and scans have all axes in the domain; only mapped roots have inner axes. So a
reduction over rows and everything that reads its result row by row form one group over the rows,
while a reader that transposes or reshapes the result stays outside.

Roots are numbered so that each reads only earlier ones. A path between two roots therefore passes
through numbers between theirs, so for two roots of one window (WINDOW consecutive numbers) the
window alone tells what lies between them. No group spans two windows.

Invariant: no path leaves a group and comes back (convexity), so the groups have an order.
Cost: every edge is tried at most a few times. Reachability is stored as bit sets, one bit for each
root of a window; joining two groups updates only the sets of groups that reach just one of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from rune.core.program import Var
from rune.dims import Size
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.group import Group, Needs, Pairs, alone, common_places, joined, written
from rune.lowering.kernelize.roots import Kind, Root, axis_symbols, inner_places
from rune.records import dataclass

# Their loops run in an order, or elsewhere, so no other root can share them.
NO_KERNEL = {
    Kind.ROUTINE: "a library routine",
    Kind.WRITTEN: "a kernel whose loops are given",
    Kind.CONTROL: "a loop or branch",
}
CALLS = frozenset(NO_KERNEL)
SEPARATE = frozenset({Kind.SCAN, Kind.SCATTER, Kind.WINDOW, *CALLS})
REDUCING = frozenset({Kind.REDUCE, Kind.DOT, Kind.STREAM})
Edges = Sequence[tuple[int, int]]  # a root that is read, and its reader
WINDOW = 2048  # roots: more than most programs have, and few enough for bit sets


@dataclass(slots=True)
class Fusion:
    """The state of the search: roots, and the group of each.

    `above`, `below`: for each group, the roots of its window that it depends on and those that
    depend on it, as bit sets by number within the window. Each set has all members of a group or no
    member of it, so one bit stands for the whole group.
    `refusals`: for pairs of groups, why their members cannot share a kernel; empty if they can.
    """

    roots: tuple[Root, ...]
    makers: Mapping[Var, Sequence[int]]
    needs: Needs
    alignments: Mapping[tuple[int, int], tuple[int | None, ...]]
    groups: dict[int, Group]
    owner: list[int]
    above: list[int]
    below: list[int]
    granularity: cost.Granularity
    refusals: dict[tuple[Group, Group], str] = field(default_factory=dict)

    def group(self, root: int) -> Group:
        """The group that a root is in."""
        return self.groups[self.owner[root]]

    def are_close(self, a: int, b: int) -> bool:
        """Whether two groups are in one window."""
        return a // WINDOW == b // WINDOW

    def are_ordered(self, a: int, b: int) -> bool:
        """Whether one of two groups of a window depends on the other."""
        return bool((self.above[a] | self.below[a]) >> b % WINDOW & 1)


def fuse(
    roots: tuple[Root, ...],
    results: frozenset[Var],
    granularity: cost.Granularity,
    streams: Iterable[Iterable[Var]] = (),
) -> Fusion:
    """Group the roots of a program whose results are `results`.

    streams: for each stream, the values that its one pass computes
    """
    state = _start(roots, results, granularity)
    for stream in streams:
        _join_stream(state, stream)
    # The nearest root of a reader first: it may lie between the reader and those farther away.
    edges = sorted(state.alignments, key=lambda edge: (edge[1], -edge[0]))
    # Again until nothing changes: two kernels may join once the one between them has joined either.
    while _fuse_edges(state, edges):
        pass
    _fuse_siblings(state)
    _fuse_ranges(state)
    while _fuse_edges(state, edges):  # the groups just joined may fit others now
        pass
    return state


# --- start ------------------------------------------------------------------------------------


def _start(roots: tuple[Root, ...], results: frozenset[Var], granularity: cost.Granularity) -> Fusion:
    makers: dict[Var, list[int]] = {}
    readers: dict[Var, list[int]] = {}
    for root in roots:
        makers.setdefault(root.var, []).append(root.number)
        for var in root.reads:
            readers.setdefault(var, []).append(root.number)
    alignments = {
        (q, root.number): _alignment(root, roots[q], indices)
        for root in roots
        for var, indices in root.reads.items()
        for q in makers.get(var, ())
    }
    needs = Needs(results, readers)
    groups = {r.number: alone(r, needs) for r in roots}
    owner = [r.number for r in roots]
    above, below = _reachability(len(roots), alignments)
    return Fusion(roots, makers, needs, alignments, groups, owner, above, below, granularity)


def _alignment(reader: Root, read: Root, indices: Iterable[tuple]) -> tuple[int | None, ...]:
    """For each axis of the root that is read, the axis of the reader that walks it in step.

    An axis of the reader that walks two at once, as along a diagonal, is in step with neither.
    """
    # The root makes a range of the value, while the reader's indices count from the whole's start.
    if not read.is_whole:
        return (None,) * len(read.sizes)
    axes = {s: k for k, s in enumerate(axis_symbols(reader.sizes))}
    columns = zip(*indices)
    reader_axes = [
        _only({_axis(index, axes, size, reader) for index in column}) for column, size in zip(columns, read.sizes)
    ]
    return tuple(k if reader_axes.count(k) == 1 else None for k in reader_axes)


def _axis(index: Size, axes: Mapping, size: Size, reader: Root) -> int | None:
    if isinstance(index, int):
        return None
    k = axes.get(index)
    # Of two sizes, the shorter axis walks a part of the other: a slice from the beginning.
    return k if k is not None and reader.sizes[k] == size else None


def _only(axes: set[int | None]) -> int | None:
    return axes.pop() if len(axes) == 1 else None


def _reachability(count: int, edges: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """What each root depends on in its window, and what depends on it."""
    # Sorted by the later root (and the earlier one, backwards), every edge finds complete sets.
    above, below = [0] * count, [0] * count
    inside = [(q, r) for q, r in edges if q // WINDOW == r // WINDOW]
    for q, r in sorted(inside, key=lambda edge: edge[1]):
        above[r] |= above[q] | 1 << q % WINDOW
    for q, r in sorted(inside, key=lambda edge: -edge[0]):
        below[q] |= below[r] | 1 << r % WINDOW
    return above, below


def in_order(state: Fusion) -> list[int]:
    """The groups, each after those that it reads, and otherwise by their last member."""
    firsts: dict[int, int] = {}  # one root of each group, by window
    for g in state.groups:
        # Groups are named by one of their members, whose bit therefore stands for the group.
        firsts[g // WINDOW] = firsts.get(g // WINDOW, 0) | 1 << g % WINDOW

    def place(g: int) -> tuple[int, int, int]:
        # What a group reads depends on strictly fewer groups than it does itself.
        read = (state.above[g] & firsts[g // WINDOW]).bit_count()
        return g // WINDOW, read, state.groups[g].members[-1]

    return sorted(state.groups, key=place)


# --- producers and consumers ------------------------------------------------------------------


def _fuse_edges(state: Fusion, edges: Edges) -> bool:
    """Try every edge once. Returns whether any groups were joined."""
    has_changed = False
    for q, r in edges:
        a, b = state.owner[q], state.owner[r]
        if a != b and not isinstance(pairs := match(state, a, b), str):
            _join(state, a, b, pairs)
            has_changed = True
    return has_changed


def match(state: Fusion, a: int, b: int) -> Pairs | str:
    """How the domains of group a and its reader b correspond, or why they cannot be one kernel."""
    first, second = state.groups[a], state.groups[b]
    refusal = state.refusals.get((first, second))
    if refusal is None:
        refusal = state.refusals[first, second] = _refuse_members(state, first, second)
    if refusal:
        return refusal
    if not state.are_close(a, b):
        return "too many kernels lie between them"
    # The joined group would both feed and read the kernel between them.
    if state.below[a] & state.above[b]:
        return "another kernel lies between them"
    edges = _edges(state, first, second)
    if not all([state.roots[q].is_whole for q in {q for q, _ in edges}]):
        return "a part of a value is read as a whole"
    pairs = _corresponding(state, first, second, edges)
    for group, side in ((first, 0), (second, 1)):
        common_axes = {p[side] for p in pairs}
        if REDUCING & group.kinds and len(common_axes) < len(group.domain):
            return "the result of a reduction is not read row by row"
    if Kind.STREAM in first.kinds:
        return _refuse_stream(state, first, second, edges, pairs) or pairs
    return _refuse_domain(state, first, second, pairs) or pairs


def _refuse_members(state: Fusion, first: Group, second: Group) -> str:
    kinds = first.kinds | second.kinds
    calls = CALLS & kinds
    if calls:
        return next(reason for kind, reason in NO_KERNEL.items() if kind in calls)
    if Kind.STREAM in kinds and second.kinds != {Kind.MAP}:
        return "a stream takes no other reduction"
    if SEPARATE & kinds:
        return "a scan, scatter or window update is a kernel of its own"
    if Kind.DOT in kinds and (Kind.DOT in first.kinds & second.kinds or Kind.REDUCE in kinds):
        return "a dot takes no second reduction"
    if len(first.members) + len(second.members) > cost.MAX_MEMBERS:
        return "the kernel would grow too large"
    return "" if _have_few_buffers(state, first, second) else "too many buffers"


def _refuse_stream(state: Fusion, first: Group, second: Group, edges: Edges, pairs: Pairs) -> str:
    """Why a reader cannot join a stream, whose results it must read by row and by column."""
    places = common_places(first, second, pairs)
    inner = {m: inner_places(state.roots[m], places[m]) for m in places}
    columns = {tuple(state.roots[m].sizes[k] for k in inner[m]) for m in first.members}
    for m in second.members:
        if inner[m] and tuple(state.roots[m].sizes[k] for k in inner[m]) not in columns:
            return "a stream has other columns"
        if any(inner[q] for q in places if state.roots[q].kind is Kind.MAP and (q, m) in state.alignments):
            return "a stream keeps no rows but its sums"
    # A scalar sum has no columns, so its readers may have any; columns are read one for one.
    for q, r in edges:
        if tuple(state.alignments[q, r][k] for k in inner[q]) != (inner[r] if inner[q] else ()):
            return "the sums of a stream are not read column by column"
    return ""


def _have_few_buffers(state: Fusion, first: Group, second: Group) -> bool:
    """Whether a kernel of these groups reads and writes at most MAX_BUFFERS arrays."""
    # Together they have no more than both alone, and most have few.
    if sum([len(g.reads) + len(g.written) for g in (first, second)]) <= cost.MAX_BUFFERS:
        return True
    results = first.results | second.results
    reads = (first.reads | second.reads) - results
    return len(reads) + len(written(first, second, state.needs)) <= cost.MAX_BUFFERS


def _corresponding(state: Fusion, first: Group, second: Group, edges: Edges) -> Pairs:
    """The axes of both domains that walk in step along every edge between them."""
    # None until the first edge: agreeing with nothing yet is not the same as agreeing on no axis.
    pairs: dict[int, int] | None = None
    for q, r in edges:
        alignment, edge_pairs = state.alignments[q, r], {}
        for axis, place in enumerate(first.places[q]):
            reader = alignment[place]
            if reader is not None and reader in second.places[r]:
                edge_pairs[axis] = second.places[r].index(reader)
        pairs = edge_pairs if pairs is None else _agreement(pairs, edge_pairs)
    return tuple(sorted((pairs or {}).items(), key=lambda pair: pair[1]))


def _edges(state: Fusion, first: Group, second: Group) -> Edges:
    """Which member of the first group is read by which of the second."""
    return [(q, r) for q in first.members for r in second.members if (q, r) in state.alignments]


def _agreement(a: Mapping[int, int], b: Mapping[int, int]) -> dict[int, int]:
    return {k: v for k, v in a.items() if b.get(k) == v}


def _refuse_domain(state: Fusion, first: Group, second: Group, pairs: Pairs) -> str:
    """Why the common domain would be a bad one; empty if it is a good one."""
    domain = tuple(second.domain[b] for _, b in pairs)
    # No axis moves inside a point, so nothing gets less parallel.
    if len(domain) == len(first.domain) == len(second.domain):
        return ""
    members = (*first.members, *second.members)
    roots = [state.roots[m] for m in members]
    if any(r.kind is Kind.DOT for r in roots):
        return "a dot keeps its whole domain"
    places = common_places(first, second, pairs)
    # Axes that are not common run inside each point. Where an outer axis does and the innermost one
    # does not, a point walks down a column and its neighbours beside it, which suits only sums.
    columns = any(_is_strided(state.roots[m], places[m]) for m in members)
    if columns and (not any(r.kind is Kind.REDUCE for r in roots) or _needs_rows(state, places)):
        return "one would walk through the other's columns"
    if state.granularity.walks_near and _walks_far(roots):
        return "a point would walk a row much longer than what it reduces"
    before = max(cost.count(first.domain), cost.count(second.domain))
    work = max(r.work for r in roots)
    rows = cost.PARALLEL_COLUMNS if columns else state.granularity.rows
    small = state.granularity.small(any(r.kind in REDUCING for r in roots))
    if cost.keeps_parallel(cost.count(domain), before, work, rows, small):
        return ""
    return f"too little would run in parallel ({' x '.join(map(str, domain)) or 1} points)"


def _walks_far(roots: Sequence[Root]) -> bool:
    """Whether points would walk rows much longer than what they reduce, as parts of them."""
    sums, maps = (max((r.work for r in roots if r.kind is kind), default=0) for kind in (Kind.REDUCE, Kind.MAP))
    return 0 < cost.FAR * sums <= maps


def _is_strided(root: Root, places: tuple[int, ...]) -> bool:
    """Whether the root's innermost axis is the domain's, and an outer one runs inside."""
    # All axes of a reduction's result are the domain's; what runs inside are the axes it sums over.
    if root.kind is Kind.REDUCE:
        operand = root.equation.operands[0].type
        return operand.ndim - 1 not in root.equation.params["axes"]
    inner = inner_places(root, places)
    return bool(inner) and max(places, default=-1) > inner[-1]


def _needs_rows(state: Fusion, places: Mapping[int, tuple[int, ...]]) -> bool:
    """Whether a member would hold a row, along its inner axes, for others to read."""
    return any(
        bool(inner_places(state.roots[m], places[m]))
        and any(r in places for r in state.needs.readers.get(state.roots[m].var, ()))
        for m in places
    )


def _join(state: Fusion, a: int, b: int, pairs: Pairs) -> None:
    """Replace groups a and b by one, under the number a."""
    first, second = state.groups[a], state.groups.pop(b)
    state.groups[a] = joined(first, second, pairs, state.needs)
    for m in second.members:
        state.owner[m] = a
    _join_reach(state, a, b)


def _join_reach(state: Fusion, a: int, b: int) -> None:
    """Update reachability: what reaches the joined group reaches all that either part reached."""
    members = sum(1 << m % WINDOW for m in state.groups[a].members)
    above, below = state.above, state.below
    over, under = above[a] | above[b], below[a] | below[b]
    # A root above both parts already has everything below either, so only the others change.
    for number in _bits((above[a] ^ above[b]) & ~members):
        below[a // WINDOW * WINDOW + number] |= under | members
    for number in _bits((below[a] ^ below[b]) & ~members):
        above[a // WINDOW * WINDOW + number] |= over | members
    above[a], below[a] = over & ~members, under & ~members


def _bits(mask: int) -> Iterable[int]:
    """The numbers in a bit set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _join_stream(state: Fusion, stream: Iterable[Var]) -> None:
    """Join the roots of a stream, which walk the same rows; an unread result has none."""
    # The group of root 0 joins nothing if no result of the stream has a root.
    first, *others = [state.owner[n] for var in stream for n in state.makers.get(var, ())] or [0]
    for other in others:
        # Roots in different windows cannot be joined: each is a pass of its own.
        if state.are_close(first, other):
            _join(state, first, other, tuple((k, k) for k in range(len(state.groups[first].domain))))


# --- siblings ---------------------------------------------------------------------------------


def _fuse_siblings(state: Fusion) -> None:
    """Join groups of equal domains that read the same array in step."""
    # Consecutive readers only: all pairs would be quadratic for an array that everything reads.
    for var, numbers in state.needs.readers.items():
        for x, y in itertools.pairwise(numbers):
            a, b = state.owner[x], state.owner[y]
            if a != b and state.are_close(a, b) and _are_siblings(state, a, b, var):
                same = tuple((k, k) for k in range(len(state.groups[a].domain)))
                _join(state, a, b, same)


def _are_siblings(state: Fusion, a: int, b: int, var: Var) -> bool:
    first, second = state.groups[a], state.groups[b]
    if (first.kinds | second.kinds) & (SEPARATE | {Kind.DOT, Kind.STREAM}) or first.domain != second.domain:
        return False
    if state.are_ordered(a, b):
        return False
    if not _have_few_buffers(state, first, second):
        return False
    axes_read = [_axes_read(state, g, var) for g in (first, second)]
    # An array smaller than the domain is broadcast: a cache holds it, and sharing saves no traffic.
    large = cost.count(var.type.shape) >= max(cost.count(first.domain), 2)
    return large and bool(axes_read[0] & axes_read[1]) and _saves_memory(state, first, second)


def _saves_memory(state: Fusion, first: Group, second: Group) -> bool:
    """Whether what both read outweighs the values that must then be alive at the same time."""
    shared_elements = sum(cost.count(v.type.shape) for v in first.reads & second.reads)
    only = [
        sum(cost.count(v.type.shape) for v in reads if v in state.makers)
        for reads in (first.reads - second.reads, second.reads - first.reads)
    ]
    return shared_elements > min(only)


def _axes_read(state: Fusion, group: Group, var: Var) -> set[tuple[int | None, ...]]:
    """How members read `var`: for each of its axes, the axis of the domain that walks it."""
    axes_of_members = set()
    for m in group.members:
        root = state.roots[m]
        axes = {s: k for k, s in enumerate(axis_symbols(root.sizes))}
        for indices in root.reads.get(var, ()):
            inner = tuple(axes.get(i) if not isinstance(i, int) else None for i in indices)
            places = group.places[m]
            # None stands for an axis that no axis of the domain walks.
            axes_of_members.add(tuple(places.index(k) if k in places else None for k in inner))
    return axes_of_members


# --- ranges of one value ----------------------------------------------------------------------


def _fuse_ranges(state: Fusion) -> None:
    """Join the groups that write ranges of one value, over the axes that are not divided."""
    for numbers in state.makers.values():
        for x, y in itertools.pairwise(numbers):
            a, b = state.owner[x], state.owner[y]
            if a == b or not state.are_close(a, b) or state.are_ordered(a, b):
                continue
            pairs = _undivided(state, state.groups[a], state.groups[b], x, y)
            if pairs is not None:
                _join(state, a, b, pairs)


def _undivided(state: Fusion, first: Group, second: Group, x: int, y: int) -> Pairs | None:
    """The axes that both ranges share; None if their points are too few."""
    if first.kinds | second.kinds != {Kind.MAP} or not _have_few_buffers(state, first, second):
        return None
    ranges = [state.roots[n] for n in (x, y)]
    axes = [
        k
        for k, (s, t) in enumerate(zip(ranges[0].sizes, ranges[1].sizes))
        if s == t and ranges[0].offsets[k] == ranges[1].offsets[k] and k in first.places[x] and k in second.places[y]
    ]
    pairs = tuple((first.places[x].index(k), second.places[y].index(k)) for k in axes)
    points = cost.count(tuple(ranges[0].sizes[k] for k in axes))
    # The work of all members counts: a small range may be in the group of a large one.
    work = max(state.roots[m].work for m in (*first.members, *second.members))
    before = max(cost.count(first.domain), cost.count(second.domain))
    grain = state.granularity
    return pairs if cost.keeps_parallel(points, before, work, grain.rows, grain.lone_work) else None
