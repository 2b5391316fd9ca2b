"""A routine over the matrices of a batch, whose cores have work arrays of their own."""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cpu.gemm.blocks import sum_of_lanes
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import maker
from rune.backends.cpu.linalg.moves import by_vectors
from rune.backends.cpu.linalg.numbers import Numbers
from rune.backends.cpu.linalg.rows import Rows, rows_maker
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

Signature = tuple[str, str]  # names of pointers, and of sizes
_WORK_ARRAYS = ("matrix", "columns", "rows", "work", "real_work", "integers")  # a core's own


@dataclass(frozen=True, slots=True)
class Task:
    """A function over the matrices of a batch while it is written, with its parameters by name."""

    routine: str
    of: Rows
    named: dict[str, Value]

    def reference(self, value: Value) -> Value:
        """The address of memory with this value."""
        writer = self.of.make.writer
        pointer = writer.allocate(value.type)
        writer.store(value, pointer)
        return pointer

    def references(self, names: str) -> list[Value]:
        """The addresses of parameters."""
        return [self.reference(self.named[name]) for name in names.split()]

    def is_finite(self, at: Value, count: Value) -> Value:
        """Whether all of the numbers are finite."""
        make, writer = self.of.make, self.of.make.writer
        slot = writer.allocate(make.shape.vector)
        writer.store(writer.constant(make.shape.vector, 0.0), slot)

        def piece(first: Value, length: Value | None) -> None:
            # Zero times NaN or infinity is NaN.
            zeros = make.vector(make.at(at, first), length) * 0.0
            writer.store(writer.load(make.shape.vector, slot) + zeros, slot)

        by_vectors(make, self.of.parts_of(count), piece)
        return sum_of_lanes(writer.load(make.shape.vector, slot)).equals(0.0)

    def put_columns(self, columns: Value, step: Value, out: Value, sizes: tuple[Value, Value], spare: Value) -> None:
        """Columns that lie `step` apart as rows of the result. Whole squares go to spare memory."""
        of, make, writer = self.of, self.of.make, self.of.make.writer
        height, width = sizes
        padded = padded_to(width, of.lanes)
        is_whole = padded.equals(width) & padded_to(height, of.lanes).equals(height)
        target = writer.select(is_whole, out, spare)
        make.call("transposed", columns, step, target, padded, width, height)
        writer.either(is_whole.invert(), lambda: of.copied("copied", spare, padded, out, width, height, width))

    def spoil(self, at: Value, count: Value, parts: int) -> None:
        """Write NaN into a number of elements."""
        make, scalar = self.of.make, self.of.make.shape.scalar
        nan, zero = (make.writer.constant(scalar, x) for x in (float("nan"), 0.0))

        def one(k: Value) -> None:
            first = make.at(at, k * parts)
            make.writer.store(nan, first)
            if parts > 1:
                make.writer.store(zero, make.at(first, 1))

        make.each(count, one)

    def text(self, one: Callable[[Value], None]) -> str:
        """The text of the function, given what it does with one matrix."""
        make, (words,), (begin, end) = self.of.make, self.of.make.pointers("words"), self.of.make.sizes("begin end")
        make.writer.count_up(begin, end, 1, make.watched(make.watch_of(words), one))
        return make.text(f"{self.routine}_task(ptr %words, i64 %begin, i64 %end)")


def task_maker(routine: str, signature: Signature, shape: Shape, numbers: Numbers) -> Task:
    """Matrices begin..end of a batch, with the work arrays of the core that has these."""
    of = rows_maker(shape, numbers)
    make, writer, (words,) = of.make, of.make.writer, of.make.pointers("words")
    pointers, sizes = (names.split() for names in signature)
    types = {**dict.fromkeys(pointers, "ptr"), **dict.fromkeys(sizes, "i64")}
    named = {name: writer.load(type, make.at(words, k, "i64")) for k, (name, type) in enumerate(types.items())}
    (begin,) = make.sizes("begin")
    first = begin.binary("udiv", begin, named["chunk"]) * named["apart"]
    shifted = {name: make.at(named[name], first, "i8") for name in _WORK_ARRAYS if name in named}
    return Task(routine, of, {**named, **shifted})


def entry_function(routine: str, signature: Signature, shape: Shape) -> str:
    """The routine: its words, and all matrices by one core, or so many by each that calls."""
    make = maker(shape)
    writer = make.writer
    pointers, sizes = [*make.pointers(signature[0])], [*make.sizes(signature[1])]
    words, (batch, chunk), task = make.words(len(pointers + sizes), pointers[-1]), sizes[:2], f"{routine}_task"
    for number, value in enumerate([*pointers, *sizes]):
        writer.store(value, make.at(words, number, "i64"))

    def shared() -> None:
        make.call(pointers[-2].text, Value(writer, "ptr", f"@{task}"), words, batch, chunk)

    writer.either(chunk < batch, shared, lambda: make.call(task, words, make.number(0), batch))
    listed = ", ".join(f"{v.type} {v.text}" for v in [*pointers, *sizes])
    return make.text(f"{routine}({listed})").replace("define internal", "define", 1)


def padded_to(count: Value, lanes: int) -> Value:
    """The next multiple."""
    above = count + (lanes - 1)
    return above - above.binary("urem", above, lanes)
