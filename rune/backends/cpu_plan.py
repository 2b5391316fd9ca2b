"""A whole plan as one LLVM module: its kernels, `@run` over all steps, and Python's entry point.

    @run(ptr arguments..., ptr results..., ptr arena, i64 sizes...)     every step, in order;
                                              loops and branches are native control flow
    @entry(ptr self, ptr argv, i64 count)     a CPython function of arrays: checks, then @run
    @from_words(ptr words)                    @run, its parameters one after the other in memory

`@entry` is in cpu_entry.py; calls of kinds that were met before come by `@from_words`
(cpu_call.py), when all has been checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from rune import dims
from rune.backends.cpu_dots import Address, compile_dots, write_dot, write_strided_dot
from rune.backends.cpu_entry import entry, function_at
from rune.backends.cpu_python import Abi
from rune.core.types import ArrayType
from rune.dims import Size
from rune.errors import CompileError
from rune.lowering.codegen import llvm_index
from rune.lowering.codegen.llvm import Machine, Rendered, render
from rune.lowering.codegen.llvm_names import identifier
from rune.lowering.codegen.llvm_text import Value, Writer
from rune.lowering.kernelize.walks import SIZES
from rune.lowering.plan import Branch, Call, Copy, Launch, Loop, Plan, Slot, Space, Step

if TYPE_CHECKING:
    from rune.backends.cpu_timed import Clock

# Estimated instructions from which a kernel is split between the cores, and of one piece at least.
PARALLEL_COST = 60_000.0
CHUNK_COST = 20_000.0
CHUNKS_PER_CORE = 4
_DOT_COST = 1 / 16  # of one product of a matrix product
_COPY_COST = 1 / 4  # of one element of a copy
_REGISTERS = (1, 2, 4, 8)  # bytes that a register copies at once


@dataclass(frozen=True, slots=True)
class Host:
    """What the module needs to know of the process: the processor, Python, the worker pool."""

    machine: Machine
    abi: Abi
    cores: int
    parallel: Callable[[], int]  # address of void(ptr task, ptr words, i64 total, i64 chunk)
    dot: Address  # of matrix products of a dtype (cpu_gemm.py), ...
    strided_dot: Address  # ... and of views (cpu_gemm_strided.py)
    # Address of i32(ptr words), which calls the Python function of a step (callbacks.py).
    call_back: Callable[[Call], int] | None = None
    clock: Clock | None = None  # times every step


@dataclass(frozen=True, slots=True)
class Rendering:
    """The module's text, and that of each kernel."""

    text: str
    kernels: Mapping[str, str]
    cost: float | None = None  # estimated instructions; None where sizes or data decide


def render_plan(plan: Plan, host: Host) -> Rendering:
    """The whole plan as IR.

    Errors: CompileError for what the cpu does not have.
    """
    kernels = {
        name: render(replace(code, name=f"kernel.{name}"), host.machine)
        for name, code in plan.kernels.items()
    }
    compile_dots(plan, {"dot": host.dot, "strided_dot": host.strided_dot})
    run = _Run(plan, host, kernels, Writer())
    parts = [run.text(), entry(plan, host.abi), _from_words(plan)]
    declared = set(run.writer.declared).union(*(k.declarations for k in kernels.values()))
    tasks = [_task(plan, name, kernels[name]) for name in sorted(run.split)]
    sources = {name: k.text for name, k in kernels.items()}
    parts += [] if host.clock is None else [host.clock.text()]
    text = "\n\n".join(["\n".join(sorted(declared)), *sources.values(), *tasks, *parts])
    return Rendering(text, sources, _cost(plan, kernels))


def _cost(plan: Plan, kernels: Mapping[str, Rendered]) -> float | None:
    if plan.size_sources:
        return None
    total = 0.0
    for step in plan.steps:
        match step:
            case Launch():
                kernel = kernels[step.kernel]
                total += kernel.unit_cost * dims.evaluate(kernel.range, {})
            case Copy():
                total += _COPY_COST * dims.evaluate(dims.product(step.source.type.shape), {})
            case Call(routine="dot"):
                total += _DOT_COST * _products(step)
            case _:
                return None
    return total


