"""The steps of a plan as LLVM functions of limited size.

    @run(ptr words)                           every step, in order; loops and branches are native
                                              control flow. The words are the addresses of the
                                              arguments, the results and the arena, then the sizes,
                                              then the seat of a crew's device (crew/) or 0
    @steps.k(ptr words, ptr frame)            some steps of the plan, or of an inner one; true if a
                                              Python function has raised an error

A frame is the words of one plan: @run's own, or those that a loop or branch makes for its body.

Invariant: no function grows with the plan, because LLVM takes more than linear time for large ones:
pointers are loaded from memory where they are used, and steps beyond `MOST_STEPS` are in functions
of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from typing import assert_never

from rune import dims
from rune.backends.cpu import conventions, float_mode, kinds_of_calls, pulse, python_call
from rune.backends.cpu.band import Band
from rune.backends.cpu.costs import can_begin_anew, first_steps, rounds_of_draft
from rune.backends.cpu.crew.records import SEAT
from rune.backends.cpu.frames import Frame, Values, Words, in_memory, in_turn, read
from rune.backends.cpu.host import ROUTINES
from rune.backends.cpu.host_abi import GAVE_UP
from rune.backends.cpu.items import Item, items_of
from rune.backends.cpu.module import Module, task_name
from rune.backends.cpu.watch import Watch, is_long, is_over, new_watch
from rune.core.types import ArrayType
from rune.dims import Size
from rune.errors import CompileError
from rune.lowering.codegen.llvm import index as llvm_index
from rune.lowering.codegen.llvm.ir.names import identifier, pointer_to
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.codegen.llvm.render import Rendered
from rune.lowering.factors import is_factor
from rune.lowering.plan import Branch, Call, Copy, Launch, Loop, Plan, Slot, Space, Step, inner_plans, is_one_place

# Estimated instructions of a kernel that is split between the cores, and of its smallest piece:
# waking workers costs about as much as the latter.
PARALLEL_COST = 60_000.0
CHUNK_COST = 20_000.0
CHUNKS_PER_CORE = 4  # so that a core that was delayed leaves its pieces to the others
# Of one part of a long kernel: signals are checked between its parts.
PART_COST = 1e8
HEARD_COST = 1e7  # of a kernel after which signals are checked: some milliseconds
# LLVM took 41 s for one function of 16,000 equations (decision 0043).
MOST_STEPS = 32  # in one function, including those of its loops and branches
Pulse = tuple[Value, Value | None]  # of a loop: the step of the next check, and the pulse's state
_REGISTERS = (1, 2, 4, 8)  # bytes that one load and store can copy


def write_run(module: Module) -> None:
    """Add @run, and the functions that it calls."""
    run = _Steps(module, "ret void")
    run.steps(module.plan)
    run.writer.do("ret void")
    if module.host.flushes:
        # Not inlined: LLVM moves arithmetic beyond a change of the mode.
        module.add("internal void @run.flushing(ptr %words) noinline", run.writer)
        module.add("void @run(ptr %words)", float_mode.flushing_call("run.flushing"))
    else:
        module.add("void @run(ptr %words)", run.writer)


def _parts(steps: Sequence[Item]) -> list[Sequence[Item]]:
    """The steps in groups that are not too long."""
    groups: list[Sequence[Item]] = []
    first, total = 0, 0
    for number, step in enumerate(steps):
        weight = _weight(step)
        if first < number and total + weight > MOST_STEPS:
            groups.append(steps[first:number])
            first, total = number, 0
        total += weight
    return [*groups, steps[first:]]


def _weight(step: Item) -> int:
    """The number of steps that a step adds to a function, its inner ones included."""
    if isinstance(step, Band):
        return len(step.steps)  # the addresses of their slots
    inside = [sum(map(_weight, plan.steps)) for plan in inner_plans(step)]
    # Steps beyond the limit are called in groups, so each group counts as one step.
    return 1 + sum(n if n <= MOST_STEPS else -(-n // MOST_STEPS) for n in inside)


class _Steps:
    """Writes one function. failing: the instruction that returns after a Python error."""

    def __init__(self, module: Module, failing: str):
        self.module, self.failing = module, failing
        self.plan, self.host, self.kernels = module.plan, module.host, module.kernels
        self.writer = Writer(block="start")
        words = Value(self.writer, "ptr", "%words")
        self.frame: Frame = Words(words, (len(self.plan.arguments), len(self.plan.results)))
        first = sum(self.frame.shape) + 1
        self.sizes = {s.name: read(words, "i64", first + k) for k, s in enumerate(self.plan.size_sources)}
        self.words, self.arena, self.seat = words, first - 1, first + len(self.sizes)
        self.is_draft = self.host.effort == conventions.HURRY

    def steps(self, plan: Plan) -> None:
        """The steps of a plan in the current frame: in this function if they are few, else
        called."""
        items = items_of(plan, self.host, self.kernels)
        # Functions of steps cannot see this function's registers.
        if len(_parts(items)) > 1:
            self.frame = self.frame_in_memory(plan)
        self.row(items)

    def row(self, steps: Sequence[Item]) -> None:
        """Steps one after the other; very many of them in functions that call functions."""
        parts = _parts(steps)
        if len(parts) > MOST_STEPS:
            # A row of thousands of calls would be a large function again.
            together = -(-len(parts) // MOST_STEPS)
            rows = [parts[k : k + together] for k in range(0, len(parts), together)]
            parts = [[*chain.from_iterable(row)] for row in rows]
        for part in parts:
            if len(parts) > 1:
                self.call_steps(part)
            else:
                for step in part:
                    self.step(step)

    def frame_in_memory(self, plan: Plan) -> Words:
        """The current frame, of this plan, as words in memory."""
        frame = self.frame
        if isinstance(frame, Words):
            return frame
        values = [frame.argument(k) for k in range(len(plan.arguments))]
        values += [frame.result(k) for k in range(len(plan.results))]
        words = in_memory(self.writer, [*values, frame.arena()])
        return Words(words, (len(plan.arguments), len(plan.results)), is_inner=True)

    def call_steps(self, steps: Sequence[Item]) -> None:
        """Write a function of these steps, and call it on the current frame."""
        frame = self.frame
        assert isinstance(frame, Words)
        inner = _Steps(self.module, "ret i1 true")
        inner.frame = replace(frame, words=Value(inner.writer, "ptr", "%frame"))
        inner.row(steps)
        inner.writer.do("ret i1 false")
        # After `row`, which has added the functions of inner steps: so the number is new.
        name = f"steps.{len(self.module.functions)}"
        self.module.add(f"internal i1 @{name}(ptr %words, ptr %frame)", inner.writer)
        call = f"call i1 @{name}(ptr %words, ptr {frame.words.text})"
        self.return_if(self.writer.effect("i1", call))

    def return_if(self, has_failed: Value) -> None:
        """Return if a Python function has raised an error."""
        good, bad = self.writer.name("good"), self.writer.name("bad")
        self.writer.branch(has_failed, bad, good)
        self.writer.label(bad)
        self.writer.do(self.failing)
        self.writer.label(good)

    def step(self, step: Item) -> None:
        """One step, timed if the plan has a clock."""
        if isinstance(step, Band):
            kinds_of_calls.bands().write_band(self, step)
        elif self.host.clock is None or isinstance(step, Loop | Branch):
            self.write(step)
        else:
            self.host.clock.around(step, self.writer, self.write)

    def write(self, step: Step) -> None:
        """One step."""
        match step:
            case Launch():
                self.launch(step)
            case Copy():
                self.copy(step)
            case Call(routine="dot" | "strided_dot"):
                kinds_of_calls.dots().write_product(self, step)
            case Call(routine="line_fft"):
                kinds_of_calls.transforms().write_transform(self, step, self.host, self.scratch)
            case Call() if is_factor(step):
                kinds_of_calls.factors().write_factor(self, step, self.host.libraries.factors)
            case Call(routine="callback") if (native := kinds_of_calls.library_calls().native_of(step)) is not None:
                native.write(self, step, self.scratch(), self.host)
            case Call(routine="callback"):
                self.call_back(step)
            case Call(routine=routine):
                raise CompileError(
                    f"cpu: cannot call {routine} (its plans may call {', '.join(ROUTINES)} and Python functions)"
                )
            case Loop():
                self.loop(step)
            case Branch():
                self.branch(step)
            case _:
                assert_never(step)

    def size(self, size: Size) -> Value:
        """A size of the plan, computed from the call's sizes."""
        return llvm_index.render(self.writer, size, self.sizes)

    def pointer(self, slot: Slot) -> Value:
        """The address of a slot in the call."""
        match slot.space:
            case Space.ARGUMENT:
                return self.frame.argument(slot.number)
            case Space.RESULT:
                return self.frame.result(slot.number)
            case Space.ARENA:
                return self.in_arena(slot.offset)

    def in_arena(self, offset: Size) -> Value:
        """The address at `offset` bytes in the arena of the frame."""
        return self.writer.item(self.frame.arena(), "i8", self.size(offset))

    def scratch(self) -> Value:
        """The address of the work arrays, in the arena of @run."""
        assert self.module.scratch is not None
        return self.writer.item(read(self.words, "ptr", self.arena), "i8", self.size(self.module.scratch.first))

    def pointers(self, slots: Iterable[Slot]) -> tuple[Value, ...]:
        """The addresses of slots in the call."""
        return tuple(map(self.pointer, slots))

    def within(self, plan: Plan, frame: Frame) -> None:
        """The steps of an inner plan, in its own frame."""
        outer, self.frame = self.frame, frame
        self.steps(plan)
        self.frame = outer

    def launch(self, step: Launch) -> None:
        """Call a kernel, or have the pool call it."""
        kernel, code = self.kernels[step.kernel], self.plan.kernels[step.kernel]
        operands = [self.pointer(s) for s in step.slots] + [self.sizes[n] for n in code.sizes]
        total = self.size(kernel.range)
        cores = self.host.cores
        # In whole grains, which a kernel cannot divide.
        part = max(int(PART_COST * cores / max(kernel.unit_cost, 1e-9)) // kernel.grain, cores) * kernel.grain
        if isinstance(kernel.range, int) and 2 * part <= kernel.range and pulse.is_available():
            self.in_parts(step, kernel, operands, part)
            return
        self.launch_whole(step, kernel, operands, total)
        if isinstance(kernel.range, int) and kernel.range * kernel.unit_cost >= HEARD_COST and pulse.is_available():
            self.hear()

    def launch_whole(self, step: Launch, kernel: Rendered, operands: list[Value], total: Value) -> None:
        """A kernel in one call, by all cores if that pays."""
        # For a symbolic range both are compiled, and the call decides.
        threshold = max(2 * kernel.grain, int(PARALLEL_COST / max(kernel.unit_cost, 1e-9)))
        small = dims.less(kernel.range, threshold)
        if self.host.cores == 1 or small is True:
            self.call_kernel(kernel, operands, total)
        elif small is False:
            self.call_pool(step.kernel, kernel, operands, total)
        else:
            self.writer.either(
                total.compare("slt", threshold),
                lambda: self.call_kernel(kernel, operands, total),
                lambda: self.call_pool(step.kernel, kernel, operands, total),
            )

    def in_parts(self, step: Launch, kernel: Rendered, operands: list[Value], part: int) -> None:
        """A long kernel: one part of its range after the other, with a check of signals after
        each."""
        writer, total = self.writer, self.size(kernel.range)

        def run(number: Value) -> None:
            first = number * part
            length = writer.call("i64", "@llvm.umin.i64", total - first, total.like(part))
            if self.host.cores == 1:
                self.call_kernel(kernel, operands, first + length, first)
            else:
                self.call_pool(step.kernel, kernel, operands, length, first)
            self.hear()

        assert isinstance(kernel.range, int)
        writer.count_up(total.like(0), total.like(-(-kernel.range // part)), 1, run)

    def call_kernel(self, kernel: Rendered, operands: list[Value], end: Value, first: Value | None = None) -> None:
        """Run the range up to `end`, from `first` or 0 on, on this thread."""
        begin = "0" if first is None else first.text
        operands_text = [f"{v.type} {v.text}" for v in operands] + [f"i64 {begin}", f"i64 {end.text}"]
        self.writer.do(f"call void @{identifier(kernel.name)}({', '.join(operands_text)})")

    def call_pool(
        self, name: str, kernel: Rendered, operands: list[Value], total: Value, first: Value | None = None
    ) -> None:
        """Run `total` of the range, from `first` on, in pieces: enough for all cores, none too
        small."""
        self.module.split.add(name)
        writer = self.writer
        words = in_memory(writer, [*operands, first or total.like(0)])
        least = max(kernel.grain, int(CHUNK_COST / max(kernel.unit_cost, 1e-9)))
        least = -(-least // kernel.grain) * kernel.grain
        pieces = self.host.cores * CHUNKS_PER_CORE * kernel.grain
        even = total.ceil_div(pieces) * kernel.grain
        chunk = writer.call("i64", "@llvm.smax.i64", even, even.like(least))
        function = pointer_to(self.host.parallel())
        task = f"ptr @{task_name(name)}, ptr {words.text}"
        writer.do(f"call void {function}({task}, i64 {total.text}, i64 {chunk.text})")

    def copy(self, step: Copy) -> None:
        """Copy the bytes of a slot, unless source and target are the same."""
        target, source = self.pointer(step.target), self.pointer(step.source)
        if isinstance(self.frame, Words) and self.frame.is_inner:
            self.move_apart(target, source, step.source.type)
        else:
            self.move(target, source, step.source.type)

    def move_apart(self, target: Value, source: Value, type: ArrayType) -> None:
        """Copy an array unless source and target are the same, which is known only in the call."""
        self.writer.either(target.compare("ne", source), lambda: self.move(target, source, type))

    def move(self, target: Value, source: Value, type: ArrayType) -> None:
        """Copy the bytes of an array between two places that may overlap completely."""
        if target.text == source.text:
            return
        count = self.size(dims.product(type.shape) * type.dtype.itemsize)
        if count.is_constant and int(count.text) in _REGISTERS:
            word = f"i{8 * int(count.text)}"
            self.writer.store(self.writer.load(word, source, 1), target, 1)
            return
        no = Value(self.writer, "i1", "false")
        # memmove, because the two places may be one.
        self.writer.run("@llvm.memmove.p0.p0.i64", target, source, count, no)

    def loop(self, step: Loop) -> None:
        """A native loop. Alternating carries are pointers that are swapped in each step."""
        writer = self.writer
        operands, results = self.pointers(step.arguments), self.pointers(step.results)
        constants, state = operands[: -len(results) or None], operands[len(operands) - len(results) :]
        arena = self.in_arena(step.offset)
        pairs = enumerate(zip(step.state, step.results))
        turning = [k for k, (a, b) in pairs if not is_one_place(a, b)]
        head, body, last, end_label = map(writer.name, ("head", "body", "next", "done"))
        due, around = self.begin_pulse(step), self.module.rounds
        if self.is_draft:
            self.module.rounds *= rounds_of_draft(step, self.kernels, self.host.machine, around)
        before, following = writer.block, Value(writer, "i64", f"%{writer.name('t')}")
        writer.jump(head)
        writer.label(head)
        t = writer.phi("i64", (Value(writer, "i64", "0"), before), (following, last))
        # In LLVM the phi instructions of a block come before all others.
        current, following_places = list(state), list(results)
        for k in turning:
            current[k], following_places[k] = in_turn(writer, state[k], results[k], before, last)
        inner = Values((*constants, *current), tuple(following_places), arena)
        # Expressions that the body emits are not known after the loop, which may run no step.
        writer.known.append({})
        # The body reads the number of its step from its first argument.
        writer.store(t.cast("trunc", "i32"), constants[0])
        writer.branch(self.goes_on(step, t, inner), body, end_label)
        writer.label(body)
        self.within(step.body, inner)
        writer.do(f"{following.text} = add nuw nsw i64 {t.text}, 1")
        self.beat(following, due)
        writer.jump(last)
        writer.label(last)
        writer.jump(head)
        writer.known.pop()
        self.module.rounds = around
        writer.label(end_label)
        for k in turning:
            self.settle(state[k], current[k], step.state[k].type)

    def watch(self, operations: Size) -> Watch:
        """The watch for a routine of this many operations: null if it is short."""
        if not is_long(operations):
            return Watch(Value(self.writer, "ptr", "null"), self.return_if)
        self.module.asks = True
        return Watch(new_watch(self.writer), self.return_if)

    def hear(self) -> None:
        """Check for signals if it is time to, and return if a handler has raised an error."""
        self.module.asks = True
        self.return_if(is_over(self.writer))

    def begin_pulse(self, step: Loop) -> Pulse | None:
        """Before a loop: allocate the number of the step that checks for signals, and the state.

        A `while` of a draft has no state: it gives up at that step.
        """
        if self.is_draft and step.condition is not None and can_begin_anew(self.module.plan):
            self.module.gives_up = True
            due = self.writer.allocate("i64")
            most = rounds_of_draft(step, self.kernels, self.host.machine, self.module.rounds)
            self.writer.store(self.writer.constant("i64", most), due)
            return due, None
        if not pulse.is_available():
            return None
        self.module.asks, writer, first = True, self.writer, first_steps(step, self.kernels)
        state = in_memory(writer, [writer.constant("i64", k) for k in (first, 0, 0)])
        due = writer.allocate("i64")
        writer.store(writer.constant("i64", first), due)
        return due, state

    def beat(self, step_number: Value, clock: Pulse | None) -> None:
        """After a step: check for signals if it is time to. step_number: steps run so far."""
        if clock is None:
            return
        due, state = clock
        writer = self.writer
        ask, on = writer.name("ask"), writer.name("on")
        writer.branch(step_number.equals(writer.load("i64", due)), ask, on)
        writer.label(ask)
        if state is None:
            writer.store(writer.constant("i64", GAVE_UP), self.field_of_words(self.seat))
            writer.do(self.failing)
            writer.label(on)
            return
        call = f"call i64 {pointer_to(pulse.address())}(ptr {state.text})"
        more = writer.effect("i64", call)
        self.return_if(more.equals(0))
        writer.store(step_number + more, due)
        writer.jump(on)
        writer.label(on)

    def field_of_words(self, number: int) -> Value:
        """The address of one of @run's words."""
        return self.writer.item(self.words, "i64", number)

    def goes_on(self, step: Loop, t: Value, frame: Values) -> Value:
        """Whether step t runs."""
        if step.condition is None:
            assert step.count is not None
            return t < self.size(step.count)
        assert step.holds is not None
        holds = self.pointer(step.holds)
        self.within(step.condition, replace(frame, results=(holds,)))
        return self.writer.load("i8", holds).compare("ne", 0)

    def settle(self, home: Value, place: Value, type: ArrayType) -> None:
        """Copy a carry to its own place, if an odd number of steps has left it in the other one."""
        self.move_apart(home, place, type)

    def branch(self, step: Branch) -> None:
        """A native switch. An index out of range selects the nearest branch."""
        writer = self.writer
        inner = Values(self.pointers(step.arguments), self.pointers(step.results), self.in_arena(step.offset))
        number = writer.load("i32", self.pointer(step.number))
        branch_number = writer.call("i32", "@llvm.smax.i32", number, number.like(0))
        labels = [writer.name("case") for _ in step.branches]
        join = writer.name("join")
        cases = " ".join(f"i32 {k}, label %{label}" for k, label in enumerate(labels[:-1]))
        writer.do(f"switch i32 {branch_number.text}, label %{labels[-1]} [ {cases} ]")
        for label, plan in zip(labels, step.branches, strict=True):
            with writer.region(label):
                self.within(plan, inner)
                writer.jump(join)
        writer.label(join)

    def call_back(self, step: Call) -> None:
        """A Python function. In a crew, collectives and queries for a place are native code."""
        message, place = kinds_of_calls.talks().message_of(step), kinds_of_calls.talks().place_of(step)
        if message is not None:
            number = self.module.talk.messages.index(message)
            self.at_seat(lambda seat: self.meet(step, seat, number, len(message.operands)), step)
        elif place is not None:
            number = self.module.talk.axes.index(place.axis_name)
            self.at_seat(lambda seat: self.tell_place(step, seat, number), step)
        else:
            self.call_python(step)

    def at_seat(self, do: Callable[[Value], None], step: Call) -> None:
        """do(seat) if this run has a seat, else call Python."""
        seat = read(self.words, "ptr", self.seat)
        nobody = seat.compare("eq", Value(self.writer, "ptr", "null"))
        self.writer.either(nobody, lambda: self.call_python(step), lambda: do(seat))

    def meet(self, step: Call, seat: Value, number: int, count: int) -> None:
        """A collective by native code, on words with the addresses of results and operands."""
        assert self.host.meet is not None
        row = in_memory(self.writer, [*self.pointers((*step.outputs[:count], *step.inputs[:count]))])
        function = pointer_to(self.host.meet())
        call = f"call i1 {function}(ptr {seat.text}, i64 {number}, ptr {row.text})"
        self.return_if(self.writer.effect("i1", call))

    def tell_place(self, step: Call, seat: Value, number: int) -> None:
        """The device's place along an axis."""
        places = read(seat, "ptr", SEAT["axes"])
        self.writer.store(read(places, "i64", number).cast("trunc", "i32"), self.pointer(step.outputs[0]))

    def call_python(self, step: Call) -> None:
        """Call a Python function on words with the addresses of its arrays; return after an
        error."""
        assert self.host.call_back is not None
        writer, pointers = self.writer, [*self.pointers((*step.outputs, *step.inputs))]
        pointers += self.sizes.values()
        words = in_memory(writer, pointers)
        self.module.asks = True
        function, python = pointer_to(id(self.host.call_back(step))), pointer_to(python_call.address())
        with float_mode.denormals_kept(writer) if self.host.flushes else nullcontext():
            has_failed = writer.effect("i1", f"call i1 {python}(ptr {function}, ptr {words.text})")
        self.return_if(has_failed)
