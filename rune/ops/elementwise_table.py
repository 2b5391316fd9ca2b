"""The elementwise functions as users read them, one row each.

rune.numpy and rune.lax take their docstrings from here. What differs stays with them: NumPy's
names and promotion, lax's refusal to promote. Rows of transcendental functions stand beside their
records.
"""

from __future__ import annotations

from rune.ops import arithmetic, extrema, transcendental
from rune.ops.elementwise_rows import (
    ANY,
    BITS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    ORDERED,
    TRUTHS_OF_FLOATS,
    Row,
    integer,
    of_floats,
    truth,
    weak,
)

_ROUNDING = (
    of_floats(arithmetic.floor, "The largest whole number not above x.", "-1.5", "-2.", FLOATS),
    of_floats(arithmetic.ceil, "The smallest whole number not below x.", "-1.5", "-1.", FLOATS),
    of_floats(arithmetic.trunc, "x without its fraction.", "-1.5", "-1.", FLOATS),
    of_floats(
        arithmetic.copysign, "The magnitude of the first with the sign of the second.", "1.0, -0.0", "-1.", FLOATS
    ),
    of_floats(arithmetic.nextafter, "The next float after the first, towards the second.", "0.0, 0.0", "0.", FLOATS),
)

_ARITHMETIC = (
    of_floats(arithmetic.abs, "Absolute value; the modulus of complex numbers.", "-2.0", "2.", NUMBERS),
    of_floats(arithmetic.neg, "-x; unsigned integers wrap.", "2.0", "-2.", NUMBERS),
    of_floats(
        arithmetic.sign,
        "-1, 0 or 1; x / |x| for complex numbers, NaN for NaN. Its derivative is 0.",
        "-2.0",
        "-1.",
        NUMBERS,
    ),
    of_floats(arithmetic.add, "The sum.", "1.0, 2.0", "3.", NUMBERS),
    of_floats(arithmetic.sub, "The first minus the second.", "3.0, 2.0", "1.", NUMBERS),
    of_floats(arithmetic.mul, "The product.", "3.0, 2.0", "6.", NUMBERS),
    Row("max", extrema.larger, "The larger of two; NaN if either is NaN.", "1.0, 2.0", weak("2."), NUMBERS),
    Row("min", extrema.smaller, "The smaller of two; NaN if either is NaN.", "1.0, 2.0", weak("1."), NUMBERS),
)

_COMPARISONS = (
    Row("eq", arithmetic.eq, "Whether two are equal; False for NaN.", "1.0, 1.0", truth("True"), ANY),
    Row("ne", arithmetic.ne, "Whether two differ; True for NaN.", "1.0, 1.0", truth("False"), ANY),
    Row("lt", arithmetic.lt, "Whether the first is less than the second.", "1.0, 2.0", truth("True"), ORDERED),
    Row(
        "le",
        arithmetic.le,
        "Whether the first is less than or equal to the second.",
        "1.0, 1.0",
        truth("True"),
        ORDERED,
    ),
    Row("gt", arithmetic.gt, "Whether the first is greater than the second.", "1.0, 2.0", truth("False"), ORDERED),
    Row(
        "ge",
        arithmetic.ge,
        "Whether the first is greater than or equal to the second.",
        "1.0, 1.0",
        truth("True"),
        ORDERED,
    ),
    Row(
        "is_finite",
        arithmetic.is_finite,
        "Whether x is a number, neither infinite nor NaN.",
        "1.0",
        truth("True"),
        TRUTHS_OF_FLOATS,
    ),
)

_BITS = (
    Row(
        "bitwise_not", arithmetic.logical_not, "All bits flipped; for bools, the logical not.", "5", integer("-6"), BITS
    ),
    Row(
        "bitwise_and",
        arithmetic.logical_and,
        "The bits set in both; for bools, the logical and.",
        "6, 3",
        integer("2"),
        BITS,
    ),
    Row(
        "bitwise_or",
        arithmetic.logical_or,
        "The bits set in one or both; for bools, the logical or.",
        "6, 3",
        integer("7"),
        BITS,
    ),
    Row(
        "bitwise_xor",
        arithmetic.logical_xor,
        "The bits set in exactly one; for bools, the logical xor.",
        "6, 3",
        integer("5"),
        BITS,
    ),
    Row("population_count", arithmetic.popcount, "The number of bits that are 1.", "7", integer("3"), INTEGERS),
    Row("clz", arithmetic.clz, "The number of leading zero bits.", "1", integer("31"), INTEGERS),
    Row(
        "shift_left",
        arithmetic.shl,
        "The bits of the first shifted left by the second; 0 for shifts of the width or more.",
        "3, 2",
        integer("12"),
        INTEGERS,
    ),
    Row(
        "shift_right",
        arithmetic.shr,
        "The bits of the first shifted right by the second; signed dtypes keep their sign.",
        "-8, 2",
        integer("-2"),
        INTEGERS,
    ),
)

ROWS = {row.name: row for row in (*transcendental.ROWS, *_ROUNDING, *_ARITHMETIC, *_COMPARISONS, *_BITS)}
