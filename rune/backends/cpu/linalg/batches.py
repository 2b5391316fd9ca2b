"""Writes routines over the matrices of a batch, in which each core has its own work arrays."""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import by_vectors, maker, sum_of_lanes
from rune.backends.cpu.linalg.numbers import Numbers
from rune.backends.cpu.linalg.rows import Rows, rows_maker
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

Signature = tuple[str, str]  # names of pointers, and of sizes
_WORK_ARRAYS = ("matrix", "columns", "rows", "work", "real_work", "integers")  # one for each core


@dataclass(frozen=True, slots=True)
class Task:
    """A function over the matrices of a batch, being written, with its parameters by name."""

    routine: str
    of: Rows
    parameters: dict[str, Value]

    def reference(self, value: Value) -> Value:
        """The address of memory with this value: Fortran takes all arguments by address."""
        writer = self.of.make.writer
        pointer = writer.allocate(value.type)
        writer.store(value, pointer)
        return pointer

    def references(self, names: str) -> list[Value]:
        """The addresses of parameters."""
        return [self.reference(self.parameters[name]) for name in names.split()]

    def is_finite(self, at: Value, count: Value) -> Value:
        """Whether `count` numbers are all finite."""
        make, writer = self.of.make, self.of.make.writer
        (slot,) = make.zero_slots(1)

        def piece(first: Value, length: Value | None) -> None:
            # Zero times NaN or infinity is NaN.
            zeros = make.vector(make.at(at, first), length) * 0.0
            writer.store(writer.load(make.shape.vector, slot) + zeros, slot)

        by_vectors(make, self.of.parts_of(count), piece)
        return sum_of_lanes(writer.load(make.shape.vector, slot)).equals(0.0)

    def put_columns(self, columns: Value, step: Value, out: Value, sizes: tuple[Value, Value], spare: Value) -> None:
        """Transpose columns, `step` apart, into rows of the result.

        The transposition writes whole squares, so if the sizes are not multiples of the lanes, it
        goes to spare memory and the result is copied from there.
        """
        of, make, writer = self.of, self.of.make, self.of.make.writer
        height, width = sizes
        whole_width = padded_to(width, of.lanes)
        is_whole = whole_width.equals(width) & padded_to(height, of.lanes).equals(height)
        target = writer.select(is_whole, out, spare)
        make.call("transposed", columns, step, target, whole_width, width, height)
        writer.either(is_whole.invert(), lambda: of.copied("copied", spare, whole_width, out, width, height, width))

    def spoil(self, at: Value, count: Value, parts: int) -> None:
        """Write NaN into a number of elements."""
        make, scalar = self.of.make, self.of.make.shape.scalar
        nan, zero = (make.writer.constant(scalar, x) for x in (float("nan"), 0.0))

        def one(k: Value) -> None:
            first = make.at(at, k * parts)
            make.writer.store(nan, first)
            # As NumPy has it: NaN as a complex number is NaN + 0i.
            if parts > 1:
                make.writer.store(zero, make.at(first, 1))

        make.each(count, one)

    def text(self, one: Callable[[Value], None]) -> str:
        """The text of the function; one(number) writes the code for one matrix."""
        return self.of.make.task(self.routine, self.parameters["watch"], one)


def task_maker(routine: str, signature: Signature, shape: Shape, numbers: Numbers) -> Task:
    """A task for the matrices begin..end of a batch, with the work arrays of one core."""
    of = rows_maker(shape, numbers)
    make, (words,) = of.make, of.make.pointers("words")
    pointers, sizes = (names.split() for names in signature)
    types = {**dict.fromkeys(pointers, "ptr"), **dict.fromkeys(sizes, "i64")}
    parameters = {name: make.word(words, k, type) for k, (name, type) in enumerate(types.items())}
    (begin,) = make.sizes("begin")
    # Chunks have different work arrays, `apart` bytes apart, so no two cores write the same memory.
    first = begin.binary("udiv", parameters["chunk"]) * parameters["apart"]
    work_arrays = {name: make.at(parameters[name], first, "i8") for name in _WORK_ARRAYS if name in parameters}
    return Task(routine, of, {**parameters, **work_arrays})


def entry_function(routine: str, signature: Signature, shape: Shape) -> str:
    """The routine: it stores its words, then runs the task on one core, or in chunks on several."""
    make = maker(shape)
    writer = make.writer
    pointers, sizes = [*make.pointers(signature[0])], [*make.sizes(signature[1])]
    # The last two pointers of a signature are the pool's function and the watch.
    words, (batch, chunk), task = make.words(len(pointers + sizes), pointers[-1]), sizes[:2], f"{routine}_task"
    for number, value in enumerate([*pointers, *sizes]):
        writer.store(value, make.at(words, number, "i64"))

    def shared() -> None:
        make.call(pointers[-2].text, Value(writer, "ptr", f"@{task}"), words, batch, chunk)

    writer.either(chunk < batch, shared, lambda: make.call(task, words, make.number(0), batch))
    arguments = ", ".join(f"{v.type} {v.text}" for v in [*pointers, *sizes])
    return make.text(f"{routine}({arguments})").replace("define internal", "define", 1)


def padded_to(count: Value, lanes: int) -> Value:
    """`count` rounded up to a multiple of `lanes`."""
    above = count + (lanes - 1)
    return above.round_down(lanes)
