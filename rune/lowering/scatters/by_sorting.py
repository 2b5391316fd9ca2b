"""A scatter by sorting: in parallel over updates, the same on every run.

The updates are sorted, stably, by the rows that they change. If they overwrite, the last update of
each row is written. Others are combined in chunks: a thread walks the updates of one chunk, and
changes each row whose updates all lie inside. What it combines at both ends, of rows that continue
in the neighbouring chunks, becomes an update of the row on the next level, which has fewer updates.

    places    0 0 2 | 2 2 3 | 3 3 3        changed here: 0
    ends      . 2   | 2 3   | 3 .          a chunk leaves its first and its last row

Where such an end is empty, the chunk leaves the identity of the operation.

Cost: that of sorting; O(u) combinations in log u levels of 32, for u updates.
"""

from __future__ import annotations

import numpy as np

from rune import dims, dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Written
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Const, const
from rune.lowering.kernel.notation import const_text
from rune.lowering.sorting.groups import KEY, ORDER
from rune.lowering.sorting.radix import Tiles, Word, sort_words
from rune.lowering.written import Loops
from rune.ops.arithmetic import bitcast

COMBINES = (None, "add", "mul", "max", "min")
CHUNK = 64  # updates that one thread walks
LAST = 256  # updates of the last level, at most, where one thread walks all


def change_by_sorting(combine: str | None, tiling: Tiles, rows: Value, places: Value, updates: Value) -> Value:
    """Rows [S, W] changed at places [U] by updates [U, W], those of one row in their order."""
    most = dims.bounds(type_of(rows).shape[0])[1]
    # S itself is a place, too: that of updates which are dropped.
    bits = 31 if most is None else most.bit_length()
    word = Word(bitcast(places, dtype=dtypes.u32), bits)
    places, order = sort_words(word, None, tiling, (KEY, ORDER))
    if combine is None:
        return write_last(rows, places, order, updates)
    rows, *entries = _level(combine, rows, places, order, updates)
    while entries:
        rows, *entries = _level(combine, rows, *entries)
    return rows


def _level(combine: str, rows: Value, *entries: Value) -> list[Value]:
    """The rows changed by the updates inside chunks, and the entries that are left, if any."""
    most = dims.bounds(type_of(entries[0]).shape[0])[1]
    is_last = most is not None and most <= LAST
    return combine_runs(rows, *entries, combine=combine, chunk=0 if is_last else CHUNK)


# --- combining --------------------------------------------------------------------------------


