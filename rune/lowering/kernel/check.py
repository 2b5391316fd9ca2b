"""Check kernel code: every rule that renderers and passes rely on.

Names    bound before use, never while in scope already; an index symbol is a loop variable, a
         size or an integer Let, and each name stands for one symbol. A loop variable's symbol has
         the bounds 0..extent-1
Types    of every expression (types.py), of stores, assignments and reductions
Loops    GRID outermost, then Let and SHARED Alloc, then WORKGROUP of static extent, each nest
         perfect; no Assign to a Var from outside in a VECTOR loop, nor a read of one that it
         accumulates; a barrier and a product of matrices are reached by all threads together
Memory   stores to what may be written; atomic ones to what threads share; aliases fit; fetches go
         from parameters to shared arrays, in pieces of 4, 8 or 16 bytes that are aligned
Factors  of a matrix product lie in shared arrays, in aligned rows of 8; its threads are those of
         one loop, in full subgroups

The interpreter checks what depends on values: bounds, uninitialised reads, races.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field, replace
from typing import NoReturn

import numpy as np

from rune import dims, dtypes
from rune.dims import Dim, Size
from rune.errors import CheckError
from rune.lowering.kernel.expr import Const, Expr, Load, Local, const, operands
from rune.lowering.kernel.matrices import NARROW, SUBGROUP, TEAM, TEAM_DEPTH
from rune.lowering.kernel.nodes import (
    ATOMICS,
    Access,
    Accumulate,
    AddressSpace,
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
from rune.lowering.kernel.notation import RESERVED
from rune.lowering.kernel.rewrite import (
    Body,
    bound_name,
    expr_sizes,
    expressions,
    loop_symbol,
    names_assigned,
    perfect_nest,
    size_names,
    stmt_sizes,
    walk,
)
from rune.lowering.kernel.scalar import bit_width
from rune.lowering.kernel.types import type_error
from rune.records import dataclass

# Limits of one expression. Lets bind the parts of longer ones, so that walks may recurse.
MAX_DEPTH = 64
MAX_NODES = 4096


@dataclass(frozen=True, slots=True)
class Combine:
    """A reduction operator: its NumPy function, and its identity element."""

    function: np.ufunc
    identity: Callable[[np.dtype], Const]
    dtypes: frozenset[np.dtype]


def _limits(dtype: np.dtype) -> tuple[float, float]:
    if dtype in dtypes.FLOATING:  # e4m3 has no infinity
        high = 448.0 if dtype == dtypes.f8_e4m3 else math.inf
        return -high, high
    if dtype in dtypes.SIGNED:
        # Not np.iinfo: it does not know 4-bit integers.
        half = 1 << (bit_width(dtype) - 1)
        return -half, half - 1
    return 0, 1 if dtype == dtypes.bool_ else (1 << bit_width(dtype)) - 1


_REAL = dtypes.INTEGER | dtypes.FLOATING | {dtypes.bool_}
_BITS = dtypes.INTEGER | {dtypes.bool_}
_ATOMIC = frozenset({dtypes.i32, dtypes.u32, dtypes.i64, dtypes.u64, dtypes.f32, dtypes.f64})

COMBINE: dict[str, Combine] = {
    # 0.0 and not -0.0: a sum of no elements is 0.0, as in NumPy.
    "add": Combine(np.add, lambda d: const(0, d), dtypes.NUMERIC),
    "mul": Combine(np.multiply, lambda d: const(1, d), dtypes.NUMERIC),
    "max": Combine(np.maximum, lambda dtype: const(_limits(dtype)[0], dtype), _REAL),
    "min": Combine(np.minimum, lambda dtype: const(_limits(dtype)[1], dtype), _REAL),
    "and": Combine(np.bitwise_and, lambda d: const(-1 if d in dtypes.SIGNED else _limits(d)[1], d), _BITS),
    "or": Combine(np.bitwise_or, lambda d: const(0, d), _BITS),
    "xor": Combine(np.bitwise_xor, lambda d: const(0, d), _BITS),
}


def require_combine(require: Callable[[object, str], None], name: str, dtype: np.dtype) -> None:
    """Have `require` check that there is a reduction of this name for the dtype."""
    known = name in COMBINE and dtype in COMBINE[name].dtypes
    require(known, f"no reduction {name} of {dtypes.short(dtype)}")


@dataclass(frozen=True, slots=True)
class _Buffer:
    dtype: np.dtype
    writable: bool
    space: AddressSpace | None = None  # None: a parameter


@dataclass(frozen=True, slots=True)
class _Scope:
    """What a statement sees. All scopes share the tables: a body leaves them as it found them.

    `names`: dtypes of locals; `symbols`: what an index may mention, with None for an integer Let,
    whose first use fixes its symbol; `frozen`: Vars that an enclosing VECTOR loop accumulates.
    """

    names: dict[str, np.dtype] = field(default_factory=dict)
    symbols: dict[str, Dim | None] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)
    buffers: dict[str, _Buffer] = field(default_factory=dict)
    frozen: frozenset[str] = frozenset()
    loops: tuple[For, ...] = ()
    in_if: bool = False

    # One namespace: in C and LLVM a local would shadow a loop variable of the same name.
    def has_name(self, name: str) -> bool:
        return name in self.names or name in self.buffers or name in self.symbols

    def forget(self, name: str) -> None:
        """Drop a name at the end of its body."""
        for table in (self.names, self.symbols, self.buffers):
            table.pop(name, None)
        self.variables.discard(name)


@dataclass(slots=True)
class _Checker:
    code: KernelCode
    typed: dict[int, Expr]  # expressions that have their types, by identity
    symbols: dict[str, Dim] = field(default_factory=dict)

    def fail(self, reason: str) -> NoReturn:
        raise CheckError(f"check: cannot accept kernel {self.code.name} ({reason})")

    def require(self, holds: object, reason: str) -> None:
        if not holds:
            self.fail(reason)

    # --- names and expressions ---------------------------------------------------------------

    def new_name(self, name: str, scope: _Scope) -> None:
        if not name.isidentifier() or name in RESERVED:
            self.fail(f"{name!r} is reserved, or is not an identifier")
        if scope.has_name(name):
            self.fail(f"{name} is bound already")

    def size(self, x: Size, scope: _Scope) -> None:
        if not isinstance(x, Dim):
            return
        for s in dims.symbols(x):
            if s.name not in scope.symbols:
                self.fail(f"{s.name} in [{x}] is not an index symbol here")
            symbol = dims.symbol(s.name, s.low, s.high)
            known = scope.symbols[s.name]
            # Symbols are interned, so one symbol with the same bounds is the same object.
            known = self.symbols.setdefault(s.name, symbol) if known is None else known
            if known is not symbol:
                elsewhere = f"elsewhere {_range(known)}"
                self.fail(f"{s.name} in [{x}] has bounds {s.low}..{s.high} here, {elsewhere}")

    def expr(self, expr: Expr, scope: _Scope) -> None:
        pending, count = [(expr, 1)], 0
        while pending:
            part, depth = pending.pop()
            count += 1
            if depth > MAX_DEPTH or count > MAX_NODES:
                # The loop stops at the limit; the full counts are worth a second walk only for the
                # message.
                self.fail("an expression of {} levels and {} nodes".format(*_measure(expr)))
            if type(part) is Local:  # it has neither operands nor sizes, and a type of any kind
                self.local(part, scope)
                continue
            pending += [(inner, depth + 1) for inner in operands(part)]
            if id(part) not in self.typed:
                self.types(part)
            for size in expr_sizes(part):
                self.size(size, scope)
            if type(part) is Load:
                self.load(part, scope)

    def types(self, expr: Expr) -> None:
        wrong = type_error(expr)
        if wrong is not None:
            self.fail(wrong)
        self.typed[id(expr)] = expr

    def local(self, local: Local, scope: _Scope) -> None:
        name = local.name
        if name not in scope.names:
            self.fail(f"{name} is not a local in scope")
        if scope.names[name] != local.dtype:
            self.fail(f"{name} is not {dtypes.short(local.dtype)}")
        if name in scope.frozen:
            self.fail(f"{name} is read in the VECTOR loop that changes it")

    def load(self, load: Load, scope: _Scope) -> None:
        if load.buffer not in scope.buffers:
            self.fail(f"{load.buffer} is not a buffer in scope")
        if len(load.indices) != 1:
            self.fail(f"{load.buffer} has {len(load.indices)} indices")
        element_dtype = scope.buffers[load.buffer].dtype
        if element_dtype != load.dtype:
            dtype = dtypes.short(load.dtype)
            self.fail(f"{load.buffer} holds {dtypes.short(element_dtype)}, not {dtype}")

    # --- statements --------------------------------------------------------------------------

    def body(self, body: Body, scope: _Scope) -> None:
        for stmt in body:
            # Checked before the statement binds its name, so `x = x + 1` cannot refer to itself.
            for expr in expressions(stmt):
                self.expr(expr, scope)
            self.stmt(stmt, scope)
        for stmt in body:
            name = bound_name(stmt)
            if name is not None:
                scope.forget(name)

    def stmt(self, stmt: Stmt, scope: _Scope) -> None:
        match stmt:
            case Let(name=name, value=value):
                self.new_name(name, scope)
                scope.names[name] = value.dtype
                if value.dtype in dtypes.INTEGER:
                    scope.symbols[name] = None
            case Var(name=name, init=init):
                self.new_name(name, scope)
                scope.names[name] = init.dtype
                scope.variables.add(name)
            case Assign() | Accumulate():
                self.change(stmt, scope)
            case Store():
                self.store(stmt, scope)
            case For():
                self.loop(stmt, scope)
            case If(condition=condition, body=body, orelse=orelse):
                self.require(condition.dtype == dtypes.bool_, "the condition of an if is not bool")
                self.body(body, replace(scope, in_if=True))
                self.body(orelse, replace(scope, in_if=True))
            case Alloc():
                self.alloc(stmt, scope)
            case Barrier():
                self.barrier(stmt, scope)
            case Fetch():
                self.fetch(stmt, scope)
            case MatrixProduct():
                self.multiply(stmt, scope)

    def change(self, stmt: Assign | Accumulate, scope: _Scope) -> None:
        name = stmt.name
        if name not in scope.variables:
            self.fail(f"{name} is assigned but is not a var in scope")
        dtype = scope.names[name]
        if dtype != stmt.value.dtype:
            self.fail(f"{name} is not {dtypes.short(stmt.value.dtype)}")
        if isinstance(stmt, Accumulate):
            require_combine(self.require, stmt.combine, dtype)
        elif name in scope.frozen:
            self.fail(f"{name} is assigned across a VECTOR loop")

    def store(self, stmt: Store, scope: _Scope) -> None:
        name, value = stmt.buffer, stmt.value
        self.size(stmt.index, scope)
        if name not in scope.buffers:
            self.fail(f"{name} is not a buffer in scope")
        buffer = scope.buffers[name]
        if not buffer.writable:
            self.fail(f"{name} is stored to and was declared read")
        if buffer.dtype != value.dtype:
            self.fail(f"{name} holds {dtypes.short(buffer.dtype)}, not {dtypes.short(value.dtype)}")
        if stmt.combine is not None:
            require_combine(self.require, stmt.combine, value.dtype)
        if stmt.atomic:
            known = stmt.combine in ATOMICS and value.dtype in _ATOMIC and not stmt.contract
            self.require(known, f"no atomic {stmt.combine} of {dtypes.short(value.dtype)}")
            self.require(
                buffer.space is not AddressSpace.LOCAL, f"{name} is changed atomically, and belongs to one thread"
            )

    def alloc(self, stmt: Alloc, scope: _Scope) -> None:
        self.new_name(stmt.name, scope)
        self.require(isinstance(stmt.size, int) and stmt.size > 0, f"{stmt.name}[{stmt.size}]")
        if stmt.space is AddressSpace.SHARED:
            at_grid = all(loop.kind is Kind.GRID for loop in scope.loops)
            # Shared memory belongs to the whole group, so it cannot be declared inside its threads.
            self.require(at_grid and not scope.in_if, f"{stmt.name} is shared, within the threads")
        scope.buffers[stmt.name] = _Buffer(stmt.dtype, True, stmt.space)

    def loop(self, loop: For, scope: _Scope) -> None:
        self.new_name(loop.var, scope)
        self.size(loop.extent, scope)
        frozen = scope.frozen
        if loop.kind is Kind.GRID:
            # The host launches the grid and knows only the sizes.
            host = not isinstance(loop.extent, Dim) or size_names(loop.extent) <= {*self.code.sizes}
            if not host:
                self.fail(f"grid {loop.var} of extent {loop.extent}, not of sizes alone")
        elif loop.kind is Kind.WORKGROUP:
            # Drivers need the size of a workgroup at compile time.
            if not isinstance(loop.extent, int):
                self.fail(f"workgroup {loop.var} of extent {loop.extent}, not static")
        elif loop.kind is Kind.VECTOR:
            inside = any(outer.kind is Kind.VECTOR for outer in scope.loops)
            self.require(not inside, f"vector {loop.var} is inside another")
            # Until the loop ends the lanes hold partial results, so such a Var has no value.
            frozen = frozen | (names_assigned(loop.body) & scope.variables)
        scope.symbols[loop.var] = loop_symbol(loop)
        self.body(loop.body, replace(scope, frozen=frozen, loops=(*scope.loops, loop)))
        scope.forget(loop.var)

    def fetch(self, stmt: Fetch, scope: _Scope) -> None:
        for size in stmt_sizes(stmt):
            self.size(size, scope)
        source, target = (scope.buffers.get(name) for name in (stmt.source, stmt.target))
        if source is None or target is None or (source.space, target.space) != (None, AddressSpace.SHARED):
            self.fail(f"a fetch from {stmt.source} into {stmt.target}, not from a parameter into a shared array")
        self.require(source.dtype == target.dtype, f"{stmt.source} and {stmt.target} hold different dtypes")
        width = stmt.count * source.dtype.itemsize
        self.require(width in (4, 8, 16), f"a fetch of {width} bytes, not 4, 8 or 16")
        is_aligned = all(dims.divides(stmt.count, size) is True for size in stmt_sizes(stmt))
        self.require(is_aligned, f"a fetch of {stmt.count} into {stmt.target} that is not aligned")
        is_guard_bool = stmt.guard is None or stmt.guard.dtype == dtypes.bool_
        self.require(is_guard_bool, "the guard of a fetch is not bool")
        self.require(any(x.kind is Kind.WORKGROUP for x in scope.loops), "a fetch outside a workgroup")

    def multiply(self, stmt: MatrixProduct, scope: _Scope) -> None:
        self.together(scope, "a product of matrices")
        self.require(stmt.subgroups in (1, TEAM), f"a product of matrices by {stmt.subgroups} subgroups")
        self.subgroups(scope, "a product of matrices", stmt.subgroups)
        for factor in (stmt.a, stmt.b):
            self.factor(factor, scope, is_of_team=stmt.subgroups == TEAM)
        self.require(stmt.a.dtype == stmt.b.dtype and stmt.a.dtype in NARROW, "a product of matrices of such dtypes")
        columns = {len(row) for row in stmt.accumulators}
        blocks = len(stmt.accumulators) % 2 == 0 and len(columns) == 1 and all(n and n % 2 == 0 for n in columns)
        self.require(blocks and len(set(stmt.names)) == len(stmt.names), "accumulators that do not form a matrix")
        for name in stmt.names:
            is_sum = name in scope.variables and scope.names[name] == dtypes.f32 and name not in scope.frozen
            self.require(is_sum, f"{name} is accumulated but is not an f32 var in scope")

    def factor(self, factor: Factor, scope: _Scope, *, is_of_team: bool) -> None:
        self.size(factor.index, scope)
        name, strides = factor.buffer, (factor.position_stride, factor.depth_stride)
        buffer = scope.buffers.get(name)
        is_shared = buffer is not None and buffer.space is AddressSpace.SHARED and buffer.dtype == factor.dtype
        self.require(is_shared, f"{name} is not a shared array of {dtypes.short(factor.dtype)}")
        unit = 8 * TEAM_DEPTH if is_of_team else 8
        lines = max(strides) == TEAM_DEPTH and factor.block_stride % unit == 0
        known = lines and (factor.position_stride == 1) == (factor.block_stride > 0)
        same = known if is_of_team else max(strides) % 8 == 0 and factor.block_stride == 0
        rows = 1 in strides and same and dims.divides(unit, factor.index) is True
        self.require(rows, f"rows of {name} that are not aligned, {strides} apart from {factor.index}")

    def barrier(self, stmt: Barrier, scope: _Scope) -> None:
        self.together(scope, "a barrier")
        if stmt.threads is not None:
            self.require(stmt.threads == SUBGROUP, f"a barrier of {stmt.threads} threads, not {SUBGROUP}")
            self.subgroups(scope, "a barrier of subgroups")

    def subgroups(self, scope: _Scope, subject: str, count: int = 1) -> None:
        """Require that the threads are one loop, in whole groups of `count` subgroups."""
        threads = [loop.extent for loop in scope.loops if loop.kind is Kind.WORKGROUP]
        divides = len(threads) == 1 and isinstance(threads[0], int) and threads[0] % (count * SUBGROUP) == 0
        self.require(divides, f"{subject} by {threads} threads, not by one loop of subgroups")

    def together(self, scope: _Scope, subject: str) -> None:
        kinds = [loop.kind for loop in scope.loops]
        self.require(Kind.WORKGROUP in kinds, f"{subject} outside a workgroup")
        together = not scope.in_if and Kind.VECTOR not in kinds
        threads = {loop.var for loop in scope.loops if loop.kind is Kind.WORKGROUP}
        # Names with one value for all threads of a group: sizes, and variables of other loops. A
        # Let may differ from thread to thread.
        uniform = scope.symbols.keys() - threads - scope.names.keys()
        inner = [loop.extent for loop in scope.loops if loop.kind is not Kind.WORKGROUP]
        extent_names = {s.name for x in inner if isinstance(x, Dim) for s in dims.symbols(x)}
        self.require(together and extent_names <= uniform, f"{subject} that not all threads reach together")

    # --- the kernel --------------------------------------------------------------------------

    def kernel(self) -> None:
        code = self.code
        scope = _Scope()
        self.symbols.update(_size_symbols(code))
        for name in code.sizes:
            self.new_name(name, scope)
            scope.symbols[name] = None
        for p in code.params:
            self.new_name(p.name, scope)
            self.size(p.size, scope)
            scope.buffers[p.name] = _Buffer(p.dtype, writable=p.access is not Access.READ)
        self.aliases()
        self.nests()
        self.body(code.body, scope)

    def aliases(self) -> None:
        by_name = {p.name: p for p in self.code.params}
        for a, b in self.code.aliases:
            self.require(a in by_name and b in by_name and a != b, f"alias of {a} and {b}")
            # Dtypes may differ: an f32 result may lie in the memory of an i32 argument.
            same = by_name[a].dtype.itemsize == by_name[b].dtype.itemsize
            fits = same and dims.equal(by_name[a].size, by_name[b].size)
            self.require(fits, f"{a} and {b} are aliases of different sizes")

    def nests(self) -> None:
        _, point = perfect_nest(self.code.body, Kind.GRID)
        self.require(not _has(point, Kind.GRID), "a grid loop that is not outermost and alone")
        before, last = point[:-1], point[-1:]
        _, thread = perfect_nest(last, Kind.WORKGROUP)
        self.require(not _has((*before, *thread), Kind.WORKGROUP), "a misplaced workgroup loop")
        if thread is not last:
            plain = all(isinstance(s, (Let, Alloc)) for s in before)
            self.require(plain, "more than Let and Alloc before the workgroup loops")


def _has(body: Body, kind: Kind) -> bool:
    return any(isinstance(s, For) and s.kind is kind for s in walk(body))


def _range(symbol: Dim) -> str:
    (s,) = dims.symbols(symbol)
    return f"{s.low}..{s.high}"


def _size_symbols(code: KernelCode) -> dict[str, Dim]:
    return {
        s.name: dims.symbol(s.name, s.low, s.high)
        for p in code.params
        if isinstance(p.size, Dim)
        for s in dims.symbols(p.size)
    }


def _measure(expr: Expr) -> tuple[int, int]:
    """The levels of an expression and its nodes as a tree; each shared part is visited once."""
    known: dict[int, tuple[int, int]] = {}
    pending = [expr]
    while pending:
        parts = operands(pending[-1])
        missing = [p for p in parts if id(p) not in known]
        if missing:
            pending += missing
            continue
        # Counted as a tree, because a renderer may emit a shared part at each of its uses.
        inner = [known[id(p)] for p in parts]
        depth = 1 + max((d for d, _ in inner), default=0)
        known[id(pending.pop())] = depth, 1 + sum(n for _, n in inner)
    return known[id(expr)]


def check(code: KernelCode) -> None:
    """Check every rule above.

    Errors: CheckError "check: cannot accept kernel f (y holds f32, not f64)".
    """
    checker()(code)


def checker() -> Callable[[KernelCode], None]:
    """`check` for loops that passes make of each other, which share most expressions.

    The types of an expression do not depend on its place, so that they are derived once.
    """
    typed: dict[int, Expr] = {}
    return lambda code: _Checker(code, typed).kernel()
