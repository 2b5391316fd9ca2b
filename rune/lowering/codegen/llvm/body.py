"""Statements of kernel code as LLVM IR: branches, loops, and loops in lanes.

Vars are stack slots, which LLVM turns into registers. A Var accumulated across lanes is held as
one vector for each, summed up by halves when the loop ends: the order depends on the target alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np

from rune import dtypes
from rune.errors import CompileError
from rune.lowering.codegen.llvm import functions as llvm_functions
from rune.lowering.codegen.llvm import index as llvm_index
from rune.lowering.codegen.llvm import scalar as llvm_scalar
from rune.lowering.codegen.llvm.names import suffix
from rune.lowering.codegen.llvm.strides import step_of, store_apart
from rune.lowering.codegen.llvm.text import Value
from rune.lowering.codegen.llvm.types import constant, from_memory, memory_type, to_memory
from rune.lowering.codegen.llvm.values import Env, Lanes, Memory, Slot, Values
from rune.lowering.codegen.units import refuse_unit
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Op
from rune.lowering.kernel.nodes import (
    Accumulate,
    Alloc,
    Assign,
    Barrier,
    Fetch,
    For,
    If,
    Kind,
    Let,
    MatrixProduct,
    Stmt,
    Store,
    Var,
)
from rune.lowering.kernel.rewrite import names_assigned, walk
from rune.lowering.lanes.choose import is_contiguous, straight_cost
from rune.records import dataclass

# Per kernel, on the stack of the thread that runs it.
MAX_SCRATCH_BYTES = 1 << 20
UNROLL = 4  # vectors that a sum is held in, where the body costs no more than UNROLL_COST
UNROLL_COST = 12.0
HEAVY = 24.0  # cost of a body from which a mask in every step is cheaper than a second copy


class LaneBody(Protocol):
    """The body of a vectorised loop from its first lane on."""

    def __call__(self, i: Value, mask: Value | None = None, copy: int = 0, all_alive: Value | None = None) -> None:
        """Write the iteration."""
        ...


@dataclass(slots=True)
class Body(Values):
    """Writes the statements of one kernel. `chosen`: the loops to vectorise, by identity."""

    lanes: int
    chosen: frozenset[int]
    scratch_bytes: int = 0

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
            case Fetch() | MatrixProduct():
                refuse_unit(stmt, "llvm")
        return env

    def let(self, name: str, value: Value, dtype: np.dtype, env: Env) -> Env:
        """Bind a value; an integer may appear in indices from here on."""
        env = replace(env, locals={**env.locals, name: value})
        if dtype not in dtypes.INTEGER:
            return env
        # Index arithmetic is i64 whatever dtype the Let has.
        wide = llvm_scalar.convert(value, dtype, dtypes.i64)
        env = replace(env, symbols={**env.symbols, name: wide})
        # From here on an index that mentions it varies by lane.
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
        # A select keeps the value of lanes that are switched off; a masked store would keep the Var
        # out of registers.
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
        return llvm_functions.combine(stmt.combine, dtype, a, b)

    def store(self, stmt: Store, env: Env) -> None:
        """Write one element, or one for each lane that is alive."""
        if stmt.atomic:
            raise CompileError(
                "llvm: cannot render an atomic change (points are divided among threads, not elements)",
                hint="a kernel for a cpu target must change elements of its own",
            )
        memory, lanes = env.memory[stmt.buffer], env.lanes
        step = None if lanes is None else step_of(stmt.index, lanes.var, lanes.varying)
        if lanes is not None and step is not None and stmt.combine is None and self.steps(memory):
            self.store_steps(stmt, memory, step, env)
            return
        # One address, of the first lane; the others are its neighbours.
        if lanes is not None and is_contiguous(stmt.index, lanes.var, lanes.varying):
            index = llvm_index.render(self.writer, stmt.index, env.symbols)
        else:
            index = self.index(stmt.index, env)
        self.put(stmt, memory, self.address(memory, index), env, lanes)

    def steps(self, memory: Memory) -> bool:
        """Whether elements that lie apart are written as vectors (see `_may_be_truncated`)."""
        return self.masked and memory_type(memory.dtype) in ("float", "double")

    def store_steps(self, stmt: Store, memory: Memory, step: int, env: Env) -> None:
        """Write elements that lie `step` apart."""
        first = llvm_index.render(self.writer, stmt.index, env.symbols)
        alignment = self.writer.constant("i32", memory.dtype.itemsize)
        value = self.writer.splat(self.value(stmt.value, env), env.count)

        def write(values: Value, elements: int, mask: Value) -> None:
            name = f"@llvm.masked.store.{suffix(values.type)}.p0"
            at = self.address(memory, first + elements)
            self.writer.run(name, values, at, alignment, mask)

        store_apart(to_memory(value, memory.dtype), step, env.mask, write)

    def put(self, stmt: Store, memory: Memory, at: Value, env: Env, lanes: Lanes | None) -> None:
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
            raw = self.load_neighbours(memory, at, lanes)
        return from_memory(raw, memory.dtype)

    def write(self, raw: Value, memory: Memory, at: Value, lanes: Lanes | None) -> None:
        """Put elements in memory: one, neighbours, or scattered ones."""
        mask, plain = lanes.mask if lanes else None, partial(self.writer.store, raw, at, memory.dtype.itemsize)
        if not at.lanes and mask is None:
            plain()
            return
        # LLVM has no scatter without a mask.
        mask = mask or self.writer.constant(f"<{at.lanes} x i1>", 1)
        some = partial(self.write_some, raw, memory, at, mask)
        if lanes is None or lanes.all_alive is None or at.lanes:
            some()
        else:
            self.writer.either(lanes.all_alive, plain, some)

    def write_some(self, raw: Value, memory: Memory, at: Value, mask: Value) -> None:
        """Put the elements in memory that a mask has."""
        if not at.lanes and _may_be_truncated(raw):
            mask = mask & self.writer.opaque_mask(raw.lanes)
        kind = "scatter" if at.lanes else "store"
        pointers = f"v{at.lanes}p0" if at.lanes else "p0"
        name = f"@llvm.masked.{kind}.{suffix(raw.type)}.{pointers}"
        self.writer.run(name, raw, at, self.writer.constant("i32", memory.dtype.itemsize), mask)

    def alloc(self, stmt: Alloc, env: Env) -> Env:
        """Scratch on the stack."""
        self.scratch_bytes += stmt.size * stmt.dtype.itemsize
        if self.scratch_bytes > MAX_SCRATCH_BYTES:
            raise CompileError(
                f"llvm: cannot hold {self.scratch_bytes} B of scratch ({stmt.name}, limit {MAX_SCRATCH_BYTES} B)",
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
                # Skips a side that no lane takes; otherwise both would always run.
                alive = self.writer.any_lane(inner.mask)
                self.writer.either(alive, partial(self.run, body, inner))

    # --- loops -------------------------------------------------------------------------------

    def loop(self, loop: For, env: Env) -> None:
        """A loop over its whole extent."""
        end = self.index(loop.extent, env)
        self.span(loop, self.writer.constant("i64", 0), end, env)

    def span(self, loop: For, begin: Value, end: Value, env: Env) -> None:
        """A loop over begin..end, in lanes where that was chosen."""
        # Loops inside a vectorised one run in order, each step in all lanes.
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
        # Each sum is kept in vectors while the loop runs, so no iteration waits for a scalar.
        sums = self.partial_sums(loop, env)
        # The number of lanes is a power of two.
        tail_count = (end - begin) & (self.lanes - 1)
        full = end - tail_count

        def body(i: Value, mask: Value | None = None, copy: int = 0, all_alive: Value | None = None) -> None:
            lanes = Lanes(loop.var, self.lanes, mask, all_alive, frozenset({loop.var}))
            slots = {**env.slots, **{name: held[copy] for name, held in sums.items()}}
            symbols = {**env.symbols, loop.var: i}
            self.run(loop.body, replace(env, slots=slots, lanes=lanes, symbols=symbols))

        # Without this, a long body would be emitted twice: for full vectors and for the tail.
        if self.masked and not tail_count.is_constant and _is_heavy(loop):
            self.masked_loop(begin, end, body)
            # Every step is masked, so no tail is left.
            tail_count = tail_count.like(0)
        else:
            first = self.several_at_once(loop, begin, full, sums, body)
            self.writer.count_up(first, full, self.lanes, body)
        if self.masked and not _always_zero(tail_count):
            self.masked_tail(full, tail_count, body)
        combines = _combines(loop)
        for name, (held, *_) in sums.items():
            self.fold(held, env.slots[name], combines[name])
        if not self.masked and not _always_zero(tail_count):
            self.one_by_one(loop, full, end, env)

    def partial_sums(self, loop: For, env: Env) -> dict[str, list[Slot]]:
        """For each Var that the loop accumulates, the vectors that hold it meanwhile."""
        combines = _combines(loop)
        names = sorted(names_assigned(loop.body) & env.slots.keys())
        # Longer bodies hide the latency of the addition by themselves.
        copies = UNROLL if straight_cost(loop) <= UNROLL_COST else 1
        return {name: [self.lane_slot(env.slots[name], combines[name]) for _ in range(copies)] for name in names}

    def several_at_once(
        self, loop: For, begin: Value, full: Value, sums: dict[str, list[Slot]], body: LaneBody
    ) -> Value:
        """Sums of several vectors side by side, which hides the latency of an addition.

        The result is where the loop must go on.
        """
        copies = len(next(iter(sums.values()), ()))
        step = self.lanes * copies
        length = full - begin
        # Too short for one round of several vectors.
        if copies < 2 or (length.is_constant and int(length.text) < step):
            return begin
        until = full - length.binary("urem", length, step)

        def steps(i: Value) -> None:
            for copy in range(copies):
                body(i + copy * self.lanes, None, copy)

        self.writer.count_up(begin, until, step, steps)
        combines = _combines(loop)
        for name, held in sums.items():
            # In a fixed order, so that sums are the same in every run.
            total, *others = (self.writer.load(s.type, s.pointer) for s in held)
            for other in others:
                total = llvm_functions.combine(combines[name], held[0].dtype, total, other)
            self.writer.store(total, held[0].pointer)
        return until

    def masked_loop(self, begin: Value, end: Value, body: LaneBody) -> None:
        """Every vector under a mask: one copy of the body, which costs little where it is long."""
        # Rounded up to whole vectors; the last one is masked down to what is left.
        count = (end - begin + (self.lanes - 1)) & -self.lanes

        def step(i: Value) -> None:
            distance = end - i
            alive = distance.call("smin", self.lanes)
            body(i, self.first_lanes(alive), all_alive=distance >= self.lanes)

        self.writer.count_up(begin, begin + count, self.lanes, step)

    def first_lanes(self, count: Value) -> Value:
        """The mask of the first `count` lanes."""
        lane = self.writer.iota(self.lanes, "i32")
        return lane.compare("ult", self.writer.splat(count.cast("trunc", "i32"), self.lanes))

    def masked_tail(self, first: Value, count: Value, body: LaneBody) -> None:
        """The last vector, with only `count` lanes alive."""
        writer = self.writer

        # The count is known, so neither a branch nor a comparison is needed.
        if count.is_constant:
            alive = [f"i1 {int(k < int(count.text))}" for k in range(self.lanes)]
            body(first, Value(writer, f"<{self.lanes} x i1>", f"<{', '.join(alive)}>"))
        else:
            writer.either(count > 0, lambda: body(first, self.first_lanes(count)))

    def lane_slot(self, slot: Slot, combine: str) -> Slot:
        """A vector that starts as the identity of `combine`."""
        lane_sums = self.slot(slot.dtype, self.lanes)
        identity = constant(self.writer, COMBINE[combine].identity(slot.dtype))
        self.writer.store(self.writer.splat(identity, self.lanes), lane_sums.pointer)
        return lane_sums

    def fold(self, sums: Slot, slot: Slot, combine: str) -> None:
        """Combine the lanes by halves, and the result into the Var."""
        value = self.writer.load(sums.type, sums.pointer)
        count = self.lanes
        while count > 1:
            # Halving takes log2(lanes) vector operations.
            count //= 2
            low, high = self.writer.part(value, 0, count), self.writer.part(value, count, count)
            value = llvm_functions.combine(combine, slot.dtype, low, high)
        held = self.writer.load(slot.type, slot.pointer)
        total = llvm_functions.combine(combine, slot.dtype, held, self.writer.lane(value, 0))
        self.writer.store(total, slot.pointer)


def _fuses(combine: str, dtype: np.dtype) -> bool:
    return combine == "add" and dtype in (dtypes.f32, dtypes.f64)


def _may_be_truncated(stored: Value) -> bool:
    """Whether LLVM may make one instruction of a masked store and the narrowing before it.

    LLVM 22.1 makes a scalar store of the *wide* type from that where the mask is constant and has
    one lane (its issue 179489), which writes past the element. A mask may turn out to be constant
    in LLVM alone, e.g. for the last of 16 n + 1 elements, so these masks must not be seen through.
    """
    return stored.scalar_type in ("i8", "i16", "i32")


def _is_heavy(loop: For) -> bool:
    return HEAVY <= straight_cost(loop) < math.inf


def _always_zero(value: Value) -> bool:
    return value.text == "0"


def _combines(loop: For) -> dict[str, str]:
    """The operation by which the loop accumulates each Var."""
    # Loops that go on in lanes have only one for each (lanes/choose.py).
    return {s.name: s.combine for s in walk(loop.body) if isinstance(s, Accumulate)}
