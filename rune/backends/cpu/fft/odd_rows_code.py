"""The code of odd_rows.py: the stage of r real numbers, and what is done before and after it.

In work memory line p has m pairs of vectors, one line after another.
"""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cpu.fft.butterflies import from_half, half_transformed, times
from rune.backends.cpu.fft.groups_code import from_lanes_function, number_of, put_number, to_lanes_function
from rune.backends.cpu.fft.lines import squares_function
from rune.backends.cpu.fft.rows_code import stages_function
from rune.backends.cpu.fft.stages import declarations, scalars
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import maker
from rune.backends.cpu.vector_routines_code import PARAMETERS, public, routine
from rune.lowering.codegen.llvm.ir.text import Value


def text(shape: Shape) -> str:
    """The module of both routines."""
    pieces = squares_function, to_lanes_function, from_lanes_function, stages_function
    texts = [piece(shape) for piece in pieces]
    texts += [public(rows_function(shape, name, write)) for name, write in _WRITERS.items()]
    return "\n\n".join([declarations(shape), *texts])


def stage_text(shape: Shape, name: str, radix: int) -> str:
    """The module of the stage of a radix."""
    return "\n\n".join([declarations(shape), public(_STAGES[name](shape, radix))])


def forward_stage(shape: Shape, radix: int) -> str:
    """r vectors, m apart, to the numbers of (r+1)/2 lines, which are turned."""
    make = maker(shape)
    reals, lines, turns = make.pointers("reals lines turns")
    (m,) = make.sizes("m")

    def point(i: Value) -> None:
        x = [make.vector(make.at(reals, (m * q + i) * shape.lanes)) for q in range(radix)]
        for p, value in enumerate(half_transformed(x)):
            turn = scalars(make, turns, i * (radix - 1) + (p - 1)) if p else None
            put_number(make, lines, m * p + i, *(times(value, turn) if turn else value))

    make.each(m, point)
    return make.text(_STAGE)


