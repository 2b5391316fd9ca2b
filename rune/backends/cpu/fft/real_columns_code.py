"""The code of real_columns.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rune.backends.cpu.fft.columns_code import place_of
from rune.backends.cpu.fft.conventions import ROOMS
from rune.backends.cpu.fft.groups_code import folded, number_of, put_number, turn_of, unfolded
from rune.backends.cpu.fft.lines import put_pairs, take_pairs
from rune.backends.cpu.fft.rows_code import stages_function
from rune.backends.cpu.fft.stages import declarations
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, maker
from rune.backends.cpu.vector_routines_code import PARAMETERS, public, routine
from rune.lowering.codegen.llvm.ir.text import Value


def text(shape: Shape) -> str:
    """The module of both routines."""
    pieces = stages_function, fold_function, unfold_function
    routines = columns_function(shape, "forward", _forward), columns_function(shape, "inverse", _inverse)
    return "\n\n".join([declarations(shape), *(piece(shape) for piece in pieces), *map(public, routines)])


class _Columns:
    """The operands of a routine: columns of 2n numbers, and their n + 1 frequencies."""

    def __init__(self, shape: Shape):
        self.make = make = maker(shape)
        words, self.source, self.target, memory = make.pointers(PARAMETERS)
        self.stages, self.turns, self.factor = (make.word(words, k, "ptr") for k in (0, 4, 5))
        self.n, self.inner, self.count = (make.word(words, k) for k in range(1, 4))
        self.room, self.width = (self.n + 1) * (2 * shape.lanes), make.number(2 * shape.lanes)
        self.rooms = [make.at(memory, self.room * number) for number in range(ROOMS)]
        # Stage k writes room k mod 2, so the last one leaves the result in one of them.
        self.result = make.writer.select(((self.count - 1) & 1).equals(0), *self.rooms)

    def halves(self, array: Value, start: Value) -> tuple[Value, Value]:
        """Even and odd rows of a column, the parts of its complex numbers."""
        first = self.make.at(array, start)
        return first, self.make.at(first, self.inner)

    def lanes(self, room: Value) -> tuple[Value, Value]:
        """Both parts of vectors in work memory."""
        return room, self.make.at(room, self.make.shape.lanes)

    def transform(self, source: tuple[Value, Value], fs: Value, target: tuple[Value, Value], ts: Value) -> None:
        """The complex transform of n vectors."""
        self.make.call("stages", self.stages, self.count, *source, fs, *target, ts, self.rooms[0], self.room)


def _forward(columns: _Columns, reals: Value, pairs: Value) -> None:
    make, result = columns.make, columns.result
    columns.transform(columns.halves(columns.source, reals), columns.inner * 2, columns.lanes(result), columns.width)
    target = make.at(columns.target, pairs)
    make.call("fold", result, columns.turns, target, columns.n, columns.inner * 2, columns.factor)


def _inverse(columns: _Columns, reals: Value, pairs: Value) -> None:
    make, (_, second) = columns.make, columns.rooms
    source = make.at(columns.source, pairs)
    make.call("unfold", source, columns.turns, second, columns.n, columns.inner * 2, columns.factor)
    # The inverse is the transform with parts exchanged before and after.
    even, odd = columns.halves(columns.target, reals)
    columns.transform(columns.lanes(second), columns.width, (odd, even), columns.inner * 2)


def columns_function(shape: Shape, name: str, write: Callable[[_Columns, Value, Value], None]) -> str:
    """A routine for arrays [outer, 2n, inner] of real numbers.

    words: stages, n, inner, the number of stages, turns, the factor
    """
    columns = _Columns(shape)
    make, inner, n = columns.make, columns.inner, columns.n

    def unit(number: Value) -> None:
        # The last vector of columns ends with the last column.
        array, first = place_of(number, inner, shape.lanes)
        write(columns, array * n * inner * 2 + first, (array * (n + 1) * inner + first) * 2)

    return routine(make, name, unit)


def fold_function(shape: Shape) -> str:
    """Frequencies 0 to n of columns, times a factor, as pairs `step` apart. Source: reals.py."""
    make = maker(shape)
    (source, turns, target), factor, (n, step) = _parameters(make)
    for part in (0, shape.lanes):
        make.put(make.vector(make.at(source, part)), make.at(source, n * (2 * shape.lanes) + part))

    def frequency(k: Value) -> None:
        real, imag = folded(number_of(make, source, k), number_of(make, source, n - k), turn_of(make, turns, k, n))
        put_pairs(make, real * factor, imag * factor, make.at(target, k * step))

    make.each(n + 1, frequency)
    return make.text("fold(ptr %source, ptr %turns, ptr %target, i64 %n, i64 %step, ptr %factors)")


def unfold_function(shape: Shape) -> str:
    """Numbers of columns, with parts exchanged, from pairs; imaginary parts at both ends count as
    0.
    """
    make = maker(shape)
    (source, turns, target), factor, (n, step) = _parameters(make)

    def pairs(k: Value) -> tuple[Value, Value]:
        return take_pairs(make, make.at(source, k * step))

    def number(before: Value) -> None:
        k = before + 1
        real, imag = unfolded(pairs(k), pairs(n - k), turn_of(make, turns, k, n))
        put_number(make, target, k, imag * factor, real * factor)

    (first, _), (last, _) = pairs(make.number(0)), pairs(n)
    put_number(make, target, make.number(0), (first - last) * factor, (first + last) * factor)
    make.each(n - 1, number)
    return make.text("unfold(ptr %source, ptr %turns, ptr %target, i64 %n, i64 %step, ptr %factors)")


def _parameters(make: Maker) -> tuple[list[Value], Value, Iterator[Value]]:
    """The source, the turns and the target; the factor in all lanes; n and the step."""
    *pointers, factors = make.pointers("source turns target factors")
    return pointers, make.writer.splat(make.scalar(factors), make.shape.lanes), make.sizes("n step")
