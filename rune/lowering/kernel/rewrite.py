"""Walks over kernel code: read what statements use and write, and rebuild them with changes.

Every function takes and returns frozen nodes, and returns an unchanged node itself, so that
comparing before and after is a cheap test of identity. Walks are iterative, or recurse as deep as
loops or expressions nest; `check` bounds the depth of an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from functools import cache
from operator import attrgetter, is_
from types import MappingProxyType

from rune import dims, dtypes
from rune.dims import Dim, Size, symbols_within
from rune.lowering.kernel.expr import Cast, Expr, Index, Load, Local, Op, operands
from rune.lowering.kernel.nodes import (
    Accumulate,
    Alloc,
    Assign,
    Barrier,
    Factor,
    Fetch,
    For,
    If,
    KernelCode,
    Kind,
    Let,
    MatrixProduct,
    Stmt,
    Store,
    Var,
)
from rune.records import replace

Body = tuple[Stmt, ...]

# --- reading ----------------------------------------------------------------------------------


def bodies(stmt: Stmt) -> tuple[Body, ...]:
    """The statement's own bodies."""
    if type(stmt) is For:
        return (stmt.body,)
    return (stmt.body, stmt.orelse) if type(stmt) is If else ()


def walk(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """All statements, each before those inside it, in order."""
    pending = list(body)[::-1]
    while pending:
        stmt = pending.pop()
        yield stmt
        # Reversed, because the stack returns the last item first. This repeats `bodies` with tests
        # of exact types, because every pass walks all code.
        if type(stmt) is For:
            pending += stmt.body[::-1]
        elif type(stmt) is If:
            pending += stmt.orelse[::-1]
            pending += stmt.body[::-1]


def writes_computed_places(body: Body) -> bool:
    """Whether elements are written at places that the body computes."""
    scalars = {s.name for s in walk(body) if isinstance(s, Let)}
    places = [s.index for s in walk(body) if isinstance(s, Store) and not s.atomic]
    return not scalars.isdisjoint(symbols_within(*places))


def perfect_nest(body: Body, kind: Kind) -> tuple[list[For], Body]:
    """The loops of a kind around all of the body, outermost first, and the innermost body."""
    loops: list[For] = []
    while len(body) == 1 and isinstance(body[0], For) and body[0].kind is kind:
        loops.append(body[0])
        body = body[0].body
    return loops, body


# Tables by exact types, since every pass asks every statement, and a match tries one class after
# another.
_EXPRESSION: Mapping[type[Stmt], attrgetter[Expr | None]] = {
    **dict.fromkeys((Let, Store, Assign, Accumulate), attrgetter("value")),
    Var: attrgetter("init"),
    If: attrgetter("condition"),
    Fetch: attrgetter("guard"),
}
_BOUND_NAME: Mapping[type[Stmt], attrgetter[str]] = {
    **dict.fromkeys((Let, Var, Alloc), attrgetter("name")),
    For: attrgetter("var"),
}


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of the statement itself, not of its bodies."""
    expression_of = _EXPRESSION.get(type(stmt))
    expr = None if expression_of is None else expression_of(stmt)
    return () if expr is None else (expr,)


def stmt_sizes(stmt: Stmt) -> tuple[Size, ...]:
    """The indices or the extent of the statement itself."""
    if type(stmt) is Store:
        return (stmt.index,)
    if type(stmt) is For:
        return (stmt.extent,)
    if type(stmt) is Fetch:
        return stmt.target_index, stmt.source_index
    return (stmt.a.index, stmt.b.index) if type(stmt) is MatrixProduct else ()


def walk_expr(expr: Expr) -> Iterator[Expr]:
    """The expression and everything inside it."""
    pending = [expr]
    while pending:
        expr = pending.pop()
        yield expr
        if type(expr) is Op:  # as in `operands`
            pending += expr.args
        elif type(expr) is Cast:
            pending.append(expr.arg)
        elif type(expr) is Load and expr.guard is not None:
            pending.append(expr.guard)


def loads(exprs: Iterable[Expr]) -> Iterator[Load]:
    """The loads within some expressions, in order."""
    return (part for expr in exprs for part in walk_expr(expr) if isinstance(part, Load))


def expr_sizes(expr: Expr) -> tuple[Size, ...]:
    """The index expressions of this node alone."""
    if type(expr) is Load:
        return expr.indices
    return (expr.dim,) if type(expr) is Index else ()


def size_names(x: Size) -> frozenset[str]:
    """The names of the symbols of an index expression."""
    return dims.symbol_names(x) if isinstance(x, Dim) else frozenset()


def mentions(x: Size, names: Set[str]) -> bool:
    """Whether a symbol of an index expression is among names."""
    return isinstance(x, Dim) and not names.isdisjoint(dims.symbol_names(x))


def names_in(expr: Expr) -> frozenset[str]:
    """The locals, loop variables and sizes that an expression reads."""
    names: set[str] = set()
    for part in walk_expr(expr):
        if type(part) is Local:
            names.add(part.name)
        else:
            for size in expr_sizes(part):
                names |= size_names(size)
    return frozenset(names)


def loads_in(expr: Expr) -> frozenset[str]:
    """The buffers that an expression reads."""
    return frozenset(load.buffer for load in loads((expr,)))


def names_used(body: Iterable[Stmt]) -> frozenset[str]:
    """Every local, loop variable and size that the statements read."""
    names: set[str] = set()
    for stmt in walk(body):
        for expr in expressions(stmt):
            names |= names_in(expr)
        for size in stmt_sizes(stmt):
            names |= size_names(size)
        # A product reads the accumulators that it adds to, all of them in one statement.
        if isinstance(stmt, MatrixProduct):
            names.update(stmt.names)
    return frozenset(names)


def names_assigned(body: Iterable[Stmt]) -> frozenset[str]:
    """The Vars that the statements change."""
    return frozenset(name for s in walk(body) for name in vars_changed(s))


def vars_changed(stmt: Stmt) -> tuple[str, ...]:
    """The Vars that the statement itself changes."""
    if type(stmt) is Assign or type(stmt) is Accumulate:
        return (stmt.name,)
    return stmt.names if type(stmt) is MatrixProduct else ()


def bound_name(stmt: Stmt) -> str | None:
    """The name that the statement itself binds."""
    name_of = _BOUND_NAME.get(type(stmt))
    return None if name_of is None else name_of(stmt)


def names_bound(body: Iterable[Stmt]) -> frozenset[str]:
    """The locals, loop variables and allocations that the statements introduce."""
    return frozenset(name for name in map(bound_name, walk(body)) if name is not None)


def buffers_read(body: Iterable[Stmt]) -> frozenset[str]:
    """The buffers and allocations that the statements load from; read-modify-write included."""
    buffers: set[str] = set()
    for stmt in walk(body):
        for expr in expressions(stmt):
            buffers |= loads_in(expr)
        # An update reads the element it writes, although it contains no Load.
        if isinstance(stmt, Store) and stmt.combine is not None:
            buffers.add(stmt.buffer)
        if isinstance(stmt, Fetch):
            buffers.add(stmt.source)
        if isinstance(stmt, MatrixProduct):
            buffers.update((stmt.a.buffer, stmt.b.buffer))
    return frozenset(buffers)


def buffers_written(body: Iterable[Stmt]) -> frozenset[str]:
    """The buffers and allocations that the statements store to."""
    return frozenset(name for s in walk(body) if (name := buffer_written(s)) is not None)


def buffer_written(stmt: Stmt) -> str | None:
    """The buffer or allocation that the statement itself writes."""
    if type(stmt) is Store:
        return stmt.buffer
    return stmt.target if type(stmt) is Fetch else None


def all_names(code: KernelCode) -> set[str]:
    """Every name that the code binds."""
    return {p.name for p in code.params} | set(code.sizes) | names_bound(code.body)


def sizes_in(body: Iterable[Stmt]) -> Iterator[Size]:
    """Every index expression and extent of the statements."""
    for stmt in walk(body):
        yield from stmt_sizes(stmt)
        for expr in expressions(stmt):
            for part in walk_expr(expr):
                yield from expr_sizes(part)


def symbols_used(code: KernelCode) -> dict[str, Dim]:
    """The symbols of the code by name, with their bounds; `check` allows one per name."""
    symbols: dict[str, Dim] = {}
    for size in (*(p.size for p in code.params), *sizes_in(code.body)):
        if isinstance(size, Dim):
            symbols.update(symbols_within(size))
    return symbols


def updated(stmt: Accumulate | Store) -> Expr:
    """The value that the statement stores, combined with the old one if it has a `combine`.

    A product is fused into the sum if the statement allows it (`contract`).
    """
    value, combine = stmt.value, stmt.combine
    if combine is None:
        return value
    if isinstance(stmt, Accumulate):
        old: Expr = Local(stmt.name, value.dtype)
    else:
        old = Load(stmt.buffer, (stmt.index,), value.dtype)
    # Fusing saves a rounding, and integers do not round.
    fuses = stmt.contract and combine == "add" and value.dtype in dtypes.FLOATING
    if fuses and isinstance(value, Op) and value.name == "mul":
        return Op("fma", (*value.args, old), value.dtype)
    return Op(combine, (old, value), value.dtype)


def loop_symbol(loop: For) -> Dim:
    """The symbol that stands for the loop variable inside the loop."""
    return dims.symbol(loop.var, 0, loop.extent - 1)


# --- rebuilding -------------------------------------------------------------------------------


def with_operands(expr: Expr, args: tuple[Expr, ...]) -> Expr:
    """The node with other operands, in the order of `operands`."""
    # Identity and not equality: `==` would compare whole trees at every level.
    if all(map(is_, args, operands(expr))):
        return expr
    if type(expr) is Op:
        return Op(expr.name, args, expr.dtype)
    if type(expr) is Cast:
        return Cast(args[0], expr.dtype)
    return Load(expr.buffer, expr.indices, expr.dtype, args[0]) if type(expr) is Load and args else expr


def map_expr(function: Callable[[Expr], Expr], expr: Expr) -> Expr:
    """The expression rebuilt bottom-up, `function` applied to every node once."""
    # By exact types, as in `operands`: most passes ask every node and change few.
    if type(expr) is Op:
        args = tuple([map_expr(function, a) for a in expr.args])
        if not all(map(is_, args, expr.args)):
            expr = Op(expr.name, args, expr.dtype)
    elif type(expr) is Cast or (type(expr) is Load and expr.guard is not None):
        expr = with_operands(expr, tuple([map_expr(function, a) for a in operands(expr)]))
    return function(expr)


def with_sizes(function: Callable[[Size], Size], expr: Expr) -> Expr:
    """This node with its index expressions changed."""
    if type(expr) is Load:
        sizes = tuple(map(function, expr.indices))
        return expr if is_same(sizes, expr.indices) else Load(expr.buffer, sizes, expr.dtype, expr.guard)
    if type(expr) is Index:
        dim = function(expr.dim)
        return expr if dim is expr.dim else Index(dim, expr.dtype)
    return expr


def is_same(after: tuple[object, ...], before: tuple[object, ...]) -> bool:
    """Whether the two hold the same objects."""
    return len(after) == len(before) and all(map(is_, after, before))


def _with(stmt: Stmt, **fields: object) -> Stmt:
    """The statement with these fields; itself if it has them already."""
    for name, value in fields.items():
        if getattr(stmt, name) is not value:
            return replace(stmt, **fields)
    return stmt


def map_parts(stmt: Stmt, on_expr: Callable[[Expr], Expr], on_size: Callable[[Size], Size]) -> Stmt:
    """The statement with its own expressions and sizes changed; bodies stay."""
    match stmt:
        case Let(value=value) | Assign(value=value) | Accumulate(value=value):
            return _with(stmt, value=on_expr(value))
        case Var(init=init):
            return _with(stmt, init=on_expr(init))
        case Store(index=index, value=value):
            return _with(stmt, index=on_size(index), value=on_expr(value))
        case If(condition=condition):
            return _with(stmt, condition=on_expr(condition))
        case For(extent=extent):
            return _with(stmt, extent=on_size(extent))
        case Fetch(target_index=to, source_index=at, guard=guard):
            guard = None if guard is None else on_expr(guard)
            return _with(stmt, target_index=on_size(to), source_index=on_size(at), guard=guard)
        case MatrixProduct(a=a, b=b):
            return _with(stmt, a=_map_factor(a, on_size), b=_map_factor(b, on_size))
        case Alloc() | Barrier():
            return stmt


def _map_factor(factor: Factor, on_size: Callable[[Size], Size]) -> Factor:
    index = on_size(factor.index)
    return factor if index is factor.index else replace(factor, index=index)


def map_bodies(stmt: Stmt, function: Callable[[Body], Body]) -> Stmt:
    """The statement with its bodies changed."""
    inner = bodies(stmt)
    return with_bodies(stmt, *map(function, inner)) if inner else stmt


def with_bodies(stmt: Stmt, *new_bodies: Body) -> Stmt:
    """The loop or branch with other bodies, in the order of `bodies`."""
    if all(map(is_same, new_bodies, bodies(stmt))):
        return stmt
    return replace(stmt, **dict(zip(("body", "orelse"), new_bodies)))


def map_stmts(function: Callable[[Stmt], Iterable[Stmt]], body: Body) -> Body:
    """The body rebuilt bottom-up: those that `function` returns replace each statement."""

    def inside(inner: Body) -> Body:
        return tuple(new for stmt in inner for new in function(map_bodies(stmt, inside)))

    return inside(body)


def map_exprs(function: Callable[[Expr], Expr], body: Body) -> Body:
    """The body with every expression changed bottom-up; sizes stay."""

    def stmt(stmt: Stmt) -> tuple[Stmt]:
        return (map_parts(stmt, lambda e: map_expr(function, e), lambda size: size),)

    return map_stmts(stmt, body)


def replace_symbols(body: Body, sizes: Mapping[str, Size]) -> Body:
    """The body with index symbols replaced by index expressions, in bounds too."""

    return rename(body, MappingProxyType({}), sizes)


def rename_size(x: Size, names: Mapping[str, str]) -> Size:
    """The index expression with symbols renamed, in bounds too."""
    if not isinstance(x, Dim):
        return x
    new: dict[str, Size] = {}
    # Symbols inside bounds count too: the bounds of an inner loop may name an outer one.
    within = symbols_within(x)
    for name in within.keys() & names.keys():
        (old,) = dims.symbols(within[name])
        high = None if old.high is None else rename_size(old.high, names)
        new[name] = dims.symbol(names[name], rename_size(old.low, names), high)
    return dims.substitute(x, new) if new else x


def rename_parts(stmt: Stmt, names: Mapping[str, str], on_size: Callable[[Size], Size]) -> Stmt:
    """The statement with the names it binds, reads and writes renamed; bodies stay.

    on_size: what becomes of an index expression or an extent
    """

    def new(name: str) -> str:
        return names.get(name, name)

    def on_node(expr: Expr) -> Expr:
        if type(expr) is Local:
            return replace(expr, name=names[expr.name]) if expr.name in names else expr
        if type(expr) is Load and expr.buffer in names:
            expr = replace(expr, buffer=names[expr.buffer])
        return with_sizes(on_size, expr)

    stmt = map_parts(stmt, lambda e: map_expr(on_node, e), on_size)
    if not names:
        return stmt
    match stmt:
        case Let() | Var() | Assign() | Accumulate() | Alloc():
            return _with(stmt, name=new(stmt.name))
        case Store():
            return _with(stmt, buffer=new(stmt.buffer))
        case For():
            return _with(stmt, var=new(stmt.var))
        case Fetch():
            return _with(stmt, target=new(stmt.target), source=new(stmt.source))
        case MatrixProduct(a=a, b=b, accumulators=rows):
            a, b = (replace(f, buffer=new(f.buffer)) for f in (a, b))
            return replace(stmt, a=a, b=b, accumulators=tuple(tuple(map(new, row)) for row in rows))
        case If() | Barrier():
            return stmt


def rename(body: Body, names: Mapping[str, str], sizes: Mapping[str, Size] = MappingProxyType({})) -> Body:
    """The body with locals, loop variables, buffers and allocations renamed.

    sizes: index expressions for index symbols, by their new names, in bounds too
    """

    if not names and not sizes:
        return body

    # A body mentions the same index expressions again and again.
    @cache
    def on_size(x: Size) -> Size:
        x = rename_size(x, names)
        return dims.substitute(x, sizes) if sizes and isinstance(x, Dim) else x

    return map_stmts(lambda stmt: (rename_parts(stmt, names, on_size),), body)


def fresh(base: str, names: Collection[str]) -> str:
    """`base`, or `base_2`, `base_3`, ... whichever is free."""
    name, number = base, 1
    while name in names:
        number += 1
        name = f"{base}_{number}"
    return name


def reserve(base: str, names: set[str]) -> str:
    """A fresh name, which is added to `names`."""
    name = fresh(base, names)
    names.add(name)
    return name


def unique_names(code: KernelCode) -> KernelCode:
    """The code with every name bound once: passes that move statements need this."""
    bound = [name for name in map(bound_name, walk(code.body)) if name is not None]
    used_names = {p.name for p in code.params} | set(code.sizes)
    if len(set(bound)) == len(bound) and not used_names & set(bound):
        return code
    # Later names are avoided too, or a renamed one would clash with them.
    later = frozenset(bound)

    def visit(body: Body, names: dict[str, str]) -> Body:
        statements: list[Stmt] = []
        for stmt in body:
            scope, name = names, bound_name(stmt)
            if name is not None:
                new = fresh(name, used_names | later) if name in used_names else name
                used_names.add(new)
                scope = {**names, name: new} if new != name else names
            new_stmt = rename_parts(stmt, scope, lambda x, scope=scope: rename_size(x, scope)) if scope else stmt
            inner = scope
            statements.append(map_bodies(new_stmt, lambda b, inner=inner: visit(b, inner)))
            # A loop variable's scope ends with its loop; other names last to the end of the body.
            names = names if isinstance(stmt, For) else scope
        return tuple(statements)

    return replace(code, body=visit(code.body, {}))
