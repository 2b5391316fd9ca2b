"""What every entry into a plan does with its array objects, compiled once for all plans.

    i64 unfit_array(ptr argv, i64 count, ptr dtypes, ptr ranks)
        0, or k + 1 if array k is not an exact ndarray of the dtype and rank of the tables,
        contiguous and aligned
    i64 unfit_shape(ptr argv, i64 count, ptr ranks, ptr lengths)
        0, or k + 1 if an axis of array k has another length than the table says, which has the
        lengths of all arrays in a row
    void read_addresses(ptr argv, i64 count, ptr words)
        where the memory of each array begins

Choosing instructions for them took a third of LLVM's time when they stood in every plan.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from rune.backends.cpu import compiler
from rune.backends.cpu.host_abi import Abi
from rune.backends.cpu.routines import Code, define
from rune.lowering.codegen.llvm_text import Value


@dataclass(frozen=True, slots=True)
class ArrayChecks:
    """Where the functions begin; they end with `code`."""

    code: compiler.Code
    unfit_array: int
    unfit_shape: int
    read_addresses: int


@functools.cache
def array_checks(abi: Abi) -> ArrayChecks:
    """The functions, compiled for this layout of array objects."""
    code = compiler.compile_module("array_checks", _text(abi))
    return ArrayChecks(code, *map(code.address, ("unfit_array", "unfit_shape", "read_addresses")))


def _text(abi: Abi) -> str:
    layout = _Layout(abi)
    return "\n".join(
        [
            define(("i64", "unfit_array", "ptr argv, i64 count, ptr dtypes, ptr ranks"), layout.unfit_array, ""),
            define(("i64", "unfit_shape", "ptr argv, i64 count, ptr ranks, ptr lengths"), layout.unfit_shape, ""),
            define(("void", "read_addresses", "ptr argv, i64 count, ptr words"), layout.read_addresses, ""),
        ]
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    """Writes the bodies, for array objects that are laid out so."""

    abi: Abi

    def unfit_array(self, code: Code, argv: Value, count: Value, dtypes: Value, ranks: Value) -> Value:
        abi = self.abi

        def check(k: Value) -> None:
            array = code.load("ptr", code.item(argv, "ptr", k))
            ndarray = Value(code, "i64", f"ptrtoint (ptr {code.at(abi.ndarray).text} to i64)")
            _require(code, field(code, "i64", array, abi.type).equals(ndarray), k + 1)
            is_dtype = field(code, "i64", array, abi.descr).equals(code.load("i64", code.item(dtypes, "i64", k)))
            rank = field(code, "i32", array, abi.ndim).cast("sext", "i64")
            is_rank = rank.equals(code.load("i64", code.item(ranks, "i64", k)))
            flags = field(code, "i32", array, abi.flags) & abi.required_flags
            _require(code, is_dtype & is_rank & flags.equals(abi.required_flags), k + 1)

        code.count_up(count.like(0), count, 1, check)
        return count.like(0)

    def unfit_shape(self, code: Code, argv: Value, count: Value, ranks: Value, lengths: Value) -> Value:
        first = code.variable("i64", 0)  # where the lengths of an array begin

        def check(k: Value) -> None:
            shape = field(code, "ptr", code.load("ptr", code.item(argv, "ptr", k)), self.abi.shape)
            rank, start = code.load("i64", code.item(ranks, "i64", k)), code.load("i64", first)

            def check_axis(axis: Value) -> None:
                length = code.load("i64", code.item(shape, "i64", axis))
                wanted = code.load("i64", code.item(lengths, "i64", start + axis))
                _require(code, length.equals(wanted), k + 1)

            code.count_up(count.like(0), rank, 1, check_axis)
            code.store(start + rank, first)

        code.count_up(count.like(0), count, 1, check)
        return count.like(0)

    def read_addresses(self, code: Code, argv: Value, count: Value, words: Value) -> None:
        def read(k: Value) -> None:
            array = code.load("ptr", code.item(argv, "ptr", k))
            code.store(field(code, "ptr", array, self.abi.data), code.item(words, "i64", k))

        code.count_up(count.like(0), count, 1, read)


def field(code: Code, type: str, base: Value, offset: int) -> Value:
    """What lies `offset` bytes into a structure."""
    return code.load(type, code.emit("ptr", f"getelementptr i8, ptr {base.text}, i64 {offset}"))


def _require(code: Code, holds: Value, answer: Value) -> None:
    """Return `answer` unless the condition holds."""
    good, bad = code.name("good"), code.name("bad")
    code.branch(holds, good, bad)
    with code.region(bad):
        code.do(f"ret {answer.type} {answer.text}")
    code.label(good)
