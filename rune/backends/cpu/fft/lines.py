"""Copies lines of arrays to vector lanes and back, if lanes are not neighbours in memory.

In scratch memory element k of all lines is one vector of real parts and one of imaginary parts. A
function here moves one of these parts, so it is called twice.
"""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cpu.gemm.panels import transpose
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, block_count, maker
from rune.lowering.codegen.llvm.ir.text import Value


def squares_function(shape: Shape) -> str:
    """Transposes rows of n elements to lanes, or back, in squares of lanes × lanes.

    The vectors of a square are `fs` elements apart in the source and `ts` in the target. A square
    at element k begins at fn·k and tn·k. The last square ends with the rows.
    """
    make = maker(shape)
    (source, target), (fs, fn, ts, tn, n) = make.pointers("from to"), make.sizes("fs fn ts tn n")

    def square(number: Value) -> None:
        # The last square overlaps the one before it: none is partial or reads beyond the rows.
        first = (number * shape.lanes).call("smin", n - shape.lanes)
        start, end = make.at(source, first * fn), make.at(target, first * tn)
        lines = [make.vector(make.at(start, fs * k)) for k in range(shape.lanes)]
        for k, column in enumerate(transpose(lines)):
            make.put(column, make.at(end, ts * k))

    make.each(block_count(n, shape.lanes), square)
    return make.text("squares(ptr %from, i64 %fs, i64 %fn, ptr %to, i64 %ts, i64 %tn, i64 %n)")


def take_pairs(make: Maker, source: Value) -> tuple[Value, Value]:
    """Real and imaginary parts of a vector of pairs."""
    lanes = make.shape.lanes
    low, high = make.vector(source), make.vector(make.at(source, lanes))
    real, imag = (make.writer.shuffle(low, high, range(part, 2 * lanes, 2)) for part in (0, 1))
    return real, imag


def put_pairs(make: Maker, real: Value, imag: Value, target: Value) -> None:
    """Pairs of a vector of real and one of imaginary parts."""
    lanes = make.shape.lanes
    order = [lane + part * lanes for lane in range(lanes) for part in (0, 1)]
    for half, at in enumerate((target, make.at(target, lanes))):
        make.put(make.writer.shuffle(real, imag, order[half * lanes : (half + 1) * lanes]), at)


def gather_line_function(shape: Shape) -> str:
    """Copies one line, with elements `step` apart, to a lane of scratch memory."""
    make, copy = _line(shape)
    copy(lambda element, lane: make.writer.store(make.scalar(element), lane))
    return make.text("gather_line(ptr %array, i64 %step, ptr %scratch, i64 %n)")


def scatter_line_function(shape: Shape) -> str:
    """Copies a lane back to a line."""
    make, copy = _line(shape)
    copy(lambda element, lane: make.writer.store(make.scalar(lane), element))
    return make.text("scatter_line(ptr %array, i64 %step, ptr %scratch, i64 %n)")


def _line(shape: Shape) -> tuple[Maker, Callable[[Callable[[Value, Value], None]], None]]:
    """A function over one line, and copy(move), which writes move(array element, lane element)."""
    make = maker(shape)
    (array, scratch), (step, n) = make.pointers("array scratch"), make.sizes("step n")

    def copy(move: Callable[[Value, Value], None]) -> None:
        make.each(n, lambda k: move(make.at(array, k * step), _element(make, scratch, k)))

    return make, copy


def turned_squares_function(shape: Shape) -> str:
    """Transposes rows to lanes, multiplied by a table of complex numbers.

    Rows have `count` elements and are `fs` elements apart; rows of the table are `us` apart, and
    its imaginary parts begin n elements after its real ones. Vectors of lanes are `ts` apart.
    """
    make = maker(shape)
    (real, imag, turns), (to_real, to_imag) = make.pointers("real imag turns"), make.pointers("to_real to_imag")
    fs, us, ts, n, count = make.sizes("fs us ts n count")

    def square(number: Value) -> None:
        first = (number * shape.lanes).call("smin", count - shape.lanes)
        lines: tuple[list[Value], list[Value]] = ([], [])
        for k in range(shape.lanes):
            # Multiplied before they are transposed: so rows of the table are read by vectors, too.
            x, y = (make.vector(make.at(part, first + fs * k)) for part in (real, imag))
            c, s = (make.vector(make.at(turns, first + us * k + apart)) for apart in (make.number(0), n))
            lines[0].append(x.fma(c, -(y * s)))
            lines[1].append(x.fma(s, y * c))
        for part, target in zip(lines, (to_real, to_imag), strict=True):
            for k, column in enumerate(transpose(part)):
                make.put(column, make.at(target, (first + k) * ts))

    make.each(block_count(count, shape.lanes), square)
    sizes = "i64 %fs, i64 %us, i64 %ts, i64 %n, i64 %count"
    return make.text(f"turned_squares(ptr %real, ptr %imag, ptr %turns, ptr %to_real, ptr %to_imag, {sizes})")


def _element(make: Maker, scratch: Value, number: Value) -> Value:
    # A vector of real parts, then one of imaginary parts.
    return make.at(scratch, number * (2 * make.shape.lanes))
