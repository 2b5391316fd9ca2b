"""Taylor series: values along a curve as coefficients, each computed from earlier ones.

A series is c0 + c1 t + c2 t² + …. Operations need no rules for it: their records are enough.

    linear         each coefficient by the operation's derivative, which is the operation itself
    bilinear       v_n = sum of op(a_j, b_(n-j)): a product, a contraction, a convolution
    solving        a v = b: a_0 v_n = b_n - sum of a_j v_(n-j): a division, a solve
    any other      v' = f'(u) u' is its jvp rule, applied to series in place of numbers: coefficient
                   n of v is coefficient n - 1 of that, over n

The last looks circular where a rule mentions the result (exp: v' = v u') or another function of
the same operand (sin and cos), but is not: coefficients are computed on demand, lowest first, and
need only lower ones. So the textbook recurrences follow from the jvp rules.

Cost: order k costs O(k²) operations for each operation of the function; where each derivative is
      another function (gamma, digamma, …; real powers; implicit functions) O(k³).
Source: Griewank & Walther, Evaluating Derivatives, 2nd edition, chapter 13.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, overload

from rune import dtypes
from rune.core.evaluate import eval_program
from rune.core.higher import HigherOrder
from rune.core.interpreter import Interpreter, Tracer, current, is_differentiable, literal_like, type_of, use
from rune.core.memo import per_program
from rune.core.primitive import Collective, Primitive
from rune.core.program import Program
from rune.core.staging import stage
from rune.core.types import ArrayType
from rune.core.value_keys import Parameters
from rune.core.values import Params, Value
from rune.ops import add, mul
from rune.ops.collectives import varying
from rune.ops.family import zeros_like
from rune.transforms.derivatives.jvp import push
from rune.transforms.tracers import ValueTracer

Term = Callable[[int], "Value | None"]
# Results of an operation on rows of coefficients, as rows: a constant is a row of one.
Rows = list[list[Value]]
OfRows = Callable[[int, Rows], Rows]

_MANY = 1 << 10  # more operands than any operation has that is linear in all of them


def _no_more(n: int) -> None:
    """The term of a series that has ended."""
    return


class Series(ValueTracer):
    """c0 + c1 t + …, as far as it is known; `term(n)` finds a coefficient, None for zero."""

    __slots__ = ("coefficients", "term")

    def __init__(self, interpreter: Interpreter, coefficients: Sequence[Value | None], term: Term = _no_more):
        self.interpreter, self.frame = interpreter, None
        self.coefficients, self.term = [*coefficients], term

    @property
    def first(self) -> Value:
        """The value at 0, which is always there."""
        value = self.coefficients[0]
        assert value is not None
        return value

    @property
    def type(self) -> ArrayType:
        """The type of each coefficient."""
        return type_of(self.first)

    def coefficient(self, n: int) -> Value | None:
        """The coefficient of t^n."""
        while len(self.coefficients) <= n:
            self.coefficients.append(self.term(len(self.coefficients)))
        return self.coefficients[n]

    def known(self) -> Any:
        """The value at 0, if it is concrete."""
        first = self.first
        if isinstance(first, ValueTracer):
            return first.known()
        return None if isinstance(first, Tracer) else first

    def underlying(self) -> Value:
        """The value at 0."""
        return self.first


class Taylor(Interpreter):
    """Operations on series, up to an order."""

    __slots__ = ("order", "rules", "under_way")

    def __init__(self, parent: Interpreter, order: int):
        super().__init__(parent)
        self.order = order
        # How many rules are being applied. They may lead back to series that are not known yet, so
        # nothing is computed ahead in them.
        self.rules = 0
        # Operations of such rules by their operands: sin(x) asks for cos(x), which asks for sin(x).
        self.under_way: dict[object, tuple[object, Sequence[Value]]] = {}

    # --- series -----------------------------------------------------------------------------

    def at(self, value: Value, n: int) -> Value | None:
        """The coefficient of t^n of a value; a constant has only the first."""
        if isinstance(value, Series) and value.interpreter is self:
            return value.coefficient(n)
        return None if n else value

    def first(self, value: Value) -> Value:
        """The value at the beginning of the curve."""
        return value.first if isinstance(value, Series) and value.interpreter is self else value

    def owns(self, value: Value) -> TypeGuard[Series]:
        """Whether a value varies along the curve."""
        return isinstance(value, Series) and value.interpreter is self

    def join(self, first: Value, term: Term) -> Value:
        """A series; the constant itself if it is known to be one."""
        series = Series(self, [first], term)
        if self.rules:
            return series
        for n in range(1, self.order + 1):
            series.coefficient(n)
        series.term = _no_more  # frees the operands of the terms
        # A typed body tells which values are the same on all devices; terms vary as the value does.
        if self.is_typed:
            axes = type_of(first).varying
            series.coefficients = [None if c is None else varying(c, axes) for c in series.coefficients]
        return series if any(c is not None for c in series.coefficients[1:]) else first

    def slope(self, value: Value) -> Value | None:
        """The derivative of a value along the curve, a series; None for a constant."""
        if not self.owns(value) or not is_differentiable(value):
            return None
        first = value.coefficient(1)
        # The first coefficient of a slope must exist, even if it is zero and a later one is not.
        return Series(
            self,
            [zeros_like(value.first) if first is None else first],
            lambda n: scaled(value.coefficient(n + 1), n + 1),
        )

    # --- operations -------------------------------------------------------------------------

    def process(self, primitive: Primitive, args: Sequence[Value], params: Params) -> Any:
        """The primitive on series."""
        parent = self.parent
        assert parent is not None
        if not any(map(self.owns, args)):
            return parent.process(primitive, args, params)
        if isinstance(primitive, HigherOrder) and primitive.series is not None:
            with use(self):
                return primitive.series(self, args, params)
        key = primitive, tuple(map(id, args)), _hashed(params)
        if key in self.under_way:
            outs = self.under_way[key][1]
        else:
            outs = self.outcomes(primitive, args, params, key)
        if not self.rules:
            # Every term is known by now, and the entries would only keep operands alive.
            self.under_way.clear()
        return outs if primitive.multiple_results else outs[0]

    def outcomes(self, primitive: Primitive, args: Sequence[Value], params: Params, key: object) -> list[Value]:
        """The results, whose terms may not be known yet."""
        parent = self.parent
        assert parent is not None
        with use(parent):
            out = parent.process(primitive, [self.first(x) for x in args], params)
        outs = list(out) if primitive.multiple_results else [out]
        operation = _Operation(self, primitive, args, params, outs)
        results: list[Value] = [
            Series(self, [o], operation.term(i)) if is_differentiable(o) else o for i, o in enumerate(outs)
        ]
        operation.results = results
        # With the operands, which must live as long as their ids identify them.
        self.under_way[key] = args, results
        return results if self.rules else [self.finished(x) for x in results]

    def finished(self, value: Value) -> Value:
        """A series with all its terms; the constant if it has none."""
        return self.join(value.first, value.coefficient) if isinstance(value, Series) else value

    def replayed(self, args: Sequence[Value], run: OfRows) -> list[Value]:
        """The results of an operation that runs programs: `run(order, rows)` gives their rows."""
        parent = self.parent
        assert parent is not None

        def rows(order: int) -> Rows:
            with use(parent):
                return run(order, [self.row(x, order) for x in args])

        if not self.rules:
            return [Series(self, row) if len(row) > 1 else row[0] for row in rows(self.order)]
        # A rule asks for one term after another, and operands are known only as far as that term.
        rows_up_to = functools.cache(rows)

        def term(number: int) -> Term:
            return lambda n: rows_up_to(n)[number][n]

        firsts = [row[0] for row in rows_up_to(0)]
        return [Series(self, [x], term(i)) if is_differentiable(x) else x for i, x in enumerate(firsts)]

    def row(self, value: Value, order: int) -> list[Value]:
        """All coefficients up to an order; one of a constant."""
        if not order or not self.owns(value):
            return [self.first(value)]
        zero = functools.cache(lambda: zeros_like(value.first))
        row = (value.coefficient(n) for n in range(order + 1))
        return [zero() if c is None else c for c in row]


class _Operation:
    """An equation on series, and the source of the terms of its results."""

    __slots__ = ("args", "interpreter", "outs", "params", "primitive", "results", "slopes")

    def __init__(
        self, interpreter: Taylor, primitive: Primitive, args: Sequence[Value], params: Params, outs: Sequence[Value]
    ):
        self.interpreter, self.primitive, self.args, self.params = interpreter, primitive, args, params
        self.outs = outs
        self.results: Sequence[Value] = ()
        self.slopes: Sequence[Value | None] | None = None

    def term(self, number: int) -> Term:
        """The terms of one result."""
        primitive, interpreter = self.primitive, self.interpreter
        # The cheapest of the ways in the table above for the operands that vary.
        moving = frozenset(n for n, x in enumerate(self.args) if interpreter.owns(x) and is_differentiable(x))
        groups = _linear_groups(primitive)
        if any(moving <= g for g in groups):
            return self.within(self.linear)
        if primitive.solves:
            return self.within(self.solution)
        if len(groups) == 2 and all(len(g) == 1 for g in groups) and moving <= groups[0] | groups[1]:
            return self.within(self.product)
        return lambda n: self.by_rule(number, n)

    def within(self, term: Term) -> Term:
        """The term, computed outside the series."""
        parent = self.interpreter.parent
        assert parent is not None

        def computed(n: int) -> Value | None:
            with use(parent):
                return term(n)

        return computed

    def linear(self, n: int) -> Value | None:
        """The operation on the coefficients of t^n."""
        return self.pushed([self.interpreter.at(x, n) for x in self.args], self.outs[0])

    def product(self, n: int) -> Value | None:
        """Cauchy's product: the sum of a_j b_(n-j)."""
        a, b = self.args
        at = self.interpreter.at
        pairs = ((at(a, j), at(b, n - j)) for j in range(n + 1))
        return total([self.primitive(x, y, **self.params) for x, y in pairs if x is not None and y is not None])

    def solution(self, n: int) -> Value | None:
        """a v = b, solved for the last coefficient: a_0 v_n = b_n - a_1 v_(n-1) - ... - a_n v_0."""
        # The operation is linear in the right-hand side b; all other operands are parts of a.
        at, right = self.interpreter.at, frozenset(*self.primitive.linear_in)
        (result,) = self.results
        right_terms = [at(x, n) if i in right else None for i, x in enumerate(self.args)]
        terms = [self.pushed(right_terms, self.outs[0])]
        for j in range(1, n + 1):
            # The derivative by a in the direction a_j, where the result is v_(n-j), is minus the
            # solution for a_j v_(n-j): the sign is that of the rule.
            left_terms = [None if i in right else at(x, j) for i, x in enumerate(self.args)]
            terms.append(self.pushed(left_terms, at(result, n - j)))
        return total([t for t in terms if t is not None])

    def pushed(self, directions: Sequence[Value | None], out: Value | None) -> Value | None:
        """The derivative at the beginning of the curve, where the result is `out`; or zero."""
        if out is None or all(d is None for d in directions):
            return None
        return push(self.primitive, [self.interpreter.first(x) for x in self.args], directions, out, self.params)

    def by_rule(self, number: int, n: int) -> Value | None:
        """v_n from v', which the jvp rule gives."""
        interpreter = self.interpreter
        if self.slopes is None:
            interpreter.rules += 1
            try:
                with use(interpreter):
                    self.slopes = self.result_slopes()
            finally:
                interpreter.rules -= 1
        slope = self.slopes[number]
        parent = interpreter.parent
        assert parent is not None
        interpreter.rules += 1
        try:
            with use(parent):
                return None if slope is None else scaled(interpreter.at(slope, n - 1), 1 / n)
        finally:
            interpreter.rules -= 1

    def result_slopes(self) -> Sequence[Value | None]:
        """The derivatives of all results, by the jvp rule."""
        primitive, args = self.primitive, self.args
        slopes = [self.interpreter.slope(x) for x in args]
        if primitive.jvp_equation is not None:
            return primitive.jvp_equation(args, slopes, self.params)[1]
        return [push(primitive, args, slopes, self.results[0], self.params)]


