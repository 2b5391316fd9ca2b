"""The elementwise functions as users read them, one row each.

rune.numpy and rune.lax take their docstrings from here. A row says what a function returns and
accepts, and has an example that runs in both namespaces. What differs stays with them: NumPy's
names and promotion, lax's refusal to promote.
"""

from __future__ import annotations

from rune.core.primitive import Primitive, Rule
from rune.ops import arithmetic, extrema, transcendental
from rune.records import dataclass

# Operands that a function accepts without promotion.
FLOATS = "floats"
INEXACT = "floats or complex numbers"
NUMBERS = "numbers"
ORDERED = "any but complex; bool comes out"
ANY = "any; bool comes out"
TRUTHS_OF_FLOATS = "floats; bool comes out"
BITS = "integers or bools"
INTEGERS = "integers"


@dataclass(frozen=True, slots=True)
class Row:
    """A function, a sentence about its result, and an example: arguments, and the result as
    printed.
    """

    name: str
    rule: Rule
    sentence: str
    arguments: str
    result: str
    takes: str

    @property
    def primitive(self) -> Primitive:
        """The rule of a row whose function is a single primitive."""
        assert isinstance(self.rule, Primitive), f"{self.name} is made of several primitives"
        return self.rule


def weak(number: str) -> str:
    """How a result computed from Python floats prints."""
    return f"Array({number}, f32*[], cpu:0)"


def whole(number: str) -> str:
    """How a result computed from Python integers prints."""
    return f"Array({number}, i32*[], cpu:0)"


def truth(value: str) -> str:
    """How a truth value prints."""
    return f"Array({value}, bool[], cpu:0)"


def _of_floats(function: Primitive, sentence: str, argument: str, result: str, takes: str = INEXACT) -> Row:
    return Row(function.name, function, sentence, argument, weak(result), takes)


_FUNCTIONS = (
    _of_floats(transcendental.sqrt, "Square root; NaN of negative reals.", "4.0", "2."),
    _of_floats(transcendental.rsqrt, "1 / sqrt(x).", "4.0", "0.5"),
    _of_floats(transcendental.cbrt, "Cube root, of negatives too.", "-8.0", "-2.", FLOATS),
    _of_floats(transcendental.exp, "e to the power x.", "0.0", "1."),
    _of_floats(transcendental.exp2, "2 to the power x.", "3.0", "8."),
    _of_floats(transcendental.expm1, "exp(x) - 1, accurate near 0.", "0.0", "0."),
    _of_floats(transcendental.log, "Natural logarithm; -inf of 0, NaN of negative reals.", "1.0", "0."),
    _of_floats(transcendental.log2, "Logarithm to base 2.", "8.0", "3."),
    _of_floats(transcendental.log1p, "log(1 + x), accurate near 0.", "0.0", "0."),
    _of_floats(transcendental.logistic, "1 / (1 + exp(-x)).", "0.0", "0.5"),
    _of_floats(transcendental.sin, "Sine of x in radians.", "0.0", "0."),
    _of_floats(transcendental.cos, "Cosine of x in radians.", "0.0", "1."),
    _of_floats(transcendental.tan, "Tangent of x in radians.", "0.0", "0."),
    _of_floats(transcendental.asin, "Inverse sine, in [-π/2, π/2].", "0.0", "0."),
    _of_floats(transcendental.acos, "Inverse cosine, in [0, π].", "1.0", "0."),
    _of_floats(transcendental.atan, "Inverse tangent, in [-π/2, π/2].", "0.0", "0."),
    _of_floats(transcendental.sinh, "Hyperbolic sine.", "0.0", "0."),
    _of_floats(transcendental.cosh, "Hyperbolic cosine.", "0.0", "1."),
    _of_floats(transcendental.tanh, "Hyperbolic tangent.", "0.0", "0."),
    _of_floats(transcendental.asinh, "Inverse hyperbolic sine.", "0.0", "0."),
    _of_floats(transcendental.acosh, "Inverse hyperbolic cosine.", "1.0", "0."),
    _of_floats(transcendental.atanh, "Inverse hyperbolic tangent.", "0.0", "0."),
    _of_floats(transcendental.erf, "The error function.", "0.0", "0.", FLOATS),
    _of_floats(transcendental.erfc, "1 - erf(x), accurate for large x.", "0.0", "1.", FLOATS),
    _of_floats(transcendental.erf_inv, "The inverse of erf.", "0.0", "0.", FLOATS),
    _of_floats(transcendental.atan2, "Angle in [-π, π] of the point (x, y), given as y, x.", "0.0, 1.0", "0.", FLOATS),
    _of_floats(arithmetic.floor, "The largest whole number not above x.", "-1.5", "-2.", FLOATS),
    _of_floats(arithmetic.ceil, "The smallest whole number not below x.", "-1.5", "-1.", FLOATS),
    _of_floats(arithmetic.trunc, "x without its fraction.", "-1.5", "-1.", FLOATS),
    _of_floats(
        arithmetic.copysign, "The magnitude of the first with the sign of the second.", "1.0, -0.0", "-1.", FLOATS
    ),
    _of_floats(arithmetic.nextafter, "The next float after the first, towards the second.", "0.0, 0.0", "0.", FLOATS),
)

_ARITHMETIC = (
    _of_floats(arithmetic.abs, "Absolute value; the modulus of complex numbers.", "-2.0", "2.", NUMBERS),
    _of_floats(arithmetic.neg, "-x; unsigned integers wrap.", "2.0", "-2.", NUMBERS),
    _of_floats(
        arithmetic.sign,
        "-1, 0 or 1; x / |x| for complex numbers, NaN for NaN. Its derivative is 0.",
        "-2.0",
        "-1.",
        NUMBERS,
    ),
    _of_floats(arithmetic.add, "The sum.", "1.0, 2.0", "3.", NUMBERS),
    _of_floats(arithmetic.sub, "The first minus the second.", "3.0, 2.0", "1.", NUMBERS),
    _of_floats(arithmetic.mul, "The product.", "3.0, 2.0", "6.", NUMBERS),
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
    Row("bitwise_not", arithmetic.logical_not, "All bits flipped; for bools, the logical not.", "5", whole("-6"), BITS),
    Row(
        "bitwise_and",
        arithmetic.logical_and,
        "The bits set in both; for bools, the logical and.",
        "6, 3",
        whole("2"),
        BITS,
    ),
    Row(
        "bitwise_or",
        arithmetic.logical_or,
        "The bits set in one or both; for bools, the logical or.",
        "6, 3",
        whole("7"),
        BITS,
    ),
    Row(
        "bitwise_xor",
        arithmetic.logical_xor,
        "The bits set in exactly one; for bools, the logical xor.",
        "6, 3",
        whole("5"),
        BITS,
    ),
    Row("population_count", arithmetic.popcount, "The number of bits that are 1.", "7", whole("3"), INTEGERS),
    Row("clz", arithmetic.clz, "The number of leading zero bits.", "1", whole("31"), INTEGERS),
    Row(
        "shift_left",
        arithmetic.shl,
        "The bits of the first shifted left by the second; 0 for shifts of the width or more.",
        "3, 2",
        whole("12"),
        INTEGERS,
    ),
    Row(
        "shift_right",
        arithmetic.shr,
        "The bits of the first shifted right by the second; signed dtypes keep their sign.",
        "-8, 2",
        whole("-2"),
        INTEGERS,
    ),
)

ROWS = {row.name: row for row in (*_FUNCTIONS, *_ARITHMETIC, *_COMPARISONS, *_BITS)}
