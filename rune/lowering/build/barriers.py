"""Barriers: threads of a workgroup wait where one may read or write what another has written.

Two accesses conflict if one of them writes and different threads may access the same element. A
barrier goes before the first statement that conflicts with one since the last barrier; in a loop,
also with one of an earlier iteration. It goes where all threads arrive: between the statements of
the thread's body, or of a loop that all of them run equally often.

Threads access different elements if the bounds of the indices exclude each other (t < 64 and
t + 64). Each thread accesses only its own elements if both indices are c·t + d with the same c, and
the two d differ by a multiple of c·threads (the rounds of a divided loop), by no multiple of c, or
by more than all threads span; and if an `if` lets only thread 0 pass.

Invariant: code without a conflict is unchanged. A statement that conflicts with itself is an error,
since no barrier can be placed inside it, unless it is declared independent: by the rules of kernels
a loop is independent if each iteration writes its own elements, which indices do not always show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

from rune import dims
from rune.dims import Dim, Size
from rune.errors import CheckError
from rune.lowering.kernel.expr import Const, Expr, Index, Op
from rune.lowering.kernel.nodes import AddressSpace, Alloc, Barrier, For, If, KernelCode, Kind, Stmt, Store
from rune.lowering.kernel.rewrite import Body, bodies, expressions, loads, rename_size, size_names, walk
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store of a thread: a buffer, an element, and what bounds the symbols in it."""

    buffer: str
    index: Size
    writes: bool
    limits: tuple[tuple[str, int], ...] = ()  # symbols, each with a number that an `if` keeps it below


@dataclass(frozen=True, slots=True)
class _Group:
    """What the analysis knows: the threads, private buffers, and the code, for its aliases."""

    threads: Mapping[str, int]  # loop variables of the threads, and their extents
    uniform: frozenset[str]  # sizes and grid variables: the same for all threads
    private: frozenset[str]
    code: KernelCode
    independent: frozenset[Stmt]  # statements without a conflict within themselves
    # Answers of `split_off`, since each index is compared with many others.
    splits: dict[Size, tuple[int, Size] | None] = field(default_factory=dict, compare=False)

    @property
    def only(self) -> tuple[str, int] | None:
        """The one thread variable and its extent, unless there are several."""
        return next(iter(self.threads.items())) if len(self.threads) == 1 else None

    def split_off(self, index: Size, name: str) -> tuple[int, Size] | None:
        """(c, d) of an index c·name + d, c a positive number, `name` the only thread variable."""
        if index not in self.splits:
            self.splits[index] = _split_off(index, name)
        return self.splits[index]


def insert_barriers(code: KernelCode, independent: Iterable[Stmt] = ()) -> KernelCode:
    """The code with every barrier that it needs.

    independent: statements of a thread's body within which threads do not conflict
    Errors:      CheckError if threads conflict within any other statement.
    """
    if not any(isinstance(s, For) and s.kind is Kind.WORKGROUP for s in walk(code.body)):
        return code
    known = frozenset(independent)
    return replace(code, body=_inside_grid(code.body, code, frozenset(code.sizes), known))


def _inside_grid(body: Body, code: KernelCode, uniform: frozenset[str], independent: frozenset[Stmt]) -> Body:
    """Descend the loops of the grid to the statements of a thread."""
    # Shared memory is allocated first, and the loop comes last.
    *before, last = body
    assert isinstance(last, For)
    threads = _threads(last)
    if not threads:
        inner = _inside_grid(last.body, code, uniform | {last.var}, independent)
        return (*before, replace(last, body=inner))
    private = frozenset(s.name for s in walk(body) if isinstance(s, Alloc) and s.space is AddressSpace.LOCAL)
    group = _Group(threads, uniform, private, code, independent)
    return (*before, _in_threads(last, group))


def _threads(loop: For) -> dict[str, int]:
    """The thread variables of the nest that begins with this loop, and their extents."""
    extents: dict[str, int] = {}
    stmt: Stmt = loop
    while isinstance(stmt, For) and stmt.kind is Kind.WORKGROUP:
        # A launch needs the number of threads when the kernel is compiled.
        assert isinstance(stmt.extent, int)
        extents[stmt.var] = stmt.extent
        # Barrier() only ends the walk, as any statement other than a thread loop would.
        stmt = stmt.body[0] if len(stmt.body) == 1 else Barrier()
    return extents


def _in_threads(loop: For, group: _Group) -> For:
    # The loops of a thread's coordinates are one nest; barriers belong into the innermost.
    inner = loop.body[0]
    if len(loop.body) == 1 and isinstance(inner, For) and inner.kind is Kind.WORKGROUP:
        return replace(loop, body=(_in_threads(inner, group),))
    body, _ = _separate(loop.body, (), group)
    return replace(loop, body=body)


# --- placing ------------------------------------------------------------------------------------

Seen = tuple[Access, ...]  # since the last barrier


def _separate(body: Body, earlier: Seen, group: _Group) -> tuple[Body, Seen]:
    """The statements with barriers between those that conflict; the accesses since the last one."""
    statements: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Barrier):
            earlier = ()
        else:
            accesses = tuple(_accesses(stmt, group, ()))
            if _conflict(earlier, accesses, group):
                statements.append(Barrier())
                earlier = ()
            stmt, earlier = _within(stmt, accesses, earlier, group)
        statements.append(stmt)
    return tuple(statements), earlier


