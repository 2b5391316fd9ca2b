"""Lines of arrays to vector lanes and back, where lanes are not neighbours in memory.

In scratch memory element k of all lines is one vector of real parts and one of imaginary parts; a
function here moves one part, and is called for each.
"""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cpu.gemm.panels import transpose
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, block_count, maker
from rune.lowering.codegen.llvm_text import Value


def squares_function(shape: Shape) -> str:
    """Squares transposed, which cover n elements of rows on their way to lanes, or back.

    The vectors of a square are `fs` elements apart in what is read and `ts` in what is written, and
    squares begin `fn` and `tn` times their number of elements on. The last one ends with the rows.
    """
    make = maker(shape)
    (source, target), (fs, fn, ts, tn, n) = make.pointers("from to"), make.sizes("fs fn ts tn n")

    def square(number: Value) -> None:
        first = (number * shape.lanes).call("smin", n - shape.lanes)
        start, end = make.at(source, first * fn), make.at(target, first * tn)
        lines = [make.vector(make.at(start, fs * k)) for k in range(shape.lanes)]
        for k, column in enumerate(transpose(lines)):
            make.put(column, make.at(end, ts * k))

    make.each(block_count(n, shape.lanes), square)
    return make.text("squares(ptr %from, i64 %fs, i64 %fn, ptr %to, i64 %ts, i64 %tn, i64 %n)")


def gather_line_function(shape: Shape) -> str:
    """One line, whose elements are `step` apart, to a lane of scratch memory."""
    make, copy = _line(shape)
    copy(lambda element, lane: make.writer.store(make.scalar(element), lane))
    return make.text("gather_line(ptr %array, i64 %step, ptr %scratch, i64 %n)")


def scatter_line_function(shape: Shape) -> str:
    """The same from a lane."""
    make, copy = _line(shape)
    copy(lambda element, lane: make.writer.store(make.scalar(lane), element))
    return make.text("scatter_line(ptr %array, i64 %step, ptr %scratch, i64 %n)")


def _line(shape: Shape) -> tuple[Maker, Callable[[Callable[[Value, Value], None]], None]]:
    """A function of one line, and what has it move elements: move(in the array, in the lane)."""
    make = maker(shape)
    (array, scratch), (step, n) = make.pointers("array scratch"), make.sizes("step n")

    def copy(move: Callable[[Value, Value], None]) -> None:
        make.each(n, lambda k: move(make.at(array, k * step), _element(make, scratch, k)))

    return make, copy


def turn_function(shape: Shape) -> str:
    """`count` numbers times those of a table, both with parts apart."""
    make = maker(shape)
    (real, imag, turns), (count,) = make.pointers("real imag turns"), make.sizes("count")
    lanes, writer = shape.lanes, make.writer

    def turn(at: Value, read: Callable[[Value], Value], put: Callable[[Value, Value], None]) -> None:
        x, y = (read(make.at(part, at)) for part in (real, imag))
        c, s = (read(make.at(turns, at + k)) for k in (make.number(0), count))
        put(x.fma(c, -(y * s)), make.at(real, at))
        put(x.fma(s, y * c), make.at(imag, at))

    even = count - count.binary("urem", count, lanes)
    writer.count_up(make.number(0), even, lanes, lambda at: turn(at, make.vector, make.put))
    writer.count_up(even, count, 1, lambda at: turn(at, make.scalar, writer.store))
    return make.text("turn(ptr %real, ptr %imag, ptr %turns, i64 %count)")


def _element(make: Maker, scratch: Value, number: Value) -> Value:
    return make.at(scratch, number * (2 * make.shape.lanes))
