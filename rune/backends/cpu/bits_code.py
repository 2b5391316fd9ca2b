"""The code of bits.py."""

from __future__ import annotations

from rune.backends.cpu.routines import Code, define
from rune.lowering.codegen.llvm.ir.text import Value

_TRUTHS = "<64 x i8>"


def text(bitorder: str) -> str:
    """The module. A unit is a word of bits."""

    def pack(code: Code, *operands: Value) -> None:
        _, source, target, _, first, last = operands

        def word(number: Value) -> None:
            truths = code.load(_TRUTHS, code.item(source, _TRUTHS, number), 1)
            bits = code.emit("i64", f"bitcast <64 x i1> {truths.compare('ne', 0).text} to i64")
            if bitorder == "big":
                # The first truth of a byte is its highest bit; bytes stay where they are.
                bits = bits.call("bitreverse").call("bswap")
            code.store(bits, code.item(target, "i64", number), 1)

        code.count_up(first, last, 1, word)

    return define(("void", "pack", "ptr words, ptr source, ptr target, ptr memory, i64 first, i64 last"), pack, "")
