"""The machine code of tables of lists (lists.py).

@find   the words of the list for these numbers of blocks: `starts`, number of calls; null if
        there is none
"""

from __future__ import annotations

from rune.backends.cpu.routines import Code, define, null
from rune.backends.shared.lists import AFTER, HEAD
from rune.lowering.codegen.llvm.ir.text import Value


def text() -> str:
    """The functions."""
    return define(("ptr", "find", "ptr lists, ptr numbers"), _find, "internal ")


def _find(code: Code, lists: Value, numbers: Value) -> Value:
    count, blocks, arena = (_word(code, lists, name) for name in range(len(HEAD)))

    def key_at(k: Value) -> Value:
        return code.item(lists, "i64", k * (blocks + (1 + AFTER)) + len(HEAD))

    def is_other(k: Value) -> Value:
        key = key_at(k)

        def is_same(n: Value) -> Value:
            return code.load("i64", code.item(key, "i64", n)).equals(code.load("i64", code.item(numbers, "i64", n)))

        has_blocks = code.leading(blocks, is_same).equals(blocks)
        return (has_blocks & code.load("i64", code.item(key, "i64", blocks)).equals(arena)).invert()

    number = code.leading(count, is_other)
    return code.choose(number < count, lambda: code.item(key_at(number), "i64", blocks + 1), lambda: null(code))


def _word(code: Code, lists: Value, number: int) -> Value:
    return code.load("i64", code.item(lists, "i64", number))
