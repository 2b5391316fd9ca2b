"""The checks of array objects as IR text (array_checks.py)."""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cpu.host_abi import HEAD, MISCOUNTED, Abi
from rune.backends.cpu.routines import Code, define
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass


def text(abi: Abi) -> str:
    """The module."""
    layout = _Layout(abi)
    return "\n".join(
        [
            define(("i64", "unfit_array", "ptr argv, i64 count, ptr dtypes, ptr ranks"), layout.unfit_array, ""),
            define(("i64", "unfit_shape", "ptr argv, i64 count, ptr ranks, ptr lengths"), layout.unfit_shape, ""),
            define(("void", "read_addresses", "ptr argv, i64 count, ptr words"), layout.read_addresses, ""),
            define(("ptr", "enter", "ptr self, ptr argv, i64 count"), layout.enter, ""),
        ]
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    """Writes the bodies of the functions, for one layout of array objects."""

    abi: Abi

    def unfit_array(self, code: Code, argv: Value, count: Value, dtypes: Value, ranks: Value) -> Value:
        abi = self.abi

        def check(k: Value) -> None:
            array = code.load("ptr", code.item(argv, "ptr", k))
            # Before any other field is read, which an object of another type may not have.
            ndarray = Value(code, "i64", f"ptrtoint (ptr {code.at(abi.ndarray).text} to i64)")
            _require(code, field(code, "i64", array, abi.type).equals(ndarray), lambda: k + 1)
            is_dtype = field(code, "i64", array, abi.descr).equals(code.load("i64", code.item(dtypes, "i64", k)))
            rank = field(code, "i32", array, abi.ndim).cast("sext", "i64")
            is_rank = rank.equals(code.load("i64", code.item(ranks, "i64", k)))
            # An exact ndarray only: a subclass may override what its memory means.
            flags = field(code, "i32", array, abi.flags) & abi.required_flags
            _require(code, is_dtype & is_rank & flags.equals(abi.required_flags), lambda: k + 1)

        code.count_up(count.like(0), count, 1, check)
        return count.like(0)

    def unfit_shape(self, code: Code, argv: Value, count: Value, ranks: Value, lengths: Value) -> Value:
        first = code.variable("i64", 0)  # where the lengths of an array begin

        def check(k: Value) -> None:
            shape = field(code, "ptr", code.load("ptr", code.item(argv, "ptr", k)), self.abi.shape)
            rank, start = code.load("i64", code.item(ranks, "i64", k)), code.load("i64", first)

            def check_axis(axis: Value) -> None:
                length = code.load("i64", code.item(shape, "i64", axis))
                expected_length = code.load("i64", code.item(lengths, "i64", start + axis))
                _require(code, length.equals(expected_length), lambda: k + 1)

            code.count_up(count.like(0), rank, 1, check_axis)
            code.store(start + rank, first)

        code.count_up(count.like(0), count, 1, check)
        return count.like(0)

    def read_addresses(self, code: Code, argv: Value, count: Value, words: Value) -> None:
        def read(k: Value) -> None:
            array = code.load("ptr", code.item(argv, "ptr", k))
            code.store(field(code, "ptr", array, self.abi.data), code.item(words, "i64", k))

        code.count_up(count.like(0), count, 1, read)

    def enter(self, code: Code, plan: Value, argv: Value, count: Value) -> Value:
        abi = self.abi

        def answer(number: Value) -> Value:
            return code.ask("ptr", code.at(abi.from_long), number)

        def require(holds: Value, number: Value) -> None:
            _require(code, holds, lambda: answer(number))

        table = field(code, "ptr", plan, abi.data)
        run, total, arguments = (code.load(t, code.item(table, t, count.like(k))) for k, t in enumerate(HEAD))
        dtypes = code.item(table, "i64", len(HEAD))
        ranks = code.item(dtypes, "i64", arguments)
        lengths = code.item(ranks, "i64", arguments)
        require(count.equals(total), count.like(MISCOUNTED))
        # Dtypes and ranks first: only then do all arrays have the axes that are read next.
        for check, *tables in (("unfit_array", dtypes, ranks), ("unfit_shape", ranks, lengths)):
            unfit = code.ask("i64", check, argv, arguments, *tables)
            require(unfit.equals(0), unfit)
        words = code.row("i64", total + 1)
        # Results and arena, which run.py has allocated for this call, need no checks.
        code.tell("void", "read_addresses", argv, total, words)
        code.store(count.like(0), code.item(words, "i64", total))  # the seat: none (crew/)
        state = code.ask("ptr", code.at(abi.save_thread))
        code.tell("void", run, words)
        code.tell("void", code.at(abi.restore_thread), state)
        return answer(count.like(0))


def field(code: Code, type: str, base: Value, offset: int) -> Value:
    """The field at `offset` bytes of a structure."""
    return code.load(type, code.item(base, "i8", offset))


def _require(code: Code, holds: Value, answer: Callable[[], Value]) -> None:
    """Return the value of `answer` unless the condition holds."""
    good, bad = code.name("good"), code.name("bad")
    code.branch(holds, good, bad)
    with code.region(bad):
        value = answer()
        code.do(f"ret {value.type} {value.text}")
    code.label(good)