def inverse_stage(shape: Shape, radix: int) -> str:
    """The same backwards."""
    make = maker(shape)
    reals, lines, turns = make.pointers("reals lines turns")
    (m,) = make.sizes("m")

    def point(i: Value) -> None:
        y = [number_of(make, lines, m * p + i) for p in range((radix + 1) // 2)]
        for p in range(1, len(y)):
            cosine, sine = scalars(make, turns, i * (radix - 1) + (p - 1))
            y[p] = times(y[p], (cosine, -sine))
        for q, value in enumerate(from_half(y, radix)):
            make.put(value, make.at(reals, (m * q + i) * shape.lanes))

    make.each(m, point)
    return make.text(_STAGE)


_STAGE = "stage(ptr %reals, ptr %lines, ptr %turns, i64 %m)"
_STAGES = {"forward": forward_stage, "inverse": inverse_stage}


class _Rows:
    """The operands of a routine, its words and its rooms."""

    def __init__(self, shape: Shape):
        self.make, self.lanes = maker(shape), shape.lanes
        words, self.source, self.target, memory = self.make.pointers(PARAMETERS)
        self.stage, self.turns, self.stages, factor = (self.make.word(words, k, "ptr") for k in range(4))
        self.count, self.radix, self.m, self.rows = (self.make.word(words, k) for k in range(4, 8))
        self.factor = self.make.scalar(factor)
        self.half, self.n = (self.radix + 1).binary("lshr", 1), self.radix * self.m
        self.frequencies, self.width = (self.n + 1).binary("lshr", 1), self.make.number(2 * shape.lanes)
        room = self.half * self.m * (2 * shape.lanes)
        self.rooms = [self.make.at(memory, room * k) for k in range(3)]

    def squares(self, source: list[Value], target: list[Value]) -> None:
        """Transpose real rows to lanes, or back. Of each: address, step of vectors, of squares."""
        self.make.call("squares", *source, *target, self.n)

    def transform(self, source: Value, target: Value, order: tuple[int, int]) -> None:
        """The transforms of all lines. order: of the parts, exchanged for the inverse"""
        make = self.make

        def line(p: Value) -> None:
            first = p * self.m * (2 * self.lanes)
            places = [[make.at(room, first + part * self.lanes) for part in order] for room in (source, target)]
            ends = [*places[0], self.width, *places[1], self.width]
            make.call("stages", self.stages, self.count, *ends, self.rooms[2], self.m * (2 * self.lanes))

        make.each(self.half, line)

    def run_stage(self, reals: Value, lines: Value) -> None:
        """The stage of real numbers."""
        self.make.call(self.stage.text, reals, lines, self.turns, self.m)

    def copy(self, move: Callable[[Value, Value, bool], None]) -> None:
        """move(f, number in lines, whether its conjugate) for all frequencies f from 0 to n/2."""
        make, middle = self.make, (self.m - 1).binary("lshr", 1)

        def block(k: Value) -> None:
            make.each(self.half, lambda p: move(self.radix * k + p, self.m * p + k, False))

        def mirrored(k: Value) -> None:
            others, line = self.half - 1, self.m - 1 - k
            make.each(others, lambda p: move(self.radix * (k + 1) - 1 - p, self.m * (p + 1) + line, True))

        make.each(middle + 1, block)
        make.each(middle, mirrored)


def _forward(rows: _Rows, reals: Value, pairs: Value) -> None:
    make, (first, second, _) = rows.make, rows.rooms
    one, lanes = make.number(1), make.number(rows.lanes)
    rows.squares([make.at(rows.source, reals), rows.n, one], [second, lanes, lanes])
    rows.run_stage(second, first)
    rows.transform(first, second, (0, 1))

    def move(frequency: Value, number: Value, conjugate: bool) -> None:
        real, imag = number_of(make, second, number)
        put_number(make, first, frequency, real, -imag if conjugate else imag)

    rows.copy(move)
    places = first, make.at(first, rows.lanes), make.at(rows.target, pairs)
    make.call("from_lanes", *places, rows.frequencies, rows.factor)


def _inverse(rows: _Rows, reals: Value, pairs: Value) -> None:
    make, (first, second, _) = rows.make, rows.rooms
    one, lanes = make.number(1), make.number(rows.lanes)
    places = make.at(rows.source, pairs), first, make.at(first, rows.lanes)
    make.call("to_lanes", *places, rows.frequencies)
    # The imaginary part of frequency 0 counts as 0.
    make.put(make.writer.constant(make.shape.vector, 0.0), make.at(first, rows.lanes))
    factor = make.writer.splat(rows.factor, rows.lanes)

    def move(frequency: Value, number: Value, conjugate: bool) -> None:
        real, imag = (part * factor for part in number_of(make, first, frequency))
        put_number(make, second, number, real, -imag if conjugate else imag)

    rows.copy(move)
    # Line 0 is its own mirror image: only the inverse needs both halves of it.
    middle = (rows.m - 1).binary("lshr", 1)
    make.each(middle, lambda k: move(rows.radix * (k + 1), rows.m - 1 - k, True))
    rows.transform(second, first, (1, 0))
    rows.run_stage(second, first)
    rows.squares([second, lanes, lanes], [make.at(rows.target, reals), rows.n, one])


_WRITERS = {"forward": _forward, "inverse": _inverse}


def rows_function(shape: Shape, name: str, write: Callable[[_Rows, Value, Value], None]) -> str:
    """A routine for real rows, a group a unit. The last group ends with the last row.

    words: the stage, its turns, the list of stages of a line, the factor, the number of stages,
    r, m, rows
    """
    rows = _Rows(shape)

    def unit(number: Value) -> None:
        row = (number * shape.lanes).call("smin", rows.rows - shape.lanes)
        write(rows, row * rows.n, row * rows.frequencies * 2)

    return routine(rows.make, name, unit)
