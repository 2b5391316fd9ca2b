"""Statements and expressions of kernel code as the instructions of SPIR-V functions.

`Body` walks statements; what they bind is looked up by name. Let and loop variables are values,
Var and scratch are variables of the function, shared scratch is a variable of the module. A
function of legalize/scalars.py becomes a function of the module where it is first called.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import numpy as np

from rune import dtypes
from rune.dims import Size
from rune.lowering.codegen.accesses import AccessWalk
from rune.lowering.codegen.runs import LoadRun, StoreRun
from rune.lowering.codegen.spirv import index, scalar
from rune.lowering.codegen.spirv.binary.module import KINDS, Module
from rune.lowering.codegen.spirv.binary.words import NO_CONTROL, UNROLL, Op, StorageClass, instruction
from rune.lowering.codegen.spirv.binary.writer import Pointer, Writer
from rune.lowering.codegen.spirv.scalar import Value
from rune.lowering.codegen.subgroups import Alike, Piece, Statement, Subgroup, accesses
from rune.lowering.codegen.target import Native
from rune.lowering.codegen.walk import ExpressionWalk
from rune.lowering.kernel.expr import Const, Expr, Index, Load
from rune.lowering.kernel.expr import Op as Operation
from rune.lowering.kernel.nodes import AddressSpace, Alloc, Barrier, For, Function, If, Kind, Store
from rune.lowering.kernel.rewrite import Body as Statements
from rune.lowering.kernel.rewrite import updated
from rune.lowering.legalize.scalars import conversion_name, function_name
from rune.lowering.scalar.table import result_dtype
from rune.records import dataclass

ATOMICS = {
    ("add", dtypes.i32): Op.AtomicIAdd,
    ("add", dtypes.u32): Op.AtomicIAdd,
    ("min", dtypes.i32): Op.AtomicSMin,
    ("min", dtypes.u32): Op.AtomicUMin,
    ("max", dtypes.i32): Op.AtomicSMax,
    ("max", dtypes.u32): Op.AtomicUMax,
}


@dataclass(slots=True)
class Functions:
    """The functions of a module: each has an id at its first call, its body at the end.

    native: the operations that need no function.
    """

    module: Module
    native: Native
    known: frozenset[str]
    ids: dict[str, int] = field(default_factory=dict)

    def id(self, name: str) -> int:
        """The id under which to call a function."""
        if name not in self.ids:
            self.ids[name] = id = self.module.new_id()
            self.module.name(id, name)
        return self.ids[name]


@dataclass(frozen=True, slots=True)
class Variable:
    """A mutable scalar of a function."""

    writer: Writer
    dtype: np.dtype
    id: int

    def read(self) -> Value:
        """Its value now."""
        type = self.writer.module.type(KINDS[self.dtype])
        return Value(self.writer, self.dtype, self.writer.effect(Op.Load, type, self.id))

    def write(self, value: Value) -> None:
        """Give it a value."""
        self.writer.do(Op.Store, self.id, value.id)


@dataclass(slots=True)
class Body(AccessWalk, ExpressionWalk[Value]):
    """Renders statements into a writer. `symbols`: what an index may mention.

    Loop variables and sizes have unsigned dtypes, which only say that they are not negative.
    """

    writer: Writer
    functions: Functions
    symbols: dict[str, Value] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    arrays: dict[str, Pointer] = field(default_factory=dict)
    paired_buffers: frozenset[str] = frozenset()  # in which one access may cover two neighbours
    subgroup: Subgroup | None = None  # None: its threads may diverge, or be idle
    lane: Value | None = None  # the number of a thread in its subgroup
    pieces: dict[str, int] = field(default_factory=dict)  # elements that threads have read for each other, by name

    def bind(self, name: str, value: Value) -> None:
        """Name a value, in place of a Var with this name in an earlier block."""
        self.variables.pop(name, None)
        self.symbols[name] = value

    def value(self, dtype: np.dtype, id: int) -> Value:
        """An id as a value."""
        return Value(self.writer, dtype, id)

    # --- statements --------------------------------------------------------------------------

    def accesses(self, body: Statements) -> Iterator[Statement]:
        return accesses(body, neighbours, self.paired_buffers, self.subgroup)

    def read_together(self, alike: Alike) -> None:
        """Have each thread of a subgroup read a piece of the rows that all of them need."""
        assert self.lane is not None
        array, kind = self.arrays[alike.buffer], index.index_kind(alike.last + 1)
        # Threads beyond the last piece read the last one, too.
        is_full = alike.threads == self.writer.module.target.subgroup_threads
        last = alike.threads - 1
        lane = self.lane if is_full else (self.lane.as_dtype(dtypes.i32) < last).choose(self.lane, last)
        at = (self.size(alike.index, kind) + _piece(alike, scalar.resized(lane, kind))).id
        if alike.size == 2:
            values = self.writer.halves(self.writer.load_pair(array, at), array.kind)
        else:
            values = (self.writer.load(array, at),)
        self.pieces |= {let.name: values[n % alike.size] for n, let in enumerate(alike.lets)}

    def take(self, piece: Piece) -> None:
        self.bind(piece.name, self.of_lane(self.pieces.pop(piece.name), piece.lane))

    def of_lane(self, value: int, lane: int) -> Value:
        """The value of one thread of the subgroup."""
        return self.value(dtypes.f32, self.writer.of_lanes("f32", value, self.writer.constant("i32", lane)))

    def load_run(self, run: LoadRun) -> None:
        """Two elements by one access; where the guard does not hold, zeros."""
        array = self.arrays[run.buffer]

        def read() -> int:
            return self.writer.load_pair(array, self.place(run.buffer, run.index))

        pair = read() if run.guard is None else self.writer.where(self.expr(run.guard).id, "i64", read)
        for let, id in zip(run.lets, self.writer.halves(pair, array.kind), strict=True):
            self.bind(let.name, self.value(run.dtype, id))

    def store_run(self, run: StoreRun) -> None:
        """Two elements by one access."""
        first, second = (self.expr(value).id for value in run.values)
        self.writer.store_pair(self.arrays[run.buffer], self.place(run.buffer, run.index), (first, second))

    @property
    def language(self) -> str:
        return "spirv"

    def let(self, name: str, value: Expr) -> None:
        self.bind(name, self.expr(value))

    def var(self, name: str, init: Expr) -> None:
        value = self.expr(init)
        self.variables[name] = self.variable(init.dtype)
        self.variables[name].write(value)

    def assign(self, name: str, value: Expr) -> None:
        self.variables[name].write(self.expr(value))

    def barrier(self, stmt: Barrier) -> None:
        self.writer.barrier()

    def variable(self, dtype: np.dtype) -> Variable:
        """A new mutable scalar."""
        module = self.writer.module
        return Variable(self.writer, dtype, self.writer.variable(module.type(module.kind(dtype))))

    def store(self, stmt: Store) -> None:
        """Write an element; bool is a byte in buffers."""
        array, at = self.arrays[stmt.buffer], self.place(stmt.buffer, stmt.index)
        if stmt.atomic:
            assert stmt.combine is not None
            self.writer.atomic(ATOMICS[stmt.combine, stmt.value.dtype], array, at, self.expr(stmt.value).id)
            return
        value = self.expr(updated(stmt))
        self.writer.store(array, at, (value if array.kind == value.kind else scalar.convert(value, dtypes.u8)).id)

    def branch(self, stmt: If) -> None:
        """Statements where a condition holds, or others where it does not."""
        condition, subgroup = self.expr(stmt.condition), self.subgroup
        otherwise = (lambda: self.body(stmt.orelse)) if stmt.orelse else None
        self.subgroup = None
        self.writer.either(condition.id, lambda: self.body(stmt.body), otherwise)
        self.subgroup = subgroup

    def loop(self, loop: For) -> None:
        """Iterations in order, whatever the kind."""
        kind, subgroup = index.index_kind(loop.extent), self.subgroup
        extent = self.size(loop.extent, kind)

        def inside(i: int) -> None:
            self.bind(loop.var, self.value(index.UNSIGNED[kind], i))
            self.body(loop.body)

        control = UNROLL if loop.kind is Kind.UNROLLED else NO_CONTROL
        self.subgroup = subgroup and subgroup.within(loop)
        self.writer.count_up(kind, extent.id, inside, control)
        self.subgroup = subgroup

    def alloc(self, stmt: Alloc) -> None:
        """Scratch of the thread or of its workgroup."""
        module = self.writer.module
        kind = module.kind(stmt.dtype)
        array = module.array(module.type(kind), max(1, stmt.size))
        if stmt.space is AddressSpace.SHARED:
            id, space = module.variable(StorageClass.Workgroup, array), StorageClass.Workgroup
        else:
            id, space = self.writer.variable(array), StorageClass.Function
        module.name(id, stmt.name)
        self.arrays[stmt.name] = Pointer(id, kind, space)

    # --- expressions -------------------------------------------------------------------------

    def size(self, size: Size, kind: str | None = None) -> Value:
        """An index expression."""
        return index.render(self.writer, size, self.symbols, kind)

    def place(self, buffer: str, index: Size) -> int:
        """The index of an access, as an id."""
        number = self.size(index)
        return number.id if isinstance(index, int) else self.writer.place(self.arrays[buffer], number.kind, number.id)

    def expr(self, expr: Expr) -> Value:
        self.writer.module.kind(expr.dtype)  # refuses what the device lacks
        return ExpressionWalk.expr(self, expr)

    def const(self, c: Const) -> Value:
        return self.value(c.dtype, self.writer.module.constant(KINDS[c.dtype], int.from_bytes(c.bits, "little")))

    def index(self, dim: Size) -> Value:
        return self.size(dim, "i64")

    def bitcast(self, arg: Expr, target: np.dtype) -> Value:
        return scalar.bitcast(self.expr(arg), target)

    def integer_part(self, arg: Expr, target: np.dtype) -> Value:
        return scalar.integer_part(self.expr(arg), target)

    def op(self, op: Operation) -> Value:
        return self.applied(op.name, op.args[-1].dtype, tuple(map(self.expr, op.args)))

    def local(self, name: str) -> Value:
        variable = self.variables.get(name)
        return self.symbols[name] if variable is None else variable.read()

    def load(self, load: Load) -> Value:
        # A branch, because the element may not exist where the guard does not hold.
        array = self.arrays[load.buffer]

        def read() -> Value:
            return self.element(array, self.place(load.buffer, load.indices[0]), load.dtype)

        if load.guard is None:
            return read()
        guard, kind = self.expr(load.guard).id, KINDS[load.dtype]
        return self.value(load.dtype, self.writer.where(guard, kind, lambda: read().id))

    def element(self, array: Pointer, at: int, dtype: np.dtype) -> Value:
        """An element as a value; bool is a byte in buffers."""
        raw = self.writer.load(array, at)
        return self.value(dtype, raw) if array.kind == KINDS[dtype] else self.value(dtypes.u8, raw).apply("ne", 0)

    def cast(self, arg: Expr, target: np.dtype) -> Value:
        # An index is converted from the narrowest type that holds it.
        if isinstance(arg, Index) and index.index_kind(arg.dim) == "i32":
            return scalar.convert(self.size(arg.dim, "i32"), target)
        name, source = conversion_name(arg.dtype, target, scalar.NATIVE), arg.dtype
        if name in self.functions.known:
            wide = scalar.convert(self.expr(arg), scalar.NATIVE.registers.get(source, source))
            return self.call(name, target, (wide,))
        return scalar.convert(self.expr(arg), target)

    def applied(self, name: str, operand: np.dtype, values: tuple[Value, ...]) -> Value:
        """An instruction, or a call of a function; f16 computes in f32 what it lacks."""
        register = scalar.NATIVE.register(name, operand)
        if register != operand:
            wide = tuple(scalar.convert(v, register) for v in values)
            return scalar.convert(self.applied(name, register, wide), operand)
        if self.functions.native.lacks(name, operand):
            return self.call(function_name(name, operand), result_dtype(name, operand) or operand, values)
        return scalar.operation(name, operand, values)

    def call(self, name: str, dtype: np.dtype, args: tuple[Value, ...]) -> Value:
        """A call of a function that gives `dtype`."""
        id, type = self.functions.id(name), self.writer.module.type(KINDS[dtype])
        return self.value(dtype, self.writer.emit(Op.FunctionCall, type, id, *(a.id for a in args)))


def _piece(alike: Alike, lane: Value) -> Value:
    """The distance from the first element to the piece that a thread reads."""
    if alike.pieces == alike.threads:
        return lane * alike.size
    row = lane.emit(Op.UDiv, alike.pieces) * alike.step
    return row + lane.emit(Op.UMod, alike.pieces) * alike.size if alike.pieces > 1 else row


def neighbours(dtype: np.dtype) -> int:
    """How many elements of a buffer one access may cover: two of 32 bits, as an i64."""
    return 2 if dtype.itemsize == 4 else 1


def write_function(functions: Functions, function: Function) -> None:
    """Append a function to the module."""
    module, writer = functions.module, Writer(functions.module)
    body = Body(writer, functions)
    types = [module.type(module.kind(p.dtype)) for p in function.params]
    result = module.type(module.kind(function.result.dtype))
    signature = module.function_type(result, *types)
    head = instruction(Op.Function, result, functions.id(function.name), NO_CONTROL, signature)
    for local, type in zip(function.params, types, strict=True):
        parameter = module.new_id()
        head += instruction(Op.FunctionParameter, type, parameter)
        body.bind(local.name, body.value(local.dtype, parameter))
    label = module.new_id()
    writer.block = label
    body.body(function.body)
    writer.do(Op.ReturnValue, body.expr(function.result).id)
    tail = [*instruction(Op.Label, label), *writer.variables, *writer.lines]
    module.functions += [*head, *tail, *instruction(Op.FunctionEnd)]
