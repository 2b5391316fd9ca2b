"""A stable sort by digits of eight bits, the least significant first.

    words     u32 of each element; what is least comes first
    counts    how often each digit occurs in each tile of a row: [rows, digits * tiles]
    ends      the running sum of a row's counts: where a tile's elements of a digit end
    moved     every element at its place among those of its digit

A word that is moved is turned, so that the next digit is its lowest, and all passes but the last
share their kernels. On a processor one thread walks a tile. On a GPU a group of threads that run in
step walks it in rounds; in each an element counts those of its digit before it among the threads.

Cost: two kernels and a scan for each eight bits; O(n) work.
Source: Knuth, The Art of Computer Programming 3, 5.2.5, algorithm R; Satish, Harris and Garland,
"Designing efficient sorting algorithms for manycore GPUs", 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Written
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import product
from rune.lowering.codegen.atomics import has_atomic
from rune.lowering.codegen.target import Target
from rune.lowering.written import Loops
from rune.ops.reduction import cumsum

BITS = 8  # of a digit
DIGITS = 1 << BITS
WORD = 32  # bits of a word
PROCESSOR_TILE = 8192  # elements that one thread walks: many times its table, few rounds of a loop
GROUP_TILE = 1024  # that a group walks
GROUP = 32  # threads of a group, which run in step on every GPU


@dataclass(frozen=True, slots=True)
class Tiles:
    """How a device walks a row: `tile` elements by `threads` together."""

    threads: int
    tile: int


def tiles(target: Target) -> Tiles:
    """The tiles of a device."""
    counts_together = target.threads_per_workgroup >= GROUP and has_atomic(target, "add", dtypes.i32)
    if target.is_processor or not counts_together:
        return Tiles(1, PROCESSOR_TILE)
    return Tiles(GROUP, GROUP_TILE)


@dataclass(frozen=True, slots=True)
class Word:
    """A key, or a part of one: u32 that are below 2^bits and compare as the elements do."""

    value: Value
    bits: int


def sort_words(word: Word, payloads: Sequence[Value], how: Tiles) -> list[Value]:
    """The words in order along the last axis, and the payloads moved alike; ties stay."""
    passes = -(-word.bits // BITS)
    value: Value = word.value
    for number in range(passes):
        counts = digit_counts(value, threads=how.threads, tile=how.tile)
        ends = cumsum(counts, axis=type_of(counts).ndim - 1, reverse=False)
        # The last pass turns the word back to what it was.
        turn = WORD - BITS if number < passes - 1 else number * BITS % WORD
        value, *payloads = move_digits(value, counts, ends, *payloads, threads=how.threads, tile=how.tile, turn=turn)
    return [value, *payloads]


# --- counting ---------------------------------------------------------------------------------


def _table_type(word: ArrayType, tile: int) -> ArrayType:
    *rows, size = word.shape
    return ArrayType((*rows, DIGITS * -(-size // tile)), dtypes.i32)


def _counts_type(word: ArrayType, *, threads: int, tile: int) -> ArrayType:
    return _table_type(word, tile)


def _tiled(word: np.ndarray, tile: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of digits, and the tile of each element of a row."""
    rows = word.reshape(-1, word.shape[-1]) & np.uint32(DIGITS - 1)
    return rows.astype(np.int64), np.arange(word.shape[-1]) // tile


