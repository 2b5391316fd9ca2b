"""The code of groups.py: groups of rows to lanes and back, and what is done in lanes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rune.backends.cpu.fft.butterflies import Pair
from rune.backends.cpu.fft.conventions import ROOMS
from rune.backends.cpu.fft.rows_code import stages_function
from rune.backends.cpu.fft.stages import declarations
from rune.backends.cpu.gemm.panels import transpose
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, block_count, maker
from rune.backends.cpu.vector_routines_code import PARAMETERS, public, routine
from rune.lowering.codegen.llvm.ir.text import Value

# Writes what is done with a group, given where its numbers and its frequencies begin.
Group = Callable[["_Group", Value, Value], None]
Order = tuple[int, int]  # of the parts
# An inverse is a transform with real and imaginary parts exchanged before and after.
FORWARD, BACKWARD = (0, 1), (1, 0)


def text(shape: Shape) -> str:
    """The module of all routines."""
    pieces = to_lanes_function, from_lanes_function, stages_function, fold_function, unfold_function
    backward = partial(_complex, order=BACKWARD)
    routines = {"complex": _complex, "backward": backward, "forward": _forward, "inverse": _inverse}
    texts = [piece(shape) for piece in pieces]
    texts += [public(groups_function(shape, name, group)) for name, group in routines.items()]
    return "\n\n".join([declarations(shape), *texts])


class _Group:
    """The operands of a routine, and its rooms."""

    def __init__(self, shape: Shape):
        self.make, self.lanes = maker(shape), shape.lanes
        words, self.source, self.target, work = self.make.pointers(PARAMETERS)
        self.rows, self.n, self.count = (self.make.word(words, k) for k in (1, 2, 3))
        self.stages, self.turns, factor = (self.make.word(words, k, "ptr") for k in (0, 4, 5))
        self.factor = self.make.scalar(factor)
        room = (self.n + 1) * (2 * self.lanes)
        self.room, self.width = room, self.make.number(2 * self.lanes)
        self.rooms = [self.make.at(work, room * number) for number in range(ROOMS)]
        # Stage k writes room k mod 2, so the last one leaves the result in one of them.
        is_first = ((self.count - 1) & 1).equals(0)
        self.result, self.other = (self.make.writer.select(is_first, *x) for x in (self.rooms, self.rooms[::-1]))
        # Where real and imaginary parts of a vector of lanes are.
        self.parts = self.make.number(0), self.make.number(self.lanes)

    def to_lanes(self, first: Value, numbers: Value, room: Value, order: Order = FORWARD) -> None:
        """Rows of this many pairs; the first row begins at `first`."""
        places = (self.make.at(room, self.parts[part]) for part in order)
        self.make.call("to_lanes", self.make.at(self.source, first), *places, numbers)

    def from_lanes(self, room: Value, first: Value, numbers: Value, order: Order = FORWARD) -> None:
        """The same back, times the factor."""
        places = (self.make.at(room, self.parts[part]) for part in order)
        self.make.call("from_lanes", *places, self.make.at(self.target, first), numbers, self.factor)

    def transform(self) -> None:
        """From the second room to `result`."""
        second, result = ([x, self.make.at(x, self.lanes), self.width] for x in (self.rooms[1], self.result))
        self.make.call("stages", self.stages, self.count, *second, *result, self.rooms[0], self.room)


def _complex(group: _Group, first: Value, _: Value, order: Order = FORWARD) -> None:
    group.to_lanes(first, group.n, group.rooms[1], order)
    group.transform()
    group.from_lanes(group.result, first, group.n, order)


def _forward(group: _Group, first: Value, spectrum: Value) -> None:
    group.to_lanes(first, group.n, group.rooms[1])
    group.transform()
    group.make.call("fold", group.result, group.turns, group.other, group.n)
    group.from_lanes(group.other, spectrum, group.n + 1)


def _inverse(group: _Group, first: Value, spectrum: Value) -> None:
    group.to_lanes(spectrum, group.n + 1, group.rooms[0])
    group.make.call("unfold", group.rooms[0], group.turns, group.rooms[1], group.n)
    group.transform()
    group.from_lanes(group.result, first, group.n, BACKWARD)


def groups_function(shape: Shape, name: str, write: Group) -> str:
    """A routine for rows of n pairs, a group a unit. The last group ends with the last row.

    words: stages, rows, n, the number of stages, turns of real rows, the factor
    """
    group = _Group(shape)

    def each(number: Value) -> None:
        row = (number * shape.lanes).call("smin", group.rows - shape.lanes)
        write(group, row * group.n * 2, row * (group.n + 1) * 2)

    return routine(group.make, name, each)


def to_lanes_function(shape: Shape) -> str:
    """As many rows of n pairs as there are lanes, whose element k becomes two vectors."""
    make, lanes = maker(shape), shape.lanes
    (rows, *targets), (n,) = make.pointers("rows to_real to_imag"), make.sizes("n")

    def square(number: Value) -> None:
        first = (number * (lanes // 2)).call("smin", n - lanes // 2)

        def columns(top: int) -> list[Value]:
            # Half of the rows at a time: with all, more vectors would be alive than registers.
            # Pairs stay together.
            lines = [make.vector(make.at(rows, (first + n * row) * 2)) for row in range(top, top + lanes // 2)]
            return transpose(lines, 2)

        for k, (low, high) in enumerate(zip(columns(0), columns(lanes // 2), strict=True)):
            for part, target in enumerate(targets):
                vector = make.writer.shuffle(low, high, range(part, 2 * lanes, 2))
                make.put(vector, make.at(target, (first + k) * (2 * lanes)))

    make.each(block_count(n, lanes // 2), square)
    return make.text("to_lanes(ptr %rows, ptr %to_real, ptr %to_imag, i64 %n)")


def from_lanes_function(shape: Shape) -> str:
    """The same back, times a factor."""
    make, lanes = maker(shape), shape.lanes
    (*sources, rows), (n,) = make.pointers("real imag rows"), make.sizes("n")
    factor = make.writer.splat(Value(make.writer, shape.scalar, "%factor"), lanes)
    order = [lane + part * lanes for lane in range(lanes) for part in (0, 1)]

    def square(number: Value) -> None:
        first = (number * (lanes // 2)).call("smin", n - lanes // 2)

        def pairs(k: int) -> list[Value]:
            """Number k of the upper and of the lower half of the rows."""
            real, imag = (make.vector(make.at(part, (first + k) * (2 * lanes))) * factor for part in sources)
            return [make.writer.shuffle(real, imag, half) for half in (order[:lanes], order[lanes:])]

        for half, lines in enumerate(zip(*map(pairs, range(lanes // 2)), strict=True)):
            for k, row in enumerate(transpose([*lines], 2)):
                make.put(row, make.at(rows, (first + n * (k + half * (lanes // 2))) * 2))

    make.each(block_count(n, lanes // 2), square)
    return make.text(f"from_lanes(ptr %real, ptr %imag, ptr %rows, i64 %n, {shape.scalar} %factor)")


def fold_function(shape: Shape) -> str:
    """2 X[k] of h = n/2 numbers Z, for k from 0 to h, as in reals.py; Z[h] is Z[0]."""
    make = maker(shape)
    (source, turns, target), (n,) = make.pointers("source turns target"), make.sizes("n")
    for part in (0, shape.lanes):
        make.put(make.vector(make.at(source, part)), make.at(source, n * (2 * shape.lanes) + part))

    def frequency(k: Value) -> None:
        numbers = number_of(make, source, k), number_of(make, source, n - k)
        put_number(make, target, k, *folded(*numbers, turn_of(make, turns, k, n)))

    make.each(n + 1, frequency)
    return make.text("fold(ptr %source, ptr %turns, ptr %target, i64 %n)")


def unfold_function(shape: Shape) -> str:
    """2 Z of h + 1 frequencies X, with its parts exchanged; imaginary parts at both ends count as
    0.
    """
    make = maker(shape)
    (source, turns, target), (n,) = make.pointers("source turns target"), make.sizes("n")
    zero = make.writer.constant(shape.vector, 0.0)
    for end in (make.number(0), n):
        make.put(zero, make.at(source, end * (2 * shape.lanes) + shape.lanes))

    def number(k: Value) -> None:
        numbers = number_of(make, source, k), number_of(make, source, n - k)
        real, imag = unfolded(*numbers, turn_of(make, turns, k, n))
        put_number(make, target, k, imag, real)

    make.each(n, number)
    return make.text("unfold(ptr %source, ptr %turns, ptr %target, i64 %n)")


def folded(z: Pair, mirror: Pair, turn: Pair) -> Pair:
    """2 X[k] of Z[k], Z[h-k] and exp(-2πi k/n)."""
    (a, b), (c, d), (cosine, sine) = z, mirror, turn
    x, y = b + d, c - a  # of (Z[k] - conj Z[h-k]) / i
    return x.fma(cosine, (-y).fma(sine, a + c)), y.fma(cosine, x.fma(sine, b - d))


def unfolded(frequency: Pair, mirror: Pair, turn: Pair) -> Pair:
    """2 Z[k] of X[k], X[h-k] and exp(-2πi k/n)."""
    (a, b), (c, d), (cosine, sine) = frequency, mirror, turn
    x, y = a - c, b + d  # of X[k] - conj X[h-k], which is turned back
    return a + c - y.fma(cosine, -(x * sine)), b - d + x.fma(cosine, y * sine)


def number_of(make: Maker, room: Value, k: Value) -> Pair:
    """The parts of number k of all lanes."""
    place = make.at(room, k * (2 * make.shape.lanes))
    return make.vector(place), make.vector(make.at(place, make.shape.lanes))


def put_number(make: Maker, room: Value, k: Value, real: Value, imag: Value) -> None:
    """Store number k of all lanes."""
    place = make.at(room, k * (2 * make.shape.lanes))
    make.put(real, place)
    make.put(imag, make.at(place, make.shape.lanes))


def turn_of(make: Maker, turns: Value, k: Value, n: Value) -> Pair:
    """exp(-2πi k/n) in all lanes, of a table whose parts are n + 1 apart."""
    cosine, sine = (make.writer.splat(make.scalar(make.at(turns, at)), make.shape.lanes) for at in (k, k + n + 1))
    return cosine, sine
