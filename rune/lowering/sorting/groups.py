"""A pass of a sort by digits on a GPU, by groups of threads with a tile of a row each.

A group sorts the elements of its tile in shared memory and then writes them digit by digit, so that
neighbouring threads write neighbours. Within a tile, a subgroup takes 32 neighbours at a time. Each
thread sets its bit in the word of its digit in shared memory: the bits below its own are the equal
digits before it, and the first of these threads counts them all. So ranks are stable, and no thread
waits for another subgroup.

A row of one tile needs no counts. The kernel moves the array of keys itself, whatever its dtype.
The first pass computes positions, and need not read them.

Invariant: the result depends on nothing but the operands.
Cost: each pass reads keys twice and writes them once, and reads and writes positions once.
Source: Merrill and Grimshaw, "High performance and scalable radix sorting", 2011; Adinets and
Merrill, "Onesweep: a faster least significant digit radix sort for GPUs", 2022, for the ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Written
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.lowering.kernel.matrices import SUBGROUP
from rune.lowering.sorting.digits import (
    BITS,
    FEWEST,
    Digits,
    Numbers,
    bits_of,
    count_digits,
    digit_starts,
    digits_of,
    scan_steps,
)
from rune.lowering.written import Loops
from rune.records import dataclass

# What a pass writes: the keys, positions that it computes, or operand 1, the positions so far.
KEY, POSITIONS, ORDER = "key", "positions", "order"


def _move_type(x: ArrayType, *others: ArrayType, numbers: Numbers, results: tuple[str, ...]) -> tuple[ArrayType, ...]:
    return tuple(x if result == KEY else x.with_dtype(dtypes.i32) for result in results)


def _move_reference(
    x: np.ndarray, *others: np.ndarray, numbers: Numbers, results: tuple[str, ...]
) -> tuple[np.ndarray, ...]:
    order = np.argsort(digits_of(x, Digits(*numbers)).reshape(x.shape), axis=-1, kind="stable")
    values = {KEY: x, ORDER: others[0] if ORDER in results else None}
    positions = order.astype(np.int32)
    return tuple(
        positions if result == POSITIONS else np.take_along_axis(values[result], order, -1) for result in results
    )


def _move_loops(x: ArrayType, *others: ArrayType, numbers: Numbers, results: tuple[str, ...]) -> Loops:
    layout = Digits(*numbers)
    return Loops(layout.over_tiles(x, _Move(x, layout, results).text))


@dataclass(frozen=True, slots=True)
class _Move:
    """The kernel that moves the elements of a tile, as text."""

    x: ArrayType
    layout: Digits
    results: tuple[str, ...]

    @property
    def text(self) -> str:
        layout, size = self.layout, self.layout.subgroups * self.layout.count
        return f"""
        alloc masks: u32[{size}] shared
        alloc counters: i32[{size}] shared
        alloc area: u32[{layout.tile}] shared
        alloc offsets: i32[{layout.count}] shared
        alloc part0: i32[{layout.threads}] shared
        alloc part1: i32[{layout.threads}] shared
        {self.totals}
        for t in {layout.threads} workgroup {{
          alloc words: u32[{layout.items}] local
          alloc ranks: i32[{layout.items}] local
          for e in {layout.items} serial {{
            store words[e] = {bits_of(self.x, f"x0[{self.at} if {self.is_there}]")}
          }}
          for q in {size // layout.threads} serial {{
            store masks[{layout.threads}*q + t] = 0_u32
            store counters[{layout.threads}*q + t] = 0_i32
          }}
          barrier
          {self.ranks}
          barrier
          {self.starts}
          barrier
          for e in {layout.items} serial {{
            {layout.digit(self.x, "words[e]")}
            store ranks[e] = ranks[e] + counters[{self.counter}]
          }}
          {self.writes}
        }}"""

    @property
    def totals(self) -> str:
        if self.layout.is_one_tile(self.x.shape[-1]):
            return ""
        return "\n".join(f"alloc whole{k}: i32[{self.layout.threads}] shared" for k in range(2))

    @property
    def at(self) -> str:
        return self.layout.at(self.x, self.layout.element)

    @property
    def is_there(self) -> str:
        return self.layout.inside(self.x, self.layout.element)

    @property
    def counter(self) -> str:
        return f"{self.layout.count}*(t // {SUBGROUP}) + g"

    @property
    def ranks(self) -> str:
        """The rank of each element among those of its digit in its subgroup."""
        wait = f"barrier, of {SUBGROUP}"
        return f"""
          bit: u32 = 1_u32 << u32(index(t % {SUBGROUP}))
          for e in {self.layout.items} serial {{
            {self.layout.digit(self.x, "words[e]")}
            is_there: bool = {self.is_there}
            if is_there {{ atomic masks[{self.counter}] add= bit }}
            {wait}
            alike: u32 = masks[{self.counter}]
            before: i32 = counters[{self.counter}]
            {wait}
            below: i32 = i32(popcount(alike & (bit - 1_u32)))
            if is_there & (below == 0_i32) {{
              store masks[{self.counter}] = 0_u32
              store counters[{self.counter}] = before + i32(popcount(alike))
            }}
            store ranks[e] = before + below
            {wait}
          }}"""

    @property
    def starts(self) -> str:
        """Where the elements of a digit and subgroup start in the tile, and the offset from there
        to the place of a digit's elements in the row."""
        layout = self.layout
        per_thread = -(-layout.count // layout.threads)
        digit = f"{per_thread}*t + q"
        loop_head = f"for q in {per_thread} serial {{ if index({digit}) < {layout.count}_i64 {{"
        is_one = layout.is_one_tile(self.x.shape[-1])
        steps, last = scan_steps(layout.threads, ("part",) if is_one else ("part", "whole"))
        first = 1 if ORDER not in self.results else 2
        total = "" if is_one else f"all = all + x{first + 1}[{layout.count}*r + {digit}]"
        offset = "0_i32"
        if not is_one:
            offset = f"(x{first}[{layout.entry(self.x, f'({digit})')}] + ahead) - start"
        declaration = "" if is_one else f"var ahead: i32 = whole{last}[t - 1 if index(t) > 0_i64]"
        addition = "" if is_one else f"ahead = ahead + x{first + 1}[{layout.count}*r + {digit}]"
        return f"""
          var sum: i32 = 0_i32
          {"" if is_one else "var all: i32 = 0_i32"}
          {loop_head}
            for v in {layout.subgroups} serial {{
              number: i32 = counters[{layout.count}*v + {digit}]
              store counters[{layout.count}*v + {digit}] = sum
              sum = sum + number
            }}
            {total}
          }} }}
          store part0[t] = sum
          {"" if is_one else "store whole0[t] = all"}
          barrier
          {steps}
          behind: i32 = part{last}[t - 1 if index(t) > 0_i64]
          {declaration}
          {loop_head}
            start: i32 = behind + counters[{digit}]
            for v in {layout.subgroups} serial {{ update counters[{layout.count}*v + {digit}] add= behind }}
            store offsets[{digit}] = {offset}
            {addition}
          }} }}"""

    @property
    def writes(self) -> str:
        """Sort the elements of the tile, write each run to its place, then move the positions."""
        layout, size = self.layout, self.x.shape[-1]
        place = f"{layout.threads}*e + t"
        keys = next((f"store y{k}[{{to}}] = {{value}}" for k, r in enumerate(self.results) if r == KEY), "")
        value = "area[{0}]" if self.x.dtype == dtypes.u32 else f"bitcast_{dtypes.short(self.x.dtype)}(area[{{0}}])"
        store = keys.format(to=f"({size})*r + to", value=value.format(place))
        text = f"""
          for e in {layout.items} serial {{
            if {self.is_there} {{
              place: i32 in 0..{layout.tile - 1} = ranks[e]
              store area[place] = words[e]
            }}
          }}
          barrier
          for e in {layout.items} serial {{
            if {layout.inside(self.x, place)} {{
              {layout.digit(self.x, f"area[{place}]")}
              to: i32 in 0..{size - 1} = offsets[g] + i32(index({place}))
              store words[e] = bitcast_u32(to)
              {store}
            }}
          }}"""
        others = [(k, r) for k, r in enumerate(self.results) if r != KEY]
        return text + "".join(self.moves_along(k, result) for k, result in others)

    def moves_along(self, number: int, result: str) -> str:
        layout, size = self.layout, self.x.shape[-1]
        place = f"{layout.threads}*e + t"
        value = f"i32(index({layout.tile}*p + {layout.element}))" if result == POSITIONS else f"x1[{self.at}]"
        return f"""
          barrier
          for e in {layout.items} serial {{
            if {self.is_there} {{
              place: i32 in 0..{layout.tile - 1} = ranks[e]
              store area[place] = bitcast_u32({value})
            }}
          }}
          barrier
          for e in {layout.items} serial {{
            if {layout.inside(self.x, place)} {{
              to: i32 in 0..{size - 1} = bitcast_i32(words[e])
              store y{number}[({size})*r + to] = bitcast_i32(area[{place}])
            }}
          }}"""


# Operands: keys, the positions so far if they are moved, and starts and totals for several tiles.
move_by_groups = Primitive(
    "move_by_groups", "sorting", _move_type, _move_reference, lower=Written(_move_loops), multiple_results=True
)


# --- passes -----------------------------------------------------------------------------------


def sort_by_groups(
    x: Value, bits: int, tiles: tuple[int, int], order: Value | None, results: Sequence[str]
) -> list[Value]:
    """Sort keys below 2^bits, or any i32 or f32, along the last axis; the sort is stable.

    tiles: the threads of a group, and the elements of each.
    order: the positions of the keys, or None if they are 0, 1, 2, ...
    results: which of KEY and ORDER to return.
    """
    passes = -(-bits // BITS)
    values: dict[str, Value] = {KEY: x} if order is None else {KEY: x, ORDER: order}
    for number in range(passes):
        # As few passes as digits of BITS bits allow, with digits of nearly the same width.
        shift = bits * number // passes
        numbers = (shift, max(FEWEST, bits * (number + 1) // passes - shift), *tiles)
        is_last = number == passes - 1
        result_names = [name for name in (KEY, ORDER) if name in results or (name == KEY and not is_last)]
        values = dict(zip(result_names, _pass(values, numbers, result_names), strict=True))
    return [values[name] for name in results]


def _pass(values: Mapping[str, Value], numbers: Numbers, result_names: Sequence[str]) -> list[Value]:
    layout, key = Digits(*numbers), values[KEY]
    starts: Sequence[Value] = ()
    if not layout.is_one_tile(type_of(key).shape[-1]):
        starts = digit_starts(count_digits(key, numbers=numbers), count=layout.count)
    names = tuple(POSITIONS if name not in values else name for name in result_names)
    operands = [values[name] for name in (KEY, ORDER) if name in values]
    return move_by_groups(*operands, *starts, numbers=numbers, results=names)
