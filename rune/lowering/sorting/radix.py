"""A stable sort by digits, the least significant first, and its passes with one thread per tile.

    words     a u32 of each element; the least comes first
    counts    how often each digit of eight bits occurs in a tile of a row: [rows, digits * tiles]
    ends      the running sum of a row's counts: where a tile's elements of a digit end
    moved     every element moves to its place among those of its digit

Each move rotates the word, so that the next digit is its lowest, and all passes but the last share
their kernels. For devices with groups of threads, groups.py has the passes.

Cost: two kernels and a scan for each eight bits; O(n) work.
Source: Knuth, The Art of Computer Programming 3, 5.2.5, algorithm R.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rune import dims, dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Written
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import product
from rune.lowering.codegen.atomics import has_atomic
from rune.lowering.codegen.target import Target
from rune.lowering.sorting.digits import BITS, Digits
from rune.lowering.sorting.groups import KEY, ORDER, sort_by_groups
from rune.lowering.written import Loops
from rune.ops.reduction import cumsum
from rune.ops.sorting import positions_like
from rune.records import dataclass

DIGITS = 1 << BITS
WORD = 32  # bits of a word
PROCESSOR_TILE = 8192  # elements that one thread walks: many for its table, but few rounds of a loop
GROUPS = (512, 256, 128, 64, 32)  # threads of a group
ITEMS = (4, 8, 16)  # elements of a thread of a group
FEW = 1 << 15  # elements per item of a thread; with fewer, threads take fewer items, for more groups


@dataclass(frozen=True, slots=True)
class Tiles:
    """How a device walks a row: `threads` together take at most `tile` elements."""

    threads: int
    tile: int


def tiles(target: Target) -> Tiles:
    """The tiles of a device."""
    counts_together = has_atomic(target, "add", dtypes.i32) and has_atomic(target, "add", dtypes.u32)
    if not target.is_processor and counts_together:
        for threads in GROUPS:
            tiling = Tiles(threads, threads * ITEMS[-1])
            if threads <= target.threads_per_workgroup and shared_bytes(tiling) <= target.shared_bytes:
                return tiling
    return Tiles(1, PROCESSOR_TILE)


def shared_bytes(tiling: Tiles) -> int:
    """The shared memory of a group of threads for a pass by digits of eight bits [B]."""
    return Digits(0, BITS, tiling.threads, tiling.tile // tiling.threads).shared_bytes


@dataclass(frozen=True, slots=True)
class Word:
    """A key, or a part of one: u32 values below 2^bits that compare as the elements do.

    Groups of threads also sort i32 and f32 as they are (digits.KEYS), by 32 bits.
    """

    value: Value
    bits: int


def sort_words(word: Word, order: Value | None, tiling: Tiles, results: Sequence[str]) -> list[Value]:
    """Sort words along the last axis, stably. results: which of KEY and ORDER to return.

    order: the positions of the words, or None if they are 0, 1, 2, ...
    """
    if tiling.threads > 1:
        return sort_by_groups(word.value, word.bits, _group(type_of(word.value), tiling), order, results)
    orders: list[Value] = []
    if ORDER in results:
        orders = [positions_like(word.value) if order is None else order]
    values: dict[str, Value] = dict(zip((KEY, ORDER), _sorted_by_one(word, orders, tiling.tile), strict=False))
    return [values[name] for name in results]


def _group(type: ArrayType, tiling: Tiles) -> tuple[int, int]:
    """The threads of a group and the elements of each: no more than a row of one tile needs, or
    than keeps the whole device busy."""
    most = [dims.bounds(size)[1] for size in type.shape]
    if most[-1] is not None and most[-1] <= tiling.tile:
        threads = min(t for t in GROUPS if t >= tiling.threads or t * ITEMS[1] >= most[-1])
        return threads, min(items for items in ITEMS if items * threads >= most[-1])
    total = None if None in most else math.prod(m for m in most if m is not None)
    items = tiling.tile // tiling.threads
    fewer = [n for n in ITEMS if n < items and total is not None and total < n * FEW]
    return tiling.threads, min(fewer, default=items)


def _sorted_by_one(word: Word, orders: Sequence[Value], tile: int) -> list[Value]:
    passes = -(-word.bits // BITS)
    value: Value = word.value
    for number in range(passes):
        counts = digit_counts(value, tile=tile)
        ends = cumsum(counts, axis=type_of(counts).ndim - 1, reverse=False)
        # The last pass rotates the word back to its original value.
        turn = WORD - BITS if number < passes - 1 else number * BITS % WORD
        value, *orders = move_digits(value, counts, ends, *orders, tile=tile, turn=turn)
    return [value, *orders]


# --- counting ---------------------------------------------------------------------------------


def _table_type(word: ArrayType, tile: int) -> ArrayType:
    *rows, size = word.shape
    return ArrayType((*rows, DIGITS * -(-size // tile)), dtypes.i32)


def _counts_type(word: ArrayType, *, tile: int) -> ArrayType:
    return _table_type(word, tile)


def _tiled(word: np.ndarray, tile: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of digits, and the tile of each element of a row."""
    rows = word.reshape(-1, word.shape[-1]) & np.uint32(DIGITS - 1)
    return rows.astype(np.int64), np.arange(word.shape[-1]) // tile


