"""Kernel code as text: it reads like C, and what is printed is read back the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune import dtypes
from rune.errors import CheckError
from rune.lowering.kernel.check import check
from rune.lowering.kernel.expr import Const, Op, const
from rune.lowering.kernel.nodes import KernelCode, Let
from rune.lowering.kernel.notation import const_text
from rune.lowering.kernel.text import parse, to_text
from tests.lowering.kernel.examples import TEXTS
from tests.lowering.kernel.random_code import random_code


@pytest.mark.parametrize("name", TEXTS)
def test_an_example_prints_as_it_was_written(name):
    assert to_text(parse(TEXTS[name])) == TEXTS[name].strip()


@pytest.mark.parametrize("name", TEXTS)
def test_an_example_passes_the_check(name):
    check(parse(TEXTS[name]))


@given(st.integers(0, 10**6))
def test_parse_undoes_printing(seed):
    code = random_code(seed)

    assert parse(to_text(code)) == code


@given(st.sampled_from(sorted(dtypes.ANY, key=dtypes.short)), st.data())
def test_every_bit_pattern_of_every_dtype_survives_text(dtype, data):
    bits = data.draw(st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize))
    code = KernelCode("f", (), (), (Let("c", Const(bits, dtype)),))

    assert parse(to_text(code)) == code


def test_constants_read_like_numbers_and_fall_back_to_bits():
    values = [const(v, dtypes.f32) for v in (1 / 3, -0.0, np.inf, np.nan, 1e-45)]

    assert [const_text(v) for v in values] == ["0.33333334_f32", "-0.0_f32", "inf_f32", "nan_f32", "1e-45_f32"]
    assert const_text(Const(bytes.fromhex("0100c07f"), dtypes.f32)) == "bits_f32(7fc00001)"


def test_a_negated_constant_is_not_a_negative_constant():
    negation = Op("neg", (const(1, dtypes.f32),), dtypes.f32)
    code = KernelCode("f", (), (), (Let("a", negation), Let("b", const(-1, dtypes.f32))))

    assert parse(to_text(code)) == code


def test_sizes_and_aliases_are_part_of_the_text():
    text = """
code f(x: read f32[n], y: write f32[n]) sizes n in 1..8, m aliases x = y {
  barrier
}
"""
    code = parse(text)

    assert code.sizes == ("n", "m")
    assert code.aliases == (("x", "y"),)
    assert to_text(code) == text.strip()


@pytest.mark.parametrize("word", ["of", "behind", "summed"])
@pytest.mark.parametrize("barrier", ["barrier", "barrier, of 32", "barrier, behind 2", "barrier, behind 2, summed"])
def test_a_value_after_a_barrier_may_have_any_name(barrier: str, word: str):
    text = f"code f() {{\n  {barrier}\n  {word}: f32 = 0.0_f32\n}}"

    assert to_text(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("code f() { x = 1.0_f32 + }", "an expression, not '}'"),
        ("code f() { for i of 3 serial { } }", "'in', not 'of'"),
        ("code f() { store y[0] = z }", "an expression, not 'z'"),
        ("code f() { a: f32 = b[0] }", "a buffer before 'b', not '['"),
        ("code f() { a: f33 = 0.0_f32 }", "a dtype, not 'f33'"),
        ("code f() { a: f32 = cross(1.0_f32) }", "an operation before 'cross'"),
        ("code f() {", "not the end"),
        ("code f() { $ }", "line 1: '$'"),
    ],
)
def test_bad_text_is_refused_with_the_line(text, reason):
    with pytest.raises(CheckError, match="parse: cannot read kernel code") as error:
        parse(text)

    assert reason in str(error.value)
