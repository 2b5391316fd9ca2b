"""Emit the scalar code of one kernel: values on demand, each computed once per point.

A request is a variable, an index tuple and a guard. Its value is computed in steps, which stop
where they need other values; these are computed first, with an explicit stack, so deep programs do
not exhaust Python's. Every answer is remembered under the whole request.

An answer belongs to the domain (level 0) or to one inner point of the current statement (level 1).
It is bound by a Let where its level is lower than its user's, where several equations use it, or
where the expression would grow too deep. So what does not depend on the inner axes is computed
outside of them, and no pass has to move it there.

A guard is the condition under which a value is needed; loads below it read memory only there.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Mapping
from dataclasses import field

import numpy as np

from rune import dtypes
from rune.core.lower import Bitcast, Bounds, Contraction, Convert, Element, Piece, Position, Scalar, View
from rune.core.program import Atom, Definitions, Equation, Literal, Var
from rune.core.types import ArrayType
from rune.dims import Dim, Size, symbols
from rune.errors import MissingRule
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op, of_size
from rune.lowering.kernel.nodes import Let
from rune.lowering.kernelize.roots import dot_operands, reduced_sizes
from rune.lowering.kernelize.views import Indices, Views, comparisons, rename
from rune.lowering.kernels import Axis, Buffer, Reduce, Statement
from rune.ops.family import wide
from rune.records import dataclass

# Deeper expressions are bound by a Let, so that walks over them may recurse (kernel/expr.py).
MAX_DEPTH = 5
Key = tuple[Var, Indices, Expr | None]


def request(var: Var, indices: Indices, guard: Expr | None) -> Key:
    """The request for one element; for a scalar, or an element at a known place, without a guard.

    Such an element is there at every point, so that all guards share one answer.
    """
    shape = var.type.shape
    if not shape:
        return var, (), None
    if guard is None:
        return var, indices, None
    is_known = all(isinstance(i, int) and isinstance(n, int) and 0 <= i < n for i, n in zip(indices, shape))
    return var, indices, None if is_known else guard


@dataclass(frozen=True, slots=True)
class Term:
    """A scalar expression, the level it belongs to, and how deep it is."""

    expr: Expr
    level: int
    depth: int = 0


# To the value for a request, with stops at which the requests of a list must be answered first.
# The answers are sent in the order of the list; None if the list is empty.
Steps = Generator[list[Key], list[Term] | None, Term]


@dataclass(frozen=True, slots=True)
class Outer:
    """The state at an inner point, put aside while a scope within it is written."""

    inner: set[str]
    lets: list[Let | Reduce]
    memo: dict
    locals: dict[Expr, Term]
    inner_locals: set[str]


@dataclass(slots=True)
class Emitter:
    """The kernel being written.

    `scalars`: members of the group that are scalars of the point.  `rows`: members in scratch, with
    the axes that are not the domain's.  Other stored values and inputs become input buffers.
    `memo`, `locals`: the answers and the names of expressions, for level 0 and level 1.
    """

    definitions: Definitions
    stored_values: frozenset[Var]
    uses: Mapping[Var, int]
    views: Views
    body: list[Statement] = field(default_factory=list)
    inputs: dict[Var, Buffer] = field(default_factory=dict)
    outputs: dict[Var, Buffer] = field(default_factory=dict)
    scalars: dict[Var, Expr] = field(default_factory=dict)
    rows: dict[Var, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    inner: set[str] = field(default_factory=set)  # symbols of the current statement's own axes
    lets: list[Let | Reduce] = field(default_factory=list)
    levels: dict[str, int] = field(default_factory=dict)  # of integers read from memory
    memo: tuple[dict, dict] = field(default_factory=lambda: ({}, {}))
    locals: tuple[dict[Expr, Term], dict[Expr, Term]] = field(default_factory=lambda: ({}, {}))
    inner_locals: set[str] = field(default_factory=set)
    reserved_names: frozenset[str] = frozenset()  # names of symbolic sizes
    names: int = 0

    # --- levels and names --------------------------------------------------------------------

    def fresh(self, prefix: str) -> str:
        """A new local name."""
        self.names += 1
        name = f"{prefix}{self.names}"
        return name if name not in self.reserved_names else self.fresh(prefix)

    def unreserved(self, name: str) -> str:
        """A name for an axis that no symbolic size has."""
        return name if name not in self.reserved_names else self.unreserved(name + "_")

    def level(self, sizes: Iterable[Size]) -> int:
        """The level that index expressions belong to."""
        for size in sizes:
            if isinstance(size, Dim):
                for s in symbols(size):
                    if s.name in self.inner or self.levels.get(s.name, 0):
                        return 1
        return 0

    def bind(self, value: Term, prefix: str = "t") -> Term:
        """The value as a local. Constants and locals stay; equal expressions share one local."""
        if isinstance(value.expr, Const | Local):
            return value
        local = self.locals[value.level].get(value.expr)
        if local is None:
            name = self.fresh(prefix)
            local = self.locals[value.level][value.expr] = Term(Local(name, value.expr.dtype), value.level)
            self.let(name, value)
        return local

    def let(self, name: str, value: Term) -> None:
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
        """The lets of the statement, whose level-1 answers are forgotten."""
        lets, self.lets, self.inner = self.plain(self.lets), [], set()
        # They are named by locals of this statement, which the next one cannot see.
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
        """Start a scope within an inner point, over further axes. Returns the state outside it."""
        # Copies, since answers found within the scope are added to the same two tables.
        outer = Outer(self.inner, self.lets, dict(self.memo[1]), dict(self.locals[1]), set(self.inner_locals))
        self.inner, self.lets = self.inner | {axis.name for axis in axes}, []
        return outer

    def leave(self, outer: Outer) -> tuple[Let, ...]:
        """The lets of a scope within an inner point, whose answers are forgotten."""
        lets, self.inner, self.lets = self.plain(self.lets), outer.inner, outer.lets
        for table, before in ((self.memo[1], outer.memo), (self.locals[1], outer.locals)):
            table.clear()
            table.update(before)
        self.inner_locals = outer.inner_locals
        return lets

    # --- requests ----------------------------------------------------------------------------

    def value(self, atom: Atom, indices: Indices, guard: Expr | None = None) -> Term:
        """The value of an atom at `indices`."""
        if isinstance(atom, Literal):
            return self.literal(atom)
        return self.answer(request(atom, indices, guard))

    def computed(self, var: Var, indices: Indices) -> Term:
        """The value of a stored variable, computed rather than loaded."""
        key = (var, indices, None)
        return self.run(key, self.compute(self.definitions[var], key))

    def answer(self, key: Key) -> Term:
        """The value for a request."""
        return self.find(key) or self.remember(key, self.run(key, self.make(key)))

    def run(self, key: Key, value: Term | Steps) -> Term:
        """The answer to a request, once what its steps need is answered."""
        if isinstance(value, Term):
            return value
        pending: list[tuple[Key, Steps | None, list[Key]]] = [(key, value, [])]
        while True:
            key, steps, needs = pending.pop()
            if steps is None:
                if self.find(key) is not None:  # several equations may need one value
                    continue
                value = self.make(key)
                if isinstance(value, Term):
                    self.remember(key, value)
                    continue
                steps = value
            try:
                needs = steps.send([*map(self.answered, needs)] if needs else None)
            except StopIteration as end:
                if not pending:
                    return end.value
                self.remember(key, end.value)
                continue
            pending.append((key, steps, needs))
            # Reversed, since the stack takes its last entry first.
            pending += [(need, None, []) for need in reversed(needs)]

    def find(self, key: Hashable) -> Term | None:
        """A remembered answer, or what was bound under another key."""
        outer, inner = self.memo
        return outer.get(key) or (inner.get(key) if inner else None)

    def answered(self, key: Key) -> Term:
        """The answer to a request that was made before."""
        value = self.find(key)
        assert value is not None
        return value

    def remember(self, key: Key, value: Term) -> Term:
        """Remember an answer; one that several equations use is bound first."""
        # Written in place, such an expression would be computed again by every user.
        if self.uses.get(key[0], 0) > 1 and isinstance(value.expr, Op | Cast):
            value = self.bind(value)
        self.memo[value.level][key] = value
        return value

    def make(self, key: Key) -> Term | Steps:
        """The answer to a request, or the steps to it."""
        var, indices, guard = key
        # Scalars and rows first: inside the kernel they are nearer than the buffers they are
        # written to.
        if var in self.scalars:
            return Term(self.scalars[var], 0)
        if var in self.rows:
            name, axes = self.rows[var]
            return self.load(name, tuple(indices[a] for a in axes), var.type, guard)
        equation = self.definitions.get(var)
        if equation is None or var in self.stored_values:
            return self.load(self.buffer(var), indices, var.type, guard)
        return self.compute(equation, key)

    def buffer(self, var: Var) -> str:
        """The name of the buffer that holds a stored value or an input."""
        if var in self.outputs:
            return self.outputs[var].name
        if var not in self.inputs:
            self.inputs[var] = Buffer(f"x{len(self.inputs)}", var.type.strong())
        return self.inputs[var].name

    def load(self, name: str, indices: Indices, type: ArrayType, guard: Expr | None) -> Term:
        """One element of a buffer or scratch row."""
        # A load belongs to the inner point if its place or its condition does.
        level = max(self.level(indices), self.expr_level(guard))
        return Term(Load(name, indices, type.dtype, guard), level)

    def literal(self, atom: Literal) -> Term:
        """A constant."""
        return Term(Const(atom.value.tobytes(), atom.type.dtype), 0)

    # --- equations ---------------------------------------------------------------------------

    def element_needs(self, equation: Equation, piece: Piece, guard: Expr | None) -> list[Key]:
        """The integers that a piece reads from operands."""
        operands = ((equation.operands[e.operand], e.indices) for e in piece.elements)
        return [request(atom, indices, guard) for atom, indices in operands if isinstance(atom, Var)]

    def compute(self, equation: Equation, key: Key) -> Term | Steps:
        """One element of an equation, or the steps to it."""
        _, indices, guard = key
        if isinstance(equation.primitive.lower, View):
            return self.view(equation, indices, guard)
        if isinstance(equation.primitive.lower, Contraction):
            return self.score(equation, indices, guard)
        return self.elementwise(equation, key)

    def elementwise(self, equation: Equation, key: Key) -> Steps:
        """One element of an equation that reads its operands at the same place."""
        var, indices, guard = key
        dtype = var.type.dtype
        answers = yield [request(a, indices, guard) for a in equation.operands if isinstance(a, Var)]
        args = self.arguments(equation.operands, answers)
        match equation.primitive.lower:
            case Position(rule=rule):
                position = rule(indices, **equation.params)
                return Term(Cast(Index(position), dtype), self.level((position,)), 1)
            case Scalar(op=op):
                return self.operation(op, args, dtype)
            case Convert():
                return self.cast(args[0], dtype)
            case Bitcast():
                return self.operation("bitcast", args, dtype)
        raise MissingRule(f"kernelize: cannot lower {equation.primitive.name} (no rule for it)", frame=equation.frame)

    def score(self, equation: Equation, indices: Indices, guard: Expr | None) -> Term:
        """A dot at one inner point, which requests its operands itself, in a scope of its own."""
        # Loops within an inner point are for streams alone: `plain` refuses the Reduce elsewhere.
        dtype = wide(equation.results[0].type.dtype)
        axes = tuple(Axis(self.unreserved(f"k{n}"), size) for n, size in enumerate(reduced_sizes(equation)))
        requests = dot_operands(equation, indices, tuple(axis.symbol for axis in axes))
        outer = self.nested(axes)
        factors = [self.cast(self.value(atom, at, guard), dtype) for atom, at in requests]
        product = self.operation("mul", factors, dtype)
        name, lets = self.fresh("dot"), self.leave(outer)
        self.lets.append(Reduce(name, "add", axes, lets, product.expr, contract=True))
        self.inner_locals.add(name)
        return self.cast(Term(Local(name, dtype), 1), equation.results[0].type.dtype)

    def argument(self, atom: Atom, indices: Indices, guard: Expr | None) -> Term:
        """The answer for an operand that was requested before."""
        return self.literal(atom) if isinstance(atom, Literal) else self.answered(request(atom, indices, guard))

    def arguments(self, atoms: Iterable[Atom], answers: list[Term] | None) -> list[Term]:
        """The literals among the atoms, and the answers for the variables."""
        values = iter(answers or ())
        return [self.literal(a) if isinstance(a, Literal) else next(values) for a in atoms]

    def operation(self, name: str, args: list[Term], dtype: np.dtype) -> Term:
        """An operation; arguments of a lower level, or that are too deep, are bound first."""
        level = max(a.level for a in args)
        bound = [self.bind(a) if a.level < level or a.depth >= MAX_DEPTH else a for a in args]
        expr = Op(name, tuple(a.expr for a in bound), dtype)
        return Term(expr, level, 1 + max(a.depth for a in bound))

    def cast(self, value: Term, dtype: np.dtype) -> Term:
        """The value in another dtype."""
        if value.expr.dtype == dtype:
            return value
        if value.depth >= MAX_DEPTH:
            value = self.bind(value)
        return Term(Cast(value.expr, dtype), value.level, value.depth + 1)

    def signed(self, value: Term) -> Term:
        """An integer as i64; a u64 beyond its range becomes the largest i64."""
        dtype = value.expr.dtype
        if dtype == dtypes.u64:
            # Without the minimum, the cast would turn a large u64 into a negative index.
            most = np.uint64(np.iinfo(np.int64).max).tobytes()
            value = self.operation("min", [value, Term(Const(most, dtype), 0)], dtype)
        return self.cast(value, dtypes.i64)

    # --- views -------------------------------------------------------------------------------

    def view(self, equation: Equation, indices: Indices, guard: Expr | None) -> Steps:
        """The first piece whose conditions hold, else the fill."""
        resolution = self.views.at(equation, indices)
        # Integers first: the indices of the pieces are written with their names.
        yield [need for piece in resolution.pieces for need in self.element_needs(equation, piece, guard)]
        conditions, parts = [], []
        for piece in self.renamed_pieces(equation, resolution.pieces, guard):
            condition = self.condition(piece.where)
            conditions.append(condition)
            parts.append((equation.operands[piece.operand], piece.indices, self.both(guard, condition)))
        if resolution.fill is not None:
            parts.append((equation.operands[resolution.fill], (), guard))
        answers = yield [request(atom, at, where) for atom, at, where in parts if isinstance(atom, Var)]
        *values, result = self.arguments([atom for atom, _, _ in parts], answers)
        # From the last piece outwards, so that the first one whose conditions hold wins.
        for value, condition in zip(values[::-1], conditions[: len(values)][::-1]):
            choice = [condition, value, result]
            result = self.operation("select", choice, result.expr.dtype) if condition else value
        return result

    def renamed_pieces(self, equation: Equation, pieces: tuple[Piece, ...], guard: Expr | None) -> list[Piece]:
        """The pieces with their data-dependent integers named."""
        return [
            rename(p, {e.name: self.integer(equation, e, guard) for e in p.elements}) if p.elements else p
            for p in pieces
        ]

    def integer(self, equation: Equation, element: Element, guard: Expr | None) -> str:
        """The name of an i64 local that holds an integer read from an operand, clamped."""
        # A local, since index expressions can name a symbol but cannot contain a load.
        atom = equation.operands[element.operand]
        needed = request(atom, element.indices, guard) if isinstance(atom, Var) else (atom, (), None)
        key = (*needed, element.clamp)
        local = self.find(key)
        if local is None:
            value = self.signed(self.argument(atom, element.indices, guard))
            if element.clamp is not None:
                low, high = (Term(of_size(x), self.level((x,))) for x in element.clamp)
                value = self.operation("max", [value, low], dtypes.i64)
                value = self.operation("min", [value, high], dtypes.i64)
            name = self.fresh("g")
            self.let(name, value)
            local = Term(Local(name, dtypes.i64), value.level)
            self.levels[name] = value.level
            self.memo[value.level][key] = local
        assert isinstance(local.expr, Local)
        return local.expr.name

    def condition(self, where: tuple[Bounds, ...]) -> Term | None:
        """The conjunction of the conditions, as a local; None if all of them always hold."""
        # The views kept them as undecided, but that two integers are one local shows only here:
        # (i + 3) - i < 5.
        decisive = [c for bounds in where for c in comparisons(bounds)]
        if not decisive:
            return None
        conjunction = self.find(where)
        if conjunction is None:
            conjunction = self.all(
                [self.operation(name, [self.index(a), self.index(b)], dtypes.bool_) for name, a, b in decisive]
            )
            self.memo[conjunction.level][where] = conjunction
        return conjunction

    def all(self, conditions: list[Term]) -> Term:
        """The conjunction of conditions, as a local."""
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.operation("and", [result, condition], dtypes.bool_)
        return self.bind(result, "c")

    def both(self, guard: Expr | None, condition: Term | None) -> Expr | None:
        """The guard and the condition together."""
        if guard is None or condition is None:
            return guard if condition is None else condition.expr
        key = (guard, condition.expr)
        conjunction = self.find(key)
        if conjunction is None:
            conjunction = self.all([Term(guard, self.expr_level(guard)), condition])
            self.memo[conjunction.level][key] = conjunction
        return conjunction.expr

    def index(self, x: Size) -> Term:
        """An index expression as a value."""
        return Term(of_size(x), self.level((x,)))

    def expr_level(self, expr: Expr | None) -> int:
        """The level of a guard, which is a local."""
        return int(isinstance(expr, Local) and expr.name in self.inner_locals)