def _linear_groups(primitive: Primitive) -> Sequence[frozenset[int]]:
    """The groups of operands in which it is jointly linear, as far as its record tells."""
    if primitive.transpose is None or primitive.jvp is None or primitive.jvp_equation is not None:
        return ()
    if primitive.linear_in:
        return [frozenset(group) for group in primitive.linear_in]
    # The record of a user's operation has a transpose, but does not tell for which operands.
    return [frozenset(range(_MANY))] if type(primitive) in (Primitive, Collective) else ()


def total(terms: Sequence[Value]) -> Value | None:
    """The sum; None for no terms."""
    result = None
    for term in terms:
        result = term if result is None else add(result, term)
    return result


@overload
def scaled(value: Value, factor: float) -> Value: ...
@overload
def scaled(value: Value | None, factor: float) -> Value | None: ...
def scaled(value: Value | None, factor: float) -> Value | None:
    """A multiple; None for zero."""
    return value if value is None or factor == 1 else mul(value, literal_like(factor, value))


def _hashed(params: Params) -> object:
    """A hashable key of parameters: their values, or their identities if a value has no hash."""
    items = Parameters(sorted(params.items()))
    try:
        hash(items)
    except TypeError:
        return tuple((name, id(value)) for name, value in items)
    return items


# --- programs that equations hold ---------------------------------------------------------------