def _within(stmt: Stmt, accesses: Seen, earlier: Seen, group: _Group) -> tuple[Stmt, Seen]:
    """A statement without conflicts inside it, and the accesses since the last barrier."""
    if stmt in group.independent or not _conflict(accesses, accesses, group):
        return stmt, (*earlier, *accesses)
    if not isinstance(stmt, For) or not _is_uniform(stmt, group):
        raise CheckError(
            f"barriers: cannot separate threads within one statement ({_first(accesses, accesses, group)})"
        )
    # Within one round, the loop variable has the same value for all threads between two barriers.
    inside = replace(group, uniform=group.uniform | {stmt.var})
    first_round, after = _separate(stmt.body, earlier, inside)
    # The second time with the accesses that an earlier round has left after its last barrier.
    later_rounds, after = _separate(first_round, tuple(_earlier(a, stmt.var) for a in after), inside)
    return replace(stmt, body=later_rounds), after


def _earlier(access: Access, var: str) -> Access:
    """An access as it was in some other round of a loop."""
    return replace(access, index=rename_size(access.index, {var: f"{var}_earlier"}))


def _is_uniform(loop: For, group: _Group) -> bool:
    """Whether all threads run the loop equally often, one iteration after another."""
    return loop.kind is Kind.SERIAL and not size_names(loop.extent) & group.threads.keys()


# --- what threads touch -------------------------------------------------------------------------


def _accesses(stmt: Stmt, group: _Group, limits: tuple[tuple[str, int], ...]) -> Iterator[Access]:
    """The loads and stores of a statement, and of all inside it, that other threads can see."""
    read = (load for load in loads(expressions(stmt)) if load.buffer not in group.private)
    yield from (Access(load.buffer, load.indices[0], False, limits) for load in read)
    if isinstance(stmt, Store) and stmt.buffer not in group.private:
        yield Access(stmt.buffer, stmt.index, True, limits)
    # All bodies together, as if every branch were taken: a conflict in any of them counts.
    for number, inner in enumerate(bodies(stmt)):
        known = limits
        # The condition bounds symbols only in its first body, not in the `else`.
        if isinstance(stmt, If) and number == 0:
            known = (*limits, *_limits(stmt.condition))
        for s in inner:
            yield from _accesses(s, group, known)


def _limits(condition: Expr) -> Iterator[tuple[str, int]]:
    """A symbol that the condition keeps below a number."""
    if isinstance(condition, Op) and condition.name == "lt":
        low, high = condition.args
        if isinstance(low, Index) and isinstance(high, Const):
            symbols = dims.symbols(low.dim) if isinstance(low.dim, Dim) else ()
            for s in symbols:
                if low.dim == dims.symbol(s.name, s.low, s.high):
                    yield s.name, int(high.value)


# --- conflicts ----------------------------------------------------------------------------------


def _conflict(before: Seen, after: Seen, group: _Group) -> bool:
    return _first(before, after, group) is not None


def _first(before: Seen, after: Seen, group: _Group) -> str | None:
    """The first two accesses that conflict, in words."""
    for a, b in _pairs(before, after, group.code):
        if not _apart(a, b, group):
            return f"{a.buffer}[{a.index}] and {b.buffer}[{b.index}]"
    return None


def _pairs(before: Seen, after: Seen, code: KernelCode) -> Iterator[tuple[Access, Access]]:
    # Two reads never conflict, nor do buffers that never share memory.
    for a in before:
        names = code.buffers_at(a.buffer)
        yield from ((a, b) for b in after if b.buffer in names and (a.writes or b.writes))


def _apart(a: Access, b: Access, group: _Group) -> bool:
    """Whether no two threads can access the same element."""
    return _are_disjoint(a, b) or _is_own(a, b, group)


def _are_disjoint(a: Access, b: Access) -> bool:
    """Whether the bounds of both indices exclude each other."""
    (low_a, high_a), (low_b, high_b) = dims.bounds(_limited(a)), dims.bounds(_limited(b))
    before = high_a is not None and low_b is not None and high_a < low_b
    return before or (high_b is not None and low_a is not None and high_b < low_a)


def _limited(access: Access) -> Size:
    """The index, its symbols bounded by the conditions around it."""
    x = access.index
    if not isinstance(x, Dim):
        return x
    within = {s.name: s for s in dims.symbols(x)}
    tighter = {name: dims.symbol(name, within[name].low, limit - 1) for name, limit in access.limits if name in within}
    return dims.substitute(x, tighter) if tighter else x


def _is_own(a: Access, b: Access, group: _Group) -> bool:
    """Whether only one and the same thread can access the same element by both."""
    if group.only is None:
        return False
    name, count = group.only
    # Both pass an `if` that only thread 0 passes.
    if (name, 1) in a.limits and (name, 1) in b.limits:
        return True
    of_a, of_b = group.split_off(a.index, name), group.split_off(b.index, name)
    if of_a is None or of_b is None or of_a[0] != of_b[0]:
        return False
    step, difference = of_a[0], of_a[1] - _of_another(of_b[1], group)
    if isinstance(difference, int):
        # The remainders differ, or the threads would have to be further apart than any are.
        return difference % step != 0 or not 0 < abs(difference) < step * count
    return dims.divides(step * count, difference) is True


def _of_another(x: Size, group: _Group) -> Size:
    """An index in another thread, where only uniform symbols have the same value."""
    varying = size_names(x) - group.uniform
    return rename_size(x, {name: f"{name}_elsewhere" for name in varying})


def _split_off(index: Size, name: str) -> tuple[int, Size] | None:
    c = dims.coefficient(index, name)
    if not isinstance(c, int) or c <= 0 or not isinstance(index, Dim):
        return None
    (symbol,) = (s for s in dims.symbols(index) if s.name == name)
    return c, index - c * dims.symbol(name, symbol.low, symbol.high)
