"""The digits of a pass of a sort on a GPU: how often each digit occurs, and where it starts.

    counts    how often each digit occurs in each tile of a row: [rows, digits * tiles]
    starts    where each tile's elements of a digit start among those of the digit; and their number

Each pass reads the keys as they are (u32, i32, f32), as unsigned words that compare alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune import dims, dtypes
from rune.core.lower import Written
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.dims import Size, product
from rune.lowering.kernel.matrices import SUBGROUP
from rune.lowering.written import Loops
from rune.records import dataclass

BITS = 8  # of a digit, at most
FEWEST = 5  # of a digit: it then has as many values as a subgroup has threads
SCANNERS = 256  # threads that scan the counts of a digit
KEYS = frozenset({dtypes.u32, dtypes.i32, dtypes.f32})  # dtypes that are sorted as they are
SIGN, GREATEST = 1 << 31, (1 << 32) - 1


Numbers = tuple[int, int, int, int]  # of Digits


@dataclass(frozen=True, slots=True)
class Digits:
    """The digits of a pass, and the tiles of a row: `items` elements for each of `threads`."""

    shift: int
    bits: int
    threads: int
    items: int

    @property
    def count(self) -> int:
        return 1 << self.bits

    @property
    def tile(self) -> int:
        return self.threads * self.items

    @property
    def subgroups(self) -> int:
        return self.threads // SUBGROUP

    @property
    def shared_bytes(self) -> int:
        """The shared memory of the kernel that moves elements [B]."""
        return 4 * (2 * self.subgroups * self.count + self.tile + self.count + 4 * self.threads)

    def tiles(self, size: Size) -> Size:
        """How many tiles a row has."""
        return -(-size // self.tile)

    def is_one_tile(self, size: Size) -> bool:
        """Whether a row is no longer than a tile."""
        most = dims.bounds(size)[1]
        return most is not None and most <= self.tile

    # --- text -------------------------------------------------------------------------------

    def over_tiles(self, x: ArrayType, text: str) -> str:
        *rows, size = x.shape
        return f"{{ for r in {product(rows)} grid {{ for p in {self.tiles(size)} grid {{ {text} }} }} }}"

    def inside(self, x: ArrayType, element: str) -> str:
        return f"index({self.tile}*p + {element}) < index({x.shape[-1]})"

    def at(self, x: ArrayType, element: str) -> str:
        return f"({x.shape[-1]})*r + {self.tile}*p + {element}"

    def entry(self, x: ArrayType, digit: str) -> str:
        return f"({self.count}*r + {digit})*({self.tiles(x.shape[-1])}) + p"

    @property
    def element(self) -> str:
        """The e-th element of thread t; a subgroup reads neighbouring elements."""
        return f"{SUBGROUP * self.items}*(t // {SUBGROUP}) + {SUBGROUP}*e + t % {SUBGROUP}"

    def digit(self, x: ArrayType, value: str) -> str:
        """Statements that bind `g` to the digit of a value."""
        return f"""
            {_word(x, value)}
            g: i32 in 0..{self.count - 1} = i32((w >> {self.shift}_u32) & {self.count - 1}_u32)"""


def _word(x: ArrayType, bits: str) -> str:
    """Statements that bind `w` to a u32 that compares as the element with these bits."""
    if x.dtype == dtypes.u32:
        return f"w: u32 = {bits}"
    if x.dtype == dtypes.i32:
        return f"w: u32 = ({bits}) + {SIGN}_u32"
    # All zeros are equal, and so are all NaN, which come last.
    return f"""
            b: u32 = {bits}
            above: u32 = b & {SIGN - 1}_u32
            turned: u32 = select(b >= {SIGN}_u32, not(b), b + {SIGN}_u32)
            number: u32 = select(above == 0_u32, {SIGN}_u32, turned)
            w: u32 = select(above > {0x7F800000}_u32, {GREATEST}_u32, number)"""


def bits_of(x: ArrayType, load: str) -> str:
    return load if x.dtype == dtypes.u32 else f"bitcast_u32({load})"


def digits_of(x: np.ndarray, layout: Digits) -> np.ndarray:
    """Rows of digits."""
    bits = x.reshape(-1, x.shape[-1]).view(np.uint32)
    if x.dtype == dtypes.i32:
        bits = bits + np.uint32(SIGN)
    elif x.dtype == dtypes.f32:
        above = bits & np.uint32(SIGN - 1)
        ordered_bits = np.where(bits >= SIGN, ~bits, bits + np.uint32(SIGN))
        bits = np.where(above == 0, np.uint32(SIGN), np.where(above > 0x7F800000, np.uint32(GREATEST), ordered_bits))
    return ((bits >> np.uint32(layout.shift)) & np.uint32(layout.count - 1)).astype(np.int64)


# --- counting ---------------------------------------------------------------------------------


def _counts_type(x: ArrayType, *, numbers: Numbers) -> ArrayType:
    layout, (*rows, size) = Digits(*numbers), x.shape
    return ArrayType((*rows, layout.count * layout.tiles(size)), dtypes.i32)


def _counts_reference(x: np.ndarray, *, numbers: Numbers) -> np.ndarray:
    layout = Digits(*numbers)
    digits, size = digits_of(x, layout), x.shape[-1]
    table = np.zeros((len(digits), layout.count, int(layout.tiles(size))), np.int32)
    np.add.at(table, (np.arange(len(digits))[:, None], digits, np.arange(size) // layout.tile), 1)
    return table.reshape(*x.shape[:-1], -1)


def _counts_loops(x: ArrayType, *, numbers: Numbers) -> Loops:
    layout = Digits(*numbers)
    inside = layout.inside(x, layout.element)
    text = f"""
        alloc table: i32[{layout.count}] shared
        for t in {layout.threads} workgroup {{
          alloc words: u32[{layout.items}] local
          for e in {layout.items} serial {{
            store words[e] = {bits_of(x, f"x0[{layout.at(x, layout.element)} if {inside}]")}
          }}
          for q in {-(-layout.count // layout.threads)} serial {{
            if index({layout.threads}*q + t) < {layout.count}_i64 {{ store table[{layout.threads}*q + t] = 0_i32 }}
          }}
          barrier
          for e in {layout.items} serial {{
            {layout.digit(x, "words[e]")}
            if {inside} {{ atomic table[g] add= 1_i32 }}
          }}
          barrier
          for q in {-(-layout.count // layout.threads)} serial {{
            if index({layout.threads}*q + t) < {layout.count}_i64 {{
              store y0[{layout.entry(x, f"({layout.threads}*q + t)")}] = table[{layout.threads}*q + t]
            }}
          }}
        }}"""
    return Loops(layout.over_tiles(x, text))


count_digits = Primitive("count_digits", "sorting", _counts_type, _counts_reference, lower=Written(_counts_loops))


# --- starts -----------------------------------------------------------------------------------


def _starts_type(counts: ArrayType, *, count: int) -> tuple[ArrayType, ArrayType]:
    return counts, counts.with_shape((*counts.shape[:-1], count))


def _starts_reference(counts: np.ndarray, *, count: int) -> tuple[np.ndarray, np.ndarray]:
    tiles = counts.reshape(*counts.shape[:-1], count, -1)
    ends = np.cumsum(tiles, axis=-1, dtype=np.int32)
    return (ends - tiles).reshape(counts.shape), tiles.sum(-1, dtype=np.int32)


def _starts_loops(counts: ArrayType, *, count: int) -> Loops:
    *rows, size = counts.shape
    tiles = size // count
    most = dims.bounds(tiles)[1]
    # One subgroup is enough for as many tiles as it has threads.
    threads = SCANNERS if most is None or most > SUBGROUP else SUBGROUP
    at = f"({tiles})*d + {threads}*k + t"
    inside = f"index({threads}*k + t) < index({tiles})"
    steps, last = scan_steps(threads, ("part",))
    return Loops(f"""{{
      for d in {product(rows) * count} grid {{
        alloc part0: i32[{threads}] shared
        alloc part1: i32[{threads}] shared
        for t in {threads} workgroup {{
          var carry: i32 = 0_i32
          for k in {-(-tiles // threads)} serial {{
            number: i32 = x0[{at} if {inside}]
            store part0[t] = number
            barrier
            {steps}
            if {inside} {{ store y0[{at}] = (carry + part{last}[t]) - number }}
            carry = carry + part{last}[{threads - 1}]
            barrier
          }}
          if index(t) < 1_i64 {{ store y1[d] = carry }}
        }}
      }} }}""")


def scan_steps(threads: int, names: Sequence[str]) -> tuple[str, int]:
    """Steps that scan arrays over the threads, and the copy, 0 or 1, that has the sums."""
    steps: list[str] = []
    # Each step writes the other copy, or a thread would overwrite what another one still reads.
    source, distance = 0, 1
    while distance < threads:
        for name in names:
            before, after = f"{name}{source}", f"{name}{1 - source}"
            steps.append(f"""
            if index(t) < {distance}_i64 {{ store {after}[t] = {before}[t] }} else {{
              store {after}[t] = {before}[t - {distance}] + {before}[t]
            }}""")
        steps.append("barrier")
        source, distance = 1 - source, 2 * distance
    return "\n".join(steps), source


digit_starts = Primitive(
    "digit_starts", "sorting", _starts_type, _starts_reference, lower=Written(_starts_loops), multiple_results=True
)