def _counts_reference(word: np.ndarray, *, threads: int, tile: int) -> np.ndarray:
    digits, tile_of = _tiled(word, tile)
    count = -(-word.shape[-1] // tile)
    table = np.zeros((len(digits), DIGITS, count), np.int32)
    np.add.at(table, (np.arange(len(digits))[:, None], digits, tile_of), 1)
    return table.reshape(*word.shape[:-1], DIGITS * count)


def _counts_loops(word: ArrayType, *, threads: int, tile: int) -> Loops:
    if threads == 1:
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
    else:
        text = f"""
            alloc table: i32[{DIGITS}] shared
            for t in {threads} workgroup {{
              for d in {DIGITS // threads} serial {{ store table[{threads}*d + t] = 0_i32 }}
              barrier
              for e in {tile // threads} serial {{
                if {_inside(word, f"{threads}*e + t", tile)} {{
                  g: i32 in 0..{DIGITS - 1} = i32(x0[{_at(word, f"{threads}*e + t", tile)}] & {DIGITS - 1}_u32)
                  atomic table[g] add= 1_i32
                }}
              }}
              barrier
              for d in {DIGITS // threads} serial {{
                store y0[{_entry(word, f"{threads}*d + t", tile)}] = table[{threads}*d + t]
              }}
            }}"""
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
    word: ArrayType, counts: ArrayType, ends: ArrayType, *payloads: ArrayType, threads: int, tile: int, turn: int
) -> tuple[ArrayType, ...]:
    return (word, *payloads)


def _move_reference(
    word: np.ndarray, counts: np.ndarray, ends: np.ndarray, *payloads: np.ndarray, threads: int, tile: int, turn: int
) -> tuple[np.ndarray, ...]:
    order = np.argsort(word & np.uint32(DIGITS - 1), axis=-1, kind="stable")
    turned = word << np.uint32(turn) | word >> np.uint32(WORD - turn) if turn else word
    return tuple(np.take_along_axis(x, order, -1) for x in (turned, *payloads))


def _move_loops(
    word: ArrayType, counts: ArrayType, ends: ArrayType, *payloads: ArrayType, threads: int, tile: int, turn: int
) -> Loops:
    moves = _Moves(word, payloads, threads, tile, turn)
    return Loops(_over_tiles(word, tile, _by_one(moves) if threads == 1 else _by_group(moves)))


@dataclass(frozen=True, slots=True)
class _Moves:
    """What both kernels write, as text."""

    word: ArrayType
    payloads: tuple[ArrayType, ...]
    threads: int
    tile: int
    turn: int

    def start(self, digit: str) -> str:
        """Where a tile's elements of a digit begin."""
        entry = _entry(self.word, digit, self.tile)
        return f"x2[{entry}] - x1[{entry}]"

    def writes(self, element: str) -> str:
        """The element at its place `to`, its word turned, and its payloads."""
        to, at = f"({self.word.shape[-1]})*r + to", _at(self.word, element, self.tile)
        turned = f"(w << {self.turn}_u32) | (w >> {WORD - self.turn}_u32)" if self.turn else "w"
        lines = [f"store y0[{to}] = {turned}"]
        lines += [f"store y{k + 1}[{to}] = x{k + 3}[{at}]" for k in range(len(self.payloads))]
        return "\n".join(lines)

    @property
    def place(self) -> str:
        """The name of an element's place, and its bounds."""
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


def _by_group(moves: _Moves) -> str:
    word, tile, threads = moves.word, moves.tile, moves.threads
    element = f"{threads}*e + t"
    return f"""
        alloc next: i32[{DIGITS}] shared
        alloc digits: i32[{threads}] shared
        for t in {threads} workgroup {{
          for d in {DIGITS // threads} serial {{
            store next[{threads}*d + t] = {moves.start(f"{threads}*d + t")}
          }}
          for e in {tile // threads} serial {{
            w: u32 = x0[{_at(word, element, tile)} if {_inside(word, element, tile)}]
            g: i32 in 0..{DIGITS - 1} = i32(w & {DIGITS - 1}_u32)
            is_there: bool = {_inside(word, element, tile)}
            store digits[t] = select(is_there, g, {DIGITS}_i32)
            barrier
            var before: i32 = 0_i32
            var all: i32 = 0_i32
            for s in {threads} serial {{
              is_alike: bool = digits[s] == g
              all add= i32(is_alike)
              before add= i32(is_alike & (index(s) < index(t)))
            }}
            if is_there {{
              {moves.place} = next[g] + before
              {moves.writes(element)}
            }}
            barrier
            if is_there & (before == (all - 1_i32)) {{
              update next[g] add= all
            }}
          }}
        }}"""


move_digits = Primitive(
    "move_digits", "sorting", _move_type, _move_reference, lower=Written(_move_loops), multiple_results=True
)