def _counts_reference(word: np.ndarray, *, tile: int) -> np.ndarray:
    digits, tile_of = _tiled(word, tile)
    count = -(-word.shape[-1] // tile)
    table = np.zeros((len(digits), DIGITS, count), np.int32)
    np.add.at(table, (np.arange(len(digits))[:, None], digits, tile_of), 1)
    return table.reshape(*word.shape[:-1], DIGITS * count)


def _counts_loops(word: ArrayType, *, tile: int) -> Loops:
    text = f"""
        alloc table: i32[{DIGITS}] local
        for d in {DIGITS} serial {{ store table[d] = 0_i32 }}
        for e in {tile} serial {{
          if {_inside(word, "e", tile)} {{
            g: i32 in 0..{DIGITS - 1} = i32(x0[{_at(word, "e", tile)}] & {DIGITS - 1}_u32)
            update table[g] add= 1_i32
          }}
        }}
        for d in {DIGITS} serial {{ store y0[{_entry(word, "d", tile)}] = table[d] }}"""
    return Loops(_over_tiles(word, tile, text))


def _over_tiles(word: ArrayType, tile: int, text: str) -> str:
    *rows, size = word.shape
    return f"{{ for r in {product(rows)} grid {{ for p in {-(-size // tile)} grid {{ {text} }} }} }}"


def _inside(word: ArrayType, element: str, tile: int) -> str:
    return f"index({tile}*p + {element}) < index({word.shape[-1]})"


def _at(word: ArrayType, element: str, tile: int) -> str:
    return f"({word.shape[-1]})*r + {tile}*p + {element}"


def _entry(word: ArrayType, digit: str, tile: int) -> str:
    count = -(-word.shape[-1] // tile)
    return f"({DIGITS}*r + {digit})*({count}) + p"


digit_counts = Primitive("digit_counts", "sorting", _counts_type, _counts_reference, lower=Written(_counts_loops))


# --- moving -----------------------------------------------------------------------------------


def _move_type(
    word: ArrayType, counts: ArrayType, ends: ArrayType, *payloads: ArrayType, tile: int, turn: int
) -> tuple[ArrayType, ...]:
    return (word, *payloads)


def _move_reference(
    word: np.ndarray, counts: np.ndarray, ends: np.ndarray, *payloads: np.ndarray, tile: int, turn: int
) -> tuple[np.ndarray, ...]:
    order = np.argsort(word & np.uint32(DIGITS - 1), axis=-1, kind="stable")
    rotated_word = word << np.uint32(turn) | word >> np.uint32(WORD - turn) if turn else word
    return tuple(np.take_along_axis(x, order, -1) for x in (rotated_word, *payloads))


def _move_loops(
    word: ArrayType, counts: ArrayType, ends: ArrayType, *payloads: ArrayType, tile: int, turn: int
) -> Loops:
    return Loops(_over_tiles(word, tile, _by_one(_Moves(word, payloads, tile, turn))))


@dataclass(frozen=True, slots=True)
class _Moves:
    """The stores of the kernel, as text."""

    word: ArrayType
    payloads: tuple[ArrayType, ...]
    tile: int
    turn: int

    def start(self, digit: str) -> str:
        """Where a tile's elements of a digit begin."""
        entry = _entry(self.word, digit, self.tile)
        return f"x2[{entry}] - x1[{entry}]"

    def writes(self, element: str) -> str:
        """Stores of the element at its place `to`: its rotated word, and its payloads."""
        to, at = f"({self.word.shape[-1]})*r + to", _at(self.word, element, self.tile)
        rotated_word = f"(w << {self.turn}_u32) | (w >> {WORD - self.turn}_u32)" if self.turn else "w"
        lines = [f"store y0[{to}] = {rotated_word}"]
        lines += [f"store y{k + 1}[{to}] = x{k + 3}[{at}]" for k in range(len(self.payloads))]
        return "\n".join(lines)

    @property
    def place(self) -> str:
        """The declaration of an element's place, with its bounds."""
        return f"to: i32 in 0..{self.word.shape[-1] - 1}"


def _by_one(moves: _Moves) -> str:
    word, tile = moves.word, moves.tile
    return f"""
        alloc next: i32[{DIGITS}] local
        for d in {DIGITS} serial {{ store next[d] = {moves.start("d")} }}
        for e in {tile} serial {{
          if {_inside(word, "e", tile)} {{
            w: u32 = x0[{_at(word, "e", tile)}]
            g: i32 in 0..{DIGITS - 1} = i32(w & {DIGITS - 1}_u32)
            {moves.place} = next[g]
            store next[g] = to + 1_i32
            {moves.writes("e")}
          }}
        }}"""


move_digits = Primitive(
    "move_digits", "sorting", _move_type, _move_reference, lower=Written(_move_loops), multiple_results=True
)