def _products(step: Call) -> int:
    """How many products a matrix product adds up."""
    given = dict(step.parameters)
    return math.prod(x for x in map(given.get, SIZES) if isinstance(x, int))


def _from_words(plan: Plan) -> str:
    """@run behind one pointer: an array of its arguments."""
    lines, given = [], []
    for k, parameter in enumerate(parameter_names(plan)):
        type = parameter.split()[0]
        lines.append(f"  %a{k} = getelementptr i64, ptr %words, i64 {k}")
        lines.append(f"  %w{k} = load {type}, ptr %a{k}")
        given.append(f"{type} %w{k}")
    lines.append(f"  call void @run({', '.join(given)})")
    return "\n".join(["define void @from_words(ptr %words) #0 {", *lines, "  ret void", "}"])


def _task(plan: Plan, name: str, kernel: Rendered) -> str:
    """A kernel behind one pointer: an array of its pointers and sizes."""
    code = plan.kernels[name]
    types = ["ptr"] * len(code.params) + ["i64"] * len(code.sizes)
    lines, given = [], []
    for k, type in enumerate(types):
        lines.append(f"  %a{k} = getelementptr i64, ptr %words, i64 {k}")
        lines.append(f"  %w{k} = load {type}, ptr %a{k}")
        given.append(f"{type} %w{k}")
    given += ["i64 %begin", "i64 %end"]
    head = f"define internal void @{_task_name(name)}(ptr %words, i64 %begin, i64 %end) #0 {{"
    call = f"  call void @{identifier(kernel.name)}({', '.join(given)})"
    return "\n".join([head, *lines, call, "  ret void", "}"])


def _task_name(kernel: str) -> str:
    return identifier(f"task.{kernel}")


