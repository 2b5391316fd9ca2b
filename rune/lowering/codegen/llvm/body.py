"""Statements of kernel code as LLVM IR: branches, loops, and loops in lanes.

Vars are stack slots, which LLVM turns into registers. A Var accumulated across lanes is kept as a
vector, summed up by halves when the loop ends: the order depends on the target alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Protocol

from rune import dtypes
from rune.errors import CompileError
from rune.lowering.codegen.llvm import functions as llvm_functions
from rune.lowering.codegen.llvm import scalar as llvm_scalar
from rune.lowering.codegen.llvm.ir.memory import Alive, Memory, Slot, slot
from rune.lowering.codegen.llvm.ir.names import lanes_of
from rune.lowering.codegen.llvm.ir.text import Value
from rune.lowering.codegen.llvm.ir.types import constant, memory_type, to_memory
from rune.lowering.codegen.llvm.values import Env, Lanes, Values
from rune.lowering.codegen.walk import StatementWalk
from rune.lowering.kernel.expr import Expr
from rune.lowering.kernel.nodes import Alloc, Barrier, For, If, Kind, Store
from rune.lowering.kernel.rewrite import Body as Statements
from rune.lowering.kernel.rewrite import updated
from rune.lowering.lanes.rounds import Rounds, Sum, rounds_of
from rune.records import dataclass, replace

# Per kernel, on the stack of the thread that runs it.
MAX_SCRATCH_BYTES = 1 << 20


class LaneBody(Protocol):
    """The body of a vectorised loop from its first lane on."""

    def __call__(self, i: Value, alive: Alive, vector: int = 0) -> None:
        """Write the iteration. vector: of those that hold a sum, the one to accumulate in."""
        ...


@dataclass(slots=True)
class Body(StatementWalk, Values):
    """Writes the statements of one kernel. `lane_loops`: the loops to vectorise, by identity."""

    lanes: int
    lane_loops: frozenset[int]
    scratch_bytes: int = 0

    @property
    def language(self) -> str:
        return "llvm"

    # --- statements --------------------------------------------------------------------------

    def run(self, body: Statements, env: Env) -> None:
        """Write statements whose names `env` defines."""
        with self.inside(env):
            self.body(body)

    def let(self, name: str, value: Expr) -> None:
        """Bind a value; an integer may appear in indices from here on."""
        bound, env = self.value(value), self.env
        symbols, lanes = env.symbols, env.lanes
        if value.dtype in dtypes.INTEGER:
            # Index arithmetic is i64 whatever dtype the Let has.
            symbols = {**symbols, name: llvm_scalar.convert(bound, value.dtype, dtypes.i64)}
            # From here on an index that mentions it varies by lane.
            if bound.lanes and lanes:
                lanes = replace(lanes, varying=lanes.varying | {name})
        self.env = replace(env, locals={**env.locals, name: bound}, symbols=symbols, lanes=lanes)

    def var(self, name: str, init: Expr) -> None:
        """Declare a mutable scalar; in lanes, one for each."""
        new = slot(self.value(init), self.env.count)
        self.env = replace(self.env, slots={**self.env.slots, name: new})

    def assign(self, name: str, value: Expr) -> None:
        """Write a Var, in the lanes that are alive."""
        variable, alive = self.env.slots[name], self.env.alive
        new = self.writer.splat(self.value(value), lanes_of(variable.type))
        # A select keeps the value of lanes that are switched off; a masked store would keep the Var
        # out of registers.
        if alive is not None and alive.mask is not None:
            new = self.writer.select(alive.mask, new, variable.read())
        variable.write(new)

    def store(self, stmt: Store) -> None:
        """Write one element, or one for each lane that is alive."""
        if stmt.atomic:
            raise CompileError(
                "llvm: cannot render an atomic change (points are divided among threads, not elements)",
                hint="a kernel for a cpu target must change elements of its own",
            )
        memory, step, alive = self.env.memory[stmt.buffer], self.env.step(stmt.index), self.env.alive
        # One address, of the first lane; the others are its neighbours, or lie a few apart.
        if alive is not None and step not in (0, 1, None) and stmt.combine is None and self.has_steps(memory):
            first = self.first(stmt.index)
            memory.write_apart(self.raw(stmt.value, memory), first, step, alive)
        else:
            at = memory.address(self.first(stmt.index) if step == 1 else self.index(stmt.index))
            memory.write(self.raw(updated(stmt), memory), at, alive)

    def has_steps(self, memory: Memory) -> bool:
        """Whether elements a few apart are written as vectors; narrow ones might be truncated."""
        return self.has_cheap_masks and memory.type in ("float", "double")

    def raw(self, value: Expr, memory: Memory) -> Value:
        """A value as it is stored, in every lane."""
        return to_memory(self.writer.splat(self.value(value), self.env.count), memory.dtype)

    def alloc(self, stmt: Alloc) -> None:
        """Scratch on the stack; in lanes, a copy for each."""
        elements = stmt.size * max(1, self.env.count)
        self.scratch_bytes += elements * stmt.dtype.itemsize
        if self.scratch_bytes > MAX_SCRATCH_BYTES:
            raise CompileError(
                f"llvm: cannot hold {self.scratch_bytes} B of scratch ({stmt.name}, limit {MAX_SCRATCH_BYTES} B)",
                hint="the schedule must keep scratch within the target's scratch_bytes",
            )
        memory = Memory(self.writer.allocate(memory_type(stmt.dtype), elements), stmt.dtype, self.env.count)
        self.env = replace(self.env, memory={**self.env.memory, stmt.name: memory})

    def barrier(self, stmt: Barrier) -> None:
        raise CompileError(
            "llvm: cannot render a barrier (a workgroup is one thread on the cpu)",
            hint="the schedule for a cpu target must not bind workgroups",
        )

    def branch(self, stmt: If) -> None:
        """Real branches; where the lanes differ, both sides under masks."""
        condition, env = self.value(stmt.condition), self.env
        if not condition.lanes:
            orelse = partial(self.run, stmt.orelse, env) if stmt.orelse else None
            self.writer.either(condition, partial(self.run, stmt.body, env), orelse)
            return
        for mask, body in ((condition, stmt.body), (condition.invert(), stmt.orelse)):
            if body:
                inner = env.only(mask)
                assert inner.alive is not None
                # Skips a side that no lane takes; otherwise both would always run.
                any_alive = self.writer.any_lane(inner.alive.bits(self.writer))
                self.writer.either(any_alive, partial(self.run, body, inner))

    # --- loops -------------------------------------------------------------------------------

    def loop(self, loop: For) -> None:
        """A loop over its whole extent."""
        self.span(loop, self.writer.constant("i64", 0), self.index(loop.extent))

    def span(self, loop: For, begin: Value, end: Value) -> None:
        """A loop over begin..end, in lanes if it is one of `lane_loops`."""
        # Loops inside a vectorised one run in order, each step in all lanes.
        if self.env.lanes is None and id(loop) in self.lane_loops:
            self.in_lanes(loop, begin, end)
        else:
            self.one_by_one(loop, begin, end)

    def at_row(self, loops: Sequence[For], number: Value) -> Env:
        """The loop variables of the row with this number in row-major order."""
        symbols = dict[str, Value]()
        for loop in reversed(loops[1:]):
            extent = self.index(loop.extent)
            symbols[loop.var], number = number.binary("urem", extent), number.binary("udiv", extent)
        # The outermost variable needs no remainder: what is left after the divisions is it.
        return self.env.at(symbols | {loop.var: number for loop in loops[:1]})

    def one_by_one(self, loop: For, begin: Value, end: Value) -> None:
        """One iteration after the other; an unrolled loop is written out."""

        def body(i: Value) -> None:
            self.run(loop.body, self.env.at({loop.var: i}))

        if loop.kind is Kind.UNROLLED and isinstance(loop.extent, int):
            for k in range(loop.extent):
                body(self.writer.constant("i64", k))
        else:
            self.writer.count_up(begin, end, 1, body)

    def in_lanes(self, loop: For, begin: Value, end: Value) -> None:
        """Full vectors first, then the remaining iterations, in masked lanes or one by one."""
        rounds, env, all_lanes = rounds_of(loop), self.env, Alive(self.lanes)
        # Each sum is kept in vectors while the loop runs, so no iteration waits for a scalar.
        sums = {s.name: [self.lane_slot(s) for _ in range(rounds.vectors)] for s in rounds.sums}
        # The number of lanes is a power of two.
        tail = (end - begin) & (self.lanes - 1)
        full = end - tail

        def body(i: Value, alive: Alive = all_lanes, vector: int = 0) -> None:
            lanes = Lanes(loop.var, alive, frozenset({loop.var}))
            slots = {**env.slots, **{name: vectors[vector] for name, vectors in sums.items()}}
            self.run(loop.body, replace(env, slots=slots, lanes=lanes).at({loop.var: i}))

        # Without this, a long body would be emitted twice: for full vectors and for the tail.
        if self.has_cheap_masks and not tail.is_constant and rounds.is_heavy:
            self.masked_loop(begin, end, body)
            # Every step is masked, so no tail is left.
            tail = tail.like(0)
        else:
            first = self.several_at_once(rounds, begin, full, sums, body)
            self.writer.count_up(first, full, self.lanes, body)
        has_tail = tail.text != "0"
        if self.has_cheap_masks and has_tail:
            self.masked_tail(full, tail, body)
        for s in rounds.sums:
            self.fold(s, sums[s.name][0], env.slots[s.name])
        if not self.has_cheap_masks and has_tail:
            self.one_by_one(loop, full, end)

    def lane_slot(self, s: Sum) -> Slot:
        """A vector of partial sums."""
        return slot(constant(self.writer, s.dtype, s.identity.bits), self.lanes)

    def several_at_once(
        self, rounds: Rounds, begin: Value, full: Value, sums: Mapping[str, Sequence[Slot]], body: LaneBody
    ) -> Value:
        """Sums of several vectors side by side, which hides the latency of an addition.

        Returns the iteration at which the loop must continue.
        """
        step, length, all_lanes = self.lanes * rounds.vectors, full - begin, Alive(self.lanes)
        # Too short for one round of several vectors.
        if rounds.vectors == 1 or (length.is_constant and int(length.text) < step):
            return begin
        until = full - length.binary("urem", step)

        def steps(i: Value) -> None:
            for vector in range(rounds.vectors):
                body(i + vector * self.lanes, all_lanes, vector)

        self.writer.count_up(begin, until, step, steps)
        for s in rounds.sums:
            # In a fixed order, so that sums are the same in every run.
            parts = [vector.read() for vector in sums[s.name]]
            sums[s.name][0].write(reduce(partial(llvm_functions.combine, s.combine, s.dtype), parts))
        return until

    def masked_loop(self, begin: Value, end: Value, body: LaneBody) -> None:
        """Every vector under a mask: one copy of the body, which costs little where it is long."""
        # Rounded up to full vectors; the last one is masked down to the remainder.
        count = (end - begin + (self.lanes - 1)) & -self.lanes

        def step(i: Value) -> None:
            distance = end - i
            mask = self.writer.first_lanes(distance.call("smin", self.lanes), self.lanes)
            body(i, Alive(self.lanes, mask, distance >= self.lanes))

        self.writer.count_up(begin, begin + count, self.lanes, step)

    def masked_tail(self, first: Value, count: Value, body: LaneBody) -> None:
        """The last vector, with only `count` lanes alive."""

        def write() -> None:
            body(first, Alive(self.lanes, self.writer.first_lanes(count, self.lanes)))

        # Where the count is known, neither a branch nor a comparison is needed.
        if count.is_constant:
            write()
        else:
            self.writer.either(count > 0, write)

    def fold(self, s: Sum, vector: Slot, total: Slot) -> None:
        """Combine the lanes by halves, and the result into the Var."""
        value, count = vector.read(), self.lanes
        while count > 1:
            # Halving takes log2(lanes) vector operations.
            count //= 2
            low, high = self.writer.part(value, 0, count), self.writer.part(value, count, count)
            value = llvm_functions.combine(s.combine, s.dtype, low, high)
        before, lane = total.read(), self.writer.lane(value, 0)
        total.write(llvm_functions.combine(s.combine, s.dtype, before, lane))
