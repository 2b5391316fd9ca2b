"""The moves of a place in a meeting, as native code (moves.py lists them).

@attend(message, rows, place)   all moves of a place; `rows` has a row of addresses for each place:
                                of its results, then of its operands
@perform(move, rows, place)     one move
"""

from __future__ import annotations

from functools import partial

from rune.backends.cpu.crew.records import MESSAGE, MOVE
from rune.backends.cpu.crew.words import byte, entry, get
from rune.backends.cpu.routines import Code, define, false
from rune.lowering.codegen.llvm.ir.text import Value

COPY, ZERO, SUM, SHARE = range(4)  # kinds of moves
PIECE_BYTES = 1 << 14  # of a sum, copied to the other places while it is in the first-level cache


def functions() -> list[str]:
    """The functions."""
    return [
        define(("void", "perform", "ptr move, ptr rows, i64 place"), _perform),
        define(("void", "attend", "ptr message, ptr rows, i64 place"), _attend),
    ]


def _attend(code: Code, message: Value, rows: Value, place: Value) -> None:
    """All moves of one place of a group."""
    moves, counts = (get(code, message, MESSAGE, name, "ptr") for name in ("moves", "counts"))
    first, size = entry(code, moves, place), code.constant("i64", 8 * MOVE["end"])

    def perform(k: Value) -> None:
        code.tell("void", "perform", byte(code, first, k * size), rows, place)

    code.count_up(code.constant("i64", 0), entry(code, counts, place, "i64"), 1, perform)


def _perform(code: Code, move: Value, rows: Value, place: Value) -> None:
    """One move: rows of rows of bytes, or one sum for each outer row."""
    field = partial(get, code, move, MOVE)
    sources, count = field("sources", "ptr"), field("count")
    operands = code.row("ptr", count)

    def find(k: Value) -> None:
        row = entry(code, rows, entry(code, sources, k, "i64"))
        code.store(entry(code, row, field("operand")), code.item(operands, "ptr", k))

    zero = code.constant("i64", 0)
    code.count_up(zero, count, 1, find)
    target = byte(code, entry(code, entry(code, rows, place), field("result")), field("target"))

    def copy() -> Value:
        source = byte(code, code.load("ptr", operands), field("origin"))

        def outer(a: Value) -> None:
            def inner(b: Value) -> None:
                to = byte(code, target, a * field("outer_to") + b * field("inner_to"))
                _copy(code, to, byte(code, source, a * field("outer_from") + b * field("inner_from")), field("bytes"))

            code.count_up(zero, field("inner"), 1, inner)

        code.count_up(zero, field("outer"), 1, outer)
        return zero

    def clear() -> Value:
        byte, no = Value(code, "i8", "0"), false(code)
        code.run("@llvm.memset.p0.i64", target, byte, field("bytes"), no)
        return zero

    def add_up() -> Value:
        def outer(a: Value) -> None:
            to = byte(code, target, a * field("outer_to"))
            code.tell(
                "void",
                field("function", "ptr"),
                operands,
                field("origin") + a * field("outer_from"),
                to,
                field("bytes"),
            )

        code.count_up(zero, field("outer"), 1, outer)
        return zero

    def share() -> Value:
        _share(code, move, rows, operands, target)
        return zero

    code.switch(field("kind"), {COPY: copy, ZERO: clear, SUM: add_up}, share)


def _share(code: Code, move: Value, rows: Value, operands: Value, target: Value) -> None:
    """Compute a part of a sum, and copy it to every source, piece by piece."""
    field = partial(get, code, move, MOVE)
    origin, bytes, size = field("origin"), field("bytes"), code.constant("i64", PIECE_BYTES)

    def piece(k: Value) -> None:
        at = k * size
        to, length = byte(code, target, at), code.ask("i64", "llvm.umin.i64", size, bytes - at)
        code.tell("void", field("function", "ptr"), operands, origin + at, to, length)

        def give(receiver: Value) -> None:
            row = entry(code, rows, entry(code, field("sources", "ptr"), receiver, "i64"))
            result = byte(code, entry(code, row, field("result")), origin + at)
            # The sum was written to this place's own result.
            code.either(result.compare("ne", to), lambda: _copy(code, result, to, length))

        code.count_up(code.constant("i64", 0), field("count"), 1, give)

    pieces = bytes.ceil_div(PIECE_BYTES)
    code.count_up(code.constant("i64", 0), pieces, 1, piece)


def _copy(code: Code, target: Value, source: Value, bytes: Value) -> None:
    code.run("@llvm.memcpy.p0.p0.i64", target, source, bytes, false(code))
