"""Statements and expressions of kernel code as LLVM IR, in one lane or in several.

An Env says what the names mean here; it is extended, never changed. In a vectorised loop it holds
Lanes: the loop variable is then the number of the first lane, and a value is a vector where it
differs between the lanes and a scalar where it does not. A mask, where there is one, says which
lanes are alive: loads and stores touch memory for those only.

Vars are stack slots, which LLVM turns into registers. A Var accumulated across lanes is held as
one vector for each, summed up by halves when the loop ends: the order depends on the target alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from rune import dims, dtypes
from rune.dims import Size
from rune.errors import CompileError
from rune.lowering.codegen import llvm_index, llvm_scalar
from rune.lowering.codegen.llvm_lanes import is_contiguous, straight_cost
from rune.lowering.codegen.llvm_text import Value, Writer, suffix
from rune.lowering.codegen.llvm_types import (
    constant,
    from_memory,
    memory_type,
    register_type,
    to_memory,
)
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op
from rune.lowering.kernel.nodes import (
    Accumulate,
    Alloc,
    Assign,
    Barrier,
    For,
    If,
    Kind,
    Let,
    Stmt,
    Store,
    Var,
)
from rune.lowering.kernel.rewrite import names_assigned

MAX_SCRATCH_BYTES = 1 << 20
UNROLL = 4  # vectors that a sum is held in, where the body costs no more than UNROLL_COST
UNROLL_COST = 12.0


@dataclass(frozen=True, slots=True)
class Lanes:
    """A vectorised loop: its variable, how many iterations run together, which are alive."""

    var: str
    count: int
    mask: Value | None = None
    varying: frozenset[str] = frozenset()  # symbols of indices that differ between the lanes


@dataclass(frozen=True, slots=True)
class Slot:
    """A mutable scalar: where it lives, its dtype, and its lanes (0 for one value)."""

    pointer: Value
    dtype: np.dtype
    lanes: int = 0

    @property
    def type(self) -> str:
        """The IR type of what is in the slot."""
        scalar = register_type(self.dtype)
        return f"<{self.lanes} x {scalar}>" if self.lanes else scalar


@dataclass(frozen=True, slots=True)
class Memory:
    """A buffer or scratch: its first element and its dtype."""

    pointer: Value
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class Env:
    """What names mean: immutable locals, Vars, memory, and the symbols of index expressions."""

    locals: Mapping[str, Value] = field(default_factory=dict)
    slots: Mapping[str, Slot] = field(default_factory=dict)
    memory: Mapping[str, Memory] = field(default_factory=dict)
    symbols: Mapping[str, Value] = field(default_factory=dict)  # i64; a vector where it varies
    lanes: Lanes | None = None

    @property
    def count(self) -> int:
        """Lanes of a varying value here, 0 outside vectorised loops."""
        return self.lanes.count if self.lanes else 0

    @property
    def mask(self) -> Value | None:
        """The lanes that are alive, None for all."""
        return self.lanes.mask if self.lanes else None

    def with_mask(self, mask: Value) -> Env:
        """The same with fewer lanes alive."""
        assert self.lanes is not None
        return replace(self, lanes=replace(self.lanes, mask=both(self.mask, mask)))


def both(a: Value | None, b: Value) -> Value:
    """The conjunction of masks, where None is all."""
    return b if a is None else a & b


class LaneBody(Protocol):
    """The body of a vectorised loop from its first lane on."""

    def __call__(self, i: Value, mask: Value | None = None, copy: int = 0) -> None:
        """Write the iteration."""
        ...


@dataclass(slots=True)
class Body:
    """Writes the statements of one kernel. `chosen`: the loops to vectorise, by identity."""

    writer: Writer
    lanes: int
    masked: bool  # whether masked loads and stores are cheap
    chosen: frozenset[int]
    scratch_bytes: int = 0

    # --- expressions -------------------------------------------------------------------------

    def value(self, expr: Expr, env: Env) -> Value:
        """The register value of an expression; parts that it shares are computed once."""
        return self._value(expr, env, {})

    def _value(self, expr: Expr, env: Env, done: dict[int, Value]) -> Value:
        made = done.get(id(expr))
        if made is None:
            made = done[id(expr)] = self._compute(expr, env, done)
        return made

    def _compute(self, expr: Expr, env: Env, done: dict[int, Value]) -> Value:
        match expr:
            case Const():
                return constant(self.writer, expr)
            case Local(name=name) if name in env.locals:
                return env.locals[name]
            case Local(name=name):
                slot = env.slots[name]
                return self.writer.load(slot.type, slot.pointer)
            case Index(dim=dim):
                return self.index(dim, env)
            case Cast(arg=arg, dtype=dtype):
                return llvm_scalar.convert(self._value(arg, env, done), arg.dtype, dtype)
            case Op(name=name, args=args, dtype=dtype):
                values = self.aligned([self._value(a, env, done) for a in args], env)
                return llvm_scalar.operation(name, dtype, values, args[-1].dtype)
            case Load(guard=guard):
                held = self._value(guard, env, done) if guard is not None else None
                return self.load(expr, held, env)

    def aligned(self, values: list[Value], env: Env) -> tuple[Value, ...]:
        """Values as vectors if one of them is."""
        lanes = env.count if any(v.lanes for v in values) else 0
        return tuple(self.writer.splat(v, lanes) for v in values)

    def index(self, size: Size, env: Env) -> Value:
        """An index expression as a value, by lane where it varies."""
        lanes = env.lanes
        if lanes is None or not llvm_index.mentions(size, frozenset({lanes.var})):
            return llvm_index.render(self.writer, size, env.symbols)
        first = self.writer.splat(env.symbols[lanes.var], lanes.count)
        each = first + self.writer.iota(lanes.count, "i64")
        return llvm_index.render(self.writer, size, {**env.symbols, lanes.var: each})

    def address(self, memory: Memory, index: Value) -> Value:
        """Where the element, or each lane's element, lies."""
        type = memory_type(memory.dtype)
        result = f"<{index.lanes} x ptr>" if index.lanes else "ptr"
        text = f"getelementptr inbounds {type}, ptr {memory.pointer.text}, {index.type} "
        return self.writer.emit(result, text + index.text)

    def load(self, load: Load, guard: Value | None, env: Env) -> Value:
        """One element, or one for each lane."""
        memory, index = env.memory[load.buffer], load.indices[0]
        lanes = env.lanes
        if lanes is None or not llvm_index.mentions(index, lanes.varying):
            return self.load_one(memory, index, guard, env)
        mask = env.mask if guard is None else both(env.mask, self.writer.splat(guard, lanes.count))
        if is_contiguous(index, lanes.var, lanes.varying):
            at = llvm_index.render(self.writer, index, env.symbols)
            raw = self.load_neighbours(memory, self.address(memory, at), lanes.count, mask)
        else:
            raw = self.gather(memory, self.address(memory, self.index(index, env)), mask)
        return from_memory(raw, memory.dtype)

    def load_one(self, memory: Memory, index: Size, guard: Value | None, env: Env) -> Value:
        """An element that all lanes share; read only where the guard holds in some lane."""
        def read() -> Value:
            at = llvm_index.render(self.writer, index, env.symbols)
            type = memory_type(memory.dtype)
            raw = self.writer.load(type, self.address(memory, at), memory.dtype.itemsize)
            return from_memory(raw, memory.dtype)

        if guard is None:
            return read()
        found = self.where(self.writer.any_lane(guard), read)
        if not guard.lanes:
            return found
        return self.writer.select(guard, self.writer.splat(found, env.count), 0)

    def where(self, condition: Value, compute: Callable[[], Value]) -> Value:
        """What `compute` gives where the condition holds, else 0."""
        writer = self.writer
        then, join = writer.name("then"), writer.name("join")
        before = writer.block
        writer.branch(condition, then, join)
        with writer.region(then):
            value = compute()
            after = writer.block
            writer.jump(join)
        writer.label(join)
        return writer.phi(value.type, (value, after), (value.like(0), before))

    def load_neighbours(self, memory: Memory, at: Value, count: int, mask: Value | None) -> Value:
        """Adjacent elements, one for each lane."""
        type, align = f"<{count} x {memory_type(memory.dtype)}>", memory.dtype.itemsize
        if mask is None:
            return self.writer.load(type, at, align)
        zero = self.writer.constant(type, 0)
        alignment = self.writer.constant("i32", align)
        name = f"@llvm.masked.load.{suffix(type)}.p0"
        return self.writer.call(type, name, at, alignment, mask, zero)

    def gather(self, memory: Memory, at: Value, mask: Value | None) -> Value:
        """Scattered elements, one for each lane."""
        type = f"<{at.lanes} x {memory_type(memory.dtype)}>"
        alive = mask or self.writer.constant(f"<{at.lanes} x i1>", 1)
        alignment = self.writer.constant("i32", memory.dtype.itemsize)
        name = f"@llvm.masked.gather.{suffix(type)}.v{at.lanes}p0"
        return self.writer.call(type, name, at, alignment, alive, self.writer.constant(type, 0))

    # --- statements --------------------------------------------------------------------------

    def run(self, body: tuple[Stmt, ...], env: Env) -> None:
        """Write the statements in order."""
        for stmt in body:
            env = self.statement(stmt, env)

    def statement(self, stmt: Stmt, env: Env) -> Env:
        """Write one statement; the result is what the next one sees."""
        match stmt:
            case Let(name=name, value=value):
                return self.let(name, self.value(value, env), value.dtype, env)
            case Var(name=name, init=init):
                return self.var(name, self.value(init, env), init.dtype, env)
            case Assign(name=name, value=value):
                self.assign(env.slots[name], self.value(value, env), env)
            case Accumulate():
                self.accumulate(stmt, env)
            case Store():
                self.store(stmt, env)
            case For():
                self.loop(stmt, env)
            case If():
                self.branch(stmt, env)
            case Alloc():
                return self.alloc(stmt, env)
            case Barrier():
                raise CompileError(
                    "llvm: cannot render a barrier (a workgroup is one thread on the cpu)",
                    hint="the schedule for a cpu target must not bind workgroups",
                )
        return env

    def let(self, name: str, value: Value, dtype: np.dtype, env: Env) -> Env:
        """Bind a value; an integer may appear in indices from here on."""
        env = replace(env, locals={**env.locals, name: value})
        if dtype not in dtypes.INTEGER:
            return env
        wide = llvm_scalar.convert(value, dtype, dtypes.i64)
        env = replace(env, symbols={**env.symbols, name: wide})
        if value.lanes and env.lanes:
            lanes = replace(env.lanes, varying=env.lanes.varying | {name})
            env = replace(env, lanes=lanes)
        return env

    def var(self, name: str, value: Value, dtype: np.dtype, env: Env) -> Env:
        """Declare a mutable scalar; in lanes, one for each."""
        slot = self.slot(dtype, env.count)
        self.writer.store(self.writer.splat(value, env.count), slot.pointer)
        return replace(env, slots={**env.slots, name: slot})

    def slot(self, dtype: np.dtype, lanes: int) -> Slot:
        """A place on the stack."""
        empty = Slot(self.writer.constant("i64", 0), dtype, lanes)
        return replace(empty, pointer=self.writer.allocate(empty.type))

    def assign(self, slot: Slot, value: Value, env: Env) -> None:
        """Write a Var, in the lanes that are alive."""
        value = self.writer.splat(value, slot.lanes)
        if env.mask is not None:
            value = self.writer.select(env.mask, value, self.writer.load(slot.type, slot.pointer))
        self.writer.store(value, slot.pointer)

    def accumulate(self, stmt: Accumulate, env: Env) -> None:
        """Combine a value into a Var."""
        slot = env.slots[stmt.name]
        held = self.writer.load(slot.type, slot.pointer)
        self.assign(slot, self.combined(stmt, held, env), env)

    def combined(self, stmt: Accumulate | Store, held: Value, env: Env) -> Value:
        """`held` combined with the statement's value; a product may be fused into the sum."""
        assert stmt.combine is not None
        dtype = stmt.value.dtype
        match stmt.value:
            case Op(name="mul", args=(a, b)) if stmt.contract and _fuses(stmt.combine, dtype):
                x, y = self.value(a, env), self.value(b, env)
                x, y, held = self.aligned([x, y, held], env)
                return x.fma(y, held)
        a, b = self.aligned([held, self.value(stmt.value, env)], env)
        return llvm_scalar.combine(stmt.combine, dtype, a, b)

    def store(self, stmt: Store, env: Env) -> None:
        """Write one element, or one for each lane that is alive."""
        memory, lanes = env.memory[stmt.buffer], env.lanes
        if lanes is not None and is_contiguous(stmt.index, lanes.var, lanes.varying):
            index = llvm_index.render(self.writer, stmt.index, env.symbols)
        else:
            index = self.index(stmt.index, env)
        self.put(stmt, memory, self.address(memory, index), env, lanes)

    def put(
        self, stmt: Store, memory: Memory, at: Value, env: Env, lanes: Lanes | None
    ) -> None:
        """Store the statement's value at an address, or at one for each lane."""
        if stmt.combine is None:
            value = self.value(stmt.value, env)
        else:
            value = self.combined(stmt, self.read_back(memory, at, lanes), env)
        self.write(to_memory(self.writer.splat(value, env.count), memory.dtype), memory, at, lanes)

    def read_back(self, memory: Memory, at: Value, lanes: Lanes | None) -> Value:
        """What is at the address, for a read-modify-write."""
        if lanes is None:
            raw = self.writer.load(memory_type(memory.dtype), at, memory.dtype.itemsize)
        elif at.lanes:
            raw = self.gather(memory, at, lanes.mask)
        else:
            raw = self.load_neighbours(memory, at, lanes.count, lanes.mask)
        return from_memory(raw, memory.dtype)

    def write(self, raw: Value, memory: Memory, at: Value, lanes: Lanes | None) -> None:
        """Put elements in memory: one, neighbours, or scattered ones."""
        align = memory.dtype.itemsize
        mask = lanes.mask if lanes else None
        if not at.lanes and mask is None:
            self.writer.store(raw, at, align)
            return
        mask = mask or self.writer.constant(f"<{at.lanes} x i1>", 1)
        kind = "scatter" if at.lanes else "store"
        pointers = f"v{at.lanes}p0" if at.lanes else "p0"
        name = f"@llvm.masked.{kind}.{suffix(raw.type)}.{pointers}"
        self.writer.run(name, raw, at, self.writer.constant("i32", align), mask)

    def alloc(self, stmt: Alloc, env: Env) -> Env:
        """Scratch on the stack."""
        self.scratch_bytes += stmt.size * stmt.dtype.itemsize
        if self.scratch_bytes > MAX_SCRATCH_BYTES:
            raise CompileError(
                f"llvm: cannot hold {self.scratch_bytes} B of scratch "
                f"({stmt.name}, limit {MAX_SCRATCH_BYTES} B)",
                hint="the schedule must keep scratch within the target's scratch_bytes",
            )
        pointer = self.writer.allocate(memory_type(stmt.dtype), stmt.size)
        return replace(env, memory={**env.memory, stmt.name: Memory(pointer, stmt.dtype)})

    def branch(self, stmt: If, env: Env) -> None:
        """Real branches; where the lanes differ, both sides under masks."""
        condition = self.value(stmt.condition, env)
        if not condition.lanes:
            orelse = partial(self.run, stmt.orelse, env) if stmt.orelse else None
            self.writer.either(condition, partial(self.run, stmt.body, env), orelse)
            return
        for mask, body in ((condition, stmt.body), (condition.invert(), stmt.orelse)):
            if body:
                inner = env.with_mask(mask)
                assert inner.mask is not None
                alive = self.writer.any_lane(inner.mask)
                self.writer.either(alive, partial(self.run, body, inner))

    # --- loops -------------------------------------------------------------------------------

    def loop(self, loop: For, env: Env) -> None:
        """A loop over its whole extent."""
        end = self.index(loop.extent, env)
        self.span(loop, self.writer.constant("i64", 0), end, env)

    def span(self, loop: For, begin: Value, end: Value, env: Env) -> None:
        """A loop over begin..end, in lanes where that was chosen."""
        if env.lanes is None and id(loop) in self.chosen:
            self.in_lanes(loop, begin, end, env)
        else:
            self.one_by_one(loop, begin, end, env)

    def one_by_one(self, loop: For, begin: Value, end: Value, env: Env) -> None:
        """One iteration after the other, written out where the loop is to be unrolled."""

        def body(i: Value) -> None:
            self.run(loop.body, replace(env, symbols={**env.symbols, loop.var: i}))

        if loop.kind is Kind.UNROLLED and isinstance(loop.extent, int):
            for k in range(loop.extent):
                body(self.writer.constant("i64", k))
        else:
            self.writer.count_up(begin, end, 1, body)

    def in_lanes(self, loop: For, begin: Value, end: Value, env: Env) -> None:
        """Full vectors first, then what is left, in masked lanes or one by one."""
        sums = self.partial_sums(loop, env)
        rest = (end - begin) & (self.lanes - 1)
        full = end - rest

        def body(i: Value, mask: Value | None = None, copy: int = 0) -> None:
            lanes = Lanes(loop.var, self.lanes, mask, frozenset({loop.var}))
            slots = {**env.slots, **{name: held[copy] for name, held in sums.items()}}
            symbols = {**env.symbols, loop.var: i}
            self.run(loop.body, replace(env, slots=slots, lanes=lanes, symbols=symbols))

        first = self.several_at_once(loop, begin, full, sums, body)
        self.writer.count_up(first, full, self.lanes, body)
        if self.masked and not _always_zero(rest):
            self.masked_tail(full, rest, body)
        combines = _combines(loop)
        for name, (held, *_) in sums.items():
            self.fold(held, env.slots[name], combines[name])
        if not self.masked and not _always_zero(rest):
            self.one_by_one(loop, full, end, env)

    def partial_sums(self, loop: For, env: Env) -> dict[str, list[Slot]]:
        """For each Var that the loop accumulates, the vectors that hold it meanwhile."""
        combines = _combines(loop)
        names = sorted(names_assigned(loop.body) & env.slots.keys())
        copies = UNROLL if straight_cost(loop) <= UNROLL_COST else 1
        return {
            name: [self.lane_slot(env.slots[name], combines[name]) for _ in range(copies)]
            for name in names
        }

    def several_at_once(
        self, loop: For, begin: Value, full: Value, sums: dict[str, list[Slot]], body: LaneBody
    ) -> Value:
        """Sums of several vectors side by side, which hides the latency of an addition.

        The result is where the loop must go on.
        """
        copies = len(next(iter(sums.values()), ()))
        step = self.lanes * copies
        length = full - begin
        if copies < 2 or (length.is_constant and int(length.text) < step):
            return begin
        until = full - length.binary("urem", length, step)

        def steps(i: Value) -> None:
            for copy in range(copies):
                body(i + copy * self.lanes, None, copy)

        self.writer.count_up(begin, until, step, steps)
        combines = _combines(loop)
        for name, held in sums.items():
            total, *others = (self.writer.load(s.type, s.pointer) for s in held)
            for other in others:
                total = llvm_scalar.combine(combines[name], held[0].dtype, total, other)
            self.writer.store(total, held[0].pointer)
        return until

    def masked_tail(
        self, first: Value, rest: Value, body: LaneBody
    ) -> None:
        """The last vector, of which `rest` lanes are alive."""
        writer = self.writer

        def tail() -> None:
            lane = writer.iota(self.lanes, "i32")
            body(first, lane.compare("ult", writer.splat(rest.cast("trunc", "i32"), self.lanes)))

        if rest.is_constant:
            alive = [f"i1 {int(k < int(rest.text))}" for k in range(self.lanes)]
            body(first, Value(writer, f"<{self.lanes} x i1>", f"<{', '.join(alive)}>"))
        else:
            writer.either(rest.compare("ne", 0), tail)

    def lane_slot(self, slot: Slot, combine: str) -> Slot:
        """A vector that starts as the identity of `combine`."""
        made = self.slot(slot.dtype, self.lanes)
        identity = constant(self.writer, COMBINE[combine].identity(slot.dtype))
        self.writer.store(self.writer.splat(identity, self.lanes), made.pointer)
        return made

    def fold(self, sums: Slot, slot: Slot, combine: str) -> None:
        """Combine the lanes by halves, and the result into the Var."""
        value = self.writer.load(sums.type, sums.pointer)
        count = self.lanes
        while count > 1:
            count //= 2
            low, high = self.writer.part(value, 0, count), self.writer.part(value, count, count)
            value = llvm_scalar.combine(combine, slot.dtype, low, high)
        held = self.writer.load(slot.type, slot.pointer)
        total = llvm_scalar.combine(combine, slot.dtype, held, self.writer.lane(value, 0))
        self.writer.store(total, slot.pointer)


def _fuses(combine: str, dtype: np.dtype) -> bool:
    return combine == "add" and dtype in (dtypes.f32, dtypes.f64)


def _always_zero(value: Value) -> bool:
    return value.text == "0"


def _combines(loop: For) -> dict[str, str]:
    """The operation by which the loop accumulates each Var."""
    found: dict[str, str] = {}
    pending: list[Stmt] = list(loop.body)
    while pending:
        stmt = pending.pop()
        if isinstance(stmt, Accumulate):
            found[stmt.name] = stmt.combine
        elif isinstance(stmt, For):
            pending += stmt.body
        elif isinstance(stmt, If):
            pending += [*stmt.body, *stmt.orelse]
    return found


__all__ = ["MAX_SCRATCH_BYTES", "Body", "Env", "Lanes", "Memory", "Slot", "dims"]
