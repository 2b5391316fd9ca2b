"""A scatter that sums floats in integers: by atomic changes, and yet the same on every run.

Each element has a fixed point of its own, which the largest of its terms decides:

    marks    the exponent of the largest term: 2 e of the element itself, 2 e + 1 of an update
    sums     the updates as integers, whose unit lies 62 - k bits below that exponent
    result   the element and the sum, together rounded once

Sums of integers and maxima are the same in any order. k bits are left for carries of 2^k terms, so
nothing overflows. A term differs by at most half a unit from its integer: for U updates and
M = max |term|, the sum before it is rounded is off by at most U M 2^(k - 62), where a sum in f32
may be off by U 2^-24 times the sum of |terms|. An update of -0 changes nothing; +0 has a mark.

Terms that are not finite are counted: +inf in the lower half of an integer, -inf in the upper one,
NaN in both. Formats of fewer bits than f32 are summed as f32.

Cost: two atomic operations for each update, and 12 bytes for each element.
"""

from __future__ import annotations

import numpy as np

from rune import dims, dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Written
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.lowering.codegen.atomics import has_atomic
from rune.lowering.codegen.target import Target
from rune.lowering.written import Loops
from rune.ops.arithmetic import cast

SUMMED = dtypes.FLOATING - {dtypes.f64}
ROOM = 62  # bits of a term and of the carries, below the sign bit and a spare bit
DIGITS = 24  # of an f32
INFINITE = 255  # the exponent field of infinities and NaN


def is_summed_in_integers(target: Target, dtype: np.dtype) -> bool:
    """Whether the target has the operations that sum such floats in integers."""
    marks = has_atomic(target, "max", dtypes.u32)
    return dtype in SUMMED and marks and dtypes.i64 in target.dtypes and has_atomic(target, "add", dtypes.i64)


def add_in_integers(rows: Value, places: Value, updates: Value) -> Value:
    """Rows [S, W] to which updates [U, W] are added at places [U]."""
    dtype = type_of(rows).dtype
    most = dims.bounds(type_of(places).shape[0])[1]
    carries = (1 << 31) - 1 if most is None else most
    room = ROOM - carries.bit_length()
    elements = cast(rows, dtypes.f32)
    marks, sums = first_marks(elements)
    marks = mark_exponents(marks, places, updates)
    sums = sum_integers(sums, marks, places, updates, room=room)
    return cast(rounded_sums(elements, marks, sums, room=room), dtype)


# --- marks ------------------------------------------------------------------------------------


def _first_type(elements: ArrayType) -> tuple[ArrayType, ArrayType]:
    return elements.with_dtype(dtypes.u32), elements.with_dtype(dtypes.i64)


