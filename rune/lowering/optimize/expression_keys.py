"""Keys of expressions: equal at two places if the expression has the same value at both.

A key is the number of the expression, which is the same for equal text, and how often each Var and
buffer that it reads has changed up to that place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from rune.lowering.kernel.expr import Cast, Expr, Load, Local, Op, operands
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
from rune.records import dataclass

# An expression at one place in the code: its number, and how often what it reads has changed.
Key = int | tuple[int, ...]


@dataclass(slots=True)
class Numbers:
    """A number for every expression, the same for expressions of the same text.

    `changing`: the Vars and buffers that change. `reads`: those of them that an expression reads,
    by its number; sorted, because keys must not depend on the order of a set.
    """

    changing: frozenset[str]
    reads: list[tuple[str, ...]] = field(default_factory=list)
    # By identity: every expression around an expression looks it up again.
    known: dict[int, tuple[Expr, int]] = field(default_factory=dict)
    # By the numbers of their parts: whole trees would be hashed and compared at every level.
    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)

    def of(self, expr: Expr) -> int:
        """The number of an expression."""
        entry = self.known.get(id(expr))
        if entry is None:
            inner = [*map(self.of, operands(expr))]
            number = self.numbers.setdefault((*_without_operands(expr), *inner), len(self.reads))
            if number == len(self.reads):
                self.reads.append(self._read_by(expr, inner))
            entry = self.known[id(expr)] = (expr, number)
        return entry[1]

    def _read_by(self, expr: Expr, inner: Iterable[int]) -> tuple[str, ...]:
        """The changing Vars and buffers that an expression reads. inner: numbers of its operands"""
        names = {name for number in inner for name in self.reads[number]}
        if type(expr) is Local:
            names.add(expr.name)
        elif type(expr) is Load:
            names.add(expr.buffer)
        for size in expr_sizes(expr):
            names |= size_names(size)
        return tuple(sorted(names & self.changing)) if names else ()


def _without_operands(expr: Expr) -> tuple[object, ...]:
    if type(expr) is Op:
        return Op, expr.name, expr.dtype
    if type(expr) is Cast:
        return Cast, expr.dtype
    if type(expr) is Load:
        return Load, expr.buffer, expr.indices, expr.dtype
    return (Local, expr.name, expr.dtype) if type(expr) is Local else (expr,)


@dataclass(slots=True)
class Versions:
    """How often each Var and buffer has changed up to here. Only those that change are listed."""

    of_expressions: Numbers
    numbers: dict[str, int]
    memory: frozenset[str]  # buffers that the kernel writes
    together: dict[str, frozenset[str]]  # aliases: a write to one is a write to all
    changes: dict[int, frozenset[str]]  # what each statement changes, by identity

    def key(self, expr: Expr) -> Key:
        """The key of an expression at this place."""
        number = self.of_expressions.of(expr)
        names = self.of_expressions.reads[number]
        return (number, *[self.numbers[name] for name in names]) if names else number

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
    return Versions(Numbers(frozenset(names)), dict.fromkeys(names, 0), buffers_written(code.body), together, changes)
