"""Python's entry into a compiled plan: a built-in function over NumPy's arrays.

    @entry(ptr self, ptr argv, i64 count)     checks, then @run (cpu_plan.py)

`@entry` is called with the argument arrays, the result arrays and the arena, as a built-in
function is. It reads addresses and sizes from the array objects, whose layout is NumPy's ABI
(cpu_python.py checks it once), and lets other Python threads run meanwhile. It returns 0, or
k + 1 where argument k is not what the plan was made for, or -s - 1 where size s is out of range.

Invariant: memory is touched only after every argument was found to fit.
"""

from __future__ import annotations

from collections.abc import Mapping

from rune.backends.cpu_python import Abi
from rune.core.sizes import SizeSource
from rune.core.types import ArrayType
from rune.lowering.codegen import llvm_index
from rune.lowering.codegen.llvm_text import Value, Writer
from rune.lowering.plan import Plan


def entry(plan: Plan, abi: Abi) -> str:
    """The function `@entry`."""
    writer = Writer()
    _Entry(plan, abi, writer).write()
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
        state = writer.effect("ptr", f"call ptr {function_at(abi.save_thread)}()")
        listed = ", ".join(f"{v.type} {v.text}" for v in [*data, *sizes])
        writer.do(f"call void @run({listed})")
        writer.do(f"call void {function_at(abi.restore_thread)}(ptr {state.text})")
        self.answer(0)

    def answer(self, code: int) -> None:
        """Return a Python int."""
        made = f"call ptr {function_at(self.abi.from_long)}(i64 {code})"
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
        return Value(self.writer, "i64", f"ptrtoint (ptr {function_at(address)} to i64)")

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


def function_at(address: int) -> str:
    """A pointer to an address of this process, in the form that cpu_compile.py knows."""
    return f"inttoptr (i64 {address} to ptr)"
