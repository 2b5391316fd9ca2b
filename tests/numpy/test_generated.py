"""Every case again on generated arguments: sizes, strides, shapes that broadcast, and dtypes.

tests/support/surface_variants.py generates the arguments. SciPy's cases are tried here, too. All
variants of a case are one test, which names those that differ.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import rune
from tests.numpy.cases import CASES as NUMPY_CASES
from tests.numpy.spelling import Case
from tests.scipy.cases import CASES as SCIPY_CASES
from tests.support.close import near
from tests.support.sampling import one_in
from tests.support.surface_differences import BETWEEN_BOOLS, DIFFERENCES, INTEGRALS_OF_BOOLS, excused, matches
from tests.support.surface_laws import silently
from tests.support.surface_variants import (
    Variants,
    broadcasts,
    disagreement,
    is_elementwise_of_two,
    of_dtypes,
    sizes,
    strides,
)

CASES = [c for c in (*NUMPY_CASES, *SCIPY_CASES) if c.specs and not c.plain]
ALL: tuple[Variants, ...] = (sizes, strides, of_dtypes)


def some(count: int) -> pytest.MarkDecorator:
    """One of `count` cases."""
    return pytest.mark.parametrize("case", one_in(count, CASES), ids=str)


@functools.cache  # a law of a case and the lines of the table that excuse it ask for the same
def found_to_differ(case: Case, variants: Variants) -> list[tuple[str, str]]:
    """(variant, how) of those that differ."""
    outcomes = ((str(v), disagreement(case, v)) for v in variants(case))
    return [(variant, how) for variant, how in outcomes if how is not None]


def unexcused(case: Case, variants: Variants) -> list[str]:
    """The differences that are not in the table."""
    differing = found_to_differ(case, variants)
    return [f"{v}: {how}" for v, how in differing if not excused(case, v, how)]


@some(23)
def test_every_size_gives_the_librarys_value_or_an_error_if_the_library_raises(case: Case):
    assert not unexcused(case, sizes)


@some(23)
def test_strided_arguments_give_what_dense_ones_give(case: Case):
    assert not unexcused(case, strides)


@some(23)
def test_every_dtype_gives_the_librarys_value_or_an_error_if_the_library_raises(case: Case):
    assert not unexcused(case, of_dtypes)


@pytest.mark.parametrize("case", [c for c in CASES if is_elementwise_of_two(c)], ids=str)
def test_two_arguments_broadcast_as_in_the_library(case: Case):
    assert not unexcused(case, broadcasts)


JITTED = [c for c in CASES if not c.static]
# Cases that go without variants do so because these take long to compile.
TO_COMPILE = [*one_in(128, [c for c in JITTED if not c.without]), *one_in(256, [c for c in JITTED if c.without])]


@pytest.mark.parametrize("case", TO_COMPILE, ids=str)
def test_a_compiled_call_equals_the_eager_one_for_any_sizes_and_dtypes(case: Case):
    labels = {"all 0", "odd", "bf16", "f64", "u8"}
    variants = (v for law in ALL for v in law(case) if str(v) in labels)

    for v in variants:
        if disagreement(case, v) is None and not is_error(expected := outcome(case, v.ours)):
            result = rune.jit(lambda *xs: case.call(case.ours, *xs))(*v.ours)
            near(expected, result, relative=v.error * case.slack, why="other order of sums")


def outcome(case: Case, args: object) -> object:
    """The result of the eager call, or its error."""
    try:
        return silently(case, case.ours, args)  # type: ignore[arg-type]
    except Exception as error:
        return error


def is_error(outcome: object) -> bool:
    return isinstance(outcome, Exception)


def of_bools(reason: str) -> list[Case]:
    """The cases that differ for a reason, all of their variants in bools."""
    names = [p.split(" @ ")[0] for p in DIFFERENCES[reason]]
    return [c for c in CASES if matches(str(c), tuple(names))]


def as_numbers(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The results of the library for 0 and 1, and of rune for False and True."""
    (variant,) = (v for v in of_dtypes(case) if str(v) == "bool")
    numbers = [np.asarray(x, np.float64) for x in variant.wide_operands]
    actual = silently(case, case.ours, variant.ours)
    return np.asarray(silently(case, case.oracle, numbers)), np.asarray(actual)


@pytest.mark.parametrize("case", of_bools(INTEGRALS_OF_BOOLS), ids=str)
def test_integrals_of_bools_are_those_of_numbers(case: Case):
    expected, actual = as_numbers(case)

    near(expected, actual, relative=1e-6, why="sums in f32")


@pytest.mark.parametrize("case", of_bools(BETWEEN_BOOLS), ids=str)
def test_between_bools_the_nearest_is_taken(case: Case):
    expected, actual = as_numbers(case)
    is_between = np.abs(expected - 0.5) < 1e-5  # rounding decides

    assert actual.dtype == bool
    np.testing.assert_array_equal(actual | is_between, (expected > 0.5) | is_between)


PATTERNS = [pattern for patterns in DIFFERENCES.values() for pattern in patterns]


@pytest.mark.parametrize("pattern", one_in(32, PATTERNS), ids=str)
def test_every_line_of_the_table_of_differences_is_needed(pattern: str):
    name = pattern.split(" @ ")[0]
    likely = [c for c in CASES if matches(f"{c} @", (f"{name} @",))]
    laws = (*ALL, broadcasts)

    assert any(
        matches(f"{case} @ {variant}: {how}", (pattern,))
        for case in likely
        for law in laws
        if law is not broadcasts or is_elementwise_of_two(case)
        for variant, how in found_to_differ(case, law)
    )
