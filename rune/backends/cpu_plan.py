"""A whole plan as one LLVM module: its kernels, `@run` over all steps, and Python's entry point.

    @run(ptr arguments..., ptr results..., ptr arena, i64 sizes...)     every step, in order;
                                              loops and branches are native control flow
    @entry(ptr self, ptr argv, i64 count)     a CPython function of arrays: checks, then @run

`@entry` is called with the argument arrays, the result arrays and the arena, as a built-in
function is. It reads addresses and sizes from the array objects, whose layout is NumPy's ABI
(cpu_python.py checks it once), and lets other Python threads run meanwhile. It returns 0, or
k + 1 where argument k is not what the plan was made for, or -s - 1 where size s is out of range.

Invariant: memory is touched only after every argument was found to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

import numpy as np

from rune import dims
from rune.backends.cpu_dots import write_dot, write_strided_dot
from rune.backends.cpu_python import Abi
from rune.core.sizes import SizeSource
from rune.core.types import ArrayType
from rune.dims import Size
from rune.errors import CompileError
from rune.lowering.codegen import llvm_index
from rune.lowering.codegen.llvm import Machine, Rendered, render
from rune.lowering.codegen.llvm_names import identifier
from rune.lowering.codegen.llvm_text import Value, Writer
from rune.lowering.plan import Branch, Call, Copy, Launch, Loop, Plan, Slot, Space, Step

if TYPE_CHECKING:
    from rune.backends.cpu_timed import Clock

# Estimated instructions from which a kernel is split between the cores, and of one piece at least.
PARALLEL_COST = 60_000.0
CHUNK_COST = 20_000.0
CHUNKS_PER_CORE = 4
_REGISTERS = (1, 2, 4, 8)  # bytes that a register copies at once


@dataclass(frozen=True, slots=True)
class Host:
    """What the module needs to know of the process: the processor, Python, the worker pool."""

    machine: Machine
    abi: Abi
    cores: int
    parallel: Callable[[], int]  # address of void(ptr task, ptr words, i64 total, i64 chunk)
    dot: Callable[[np.dtype], int]  # address of the matrix product of a dtype (cpu_gemm.py), ...
    strided_dot: Callable[[np.dtype], int]  # ... and of views (cpu_gemm_strided.py)
    # Address of i32(ptr words), which calls the Python function of a step (callbacks.py).
    call_back: Callable[[Call], int] | None = None
    clock: Clock | None = None  # times every step


@dataclass(frozen=True, slots=True)
class Rendering:
    """The module's text, and that of each kernel."""

    text: str
    kernels: Mapping[str, str]


def render_plan(plan: Plan, host: Host) -> Rendering:
    """The whole plan as IR.

    Errors: CompileError for what the cpu does not have.
    """
    kernels = {
        name: render(replace(code, name=f"kernel.{name}"), host.machine)
        for name, code in plan.kernels.items()
    }
    run = _Run(plan, host, kernels, Writer())
    parts = [run.text(), _entry(plan, host.abi)]
    declared = set(run.writer.declared).union(*(k.declarations for k in kernels.values()))
    tasks = [_task(plan, name, kernels[name]) for name in sorted(run.split)]
    sources = {name: k.text for name, k in kernels.items()}
    parts += [] if host.clock is None else [host.clock.text()]
    text = "\n\n".join(["\n".join(sorted(declared)), *sources.values(), *tasks, *parts])
    return Rendering(text, sources)


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
        function = _function(self.host.parallel())
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
        function = _function(self.host.call_back(step))
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


def _typed(value: Value) -> str:
    return f"{value.type} {value.text}"


# --- the entry point --------------------------------------------------------------------------


def _entry(plan: Plan, abi: Abi) -> str:
    writer = Writer()
    entry = _Entry(plan, abi, writer)
    entry.write()
    lines = ["define ptr @entry(ptr %self, ptr %argv, i64 %count) #0 {", "entry:", *writer.lines]
    return "\n".join([*lines, "}"])


