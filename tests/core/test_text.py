"""Programs as text: printing, parsing, and that each is the inverse of the other.

First each kind of value, then whole programs and nesting, then texts that cannot be parsed, whose
errors give the reason and the line.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import dims, dtypes, ops
from rune.core.check import check_program
from rune.core.evaluate import eval_program
from rune.core.printer import FULL
from rune.core.program import Literal, Program, Var
from rune.core.same import same_program
from rune.core.types import ArrayType
from rune.errors import CheckError
from rune.transforms.programs.make_program import parse_program
from tests.support.arrays import array
from tests.support.close import same

X = array([1.0, 2.0, 3.0])


def round_trip(program: Program) -> Program:
    """The program read back from its text, which it prints again."""
    copy = parse_program(str(program))
    assert str(copy) == str(program)
    assert same_program(copy, program)
    return copy


def of_literal(value: Any, type: ArrayType) -> Program:
    return Program((), (), (Literal(np.asarray(value, type.dtype), type),))


# --- values -----------------------------------------------------------------------------------

FLOATS = [0.0, -0.0, 1.0, -2.5, 0.1, 1e-30, 3.4e38, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", sorted(dtypes.FLOATING, key=dtypes.short), ids=dtypes.short)
def test_floating_literals_keep_every_bit(dtype: np.dtype):
    for value in FLOATS:
        with np.errstate(over="ignore"):
            round_trip(of_literal(np.asarray(value).astype(dtype), ArrayType((), dtype)))


@pytest.mark.parametrize("dtype", sorted(dtypes.INTEGER, key=dtypes.short), ids=dtypes.short)
def test_integer_literals_of_all_signs(dtype: np.dtype):
    low = -1 if dtype in dtypes.SIGNED else 0
    for value in (low, 0, 1, 7):
        round_trip(of_literal(value, ArrayType((), dtype)))


@pytest.mark.parametrize("value", [1 + 2j, -0.0 - 1j, 1j, complex("nan+infj"), complex(0, -0.0)])
def test_complex_literals(value: complex):
    round_trip(of_literal(value, ArrayType((), dtypes.c64)))
    round_trip(of_literal(value, ArrayType((), dtypes.c128)))


def test_bool_and_weak_literals(expect: Any):
    outputs = (
        Literal(np.array(True), ArrayType((), dtypes.bool_)),
        Literal(np.array(2.0, np.float32), ArrayType((), dtypes.f32, weak=True)),
    )
    program = Program((), (), outputs)

    round_trip(program)
    expect(
        program,
        """
        program f() {
          return true: bool[], 2.0: f32*[]
        }""",
    )


@pytest.mark.parametrize(
    "value",
    [
        np.array(3.5),
        np.array([1.5, np.nan, -0.0, np.inf], np.float32),
        np.zeros((2, 0, 3)),
        np.array([[True, False]]),
        np.array([1 + 1j, -0.0 - 2j]),
        np.arange(-8, 8, dtype=np.int8),
        np.ones((2, 2, 2), dtypes.bf16),
        np.array([[1], [2]], dtypes.i4),
    ],
    ids=lambda v: f"{v.dtype}{v.shape}",
)
def test_small_constants_are_printed_in_full(value: np.ndarray):
    var = Var(ArrayType(value.shape, value.dtype))

    copy = round_trip(Program((), (), (var,), ((var, value),)))

    same(value, copy.constants[0][1])
    check_program(copy)


def test_a_long_constant_is_shortened_and_cannot_be_read_back(expect: Any):
    value = np.arange(FULL + 1, dtype=np.float32)
    var = Var(ArrayType(value.shape, value.dtype))
    program = Program((), (), (var,), ((var, value),))

    expect(
        program,
        """
        program f() {
          const %0: f32[17] = [0.0, 1.0, ..., 15.0, 16.0]
          return %0
        }""",
    )
    with pytest.raises(CheckError, match="it was printed shortened; its values"):
        parse_program(str(program))


# --- programs ---------------------------------------------------------------------------------


def test_operations_with_every_kind_of_parameter():
    def function(x: Any, i: Any) -> Any:
        y = ops.broadcast(ops.convert(x, dtype=dtypes.bf16), shape=(2, 3), axes=(1,))
        z = ops.gather(x, i, np.float32(np.nan), dims=ops.IndexDims((), (0,), (0,)), slice_sizes=(1,), mode="fill")
        w = ops.pad(x, np.float32(-0.0), low=(-1,), high=(2,), interior=(0,))
        return ops.cumsum(y, axis=1, reverse=True), z, ops.integer_pow(w, exponent=-2)

    program = rune.make_program(function)(X, array(np.array([[0], [9]], np.int32)))

    round_trip(program)


def test_nested_programs_are_read_with_their_own_variables():
    inner = rune.jit(lambda y: (y * 2.0, ops.sin(y)))
    program = rune.make_program(lambda x: rune.jit(lambda v: inner(v)[0] + inner(v)[1])(x))(X)

    copy = round_trip(program)

    check_program(copy)
    same(eval_program(program, [X])[0], eval_program(copy, [X])[0])


def test_symbolic_sizes_keep_their_ranges():
    n, m = dims.symbol("n", 1, 4096), dims.symbol("m")
    type = ArrayType((n, m, 4), dtypes.f32)
    program = rune.make_program(lambda x: ops.reshape(x, shape=(4 * m * n,)))(type)

    copy = round_trip(program)

    assert "where m in 0..inf, n in 1..4096" in str(program)
    assert copy.input_types == (type,)
    check_program(copy)


def test_a_size_that_only_a_parameter_mentions_is_declared_too():
    n = dims.symbol("n", 1, 8)
    program = rune.make_program(lambda x: ops.slice_(x, start=(n,), limit=(n + 2,), stride=(1,)))(
        ArrayType((16,), dtypes.f32)
    )

    assert "where n in 1..8" in str(program)
    round_trip(program)


def test_division_of_sizes_in_brackets():
    n = dims.symbol("n", 1, 64)
    type = ArrayType(((n + 1) // 2, (n + 3) % 4 + 1), dtypes.f32)

    def function(x: Any) -> Any:
        return ops.broadcast(x, shape=(2, *type.shape), axes=(1, 2))

    copy = round_trip(rune.make_program(function)(type))

    assert copy.input_types == (type,)


def test_source_lines_are_comments_and_are_skipped():
    program = rune.make_program(lambda x: ops.sin(x) * 2.0)(X)

    text = program.text(frames=True)

    assert "# test_text.py:" in text
    assert same_program(parse_program(text), program)


def test_layout_is_free():
    text = """
      # a comment
      program f ( %7 : f32[ 3 ] , %9:f32[3] ) { %1:f32[3]=mul %7 , %9   return %1 }
    """

    assert same_program(parse_program(text), rune.make_program(lambda a, b: a * b)(X, X))


def test_a_program_without_inputs_results_or_equations():
    for text in ("program f() {\n  return\n}", "program g(%0: f32[3]) {\n  return\n}"):
        assert str(parse_program(text)) == text


# --- what cannot be read ----------------------------------------------------------------------

BAD = [
    ("program f(%0: f32[3]) { %1: f32[3] = sine %0 return %1 }", "sine .*no such primitive"),
    ("program f(%0: f33[3]) { return %0 }", "f33 .*no such dtype"),
    ("program f(%0: f32[3]) { return %1 }", "%1 .*not bound"),
    ("program f(%0: f32[3], %0: f32[3]) { return %0 }", "%0 .*bound twice"),
    ("program f(%0: f32[k]) { return %0 }", "'k' .*parse: cannot read"),
    ("program f() { return 1.5: i32[] }", "'1.5' .*no value of i32"),
    ("program f() { return 300: u8[] }", "'300' .*no value of u8"),
    ("program f() { const %0: f32[3] = [1.0] return %0 }", r"1 elements for f32\[3\]"),
    ("program f() { return 1.0 }", "':'"),
    ("program f() { return } program g() { return }", "one program expected"),
    ("fun f() { return }", "program .*another word"),
    ("", "program"),
    ("program f(%0: f32[3]) {", "an equation or return|a variable"),
    ("program f() { %0: f32[2] = iota {axis=Pair(a=1)} return %0 }", "no such kind of parameter"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[b[1] for b in BAD])
def test_text_that_cannot_be_parsed_raises_an_error_with_its_place(text: str, message: str):
    with pytest.raises(CheckError, match=f"(?s)parse: cannot read .*(?:{message})"):
        parse_program(text)


def test_the_error_shows_the_line_and_its_number():
    text = "program f(%0: f32[3]) {\n  %1: f32[3] = sin %0\n  return %2\n}"

    with pytest.raises(CheckError, match="line 3: return %2"):
        parse_program(text)


# --- structural equality ----------------------------------------------------------------------


def test_programs_that_differ_anywhere_are_not_the_same():
    base = rune.make_program(lambda x: ops.sin(x) * 2.0)(X)
    others = [
        lambda x: ops.cos(x) * 2.0,
        lambda x: ops.sin(x) * 3.0,
        lambda x: 2.0 * ops.sin(x),
        lambda x: (ops.sin(x) * 2.0, x),
        lambda x: ops.sin(x) * X,
        lambda x: ops.sin(x) * -2.0,
    ]

    assert same_program(base, rune.make_program(lambda y: ops.sin(y) * 2.0)(X))
    for other in others:
        assert not same_program(base, rune.make_program(other)(X))
    assert not same_program(base, rune.make_program(lambda x: ops.sin(x) * 2.0)(X[:2]))


def test_signed_zeros_differ_and_nans_do_not():
    scalar = ArrayType((), dtypes.f32)
    payload = np.array(0x7FC00001, np.uint32).view(np.float32)

    assert not same_program(of_literal(0.0, scalar), of_literal(-0.0, scalar))
    assert same_program(of_literal(np.nan, scalar), of_literal(payload, scalar))
