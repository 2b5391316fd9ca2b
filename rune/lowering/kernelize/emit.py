"""Emit the scalar code of one kernel: values on demand, each computed once per point.

A request is a variable, an index tuple and a guard. What it needs is requested first, with an
explicit stack, so that depth costs nothing. Every answer is remembered under the whole request.

An answer belongs to the domain (level 0) or to one inner point of the current statement (level
1); it is bound by a Let where its level is lower than its user's, where several equations use it,
or where the expression would grow too deep. So what does not depend on the inner axes is computed
outside of them, without a pass that moves it there.

A guard is the condition under which a value is wanted; loads below it read memory only there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

import numpy as np

from rune import dtypes
from rune.core.lower import Bitcast, Bounds, Contraction, Convert, Element, Piece, Position, Scalar, View
from rune.core.program import Atom, Equation, Literal, Var
from rune.core.types import ArrayType
from rune.dims import Dim, Size, symbols
from rune.errors import MissingRule
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op, of_size
from rune.lowering.kernel.nodes import Let
from rune.lowering.kernelize.roots import dot_operands, reduced_sizes
from rune.lowering.kernelize.views import Indices, Resolved, comparisons, rename, resolve
from rune.lowering.kernels import Axis, Buffer, Reduce, Statement
from rune.ops.family import wide
from rune.records import dataclass

MAX_DEPTH = 5  # of an expression, before it is bound
Key = tuple[Var, Indices, Expr | None]


@dataclass(frozen=True, slots=True)
class Held:
    """A scalar expression, the level it belongs to, and how deep it is."""

    expr: Expr
    level: int
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Outer:
    """An inner point, while a scope within it is written."""

    inner: set[str]
    lets: list[Let | Reduce]
    memo: dict
    locals: dict[Expr, str]
    inner_locals: set[str]


@dataclass(slots=True)
class Emitter:
    """The kernel being written.

    `held`: members of the group that are scalars of the point.  `rows`: members in scratch, with
    the axes that are not the domain's.  Other stored values and inputs become input buffers.
    """

    definitions: Mapping[Var, Equation]
    stored: frozenset[Var]
    uses: Mapping[Var, int]
    body: list[Statement] = field(default_factory=list)
    inputs: dict[Var, Buffer] = field(default_factory=dict)
    outputs: dict[Var, Buffer] = field(default_factory=dict)
    held: dict[Var, Expr] = field(default_factory=dict)
    rows: dict[Var, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    inner: set[str] = field(default_factory=set)  # symbols of the current statement's own axes
    lets: list[Let | Reduce] = field(default_factory=list)
    levels: dict[str, int] = field(default_factory=dict)  # of integers read from memory
    memo: tuple[dict, dict] = field(default_factory=lambda: ({}, {}))
    locals: tuple[dict[Expr, str], dict[Expr, str]] = field(default_factory=lambda: ({}, {}))
    inner_locals: set[str] = field(default_factory=set)
    reserved: frozenset[str] = frozenset()  # names of symbolic sizes
    resolved: dict[tuple[Var, Indices], Resolved] = field(default_factory=dict)  # views, by what is shown
    names: int = 0

    # --- levels and names --------------------------------------------------------------------

    def fresh(self, prefix: str) -> str:
        """A new local name."""
        self.names += 1
        name = f"{prefix}{self.names}"
        return name if name not in self.reserved else self.fresh(prefix)

    def unreserved(self, name: str) -> str:
        """The name of an axis, which no size has."""
        return name if name not in self.reserved else self.unreserved(name + "_")

    def level(self, sizes: Iterable[Size]) -> int:
        """The level that index expressions belong to."""
        for size in sizes:
            if isinstance(size, Dim):
                for s in symbols(size):
                    if s.name in self.inner or self.levels.get(s.name, 0):
                        return 1
        return 0

    def bind(self, value: Held, prefix: str = "t") -> Held:
        """The value as a local; what is trivial stays, and equal expressions share one."""
        if isinstance(value.expr, Const | Local):
            return value
        name = self.locals[value.level].get(value.expr)
        if name is None:
            name = self.locals[value.level][value.expr] = self.fresh(prefix)
            self.let(name, value)
        return Held(Local(name, value.expr.dtype), value.level)

    def let(self, name: str, value: Held) -> None:
        """Append a Let at the level of its value."""
        if value.level:
            self.lets.append(Let(name, value.expr))
            self.inner_locals.add(name)
        else:
            self.body.append(Let(name, value.expr))

    def begin(self, axes: Iterable[str]) -> None:
        """Start a statement over inner axes."""
        self.inner = set(axes)
        self.lets = []

    def end(self) -> tuple[Let, ...]:
        """The lets of the statement; its values are forgotten."""
        lets, self.lets, self.inner = self.plain(self.lets), [], set()
        self.memo[1].clear()
        self.locals[1].clear()
        self.inner_locals.clear()
        # Integers read within the statement are out of scope after it.
        self.levels = {name: level for name, level in self.levels.items() if not level}
        return lets

    def plain(self, lets: list[Let | Reduce]) -> tuple[Let, ...]:
        """The lets of a scope without scores."""
        assert not any(isinstance(let, Reduce) for let in lets), "a score outside of a stream"
        return tuple(let for let in lets if isinstance(let, Let))

    def nested(self, axes: Iterable[Axis]) -> Outer:
        """Start a scope within an inner point, over further axes; what is outside of it."""
        outer = Outer(self.inner, self.lets, dict(self.memo[1]), dict(self.locals[1]), set(self.inner_locals))
        self.inner, self.lets = self.inner | {axis.name for axis in axes}, []
        return outer

    def leave(self, outer: Outer) -> tuple[Let, ...]:
        """The lets of a scope within an inner point; its values are forgotten."""
        lets, self.inner, self.lets = self.plain(self.lets), outer.inner, outer.lets
        for table, before in ((self.memo[1], outer.memo), (self.locals[1], outer.locals)):
            table.clear()
            table.update(before)
        self.inner_locals = outer.inner_locals
        return lets

    # --- requests ----------------------------------------------------------------------------

    def value(self, atom: Atom, indices: Indices, guard: Expr | None = None) -> Held:
        """The value of an atom at `indices`."""
        if isinstance(atom, Literal):
            return self.literal(atom)
        return self.answer((atom, indices if atom.type.shape else (), guard))

    def computed(self, var: Var, indices: Indices) -> Held:
        """The value of a stored variable, computed rather than loaded."""
        key = (var, indices, None)
        equation = self.definitions[var]
        while missing := [n for n in self.needs(equation, key) if self.find(n) is None]:
            for need in missing:
                self.answer(need)
        return self.compute(equation, key)

    def answer(self, key: Key) -> Held:
        """The value for a request; whatever it needs is computed first."""
        value = self.find(key)
        pending = [] if value is not None else [key]
        while pending:
            key = pending[-1]
            if self.find(key) is not None:
                pending.pop()
                continue
            missing = self.missing(key)
            if missing:
                pending += missing
                continue
            self.remember(key, self.make(key))
            pending.pop()
        return value or self.memo[0].get(key) or self.memo[1][key]

    def find(self, key: Key) -> Held | None:
        """A remembered answer."""
        return self.memo[0].get(key) or self.memo[1].get(key)

    def remember(self, key: Key, value: Held) -> None:
        """Keep an answer; one that several equations use is bound."""
        if self.uses.get(key[0], 0) > 1 and isinstance(value.expr, Op | Cast):
            value = self.bind(value)
        self.memo[value.level][key] = value

    def missing(self, key: Key) -> list[Key]:
        """What must be answered before `key`."""
        equation = self.definitions.get(key[0])
        if equation is None or key[0] in self.stored:
            return []
        # Reversed, since the stack of `answer` takes its last entry first.
        return [need for need in self.needs(equation, key)[::-1] if self.find(need) is None]

    def make(self, key: Key) -> Held:
        """The answer, once everything that it needs has been found."""
        var, indices, guard = key
        if var in self.held:
            return Held(self.held[var], 0)
        if var in self.rows:
            name, axes = self.rows[var]
            return self.load(name, tuple(indices[a] for a in axes), var.type, guard)
        equation = self.definitions.get(var)
        if equation is None or var in self.stored:
            return self.load(self.buffer(var), indices, var.type, guard)
        return self.compute(equation, key)

    def buffer(self, var: Var) -> str:
        """The name of the buffer that holds a stored value or an input."""
        if var in self.outputs:
            return self.outputs[var].name
        if var not in self.inputs:
            self.inputs[var] = Buffer(f"x{len(self.inputs)}", var.type.strong())
        return self.inputs[var].name

    def load(self, name: str, indices: Indices, type: ArrayType, guard: Expr | None) -> Held:
        """One element of a buffer or scratch row."""
        level = max(self.level(indices), self.expr_level(guard))
        return Held(Load(name, indices, type.dtype, guard), level)

    def literal(self, atom: Literal) -> Held:
        """A constant."""
        return Held(Const(atom.value.tobytes(), atom.type.dtype), 0)

    # --- equations ---------------------------------------------------------------------------

    def needs(self, equation: Equation, key: Key) -> list[Key]:
        """The requests that one element of an equation makes."""
        _, indices, guard = key
        if isinstance(equation.primitive.lower, Contraction):
            return []  # a score asks for its operands itself, in a scope of its own
        if not isinstance(equation.primitive.lower, View):
            return [(a, indices if a.type.shape else (), guard) for a in equation.operands if isinstance(a, Var)]
        resolved = self.shown(equation, indices)
        # Integers first: the indices of the pieces are written with their names.
        elements = [need for piece in resolved.pieces for need in self.element_needs(equation, piece, guard)]
        if any(self.find(need) is None for need in elements):
            return elements
        return [(atom, at, where) for atom, at, where in self.parts(equation, resolved, guard) if isinstance(atom, Var)]

    def shown(self, equation: Equation, indices: Indices) -> Resolved:
        """What a view shows; remembered, as it is needed before and after its operands."""
        key = equation.results[0], indices
        if key not in self.resolved:
            self.resolved[key] = resolve(equation, indices)
        return self.resolved[key]

    def element_needs(self, equation: Equation, piece: Piece, guard: Expr | None) -> list[Key]:
        """The integers that a piece reads from operands."""
        return [
            (atom, e.indices, guard) for e in piece.elements if isinstance(atom := equation.operands[e.operand], Var)
        ]

    def compute(self, equation: Equation, key: Key) -> Held:
        """One element of an equation whose needs are answered."""
        var, indices, guard = key
        dtype = var.type.dtype
        match equation.primitive.lower:
            case View():
                return self.view(equation, self.shown(equation, indices), guard)
            case Contraction():
                return self.score(equation, indices, guard)
            case Position(rule=rule):
                position = rule(indices, **equation.params)
                return Held(Cast(Index(position), dtype), self.level((position,)), 1)
        args = [self.argument(a, indices, guard) for a in equation.operands]
        match equation.primitive.lower:
            case Scalar(op=op):
                return self.operation(op, args, dtype)
            case Convert():
                return self.cast(args[0], dtype)
            case Bitcast():
                return self.operation("bitcast", args, dtype)
        raise MissingRule(f"kernelize: cannot lower {equation.primitive.name} (no rule for it)", frame=equation.frame)

    def score(self, equation: Equation, indices: Indices, guard: Expr | None) -> Held:
        """A dot at one inner point."""
        dtype = wide(equation.results[0].type.dtype)
        axes = tuple(Axis(self.unreserved(f"k{n}"), size) for n, size in enumerate(reduced_sizes(equation)))
        requests = dot_operands(equation, indices, tuple(axis.symbol for axis in axes))
        outer = self.nested(axes)
        factors = [self.cast(self.value(atom, at, guard), dtype) for atom, at in requests]
        product = self.operation("mul", factors, dtype)
        name, lets = self.fresh("dot"), self.leave(outer)
        self.lets.append(Reduce(name, "add", axes, lets, product.expr, contract=True))
        self.inner_locals.add(name)
        return self.cast(Held(Local(name, dtype), 1), equation.results[0].type.dtype)

    def argument(self, atom: Atom, indices: Indices, guard: Expr | None) -> Held:
        """An operand that has been answered."""
        if isinstance(atom, Literal):
            return self.literal(atom)
        value = self.find((atom, indices if atom.type.shape else (), guard))
        assert value is not None
        return value

    def operation(self, name: str, args: list[Held], dtype: np.dtype) -> Held:
        """An operation; arguments of a lower level, or too deep, are bound first."""
        level = max(a.level for a in args)
        bound = [self.bind(a) if a.level < level or a.depth >= MAX_DEPTH else a for a in args]
        expr = Op(name, tuple(a.expr for a in bound), dtype)
        return Held(expr, level, 1 + max(a.depth for a in bound))

    def cast(self, value: Held, dtype: np.dtype) -> Held:
        """The value in another dtype."""
        if value.expr.dtype == dtype:
            return value
        if value.depth >= MAX_DEPTH:
            value = self.bind(value)
        return Held(Cast(value.expr, dtype), value.level, value.depth + 1)

    def signed(self, value: Held) -> Held:
        """An integer as i64; the largest of i64 for what only u64 holds."""
        dtype = value.expr.dtype
        if dtype == dtypes.u64:
            # Cast as it is, a large u64 would become a negative index.
            most = np.uint64(np.iinfo(np.int64).max).tobytes()
            value = self.operation("min", [value, Held(Const(most, dtype), 0)], dtype)
        return self.cast(value, dtypes.i64)

    # --- views -------------------------------------------------------------------------------

    def view(self, equation: Equation, resolved: Resolved, guard: Expr | None) -> Held:
        """The first piece whose conditions hold, else the fill."""
        parts = self.parts(equation, resolved, guard)
        values = [self.argument(atom, at, where) for atom, at, where in parts]
        conditions = [self.condition(p.where) for p in self.renamed(equation, resolved, guard)]
        result = values.pop()
        # From the last piece outwards, so that the first one whose conditions hold wins.
        for value, condition in zip(values[::-1], conditions[: len(values)][::-1]):
            choice = [condition, value, result]
            result = self.operation("select", choice, result.expr.dtype) if condition else value
        return result

    def parts(
        self, equation: Equation, resolved: Resolved, guard: Expr | None
    ) -> list[tuple[Atom, Indices, Expr | None]]:
        """What each piece, and the fill, show and under which guard."""
        parts: list[tuple[Atom, Indices, Expr | None]] = []
        for piece in self.renamed(equation, resolved, guard):
            condition = self.condition(piece.where)
            where = self.both(guard, condition)
            parts.append((equation.operands[piece.operand], piece.indices, where))
        if resolved.fill is not None:
            parts.append((equation.operands[resolved.fill], (), guard))
        return parts

    def renamed(self, equation: Equation, resolved: Resolved, guard: Expr | None) -> list[Piece]:
        """The pieces with their data-dependent integers named."""
        return self.renamed_pieces(equation, resolved.pieces, guard)

    def renamed_pieces(self, equation: Equation, pieces: tuple[Piece, ...], guard: Expr | None) -> list[Piece]:
        """The pieces with their data-dependent integers named."""
        return [
            rename(p, {e.name: self.integer(equation, e, guard) for e in p.elements}) if p.elements else p
            for p in pieces
        ]

    def integer(self, equation: Equation, element: Element, guard: Expr | None) -> str:
        """The name of an i64 local that holds an integer read from an operand, clamped."""
        atom = equation.operands[element.operand]
        key = (atom, element.indices, guard, element.clamp)
        local = self.memo[0].get(key) or self.memo[1].get(key)
        if local is None:
            value = self.signed(self.argument(atom, element.indices, guard))
            if element.clamp is not None:
                low, high = (Held(of_size(x), self.level((x,))) for x in element.clamp)
                value = self.operation("max", [value, low], dtypes.i64)
                value = self.operation("min", [value, high], dtypes.i64)
            name = self.fresh("g")
            self.let(name, value)
            local = Held(Local(name, dtypes.i64), value.level)
            self.levels[name] = value.level
            self.memo[value.level][key] = local
        assert isinstance(local.expr, Local)
        return local.expr.name

    def condition(self, where: tuple[Bounds, ...]) -> Held | None:
        """All of the conditions, as a local; None where all hold.

        That may show only here, where two integers turned out to be one local: (i + 3) - i < 5.
        """
        decisive = [c for bounds in where for c in comparisons(bounds)]
        if not decisive:
            return None
        conjunction = self.memo[0].get(where) or self.memo[1].get(where)
        if conjunction is None:
            conjunction = self.all(
                [self.operation(name, [self.index(a), self.index(b)], dtypes.bool_) for name, a, b in decisive]
            )
            self.memo[conjunction.level][where] = conjunction
        return conjunction

    def all(self, conditions: list[Held]) -> Held:
        """The conjunction, as a local."""
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.operation("and", [result, condition], dtypes.bool_)
        return self.bind(result, "c")

    def both(self, guard: Expr | None, condition: Held | None) -> Expr | None:
        """The guard and the condition together."""
        if guard is None or condition is None:
            return guard if condition is None else condition.expr
        key = (guard, condition.expr)
        conjunction = self.memo[0].get(key) or self.memo[1].get(key)
        if conjunction is None:
            conjunction = self.all([Held(guard, self.expr_level(guard)), condition])
            self.memo[conjunction.level][key] = conjunction
        return conjunction.expr

    def index(self, x: Size) -> Held:
        """An index expression as a value."""
        return Held(of_size(x), self.level((x,)))

    def expr_level(self, expr: Expr | None) -> int:
        """The level of a guard, which is a local."""
        return int(isinstance(expr, Local) and expr.name in self.inner_locals)