class _Entry:
    """Writes @entry."""

    def __init__(self, plan: Plan, abi: Abi, writer: Writer):
        self.plan, self.abi, self.writer = plan, abi, writer

    def write(self) -> None:
        """Read the array objects, check them, run without the interpreter's lock."""
        plan, writer = self.plan, self.writer
        self.total = len(plan.arguments) + len(plan.results) + 1
        self.require(Value(writer, "i64", "%count").equals(self.total), 0x7FFF)
        objects = [self.word("ptr", Value(writer, "ptr", "%argv"), k) for k in range(self.total)]
        for k, type in enumerate(plan.arguments):
            self.check_array(objects[k], type, k + 1)
        sizes: dict[str, Value] = {}
        for k, source in enumerate(plan.size_sources):
            sizes[source.name] = self.read_size(objects, source, sizes)
            self.check_range(source, sizes, -k - 1)
        for k, type in enumerate(plan.arguments):
            self.check_shape(objects[k], type, sizes, k + 1)
        data = [self.field("ptr", o, self.abi.data) for o in objects]
        self.run(data, [*sizes.values()])

    def run(self, data: list[Value], sizes: list[Value]) -> None:
        """Call @run and answer 0."""
        writer, abi = self.writer, self.abi
        state = writer.effect("ptr", f"call ptr {_function(abi.save_thread)}()")
        listed = ", ".join(_typed(v) for v in [*data, *sizes])
        writer.do(f"call void @run({listed})")
        writer.do(f"call void {_function(abi.restore_thread)}(ptr {state.text})")
        self.answer(0)

    def answer(self, code: int) -> None:
        """Return a Python int."""
        made = f"call ptr {_function(self.abi.from_long)}(i64 {code})"
        self.writer.do(f"ret ptr {self.writer.effect('ptr', made).text}")

    def require(self, holds: Value, code: int) -> None:
        """Return `code` where the condition does not hold."""
        good, bad = self.writer.name("good"), self.writer.name("bad")
        self.writer.branch(holds, good, bad)
        self.writer.label(bad)
        self.answer(code)
        self.writer.label(good)

    def word(self, type: str, base: Value, number: int) -> Value:
        """The `number`-th word of an array of words."""
        return self.field(type, base, 8 * number)

    def field(self, type: str, base: Value, offset: int) -> Value:
        """What lies `offset` bytes into a structure."""
        at = self.writer.emit("ptr", f"getelementptr i8, ptr {base.text}, i64 {offset}")
        return self.writer.load(type, at)

    def check_array(self, array: Value, type: ArrayType, code: int) -> None:
        """An exact ndarray of the right dtype and rank, contiguous and aligned."""
        abi = self.abi
        is_array = self.field("i64", array, abi.type).equals(self.address(abi.ndarray))
        self.require(is_array, code)
        is_dtype = self.field("i64", array, abi.descr).equals(self.address(id(type.dtype)))
        is_rank = self.field("i32", array, abi.ndim).equals(type.ndim)
        flags = self.field("i32", array, abi.flags) & abi.required_flags
        self.require(is_dtype & is_rank & flags.equals(abi.required_flags), code)

    def address(self, address: int) -> Value:
        """An address as an integer, in the form that cpu_compile.py makes a symbol of."""
        return Value(self.writer, "i64", f"ptrtoint (ptr {_function(address)} to i64)")

    def length(self, array: Value, axis: int) -> Value:
        """The length of one axis."""
        return self.word("i64", self.field("ptr", array, self.abi.shape), axis)

    def read_size(
        self, objects: list[Value], source: SizeSource, known: Mapping[str, Value]
    ) -> Value:
        """A size, from the axis that tells it; `check_shape` finds a remainder."""
        length = self.length(objects[source.argument], source.axis)
        rest = length - llvm_index.render(self.writer, source.offset, known)
        if source.factor == 1:
            return rest
        return rest.binary("sdiv", rest, llvm_index.render(self.writer, source.factor, known))

    def check_range(self, source: SizeSource, sizes: Mapping[str, Value], code: int) -> None:
        """The size is within its bounds."""
        low = llvm_index.render(self.writer, source.low, sizes)
        self.require(sizes[source.name] >= low, code)
        if source.high is not None:
            high = llvm_index.render(self.writer, source.high, sizes)
            self.require(sizes[source.name] <= high, code)

    def check_shape(
        self, array: Value, type: ArrayType, symbols: Mapping[str, Value], code: int
    ) -> None:
        """Every axis has the length of the type."""
        for axis, size in enumerate(type.shape):
            expected = llvm_index.render(self.writer, size, symbols)
            self.require(self.length(array, axis).equals(expected), code)


def _function(address: int) -> str:
    return f"inttoptr (i64 {address} to ptr)"