def parameter_names(plan: Plan) -> list[str]:
    """The parameters of @run, typed."""
    arguments = [f"ptr %argument{k}" for k in range(len(plan.arguments))]
    results = [f"ptr %result{k}" for k in range(len(plan.results))]
    sizes = [f"i64 %size{k}" for k in range(len(plan.size_sources))]
    return [*arguments, *results, "ptr %arena", *sizes]


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where the arguments, results and arena of one plan lie, as pointers."""

    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    arena: Value


class _Run:
    """Writes @run."""

    def __init__(self, plan: Plan, host: Host, kernels: Mapping[str, Rendered], writer: Writer):
        self.plan, self.host, self.kernels, self.writer = plan, host, kernels, writer
        self.frame = _Frame(
            tuple(Value(writer, "ptr", f"%argument{k}") for k in range(len(plan.arguments))),
            tuple(Value(writer, "ptr", f"%result{k}") for k in range(len(plan.results))),
            Value(writer, "ptr", "%arena"),
        )
        self.split: set[str] = set()  # kernels that are split somewhere
        self.sizes = {
            s.name: Value(writer, "i64", f"%size{k}") for k, s in enumerate(plan.size_sources)
        }

    def text(self) -> str:
        """The function."""
        self.writer.block = "start"
        for step in self.plan.steps:
            self.step(step)
        head = f"define internal void @run({', '.join(parameter_names(self.plan))}) #0 {{"
        lines = [head, "entry:", *self.writer.entry, "  br label %start", "start:"]
        return "\n".join([*lines, *self.writer.lines, "  ret void", "}"])

    def step(self, step: Step) -> None:
        """One step, timed where the plan has a clock."""
        if self.host.clock is None or isinstance(step, Loop | Branch):
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
            case Call(routine="dot"):
                write_dot(self, step, self.host.dot)
            case Call(routine="strided_dot"):
                write_strided_dot(self, step, self.host.strided_dot)
            case Call(routine="callback"):
                self.call_back(step)
            case Call(routine=routine):
                raise CompileError(f"cpu: cannot call {routine} (the target lists dot only)")
            case Loop():
                self.loop(step)
            case Branch():
                self.branch(step)
            case _:
                assert_never(step)

    def size(self, size: Size) -> Value:
        """A size of the plan, from this call's sizes."""
        return llvm_index.render(self.writer, size, self.sizes)

    def pointer(self, slot: Slot) -> Value:
        """Where a slot lies in this call."""
        match slot.space:
            case Space.ARGUMENT:
                return self.frame.arguments[slot.number]
            case Space.RESULT:
                return self.frame.results[slot.number]
            case Space.ARENA:
                return self.in_arena(slot.offset)

    def in_arena(self, offset: Size) -> Value:
        """So many bytes into the arena of the frame."""
        base, bytes = self.frame.arena, self.size(offset)
        return self.writer.emit("ptr", f"getelementptr i8, ptr {base.text}, i64 {bytes.text}")

    def pointers(self, slots: Iterable[Slot]) -> tuple[Value, ...]:
        """Where slots lie in this call."""
        return tuple(map(self.pointer, slots))

    def within(self, plan: Plan, frame: _Frame) -> None:
        """The steps of a plan within, in a frame of its own."""
        outer, self.frame = self.frame, frame
        for step in plan.steps:
            self.step(step)
        self.frame = outer

    def launch(self, step: Launch) -> None:
        """Call a kernel, or have the pool call it."""
        kernel, code = self.kernels[step.kernel], self.plan.kernels[step.kernel]
        given = [self.pointer(s) for s in step.slots] + [self.sizes[n] for n in code.sizes]
        total = self.size(kernel.range)
        threshold = max(2 * kernel.grain, int(PARALLEL_COST / max(kernel.unit_cost, 1e-9)))
        small = dims.less(kernel.range, threshold)
        if self.host.cores == 1 or small is True:
            self.call_kernel(kernel, given, total)
        elif small is False:
            self.call_pool(step.kernel, kernel, given, total)
        else:
            self.writer.either(
                total.compare("slt", threshold),
                lambda: self.call_kernel(kernel, given, total),
                lambda: self.call_pool(step.kernel, kernel, given, total),
            )

    def call_kernel(self, kernel: Rendered, given: list[Value], total: Value) -> None:
        """The whole range here."""
        listed = [f"{v.type} {v.text}" for v in given] + ["i64 0", f"i64 {total.text}"]
        self.writer.do(f"call void @{identifier(kernel.name)}({', '.join(listed)})")

    def call_pool(self, name: str, kernel: Rendered, given: list[Value], total: Value) -> None:
        """The range in pieces: enough to even out the cores, none too small."""
        self.split.add(name)
        writer = self.writer
        words = writer.allocate("i64", max(2, len(given)))
        for k, value in enumerate(given):
            at = writer.emit("ptr", f"getelementptr i64, ptr {words.text}, i64 {k}")
            writer.store(value, at)
        least = max(kernel.grain, int(CHUNK_COST / max(kernel.unit_cost, 1e-9)))
        least = -(-least // kernel.grain) * kernel.grain
        pieces = self.host.cores * CHUNKS_PER_CORE * kernel.grain
        even = (total + (pieces - 1)).binary("udiv", total + (pieces - 1), pieces) * kernel.grain
        chunk = writer.call("i64", "@llvm.smax.i64", even, even.like(least))
        function = function_at(self.host.parallel())
        task = f"ptr @{_task_name(name)}, ptr {words.text}"
        writer.do(f"call void {function}({task}, i64 {total.text}, i64 {chunk.text})")

    def copy(self, step: Copy) -> None:
        """Copy the bytes of a slot; nothing where source and target are one."""
        self.move(self.pointer(step.target), self.pointer(step.source), step.source.type)

    def move(self, target: Value, source: Value, type: ArrayType) -> None:
        """Copy the bytes of an array between two places that may be one."""
        if target.text == source.text:
            return
        count = self.size(dims.product(type.shape) * type.dtype.itemsize)
        if count.is_constant and int(count.text) in _REGISTERS:
            word = f"i{8 * int(count.text)}"
            self.writer.store(self.writer.load(word, source, 1), target, 1)
            return
        no = Value(self.writer, "i1", "false")
        self.writer.run("@llvm.memmove.p0.p0.i64", target, source, count, no)

    def loop(self, step: Loop) -> None:
        """A native loop. Carries that take turns are pointers that change places."""
        writer = self.writer
        given, results = self.pointers(step.arguments), self.pointers(step.results)
        fixed, state = given[: -len(results) or None], given[len(given) - len(results) :]
        arena = self.in_arena(step.offset)
        turning = [k for k, (a, b) in enumerate(zip(step.state, step.results)) if a != b]
        head, body, last, done = map(writer.name, ("head", "body", "next", "done"))
        before, following = writer.block, Value(writer, "i64", f"%{writer.name('t')}")
        writer.jump(head)
        writer.label(head)
        t = writer.phi("i64", (Value(writer, "i64", "0"), before), (following, last))
        now, then = list(state), list(results)
        for k in turning:
            now[k], then[k] = _in_turn(writer, state[k], results[k], before, last)
        inner = _Frame((*fixed, *now), tuple(then), arena)
        writer.known.append({})
        writer.store(t.cast("trunc", "i32"), fixed[0])
        writer.branch(self.goes_on(step, t, inner), body, done)
        writer.label(body)
        self.within(step.body, inner)
        writer.jump(last)
        writer.label(last)
        writer.do(f"{following.text} = add nuw nsw i64 {t.text}, 1")
        writer.jump(head)
        writer.known.pop()
        writer.label(done)
        for k in turning:
            self.settle(state[k], now[k], step.state[k].type)

    def goes_on(self, step: Loop, t: Value, frame: _Frame) -> Value:
        """Whether step t is to run."""
        if step.condition is None:
            assert step.count is not None
            return t < self.size(step.count)
        assert step.holds is not None
        holds = self.pointer(step.holds)
        self.within(step.condition, replace(frame, results=(holds,)))
        return self.writer.load("i8", holds).compare("ne", 0)

    def settle(self, home: Value, now: Value, type: ArrayType) -> None:
        """Bring a carry home that an odd number of steps has left elsewhere."""
        self.writer.either(now.compare("ne", home), lambda: self.move(home, now, type))

    def branch(self, step: Branch) -> None:
        """A native switch."""
        writer = self.writer
        inner = _Frame(
            self.pointers(step.arguments), self.pointers(step.results), self.in_arena(step.offset)
        )
        number = writer.load("i32", self.pointer(step.number))
        chosen = writer.call("i32", "@llvm.smax.i32", number, number.like(0))
        labels = [writer.name("case") for _ in step.branches]
        join = writer.name("join")
        listed = " ".join(f"i32 {k}, label %{label}" for k, label in enumerate(labels[:-1]))
        writer.do(f"switch i32 {chosen.text}, label %{labels[-1]} [ {listed} ]")
        for label, plan in zip(labels, step.branches, strict=True):
            with writer.region(label):
                self.within(plan, inner)
                writer.jump(join)
        writer.label(join)

    def call_back(self, step: Call) -> None:
        """A Python function, on words that say where its arrays are; after an error, the end."""
        assert self.host.call_back is not None
        writer, given = self.writer, [*self.pointers((*step.outputs, *step.inputs))]
        given += self.sizes.values()
        words = writer.allocate("i64", max(2, len(given)))
        for k, value in enumerate(given):
            at = writer.emit("ptr", f"getelementptr i64, ptr {words.text}, i64 {k}")
            writer.store(value, at)
        function = function_at(self.host.call_back(step))
        failed = writer.effect("i32", f"call i32 {function}(ptr {words.text})")
        good, bad = writer.name("good"), writer.name("bad")
        writer.branch(failed.equals(0), good, bad)
        writer.label(bad)
        writer.do("ret void")
        writer.label(good)


def _in_turn(
    writer: Writer, first: Value, second: Value, before: str, last: str
) -> tuple[Value, Value]:
    """Two pointers that change places in every step of a loop."""
    now, then = (Value(writer, "ptr", f"%{writer.name(stem)}") for stem in ("now", "then"))
    for value, start, other in ((now, first, then), (then, second, now)):
        incoming = f"[ {start.text}, %{before} ], [ {other.text}, %{last} ]"
        writer.do(f"{value.text} = phi ptr {incoming}")
    return now, then