def _first_reference(elements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return elements.view(np.uint32) >> np.uint32(22) & np.uint32(510), np.zeros(elements.shape, np.int64)


def _first_loops(elements: ArrayType) -> Loops:
    size, width = elements.shape
    return Loops(f"""{{
      for s in {size} grid {{ for w in {width} grid {{
        store y0[({width})*s + w] = (bitcast_u32(x0[({width})*s + w]) >> 22_u32) & 510_u32
        store y1[({width})*s + w] = 0_i64
      }} }} }}""")


# The marks of the elements themselves, and sums that are 0.
first_marks = Primitive(
    "first_marks", "indexing", _first_type, _first_reference, lower=Written(_first_loops), multiple_results=True
)


def _marks_type(marks: ArrayType, places: ArrayType, updates: ArrayType) -> ArrayType:
    return marks


def _marks_reference(marks: np.ndarray, places: np.ndarray, updates: np.ndarray) -> np.ndarray:
    bits, inside = updates.astype(np.float32).view(np.uint32), places < len(marks)
    mark = np.where(bits == 1 << 31, 0, bits >> 22 & 510 | 1).astype(np.uint32)
    largest = marks.copy()
    np.maximum.at(largest, places[inside], mark[inside])
    return largest


def _marks_loops(marks: ArrayType, places: ArrayType, updates: ArrayType) -> Loops:
    change = "atomic y0[at] max= ((bits >> 22_u32) & 510_u32) | 1_u32"
    return Loops(_over_updates(marks, places, "x1", "x2", change), (("x0", "y0"),))


def _over_updates(rows: ArrayType, places: ArrayType, place: str, update: str, change: str) -> str:
    """Loops that apply the change to element `at` for every update but -0; its bits are `bits`."""
    (size, width), (count,) = rows.shape, places.shape
    change = change.replace("[at]", f"[({width})*place + w]")
    return f"""{{
      for u in {count} grid {{ for w in {width} grid {{
        place: i32 in 0..{size} = {place}[u]
        bits: u32 = bitcast_u32(f32({update}[({width})*u + w]))
        if (index(place) < index({size})) & (bits != 2147483648_u32) {{ {change} }}
      }} }} }}"""


mark_exponents = Primitive("mark_exponents", "indexing", _marks_type, _marks_reference, lower=Written(_marks_loops))


# --- sums -------------------------------------------------------------------------------------


def _sums_type(sums: ArrayType, marks: ArrayType, places: ArrayType, updates: ArrayType, *, room: int) -> ArrayType:
    return sums


def _sums_reference(
    sums: np.ndarray, marks: np.ndarray, places: np.ndarray, updates: np.ndarray, *, room: int
) -> np.ndarray:
    inside = places < len(marks)
    numbers = _integers(updates[inside].astype(np.float32), marks[places[inside]], room)
    result = sums.copy()
    np.add.at(result, places[inside], numbers)
    return result


def _integers(terms: np.ndarray, marks: np.ndarray, room: int) -> np.ndarray:
    bits, largest = terms.view(np.uint32).astype(np.int64), np.maximum(marks.astype(np.int64) >> 1, 1)
    exponent, fraction = np.maximum(bits >> 23 & 255, 1), bits & (1 << 23) - 1
    digits = np.where(bits & 0x7F800000, fraction | 1 << 23, fraction)
    finite = ((digits << room - DIGITS + 1) >> np.minimum(largest - exponent, 62)) + 1 >> 1
    finite = np.where(bits >> 31, -finite, finite)
    special = (np.isnan(terms) | (terms == np.inf)) + ((np.isnan(terms) | (terms == -np.inf)).astype(np.int64) << 32)
    return np.where(largest == INFINITE, special, finite)


def _sums_loops(sums: ArrayType, marks: ArrayType, places: ArrayType, updates: ArrayType, *, room: int) -> Loops:
    change = f"{_integer('x1[at]', room)} atomic y0[at] add= number"
    return Loops(_over_updates(sums, places, "x2", "x3", change), (("x0", "y0"),))


def _integer(mark: str, room: int) -> str:
    """Statements that bind `number` to the term in `bits`, at the fixed point of the mark."""
    return f"""
        largest: i64 = max(i64({mark} >> 1_u32), 1_i64)
        wide: i64 = i64(bits)
        field: i64 = (wide >> 23_i64) & 255_i64
        digits: i64 = (wide & 8388607_i64) | select(field > 0_i64, 8388608_i64, 0_i64)
        distance: i64 = largest - max(field, 1_i64)
        size: i64 = (((digits << {room - DIGITS + 1}_i64) >> min(distance, 62_i64)) + 1_i64) >> 1_i64
        is_negative: bool = bits >= 2147483648_u32
        above: i64 = select((bits & 2147483647_u32) >= 2139095040_u32, 1_i64, 0_i64)
        is_nan: bool = (bits & 2147483647_u32) > 2139095040_u32
        high: i64 = select(is_nan | not(is_negative), above, 0_i64)
        low: i64 = select(is_nan | is_negative, above, 0_i64)
        finite: i64 = select(is_negative, 0_i64 - size, size)
        number: i64 = select(largest == {INFINITE}_i64, high + (low << 32_i64), finite)"""


sum_integers = Primitive("sum_integers", "indexing", _sums_type, _sums_reference, lower=Written(_sums_loops))


# --- results ----------------------------------------------------------------------------------


def _rounded_type(elements: ArrayType, marks: ArrayType, sums: ArrayType, *, room: int) -> ArrayType:
    return elements


def _rounded_reference(elements: np.ndarray, marks: np.ndarray, sums: np.ndarray, *, room: int) -> np.ndarray:
    largest = np.maximum(marks.astype(np.int64) >> 1, 1)
    total = sums + _integers(elements, marks, room)
    with np.errstate(all="ignore"):
        finite = np.ldexp(total.astype(np.float32), largest - 126 - room)
    special = np.where(total & (1 << 32) - 1, np.where(total >> 32, np.nan, np.inf), -np.inf)
    result = np.where(largest == INFINITE, special, finite).astype(np.float32)
    return np.where((marks & 1 == 0) & (sums == 0), elements, result)


def _rounded_loops(elements: ArrayType, marks: ArrayType, sums: ArrayType, *, room: int) -> Loops:
    size, width = elements.shape
    at = f"({width})*s + w"
    return Loops(f"""{{
      for s in {size} grid {{ for w in {width} grid {{
        element: f32 = x0[{at}]
        mark: u32 = x1[{at}]
        sum: i64 = x2[{at}]
        if ((mark & 1_u32) == 0_u32) & (sum == 0_i64) {{ store y0[{at}] = element }} else {{
          bits: u32 = bitcast_u32(element)
          {_integer("mark", room)}
          total: i64 = sum + number
          power: f32 = bitcast_f32(u32(largest << {DIGITS - 1}_i64))
          scaled: f32 = (f32(total) * {2.0 ** (1 - room)}_f32) * power
          negative: f32 = select((total >> 32_i64) > 0_i64, nan_f32, inf_f32)
          special: f32 = select((total & 4294967295_i64) > 0_i64, negative, -inf_f32)
          store y0[{at}] = select(largest == {INFINITE}_i64, special, scaled)
        }}
      }} }} }}""")


rounded_sums = Primitive("rounded_sums", "indexing", _rounded_type, _rounded_reference, lower=Written(_rounded_loops))
