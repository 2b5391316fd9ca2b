"""Compute equal expressions once.

Before   store y[i] = exp(x[i]) / (1.0 + exp(x[i]))
After    common: f32 = exp(x[i])
         store y[i] = common / (1.0 + common)

Two expressions are equal if they have the same text, and no Store, Assign or loop between them may
change a buffer or Var that they mention. A value computed outside a loop or a branch is available
inside it, never the other way round. A Let that equals an earlier one is removed, and its readers
read the earlier one; so is a Let that only renames another local.

Invariant: every value stays the same, bit for bit; nothing is computed where it was not before.
Cost:      linear in the code times the depth of its expressions.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import field

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.kernel.expr import Cast, Expr, Load, Local, Op, operands
from rune.lowering.kernel.nodes import KernelCode, Let, Stmt
from rune.lowering.kernel.rewrite import (
    Body,
    all_names,
    bodies,
    expressions,
    map_bodies,
    map_parts,
    reserve,
    symbols_used,
    unique_names,
    walk,
    with_operands,
    with_sizes,
)
from rune.lowering.optimize.expression_keys import Key, Versions, versions_of
from rune.lowering.passes import Pass
from rune.records import dataclass, replace


@dataclass(slots=True)
class _Entry:
    """One value: how often it is used where it is available, and its local once it has one."""

    uses: int = 1
    local: Local | None = None


# The values available at a place; those of a body come after those of the code around it.
_Table = dict[Key, _Entry]


@contextmanager
def _inside(table: _Table) -> Iterator[None]:
    """While a body is walked: the values that it computes are not available after it."""
    outside = len(table)
    yield
    while len(table) > outside:
        table.popitem()


# Constants, names and index expressions are as cheap as the local that would hold them.
def _is_worth(expr: Expr) -> bool:
    if type(expr) is Op or type(expr) is Load:
        return True
    return type(expr) is Cast and isinstance(expr.arg, (Op, Load, Cast, Local))


def _values(code: KernelCode, versions: Versions) -> list[_Entry]:
    """First walk: the value at each place in order; those within a repeated value have no place."""
    # The second walk comes to the same places in the same order, so a list is enough.
    places: list[_Entry] = []
    table: _Table = {}

    def visit(expr: Expr) -> None:
        if not _is_worth(expr):
            return
        key = versions.key(expr)
        entry = table.get(key)
        if entry is not None:  # the operands of a repeated value are not used again
            entry.uses += 1
            places.append(entry)
            return
        entry = _Entry()
        places.append(entry)
        for inner in operands(expr):
            visit(inner)
        table[key] = entry

    def body(statements: Body) -> None:
        for stmt in statements:
            for expr in expressions(stmt):
                visit(expr)
            versions.before(stmt)
            for inner in bodies(stmt):
                with _inside(table):
                    body(inner)
            versions.after(stmt)

    body(code.body)
    return places


@dataclass(slots=True)
class _Sharer:
    """Second walk, over the same places: gives repeated values a local."""

    places: Iterator[_Entry]
    changing: Container[str]
    used_names: set[str]
    symbols: dict[str, Dim]
    replacements: dict[str, Local] = field(default_factory=dict)
    sizes: dict[str, Size] = field(default_factory=dict)

    def size(self, x: Size) -> Size:
        return dims.substitute(x, self.sizes) if self.sizes and isinstance(x, Dim) else x

    def expr(self, expr: Expr, front: list[Stmt]) -> Expr:
        if isinstance(expr, Local):
            return self.replacements.get(expr.name, expr)
        if not _is_worth(expr):
            return self.parts(expr, front)
        entry = next(self.places)
        if entry.local is not None:
            return entry.local
        value = self.parts(expr, front)
        # A value read once gets no Let: renderers write it in place.
        if entry.uses == 1:
            return value
        name = reserve("common", self.used_names)
        front.append(Let(name, value))
        entry.local = Local(name, expr.dtype)
        return entry.local

    def parts(self, expr: Expr, front: list[Stmt]) -> Expr:
        args = tuple(self.expr(a, front) for a in operands(expr))
        return with_sizes(self.size, with_operands(expr, args) if args else expr)

    def body(self, body: Body) -> Body:
        statements: list[Stmt] = []
        for stmt in body:
            after = self.stmt(stmt, statements)
            if after is not None:
                statements.append(map_bodies(after, self.body))
        return tuple(statements)

    def stmt(self, stmt: Stmt, front: list[Stmt]) -> Stmt | None:
        if not isinstance(stmt, Let):
            return map_parts(stmt, lambda e: self.expr(e, front), self.size)
        value = self.let(stmt, front) if _is_worth(stmt.value) else self.expr(stmt.value, front)
        # A Let holds a Var's value at that point, and the Var may change before the Let is read.
        if isinstance(value, Local) and value.name not in self.changing:
            if self.rename(stmt.name, value):
                return None
        return stmt if value is stmt.value else replace(stmt, value=value)

    def let(self, let: Let, front: list[Stmt]) -> Expr:
        """The value of a Let, whose local holds it from here on; or the earlier local of it."""
        entry = next(self.places)
        if entry.local is not None:
            return entry.local
        value = self.parts(let.value, front)
        entry.local = Local(let.name, value.dtype)
        return value

    def rename(self, name: str, to: Local) -> bool:
        """Let readers of `name` read `to`; False if their index symbols have different bounds."""
        if name in self.symbols:
            (s,) = dims.symbols(self.symbols[name])
            high = None if s.high is None else self.size(s.high)
            symbol = dims.symbol(to.name, self.size(s.low), high)
            # `check` allows one symbol per name, so names with different bounds cannot be merged.
            if self.symbols.setdefault(to.name, symbol) is not symbol:
                return False
            self.sizes[name] = symbol
        self.replacements[name] = to
        return True


def eliminate_common(code: KernelCode) -> KernelCode:
    """The code with equal expressions computed once."""
    unique = unique_names(code)
    versions = versions_of(unique)
    places = _values(unique, versions)
    if all([e.uses == 1 for e in places]) and not any(map(_renames, walk(unique.body))):
        return unique
    sharer = _Sharer(iter(places), versions.numbers.keys(), all_names(unique), symbols_used(unique))
    body = sharer.body(unique.body)
    return code if body == code.body else replace(unique, body=body)


def _renames(stmt: Stmt) -> bool:
    """Whether the statement gives a local another name."""
    return isinstance(stmt, Let) and isinstance(stmt.value, Local)


PASS = Pass("eliminate-common", "compute equal expressions once", eliminate_common)