def _chunks(places: ArrayType, chunk: int) -> Size:
    return -(-places.shape[0] // chunk) if chunk else 1


def _combine_type(
    rows: ArrayType, places: ArrayType, *values: ArrayType, combine: str, chunk: int
) -> tuple[ArrayType, ...]:
    if not chunk:
        return (rows,)
    count = 2 * _chunks(places, chunk)
    return rows, places.with_shape((count,)), rows.with_shape((count, rows.shape[1]))


def _combine_reference(
    rows: np.ndarray, places: np.ndarray, *values: np.ndarray, combine: str, chunk: int
) -> tuple[np.ndarray, ...]:
    *order, updates = values
    updates = updates[order[0]] if order else updates
    result, places, inside = rows.copy(), places.astype(np.int64), places < len(rows)
    function = COMBINE[combine].function
    if not chunk:
        function.at(result, places[inside], updates[inside])
        return (result,)
    count = -(-len(places) // chunk)
    end_places = np.zeros(2 * count, np.uint32)
    ends = np.full((2 * count, rows.shape[1]), _neutral(combine, rows.dtype).value)
    for k in range(count):
        part = slice(chunk * k, min(chunk * (k + 1), len(places)))
        end_places[2 * k : 2 * k + 2] = places[part][0], places[part][-1]
        before = places[part.start - 1] if k else -1
        after = places[part.stop] if part.stop < len(places) else -1
        for n in range(part.start, part.stop):
            if places[n] == after:
                ends[2 * k + 1] = function(ends[2 * k + 1], updates[n])
            elif places[n] == before:
                ends[2 * k] = function(ends[2 * k], updates[n])
            elif inside[n]:
                result[places[n]] = function(result[places[n]], updates[n])
    return result, end_places, ends


def _neutral(combine: str, dtype: np.dtype) -> Const:
    """The identity of the operation: -0.0 for sums of floats, because adding 0.0 changes a -0.0."""
    if combine == "add" and dtype in dtypes.FLOATING:
        return const(-0.0, dtype)
    return COMBINE[combine].identity(dtype)


def _combine_loops(rows: ArrayType, places: ArrayType, *values: ArrayType, combine: str, chunk: int) -> Loops:
    (size, width), (count,), dtype = rows.shape, places.shape, dtypes.short(rows.dtype)
    neutral, at = const_text(_neutral(combine, rows.dtype)), f"{chunk}*j + e"
    value = f"x2[({width})*({at}) + w]"
    number = ""
    if len(values) > 1:
        number = f"n: i32 in 0..{count - 1} = x2[{at}]"
        value = f"x3[({width})*n + w]"
    before = leave = ""
    if chunk:
        before = f"continues = (index(j) > 0_i64) & (x1[{chunk}*j] == x1[{chunk}*j - 1 if index(j) > 0_i64])"
        leave = f"""
          store y2[({width})*(2*j) + w] = head
          store y2[({width})*(2*j + 1) + w] = run
          if index(w) < 1_i64 {{
            last: i64 in 0..{count - 1} = min(index({chunk}*j + {chunk - 1}), index({count - 1}))
            store y1[2*j] = x1[{chunk}*j]
            store y1[2*j + 1] = x1[last]
          }}"""
    text = f"""{{
      for j in {_chunks(places, chunk)} grid {{ for w in {width} grid {{
        var run: {dtype} = {neutral}
        var head: {dtype} = {neutral}
        var continues: bool = false
        {before}
        for e in {chunk or count} serial {{
          if index({at}) < index({count}) {{
            {number}
            run = {combine}(run, {value})
            place: u32 = x1[{at}]
            next: u32 = x1[{at} + 1 if index({at} + 1) < index({count})]
            if (index({at} + 1) >= index({count})) | (next != place) {{
              if continues {{ head = run }} else {{
                if i64(place) < index({size}) {{
                  row: i32 in 0..{size - 1} = i32(place)
                  update y0[({width})*row + w] {combine}= run
                }}
              }}
              run = {neutral}
              continues = false
            }}
          }}
        }}
        {leave}
      }} }} }}"""
    return Loops(text, (("x0", "y0"),))


# rows, places and the updates' numbers and all updates, or updates alone -> rows, places, updates
combine_runs = Primitive(
    "combine_runs", "indexing", _combine_type, _combine_reference, lower=Written(_combine_loops), multiple_results=True
)


# --- overwriting ------------------------------------------------------------------------------


def _last_type(rows: ArrayType, places: ArrayType, order: ArrayType, updates: ArrayType) -> ArrayType:
    return rows


def _last_reference(rows: np.ndarray, places: np.ndarray, order: np.ndarray, updates: np.ndarray) -> np.ndarray:
    result, inside = rows.copy(), places < len(rows)
    result[places[inside]] = updates[order[inside]]
    return result


def _last_loops(rows: ArrayType, places: ArrayType, order: ArrayType, updates: ArrayType) -> Loops:
    (size, width), (count,) = rows.shape, places.shape
    return Loops(
        f"""{{
        for u in {count} grid {{ for w in {width} grid {{
          place: u32 = x1[u]
          next: u32 = x1[u + 1 if index(u + 1) < index({count})]
          is_last: bool = (index(u + 1) >= index({count})) | (next != place)
          if is_last & (i64(place) < index({size})) {{
            row: i32 in 0..{size - 1} = i32(place)
            n: i32 in 0..{count - 1} = x2[u]
            store y0[({width})*row + w] = x3[({width})*n + w]
          }}
        }} }} }}""",
        (("x0", "y0"),),
    )


# Writes the last of the updates of each row.
write_last = Primitive("write_last", "indexing", _last_type, _last_reference, lower=Written(_last_loops))
