"""Writes the functions that make words of elements (keys.py)."""

from __future__ import annotations

from rune import dtypes
from rune.backends.cpu.routines import Code, define
from rune.backends.cpu.sorting.keys import WORD, Key
from rune.lowering.codegen.llvm.ir.text import Value

# The bits of infinity: NaN has larger ones, apart from its sign. f8_e4m3 has no infinity, so those
# of its largest number.
_INFINITY = {
    dtypes.f8_e4m3: 0x7E,
    dtypes.f8_e5m2: 0x7C,
    dtypes.f16: 0x7C00,
    dtypes.bf16: 0x7F80,
    dtypes.f32: 0x7F80_0000,
    dtypes.f64: 0x7FF0_0000_0000_0000,
}


def key_text(key: Key, vector_bytes: int) -> str:
    """The function void(ptr source, ptr words, i64 count) that writes the words of a row."""
    write = _next if key.is_next else _first if key.step == 1 else _first_of_parts
    signature = ("void", "key", "ptr source, ptr words, i64 count")
    return define(signature, lambda code, *operands: write(code, key, vector_bytes // 8, *operands), "")


def _first(code: Code, key: Key, lanes: int, source: Value, words: Value, count: Value) -> None:
    """Words of whole vectors, and one by one at the end."""
    middle = count.round_down(lanes)
    bits = f"i{8 * key.dtype.itemsize}"

    def several(k: Value) -> None:
        word = _word(key, code.load(f"<{lanes} x {bits}>", code.item(source, bits, k), 1))
        position = code.splat(k, lanes) + code.iota(lanes, "i64")
        code.store(_packed(word, position), code.item(words, "i64", k), 8)

    code.count_up(middle.like(0), middle, lanes, several)
    code.count_up(middle, count, 1, lambda k: _put(code, key, source, words, k, k))


def _first_of_parts(code: Code, key: Key, lanes: int, source: Value, words: Value, count: Value) -> None:
    code.count_up(count.like(0), count, 1, lambda k: _put(code, key, source, words, k, k))


def _next(code: Code, key: Key, lanes: int, source: Value, words: Value, count: Value) -> None:
    def one(k: Value) -> None:
        _put(code, key, source, words, k, position_of(code, words, k))

    code.count_up(count.like(0), count, 1, one)


def _put(code: Code, key: Key, source: Value, words: Value, k: Value, position: Value) -> None:
    """Word k, of the element at a position."""
    bits = f"i{8 * key.dtype.itemsize}"
    element = code.load(bits, code.item(source, bits, position * key.step + key.part), 1)
    code.store(_packed(_word(key, element), position), code.item(words, "i64", k))


def position_of(code: Code, words: Value, k: Value) -> Value:
    """The position beside word k."""
    return code.load("i64", code.item(words, "i64", k)) & ((1 << WORD) - 1)


def _packed(word: Value, position: Value) -> Value:
    return word.binary("shl", WORD) | position


def _word(key: Key, bits: Value) -> Value:
    """The word of elements, as i64."""
    ordered = _ordered(key, bits)
    if key.is_downward:
        ordered = ordered.invert()
    wide = ordered.cast("zext", "i64")
    if key.dtype.itemsize < 8:
        return wide
    return wide & ((1 << WORD) - 1) if key.is_low else wide.binary("lshr", WORD)


def _ordered(key: Key, bits: Value) -> Value:
    """Unsigned integers in the order of elements with these bits."""
    width = 8 * key.dtype.itemsize
    sign = -1 << (width - 1)
    if key.dtype in dtypes.SIGNED:
        return bits ^ sign
    if key.dtype not in dtypes.FLOATING:
        return bits
    # The bits of negative numbers grow with the magnitude: all of them are inverted.
    ordered = bits ^ (bits.binary("ashr", width - 1) | sign)
    if key.is_downward:
        return ordered
    magnitude = bits & ~sign
    is_nan = magnitude.compare("ugt", _INFINITY[key.dtype])
    ordered = bits.writer.select(magnitude.equals(0), bits.like(sign), ordered)
    return bits.writer.select(is_nan, bits.like(-1), ordered)
