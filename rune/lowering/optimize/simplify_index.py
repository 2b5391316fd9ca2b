"""Simplify what the bounds of index symbols decide: comparisons, guards, branches, short loops.

Before   for j in 8 serial { y[j] = x[j + 2 if (index(j) + 2_i64) < 10_i64] }
After    for j in 8 serial { y[j] = x[j + 2] }

Integer arithmetic on indices becomes an index expression where it cannot overflow. A comparison
with the same outcome for all values becomes a constant, and guards and branches on constants
disappear. A loop of one iteration is replaced by its body, and a loop of no iterations is removed.
WORKGROUP loops stay.

Invariant: every value stays the same, bit for bit.
Cost:      linear in the code, with the memoised comparisons of rune.dims.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

import numpy as np

from rune import dims, dtypes
from rune.dims import Size
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op, const
from rune.lowering.kernel.nodes import For, If, KernelCode, Kind, Let, Stmt
from rune.lowering.kernel.rewrite import (
    Body,
    map_bodies,
    map_expr,
    map_parts,
    replace_symbols,
    unique_names,
    with_sizes,
)
from rune.lowering.kernel.scalar import bit_width
from rune.lowering.passes import Pass
from rune.records import dataclass, replace

_TRUE, _FALSE = const(True, dtypes.bool_), const(False, dtypes.bool_)
# None where the bounds leave it open.
_COMPARE: dict[str, Callable[[Size, Size], bool | None]] = {
    "lt": dims.less,
    "le": dims.at_most,
    "gt": lambda a, b: dims.less(b, a),
    "ge": lambda a, b: dims.at_most(b, a),
    "eq": dims.equal,
    "ne": lambda a, b: _negated(dims.equal(a, b)),
}
_ARITHMETIC: dict[str, Callable[[Size, Size], Size]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


def _negated(known: bool | None) -> bool | None:
    return None if known is None else not known


@dataclass(slots=True)
class _Simplifier:
    """`known`: the values of constant Lets; `sizes`: the integers among them, for indices."""

    known: dict[str, Const] = field(default_factory=dict)
    sizes: dict[str, Size] = field(default_factory=dict)

    def size(self, x: Size) -> Size:
        return dims.substitute(x, self.sizes) if self.sizes and not isinstance(x, int) else x

    def expr(self, expr: Expr) -> Expr:
        return map_expr(self.node, expr)

    def node(self, expr: Expr) -> Expr:
        # By exact types, as in `operands`: most nodes are names, loads and operations on floats.
        if type(expr) is Local:
            return self.known.get(expr.name, expr)
        if type(expr) is Load:
            return self.load(expr)
        match expr:
            case Index():
                return with_sizes(self.size, expr)
            case Op(dtype=dtype) if dtype == dtypes.bool_:
                return _condition(expr)
            case Op(name="select", args=(Const() as condition, yes, no)):
                return yes if condition.value else no
            case Op(name=name, args=(a, b), dtype=dtype) if name in _ARITHMETIC:
                return _arithmetic(expr, as_size(a), as_size(b), dtype)
            case _:
                return expr

    def load(self, load: Load) -> Expr:
        guard = load.guard
        if isinstance(guard, Const):
            if not guard.value:
                # A load whose guard fails is 0, and all dtypes have 0 as zero bytes.
                return Const(bytes(load.dtype.itemsize), load.dtype)
            load = replace(load, guard=None)
        return with_sizes(self.size, load)

    def body(self, body: Body) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt))

    def stmt(self, stmt: Stmt) -> Body:
        stmt = map_parts(stmt, self.expr, self.size)
        match stmt:
            case Let(name=name, value=Const() as value):
                self.known[name] = value
                # Indices can mention only integers.
                if value.dtype in dtypes.INTEGER:
                    self.sizes[name] = int(value.value)
                return (stmt,)
            case If(condition=Const() as condition, body=body, orelse=orelse):
                return self.body(body if condition.value else orelse)
            # WORKGROUP loops stay, because barriers must be inside one.
            case For() if stmt.kind is not Kind.WORKGROUP and stmt.extent == 1:
                return self.body(replace_symbols(stmt.body, {stmt.var: 0}))
            case For(kind=kind, extent=extent) if kind is not Kind.GRID and extent == 0:
                # An empty grid stays too: the launch reads its extent and starts nothing.
                return () if kind is not Kind.WORKGROUP else (stmt,)
            case _:
                return (map_bodies(stmt, self.body),)


def as_size(expr: Expr) -> Size | None:
    """The index expression that has the value of this integer expression, if there is one."""
    match expr:
        case Index(dim=dim):
            return dim
        case Const(dtype=dtype) if dtype in dtypes.INTEGER:
            return int(expr.value)
        case Cast(arg=arg, dtype=dtype) if dtype in dtypes.INTEGER:
            inner = as_size(arg)
            return inner if inner is not None and _fits(inner, dtype) else None
        case _:
            return None


def _fits(x: Size, dtype: np.dtype) -> bool:
    is_signed = dtype in dtypes.SIGNED
    # A signed dtype has one bit less for the magnitude.
    bits = bit_width(dtype) - is_signed
    low, high = dims.bounds(x)
    least = -(1 << bits) if is_signed else 0
    return low is not None and high is not None and least <= low and high < 1 << bits


def _arithmetic(op: Op, a: Size | None, b: Size | None, dtype: np.dtype) -> Expr:
    if a is None or b is None or dtype not in dtypes.INTEGER:
        return op
    result = _ARITHMETIC[op.name](a, b)
    # The dtype would wrap here and the index expression would not.
    if not _fits(result, dtype):
        return op
    if isinstance(result, int):
        return const(result, dtype)
    return Index(result) if dtype == dtypes.i64 else Cast(Index(result), dtype)


def _condition(op: Op) -> Expr:
    match op.name, op.args:
        case ("and" | "or") as name, (a, b):
            # `other` decides the outcome by itself, and expressions have no effects to lose.
            neutral, other = (_TRUE, _FALSE) if name == "and" else (_FALSE, _TRUE)
            if other in (a, b):
                return other
            return b if a == neutral else a if b == neutral else op
        case "not", (Const() as a,):
            return _FALSE if a.value else _TRUE
        case "select", (Const() as condition, yes, no):
            return yes if condition.value else no
        case name, (a, b) if name in _COMPARE:
            first, second = as_size(a), as_size(b)
            known = None if first is None or second is None else _COMPARE[name](first, second)
            return op if known is None else _TRUE if known else _FALSE
        case _:
            return op


def simplify_index(code: KernelCode) -> KernelCode:
    """The code with everything simplified that bounds decide."""
    unique = unique_names(code)
    body = _Simplifier().body(unique.body)
    return code if body == code.body else replace(unique, body=body)


PASS = Pass("simplify-index", "decide comparisons, guards and branches by bounds", simplify_index)