@per_program
def series_program(program: Program, moving: tuple[bool, ...], order: int) -> Program:
    """Rows of coefficients of the inputs -> those of the outputs, one after another.

    A varying input has all coefficients up to the order, and so has every output that can have
    them.
    """

    def run(*flat: Value) -> list[Value]:
        interpreter = Taylor(current(), order)
        values = iter(flat)
        args = [_joined(interpreter, [next(values) for _ in range(order + 1 if m else 1)]) for m in moving]
        outs = interpreter.trace(lambda: eval_program(program, args))
        return [c for out in outs for c in full_row(interpreter, out, order)]

    counts = (order + 1 if m else 1 for m in moving)
    types = [v.type for v, count in zip(program.inputs, counts, strict=True) for _ in range(count)]
    return stage(run, types, f"series_{program.name}").with_captured()


def _joined(interpreter: Taylor, row: Sequence[Value]) -> Value:
    return Series(interpreter, row) if len(row) > 1 else row[0]


def full_row(interpreter: Taylor, value: Value, order: int) -> list[Value]:
    """All coefficients of a value that can have them, zeros too."""
    return widened(interpreter.row(value, order), order)


def widened(row: list[Value], order: int) -> list[Value]:
    """The row, with zeros if it is that of a constant which could vary."""
    if len(row) <= order and is_differentiable(row[0]):
        return [*row, *[zeros_like(row[0])] * order]
    return row


def moving_rows(rows: Rows) -> tuple[bool, ...]:
    """Which rows are of series."""
    return tuple(len(row) > 1 for row in rows)


def flat_rows(rows: Rows) -> list[Value]:
    """The coefficients of all rows."""
    return [c for row in rows for c in row]


def rows_of(flat: Sequence[Value], types: Sequence[ArrayType], order: int) -> Rows:
    """Rows of results of these types, from a program made by `series_program`."""
    values = iter(flat)
    return [[next(values) for _ in range(order + 1 if has_slope(t) else 1)] for t in types]


def has_slope(type: ArrayType) -> bool:
    """Whether values of a type can vary along curves."""
    return type.dtype in dtypes.INEXACT
