"""The scalar operations of kernel code, one row each: a closed set, with all that stages need.

Integer `div` truncates and `rem` takes the dividend's sign (x div 0 is -1, all bits set, and
x rem 0 is x); `max` and `min` propagate NaN; `round` is half-to-even; shifts of at least the
width give 0 (or the sign); `shr` follows the signedness of its dtype; comparisons give bool;
`select(c, a, b)` is a where c holds, else b. The primitive that lowers to an operation defines it
in NumPy (kernel/scalar.py collects these definitions).

All operands of an operation have one dtype, except the condition of `select`. There are no complex
numbers: lowering/legalize has replaced them by pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

import numpy as np

from rune import dtypes
from rune.lowering.scalar import ciphers, divisions, errors, exponential, floats, fused, integers, powers, trigonometric
from rune.lowering.scalar.number import Ability, Number
from rune.ops.ciphers import GENERATORS, WORD_NAMES, Generator
from rune.records import dataclass

Dtypes = frozenset[np.dtype]
Write = Callable[..., Number]  # one Number for each operand


class Result(Enum):
    """How the dtype of a result follows from that of the operands."""

    SAME = "the operands' dtype"
    BOOL = "bool"
    STATED = "stated by the node"


@dataclass(frozen=True, slots=True)
class Expansion:
    """An operation on some dtypes in terms of others, for targets with these abilities."""

    write: Write
    dtypes: Dtypes
    needs: frozenset[Ability] = frozenset()


@dataclass(frozen=True, slots=True)
class ScalarOp:
    """One operation.

    arity: the number of operands;  dtypes: their dtypes, for `select` those after the condition
    cost: in vectorised additions; kernelize decides by it what to recompute
    instructions: decides which loops run in lanes, and how cores share the work
    closed_dtypes: formats that hold the result when they hold the operands, so that a wider
        register needs no rounding after it
    of_bits: whether the format's bits matter, so that no wider register can replace it
    is_exact: whether all executors give the same bits, so that constants may be folded
    sign: the infix operator in kernel code, C and WGSL
    expansions: the operation in terms of others, for targets that lack it, the best first
    """

    name: str
    arity: int
    dtypes: Dtypes
    result: Result = Result.SAME
    cost: int = 1
    instructions: int = 1
    closed_dtypes: Dtypes = frozenset()
    of_bits: bool = False
    is_exact: bool = True
    sign: str = ""
    expansions: tuple[Expansion, ...] = ()

    def expansion(self, dtype: np.dtype, abilities: frozenset[Ability] = frozenset()) -> Write | None:
        """The first one that such a target supports; None if every language has the operation."""
        expansions = (f.write for f in self.expansions if dtype in f.dtypes and f.needs <= abilities)
        return next(expansions, None)


_INTEGER, _FLOATING = dtypes.INTEGER, dtypes.FLOATING
_REAL = _INTEGER | _FLOATING
_WORDS = frozenset({dtypes.i32, dtypes.u32})
_BITS = _INTEGER | {dtypes.bool_}
_ANY = _REAL | {dtypes.bool_}


def _comparison(name: str, sign: str) -> ScalarOp:
    by_bits = floats.differ if name == "ne" else floats.comparison(name)
    return ScalarOp(name, 2, _ANY, Result.BOOL, sign=sign, expansions=(_of(by_bits, _IEEE),))


def _function(name: str, cost: int, instructions: int, *expansions: Expansion, arity: int = 1) -> ScalarOp:
    """A function of floats that executors compute with errors of their own."""
    return ScalarOp(name, arity, _FLOATING, cost=cost, instructions=instructions, is_exact=False, expansions=expansions)


def _of(write: Write, operand_dtypes: Dtypes, *needs: Ability) -> Expansion:
    return Expansion(write, operand_dtypes, frozenset(needs))


def _fused(write: Write) -> Expansion:
    return _of(write, _WIDTHS, Ability.FUSED, Ability.DENORMALS)


def _by_f64(write: Write) -> Expansion:
    return _of(write, _F32, Ability.FUSED, Ability.WIDE)


def _by_library(write: Write) -> Expansion:
    return _of(write, _WIDTHS, Ability.FUSED, Ability.WIDE, Ability.LIBRARY)


def _plain(write: Write) -> Expansion:
    return _of(write, _WIDTHS)


def _integers(write: Write, by_branches: Write) -> tuple[Expansion, ...]:
    return _of(by_branches, _INTEGER, Ability.BRANCHES), _of(write, _INTEGER)


def _count(name: str, by_words: Write, by_digits: Write) -> ScalarOp:
    expansions = _of(by_words, _INTEGER - _WORDS, Ability.COUNTS), _of(by_digits, _INTEGER)
    return ScalarOp(name, 1, _INTEGER, closed_dtypes=_INTEGER, of_bits=True, expansions=expansions)


def _bitwise(
    name: str, arity: int, *expansions: Expansion, closed_dtypes: Dtypes = frozenset(), sign: str = ""
) -> ScalarOp:
    return ScalarOp(name, arity, _INTEGER, closed_dtypes=closed_dtypes, sign=sign, expansions=expansions)


def _cipher_word(generator: Generator, number: int) -> ScalarOp:
    """One word of a cipher; some 20 rounds of five instructions, or 10 of twelve."""
    name, words = generator.operation(number), frozenset({dtypes.u32})
    expansion = _of(ciphers.word(generator, number), words)
    return ScalarOp(name, 2 + generator.counter_words, words, cost=120, instructions=120, expansions=(expansion,))


_F32, _F64 = frozenset({dtypes.f32}), frozenset({dtypes.f64})
_WIDTHS = _F32 | _F64
_IEEE = _WIDTHS | {dtypes.f16, dtypes.bf16}
_POWERS = (
    _by_f64(fused.pow_by_f64),
    _of(fused.pow_of_f64, _F64, Ability.FUSED, Ability.DENORMALS),
    _plain(powers.pow),
    *_integers(integers.power, integers.power_by_branches),
)
_INVERSE_ERRORS = (
    _by_f64(fused.erf_inv_by_f64),
    _of(fused.erf_inv_of_f64, _F64, Ability.FUSED, Ability.DENORMALS),
    _plain(errors.erf_inv),
)

_ROWS = (
    # arithmetic
    ScalarOp("add", 2, _REAL, sign="+"),
    ScalarOp("sub", 2, _REAL, sign="-"),
    ScalarOp("mul", 2, _REAL, sign="*"),
    ScalarOp(
        "div",
        2,
        _REAL,
        cost=6,
        instructions=4,
        sign="/",
        expansions=(_of(divisions.divide, _F32), *_integers(integers.divide, integers.divide_by_branches)),
    ),
    ScalarOp(
        "rem",
        2,
        _REAL,
        cost=6,
        instructions=10,
        closed_dtypes=_INTEGER,
        sign="%",
        expansions=(_plain(powers.rem), *_integers(integers.remainder, integers.remainder_by_branches)),
    ),
    ScalarOp("neg", 1, _REAL, closed_dtypes=_FLOATING, expansions=(_of(floats.negative, _IEEE),)),
    ScalarOp("abs", 1, _REAL, closed_dtypes=_FLOATING, expansions=(_of(integers.absolute, _INTEGER),)),
    ScalarOp("sign", 1, _REAL, closed_dtypes=_REAL, expansions=(_plain(floats.sign), _of(integers.sign, _INTEGER))),
    ScalarOp("max", 2, _ANY, closed_dtypes=_ANY, expansions=(_plain(floats.larger), _of(integers.larger, _BITS))),
    ScalarOp("min", 2, _ANY, closed_dtypes=_ANY, expansions=(_plain(floats.smaller), _of(integers.smaller, _BITS))),
    ScalarOp("pow", 2, _REAL, cost=30, instructions=60, is_exact=False, expansions=_POWERS),
    ScalarOp("fma", 3, _FLOATING),
    # floats
    ScalarOp("floor", 1, _FLOATING, closed_dtypes=_FLOATING),
    ScalarOp("ceil", 1, _FLOATING, closed_dtypes=_FLOATING),
    ScalarOp("round", 1, _FLOATING, closed_dtypes=_FLOATING),
    ScalarOp("trunc", 1, _FLOATING, closed_dtypes=_FLOATING),
    ScalarOp("sqrt", 1, _FLOATING, cost=6, instructions=5, expansions=(_of(divisions.root, _F32),)),
    ScalarOp("copysign", 2, _FLOATING, closed_dtypes=_FLOATING),
    ScalarOp(
        "nextafter", 2, _FLOATING, closed_dtypes=_FLOATING, of_bits=True, expansions=(_of(floats.next_after, _IEEE),)
    ),
    ScalarOp("is_finite", 1, _FLOATING, Result.BOOL),
    # functions
    _function("rsqrt", 8, 8, _plain(floats.reciprocal_root)),
    _function("cbrt", 6, 60, _fused(fused.cbrt), _plain(powers.cbrt)),
    _function("exp", 16, 20, _plain(exponential.exp)),
    _function("exp2", 16, 20, _plain(exponential.exp2)),
    _function("expm1", 20, 20, _plain(exponential.expm1)),
    _function("log", 16, 20, _plain(exponential.log)),
    _function("log2", 16, 20, _plain(exponential.log2)),
    _function("log1p", 20, 20, _plain(exponential.log1p)),
    _function("sinh", 20, 20, _plain(exponential.sinh)),
    _function("cosh", 20, 20, _plain(exponential.cosh)),
    _function("tanh", 20, 20, _plain(exponential.tanh)),
    _function("logistic", 20, 20, _plain(exponential.logistic)),
    _function("asinh", 30, 60, _fused(fused.asinh), _plain(exponential.asinh)),
    _function("acosh", 30, 60, _fused(fused.acosh), _plain(exponential.acosh)),
    _function("atanh", 30, 60, _fused(fused.atanh), _plain(exponential.atanh)),
    _function("sin", 20, 60, _by_library(fused.sin), _plain(trigonometric.sin)),
    _function("cos", 20, 60, _by_library(fused.cos), _plain(trigonometric.cos)),
    _function("tan", 30, 60, _by_library(fused.tan), _plain(trigonometric.tan)),
    _function("asin", 20, 60, _plain(trigonometric.asin)),
    _function("acos", 20, 60, _plain(trigonometric.acos)),
    _function("atan", 20, 60, _plain(trigonometric.atan)),
    _function("atan2", 30, 60, _plain(trigonometric.atan2), arity=2),
    _function("erf", 20, 20, _of(fused.erf_of_f32, _F32, Ability.FUSED, Ability.DENORMALS), _plain(errors.erf)),
    _function("erfc", 20, 60, _by_f64(fused.erfc_by_f64), _plain(errors.erfc)),
    _function("erf_inv", 30, 60, *_INVERSE_ERRORS),
    # bits
    ScalarOp("and", 2, _BITS, closed_dtypes=_BITS, sign="&"),
    ScalarOp("or", 2, _BITS, closed_dtypes=_BITS, sign="|"),
    ScalarOp("xor", 2, _BITS, closed_dtypes=_BITS, sign="^"),
    ScalarOp("not", 1, _BITS),
    _bitwise("shl", 2, *_integers(integers.shift_left, integers.shift_left_by_branches), sign="<<"),
    _bitwise("shr", 2, _of(integers.shift_right, _INTEGER), closed_dtypes=_INTEGER, sign=">>"),
    _count("popcount", integers.count_ones_by_words, integers.count_ones),
    _count("clz", integers.leading_zeros_by_words, integers.leading_zeros),
    ScalarOp("bitcast", 1, _ANY, Result.STATED),
    *(_cipher_word(generator, number) for generator in GENERATORS.values() for number in range(len(WORD_NAMES))),
    # choices
    _comparison("eq", "=="),
    _comparison("ne", "!="),
    _comparison("lt", "<"),
    _comparison("le", "<="),
    _comparison("gt", ">"),
    _comparison("ge", ">="),
    ScalarOp("select", 3, _ANY, closed_dtypes=_ANY),
)

OPERATIONS: Mapping[str, ScalarOp] = {op.name: op for op in _ROWS}
# Partial operations, for use in functions and, with constants, in kernels. They are undefined for a
# divisor that is 0 or makes the quotient overflow, for amounts not below the width, for floats
# outside of the integer's range, and for denormals converted to another format. A quotient and a
# root of floats may be off by a few ulps, and take numbers from 1 to 4.
_PARTIAL_ROWS = (
    ScalarOp("quotient", 2, _REAL, closed_dtypes=_INTEGER),
    ScalarOp("root", 1, _FLOATING),
    ScalarOp(
        "remainder", 2, _INTEGER, closed_dtypes=_INTEGER, expansions=(_of(integers.remainder_by_quotient, _INTEGER),)
    ),
    ScalarOp("shift_left", 2, _INTEGER),
    ScalarOp("shift_right", 2, _INTEGER, closed_dtypes=_INTEGER),
    ScalarOp("integer_part", 1, _FLOATING, Result.STATED),
    ScalarOp("nearest", 1, _FLOATING, Result.STATED),
)
PARTIAL: Mapping[str, ScalarOp] = {op.name: op for op in _PARTIAL_ROWS}
# The partial operation that replaces another where it is defined.
PARTIAL_OF: Mapping[str, str] = {"div": "quotient", "rem": "remainder", "shl": "shift_left", "shr": "shift_right"}
ROWS: Mapping[str, ScalarOp] = {**OPERATIONS, **PARTIAL}
COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
SIGNS: Mapping[str, str] = {op.name: op.sign for op in _ROWS if op.sign}


def result_dtype(name: str, operand: np.dtype) -> np.dtype | None:
    """The dtype of an operation's result; None if the node states it."""
    match ROWS[name].result:
        case Result.SAME:
            return operand
        case Result.BOOL:
            return dtypes.bool_
        case Result.STATED:
            return None
