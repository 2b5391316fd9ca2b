"""How lines of an array [outer, n, inner] are moved to vector lanes, and a routine for each form.

    COLUMNS    inner fills a vector: lanes are neighbours, and arrays are read in place
    ROWS       inner is 1: rows are transposed into scratch memory and back
    LINES      neither: lines are copied element by element; lanes may be empty
    SPLIT      inner is 1 and rows are long or few: n = a·b, transforms of the columns of [a, b],
               products with roots of unity (turns), and transforms of the rows, which are columns
               of the result; cores share a row whose intermediate values do not fit on a stack

The last group of lanes ends with the last line, so it may compute some lines a second time.

Source: Bailey 1990, "FFTs in external or hierarchical memory", J. Supercomputing 4(1) (SPLIT).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np

from rune.backends.cpu.fft.lengths import piece_of, radices, split_of, step_between
from rune.backends.cpu.fft.stage_lists import data_of_stage
from rune.backends.cpu.fft.tables import turns_between
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, maker
from rune.lowering.codegen.llvm.ir.names import pointer_to
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

WORDS = 5  # of a task: real and imaginary parts of source and result, and scratch memory
LONG = 512  # rows of this many elements or more are split: 256 of 512 then take four fifths of the time
# Two parts of f64 are 1 MiB, of the 8 that a worker has (threads.STACK_BYTES).
MOST_ON_STACK = 1 << 16  # the most elements of a split row whose intermediate values are on a stack


Group = Callable[[Value], None]


class Kind(Enum):
    """How lines are moved to lanes."""

    COLUMNS = "columns"
    ROWS = "rows"
    LINES = "lines"
    SPLIT = "split"


@dataclass(frozen=True, slots=True)
class Form:
    """An array [outer, n, inner] that is transformed along n."""

    outer: int
    n: int
    inner: int


@dataclass(frozen=True, slots=True)
class Place:
    """Real and imaginary parts, and the step between elements of a line."""

    real: Value
    imag: Value
    step: Value


def kind_of(form: Form, lanes: int) -> Kind:
    """The way in which lines of this form are moved to lanes."""
    if form.inner >= lanes:
        return Kind.COLUMNS
    if form.inner == 1:
        enough = form.outer >= lanes
        # Few rows would leave lanes of a vector empty; the columns of a split row fill them.
        if split_of(form.n, lanes) and (form.n >= LONG or not enough):
            return Kind.SPLIT
        if enough and form.n >= lanes:
            return Kind.ROWS
    return Kind.LINES


def pieces_of(form: Form, lanes: int) -> set[str]:
    """The functions that a routine calls."""
    kind = kind_of(form, lanes)
    lengths = split_of(form.n, lanes) if kind is Kind.SPLIT else (form.n,)
    assert lengths is not None
    stages = {piece_of(r, last) for n in lengths for r, last in _ends(radices(n))}
    return stages | _MOVES[kind]


_MOVES = {
    Kind.COLUMNS: set[str](),
    Kind.ROWS: {"squares"},
    Kind.LINES: {"gather_line", "scatter_line"},
    Kind.SPLIT: {"turned_squares"},
}


def _ends(stages: Sequence[int]) -> list[tuple[int, bool]]:
    """Each radix, and whether it is the last one."""
    return [(radix, k == len(stages) - 1) for k, radix in enumerate(stages)]


@dataclass(slots=True)
class Routine:
    """A routine being written: its function, the addresses of its pieces, the tables it reads."""

    make: Maker
    dtype: np.dtype
    addresses: Callable[[str], int]
    tables: list[object]

    def call(self, piece: str, *args: Value) -> None:
        """Call a piece."""
        function = pointer_to(self.addresses(piece))
        self.make.writer.do(f"call void {function}({', '.join(f'{v.type} {v.text}' for v in args)})")

    def table(self, table: np.ndarray) -> Value:
        """A pointer to a table, which is kept alive with the routine."""
        self.tables.append(table)
        return self.make.writer.at(table.ctypes.data)

    def scratch(self, n: int) -> Place:
        """Stack memory for n vectors of complex numbers."""
        lanes = self.make.shape.lanes
        real = self.make.writer.allocate(self.make.shape.vector, 2 * n)
        return Place(real, self.make.at(real, lanes), self.make.number(2 * lanes))

    def transform(self, n: int, source: Place, target: Place, scratch: Sequence[Place]) -> None:
        """The transform of n vectors. Stages write the two scratch memories alternately."""
        length = 1
        for k, (radix, last) in enumerate(_ends(radices(n))):
            runs = n // (radix * length)
            into = target if last else scratch[k % 2]
            self.stage(radix, last, source, into, runs, length)
            source, length = into, length * radix

    def stage(self, radix: int, last: bool, source: Place, target: Place, runs: int, length: int) -> None:
        """One stage."""
        data = data_of_stage(radix, runs, self.dtype)
        self.tables.append(data)
        ends = [source.real, source.imag, source.step, target.real, target.imag, target.step]
        words = self.make.writer.at(data.address), *map(self.make.number, (runs, length))
        self.call(piece_of(radix, last), *ends, *words)


def groups_of(form: Form, lanes: int) -> int:
    """The number of groups of lanes, the units that are divided among cores."""
    match kind_of(form, lanes):
        case Kind.COLUMNS:
            return form.outer * -(-form.inner // lanes)
        case Kind.SPLIT:
            return form.outer
        case _:
            return -(-form.outer * form.inner // lanes)


def halves_of(form: Form, lanes: int) -> tuple[int, int] | None:
    """The numbers of groups in the two halves of a row whose work cores share.

    None if cores share whole rows instead.
    """
    factors = split_of(form.n, lanes)
    if kind_of(form, lanes) is not Kind.SPLIT or form.n <= MOST_ON_STACK or factors is None:
        return None
    rows, columns = factors
    return -(-columns // lanes), -(-rows // lanes)


def scratch_bytes(form: Form, shape: Shape) -> int:
    """The bytes of work memory for the values between the two halves of a row."""
    factors = split_of(form.n, shape.lanes)
    if halves_of(form, shape.lanes) is None or factors is None:
        return 0
    return 2 * factors[0] * step_between(factors[1], shape) * shape.bytes


def write_groups(routine: Routine, form: Form, name: str) -> str:
    """A task for the groups begin..end: void(ptr words, i64 begin, i64 end)."""
    write = _WRITERS[kind_of(form, routine.make.shape.lanes)]
    return _task(routine, name, lambda arrays: write(routine, form, arrays[:4]))


def write_half(routine: Routine, form: Form, name: str, half: int) -> str:
    """The same for one half of a row. Here the words include the address of the work memory."""

    def write(arrays: Sequence[Value]) -> Group:
        return _halves(routine, form, arrays[:4], _between(routine, form, arrays[4]))[half]

    return _task(routine, name, write)


def _task(routine: Routine, name: str, write: Callable[[Sequence[Value]], Group]) -> str:
    make = routine.make
    words, begin, end = *make.pointers("words"), *make.sizes("begin end")
    arrays = [make.writer.load("ptr", make.at(words, k, "i64")) for k in range(WORDS)]
    make.writer.count_up(begin, end, 1, make.watched(make.watch_of(words), write(arrays)))
    return make.text(f"{name}(ptr %words, i64 %begin, i64 %end)")


def _places(make: Maker, arrays: Sequence[Value], first: Value, step: int) -> tuple[Place, Place]:
    """The lines that begin at this element, in the source and in the result."""
    real, imag, out_real, out_imag = (make.at(array, first) for array in arrays)
    number = make.number(step)
    return Place(real, imag, number), Place(out_real, out_imag, number)


def _place_after(make: Maker, place: Place, elements: Value) -> Place:
    """The place `elements` further on."""
    return Place(make.at(place.real, elements), make.at(place.imag, elements), place.step)


def _columns(routine: Routine, form: Form, arrays: Sequence[Value]) -> Group:
    make, lanes = routine.make, routine.make.shape.lanes
    scratch = routine.scratch(form.n), routine.scratch(form.n)
    across = -(-form.inner // lanes)

    def group(number: Value) -> None:
        # The last group of a row of columns moves back, so that it stays inside.
        column = (number.binary("urem", across) * lanes).call("smin", form.inner - lanes)
        first = number.binary("udiv", across) * (form.n * form.inner) + column
        routine.transform(form.n, *_places(make, arrays, first, form.inner), scratch)

    return group


def _rows(routine: Routine, form: Form, arrays: Sequence[Value]) -> Group:
    make, n = routine.make, form.n
    work = [routine.scratch(n) for _ in range(3)]

    def group(number: Value) -> None:
        row = (number * make.shape.lanes).call("smin", form.outer - make.shape.lanes)
        source, target = _places(make, arrays, row * n, n)
        _to_lanes(routine, source, work[0], n)
        # Only the first stage reads its source, so the second one may write there.
        routine.transform(n, work[0], work[2], (work[1], work[0]))
        _from_lanes(routine, work[2], target, n)

    return group


def _to_lanes(routine: Routine, rows: Place, scratch: Place, n: int) -> None:
    """Transpose rows of n elements into scratch memory. rows.step is the distance between rows."""
    one, size = routine.make.number(1), routine.make.number(n)
    for row, part in ((rows.real, scratch.real), (rows.imag, scratch.imag)):
        routine.call("squares", row, rows.step, one, part, scratch.step, scratch.step, size)


def _from_lanes(routine: Routine, scratch: Place, rows: Place, n: int) -> None:
    """Transpose scratch memory back into rows."""
    one, size = routine.make.number(1), routine.make.number(n)
    for row, part in ((rows.real, scratch.real), (rows.imag, scratch.imag)):
        routine.call("squares", part, scratch.step, scratch.step, row, rows.step, one, size)


def _move(routine: Routine, piece: str, array: Place, scratch: Place, n: int) -> None:
    for line, lane in ((array.real, scratch.real), (array.imag, scratch.imag)):
        routine.call(piece, line, array.step, lane, routine.make.number(n))


def _lines(routine: Routine, form: Form, arrays: Sequence[Value]) -> Group:
    make, n, inner = routine.make, form.n, form.inner
    work = [routine.scratch(n) for _ in range(3)]
    lanes, total = make.shape.lanes, form.outer * inner

    def group(number: Value) -> None:
        first = number * lanes
        count = (total - first).call("smin", lanes)
        # Empty lanes would hold old stack bytes, and arithmetic on denormal numbers is slow.
        make.clear(work[0].real, make.number(2 * n * lanes * make.shape.bytes))

        def line(piece: str, side: int, scratch: Place, lane: Value) -> None:
            at = first + lane
            start = at.binary("udiv", inner) * (n * inner) + at.binary("urem", inner)
            place = _places(make, arrays, start, inner)[side]
            _move(routine, piece, place, _place_after(make, scratch, lane), n)

        make.each(count, lambda lane: line("gather_line", 0, work[0], lane))
        routine.transform(n, work[0], work[2], (work[1], work[0]))
        make.each(count, lambda lane: line("scatter_line", 1, work[2], lane))

    return group


def _split(routine: Routine, form: Form, arrays: Sequence[Value]) -> Group:
    make, lanes = routine.make, routine.make.shape.lanes
    rows, columns = _factors(routine, form)
    step = step_between(columns, make.shape)
    between = _between(routine, form, make.writer.allocate(make.shape.scalar, 2 * rows * step))

    def line(number: Value) -> None:
        down, along = _halves(routine, form, [make.at(array, number * form.n) for array in arrays], between)
        make.each(make.number(-(-columns // lanes)), down)
        make.each(make.number(-(-rows // lanes)), along)

    return line


_WRITERS = {Kind.COLUMNS: _columns, Kind.ROWS: _rows, Kind.LINES: _lines, Kind.SPLIT: _split}


def _factors(routine: Routine, form: Form) -> tuple[int, int]:
    factors = split_of(form.n, routine.make.shape.lanes)
    assert factors is not None
    return factors


def _between(routine: Routine, form: Form, memory: Value) -> Place:
    """The values between the two halves of a row, in this memory."""
    make, (rows, columns) = routine.make, _factors(routine, form)
    step = step_between(columns, make.shape)
    return Place(memory, make.at(memory, rows * step), make.number(step))


def _halves(routine: Routine, form: Form, arrays: Sequence[Value], between: Place) -> tuple[Group, Group]:
    """The two halves for the row at the start of the arrays: transforms of its columns, and
    rows."""
    make, lanes, n = routine.make, routine.make.shape.lanes, form.n
    rows, columns = _factors(routine, form)
    work = [routine.scratch(max(rows, columns)) for _ in range(2)]
    turns = routine.table(turns_between(rows, columns, routine.dtype))

    def starts(number: Value, length: int) -> Value:
        return (number * lanes).call("smin", length - lanes)

    def down(group: Value) -> None:
        first = starts(group, columns)
        source, _ = _places(make, arrays, first, columns)
        routine.transform(rows, source, _place_after(make, between, first), work)

    def along(group: Value) -> None:
        first = starts(group, rows)
        source = _place_after(make, between, first * between.step)
        _, target = _places(make, arrays, first, rows)
        # The product with the table is made while rows are transposed to lanes, in one pass.
        row, length = make.at(turns, first * columns), make.number(columns)
        parts = source.real, source.imag, row, work[1].real, work[1].imag
        routine.call("turned_squares", *parts, source.step, length, work[1].step, make.number(n), length)
        routine.transform(columns, work[1], target, work)

    return down, along


def new_routine(shape: Shape, dtype: np.dtype, addresses: Callable[[str], int]) -> Routine:
    """A routine without code."""
    return Routine(maker(shape), dtype, addresses, [])
