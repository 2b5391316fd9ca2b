"""The code of bits.py."""

from __future__ import annotations

from rune.backends.cpu.routines import Code, define
from rune.lowering.codegen.llvm.ir.text import Value

_TRUTHS = "<64 x i8>"


def text(bitorder: str) -> str:
    """The module. Words: the routine's address, and how many words of bits there are."""

    def pack(code: Code, words: Value, source: Value, target: Value, _: Value) -> None:
        count = code.load("i64", code.item(words, "i64", 1))

        def word(number: Value) -> None:
            truths = code.load(_TRUTHS, code.item(source, _TRUTHS, number), 1)
            bits = code.emit("i64", f"bitcast <64 x i1> {truths.compare('ne', 0).text} to i64")
            if bitorder == "big":
                # The first truth of a byte is its highest bit; bytes stay where they are.
                bits = bits.call("bitreverse").call("bswap")
            code.store(bits, code.item(target, "i64", number), 1)

        code.count_up(code.constant("i64", 0), count, 1, word)

    return define(("void", "pack", "ptr words, ptr source, ptr target, ptr memory"), pack, "")
