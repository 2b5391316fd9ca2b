"""Keys of expressions: equal at two places if the expression has the same value at both.

A key is the number of the expression, which is the same for equal text, and how often each Var and
buffer that it reads has changed up to that place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import field

from rune.lowering.kernel.expr import Cast, Const, Expr, Load, Local, Op, operands
from rune.lowering.kernel.nodes import Barrier, For, KernelCode, Stmt
from rune.lowering.kernel.rewrite import (
    Body,
    bodies,
    buffer_written,
    buffers_written,
    expr_sizes,
    size_names,
    vars_changed,
)
from rune.records import dataclass, replace

# An expression at one place in the code: its number, and how often what it reads has changed.
Key = tuple[int, tuple[tuple[str, int], ...]]


@dataclass(slots=True)
class Numbers:
    """A number for every expression, the same for expressions of the same text."""

    # By identity: every expression around an expression looks it up again, in both walks.
    known: dict[int, tuple[Expr, int]] = field(default_factory=dict)
    # By the numbers of their parts: whole trees would be hashed and compared at every level.
    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)

    def of(self, expr: Expr) -> int:
        """The number of an expression."""
        entry = self.known.get(id(expr))
        if entry is None:
            number = self.numbers.setdefault(self._parts(expr), len(self.numbers))
            entry = self.known[id(expr)] = (expr, number)
        return entry[1]

    def _parts(self, expr: Expr) -> tuple[object, ...]:
        if type(expr) is Op:
            return Op, expr.name, expr.dtype, *map(self.of, expr.args)
        if type(expr) is Cast:
            return Cast, expr.dtype, self.of(expr.arg)
        if type(expr) is Load:
            guard = None if expr.guard is None else self.of(expr.guard)
            return Load, expr.buffer, expr.indices, expr.dtype, guard
        return (expr,)


_NOTHING: frozenset[str] = frozenset()


@dataclass(slots=True)
class Versions:
    """How often each Var and buffer has changed up to here. Only those that change are listed."""

    of_expressions: Numbers
    numbers: dict[str, int]
    memory: frozenset[str]  # buffers that the kernel writes
    together: dict[str, frozenset[str]]  # aliases: a write to one is a write to all
    changes: dict[int, frozenset[str]]  # what each statement changes, by identity
    # Keyed by identity: every enclosing expression looks its parts up again. Sorted, because keys
    # must not depend on the order of a set.
    known: dict[int, tuple[Expr, tuple[str, ...]]] = field(default_factory=dict)

    def from_start(self) -> Versions:
        """The state at the beginning of the code, for another walk over it."""
        return replace(self, numbers=dict.fromkeys(self.numbers, 0))

    def key(self, expr: Expr) -> Key:
        """The key of an expression at this place."""
        number = self.of_expressions.of(expr)
        names = self.read_by(expr) if self.numbers else ()
        return number, tuple([(name, self.numbers[name]) for name in names]) if names else ()

    def read_by(self, expr: Expr) -> tuple[str, ...]:
        """The changing Vars and buffers that an expression reads, sorted."""
        entry = self.known.get(id(expr))
        if entry is None:
            names = self._names_read(expr)
            entry = self.known[id(expr)] = (expr, tuple(sorted(names)) if len(names) > 1 else tuple(names))
        return entry[1]

    def _names_read(self, expr: Expr) -> Collection[str]:
        # By cases, since most nodes read nothing that changes.
        if type(expr) is Op:
            inner = [names for names in map(self.read_by, expr.args) if names]
            return inner[0] if len(inner) == 1 else _NOTHING.union(*inner)
        if type(expr) is Cast:
            return self.read_by(expr.arg)
        if type(expr) is Local:
            return (expr.name,) if expr.name in self.numbers else ()
        if type(expr) is Const:
            return ()
        names = {n for size in expr_sizes(expr) for n in size_names(size)}
        if isinstance(expr, Load):
            names.add(expr.buffer)
        return frozenset(names & self.numbers.keys()).union(*map(self.read_by, operands(expr)))

    def _change(self, names: Iterable[str]) -> None:
        for name in names:
            # A name that never changes has no number.
            for one in self.together.get(name, frozenset((name,))):
                if one in self.numbers:
                    self.numbers[one] += 1

    def before(self, stmt: Stmt) -> None:
        """Count the changes of a loop before its body, since any iteration may follow another."""
        if isinstance(stmt, For):
            self._change(self.changes[id(stmt)])

    def after(self, stmt: Stmt) -> None:
        """Count the changes of a statement, for the code after it."""
        # After a barrier, memory may hold what other threads wrote.
        self._change(self.memory if isinstance(stmt, Barrier) else self.changes[id(stmt)])


def _changes_of(body: Body, changes: dict[int, frozenset[str]]) -> frozenset[str]:
    """The Vars and buffers that statements change; those of each statement are put in `changes`."""
    names = frozenset[str]()
    for stmt in body:
        inside = [_changes_of(inner, changes) for inner in bodies(stmt)]
        buffer = buffer_written(stmt)
        changes[id(stmt)] = frozenset(vars_changed(stmt)).union(*inside, () if buffer is None else (buffer,))
        names |= changes[id(stmt)]
    return names


def versions_of(code: KernelCode) -> Versions:
    """The state at the beginning of the code: nothing has changed yet."""
    changes: dict[int, frozenset[str]] = {}
    changing = _changes_of(code.body, changes)
    together: dict[str, frozenset[str]] = {}
    for a, b in code.aliases:
        # Pairs chain: with a = b and b = c, a write to `a` changes `c`.
        aliases = together.get(a, frozenset((a,))) | together.get(b, frozenset((b,)))
        together.update(dict.fromkeys(aliases, aliases))
    names = changing | {n for c in changing for n in together.get(c, ())}
    return Versions(Numbers(), dict.fromkeys(names, 0), buffers_written(code.body), together, changes)
