"""Dimensions: an algebra that simplifies, and is never wrong.

First the simplifications that reshapes rely on, one sentence each. Then the three-valued
comparisons and bounds, checked against every value within small bounds. Last the laws: evaluating
an expression gives what the same computation on integers gives.
"""

from __future__ import annotations

import ast
import copy
import itertools
import operator
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rune import dims
from rune.dims import Dim, Size, guards, symbol
from rune.errors import DimensionError

N = symbol("n", 1, 4096)
M = symbol("m", 1, 4096)


def loop(name: str, size: Size) -> Dim:
    return symbol(name, 0, size - 1)


def test_a_table_of_sizes_still_has_them_after_the_first_watch():
    table = {N: "n", N + 1: "n + 1"}

    answer, _ = guards.watched(lambda: N == 7)

    assert answer is False
    assert [table[N], table[N + 1]] == ["n", "n + 1"]


# --- simplification ---------------------------------------------------------------------------


def test_sums_and_products_are_canonical():
    assert (N + 1) * (N - 1) == N * N - 1
    assert N + M == M + N
    assert N - N == 0
    assert 0 * N == 0
    assert str((2 * N + 3) * 2 - 5) == "4*n + 1"


def test_equal_expressions_are_one_object_also_after_pickling():
    x = (N + 3) // 4

    assert x is (3 + N) // 4
    assert pickle.loads(pickle.dumps(x)) is x
    assert copy.deepcopy(x) is x


def test_multiples_of_the_denominator_leave_the_numerator():
    assert (4 * N) // 4 == N
    assert (4 * N + M) // 4 == N + M // 4
    assert (4 * N + M) % 4 == M % 4
    assert (N * M + 5 * N) // N == M + 5
    assert (N - 1) // 4 == (N + 3) // 4 - 1


def test_a_number_known_to_be_small_has_quotient_zero():
    i, j = loop("i", 6), loop("j", 4)

    assert (4 * i + j) // 4 == i
    assert (4 * i + j) % 4 == j
    assert j // 4 == 0
    assert (j + 8) // 4 == 2


def test_a_common_factor_cancels_also_past_a_small_rest():
    i, j = loop("i", 6), loop("j", 4)

    assert (6 * N) // (4 * M) == (3 * N) // (2 * M)
    assert (6 * N) % (4 * M) == 2 * ((3 * N) % (2 * M))
    assert (4 * i + j) // 12 == i // 3
    assert (4 * i + j) % 12 == 4 * (i % 3) + j


def test_nested_divisions_become_one():
    assert (N // 4) // 3 == N // 12
    assert (N // 4 + 1) // 3 == (N + 4) // 12
    assert (N % 12) % 4 == N % 4
    assert (N % 12) // 4 == (N // 4) % 3
    assert (3 * (N % 4) + M) % 6 == (3 * (N % 4) + M) % 6
    assert (5 * (N % 12) + M) % 4 == (N + M) % 4


def test_quotient_and_remainder_recombine():
    i = loop("i", 24)

    assert 4 * (N // 4) + N % 4 == N
    assert M * (N // M) + N % M == N
    assert 12 * (i // 12) + 4 * ((i // 4) % 3) + i % 4 == i
    assert 3 * M * (N % 4) + 12 * M * (N // 4) == 3 * M * N


def test_a_symbolic_row_length_works_as_a_number_does():
    i, j = loop("i", M), loop("j", N)
    flat = i * N + j

    assert flat // N == i
    assert flat % N == j
    assert dims.less(flat, M * N) is True
    assert flat // (M * N) == 0
    assert (flat + N) // N == i + 1


def test_a_row_length_that_is_a_sum_works_too():
    i, j = loop("i", M), loop("j", N + 2)
    flat = i * (N + 2) + j

    assert flat // (N + 2) == i
    assert flat % (N + 2) == j


def test_splitting_a_symbolic_axis_in_two_is_undone_exactly():
    i, j, k = loop("i", M), loop("j", N), loop("k", 4)
    flat = 4 * N * i + 4 * j + k

    assert flat // (4 * N) == i
    assert (flat // 4) % N == j
    assert flat % 4 == k
    assert flat % (4 * N) == 4 * j + k


def test_three_axes_survive_a_reshape_and_back():
    i, j, k = loop("i", 5), loop("j", 3), loop("k", 4)
    flat = 12 * i + 4 * j + k
    outer, inner = flat // 6, flat % 6

    assert 6 * outer + inner == flat
    assert (6 * outer + inner) // 12 == i
    assert ((6 * outer + inner) // 4) % 3 == j


def test_a_reversed_index_stays_within_its_axis():
    i, j = loop("i", M), loop("j", N)
    flat = i * N + (N - 1 - j)

    assert flat // N == i
    assert flat % N == N - 1 - j


def test_a_negative_denominator_rounds_as_python_does():
    for x, d in itertools.product(range(-7, 8), (-3, -1, 1, 4)):
        assert dims.evaluate(symbol("x", -7) // d, {"x": x}) == x // d
        assert dims.evaluate(symbol("x", -7) % d, {"x": x}) == x % d


def test_division_by_zero_says_what_was_divided():
    with pytest.raises(ZeroDivisionError, match="cannot divide n by 0"):
        _ = N // 0


# --- text -------------------------------------------------------------------------------------


def test_printing_is_python_notation():
    i, j = symbol("i"), symbol("j")

    assert str(4 * N + 1) == "4*n + 1"
    assert str((N + 3) // 4) == "(n + 3)//4"
    assert str((3 * i + j) % 4) == "(3*i + j) % 4"
    assert str((4 * i + loop("j", 4)) % 12) == "4*(i % 3) + j"
    assert str(3 - N * M) == "-m*n + 3"
    assert str(1 - (N // 2) * 2) == "-2*(n//2) + 1"
    assert str((i // 4) % 3) == "(i//4) % 3"


def test_the_order_of_a_sum_does_not_depend_on_how_it_was_made():
    names = [symbol(name) for name in "dacb"]

    texts = {str(sum(order)) for order in itertools.permutations(names)}

    assert texts == {"a + b + c + d"}


@pytest.mark.parametrize("text", ["n +", "k", "n / 2", "n ** 2", "f(n)", ""])
def test_parse_refuses_text_that_is_not_a_dimension(text: str):
    with pytest.raises(DimensionError, match="parse: cannot read"):
        dims.parse(text, {"n": N})


# --- a dimension is no number -----------------------------------------------------------------


@pytest.mark.parametrize("use", [bool, int, float, range, operator.index])
def test_a_dimension_has_no_value_while_tracing(use):
    with pytest.raises(DimensionError, match=r"n in 1\.\.4096"):
        use(N)


def test_whole_powers_and_divmod_are_those_of_numbers():
    assert (N + 1) ** 2 == N * N + 2 * N + 1
    assert N**0 == 1
    assert divmod(4 * N + 3, 4) == (N, 3)
    for power in (-1, 0.5):
        with pytest.raises(TypeError, match=rf"cannot compute with n and {power}"):
            _ = N**power


def test_an_undecided_comparison_names_both_sides_and_bounds():
    with pytest.raises(dims.UndecidedComparison) as error:
        _ = N < M + 1

    assert "cannot decide n < m + 1 (m in 1..4096, n in 1..4096)" in str(error.value)
    assert "hint" in str(error.value)


@pytest.mark.parametrize(
    ("question", "hint"),
    [
        (lambda: N >= M, 'if it always holds, declare it: dims={"m": (1, "n")}'),
        (lambda: M < N, 'if it always holds, declare it: dims={"m": (1, "n - 1")}'),
        (lambda: N > 8, 'dims={"n": (9, 4096)} or dims={"n": (1, 8)}'),
        (lambda: N >= 8, 'dims={"n": (8, 4096)} or dims={"n": (1, 7)}'),
        (lambda: N < 8, 'dims={"n": (1, 7)} or dims={"n": (8, 4096)}'),
        (lambda: N <= 8, 'dims={"n": (1, 8)} or dims={"n": (9, 4096)}'),
        (lambda: dims.symbol("k") <= 8, 'dims={"k": (0, 8)} or dims={"k": (9, None)}'),
        (lambda: dims.symbol("k", 2, N) <= 8, 'dims={"k": (2, 8)} or dims={"k": (9, "n")}'),
        (lambda: 2 * N > M, "declare tighter bounds in dims"),
    ],
)
def test_an_undecided_comparison_says_what_would_decide_it(question: Any, hint: str):
    with pytest.raises(dims.UndecidedComparison) as error:
        question()

    assert (error.value.hint or "").endswith(hint)


def test_decided_comparisons_are_plain_booleans():
    assert N > 0
    assert N <= 4096
    assert not N > 4096
    assert 5000 > N


def test_numpy_integers_are_integers_and_other_objects_may_answer():
    class Answers:
        def __radd__(self, other: object) -> str:
            return f"radd {other}"

    assert N + np.int64(3) == 3 + N
    assert np.int64(3) + N == 3 + N
    assert N + Answers() == "radd n"
    with pytest.raises(TypeError, match=r"cannot compute with n and 1.5 .*\n.*rune.numpy.asarray"):
        _ = N + 1.5


# --- queries ----------------------------------------------------------------------------------


def test_rounding_up_to_lines_is_known_not_to_shrink_a_size():
    bytes = 4 * ((N + 1) // 2)

    assert dims.at_most(bytes, -(-bytes // 64) * 64)
    assert dims.at_most(-(-bytes // 64) * 64, bytes + 63)
    chunks = -(-(3 * N + M + 1) // 63)
    bytes = 4 * chunks * (3 * N + M + 1)
    assert dims.at_most(bytes, -(-bytes // 64) * 64)


def test_bounds_follow_loops_innermost_first():
    i = loop("i", N)
    j = symbol("j", i, N - 1)

    assert dims.bounds(j - i) == (0, 4095)
    assert dims.bounds(N - 1 - j) == (0, 4095)
    assert dims.bounds(i * N + j)[0] == 0
    assert dims.bounds(symbol("free")) == (0, None)


def test_bounds_see_that_division_is_monotone():
    i = loop("i", 10)

    assert dims.bounds((i + 3) // 4) == (0, 3)
    assert dims.bounds(i + i // 2) == (0, 13)
    assert dims.bounds(i - 4 * (i // 4)) == (0, 3)
    assert dims.bounds(8 * (i % 4) + 3) == (3, 27)


def test_a_remainder_of_a_symbolic_row_stays_below_it():
    flat = symbol("k") % N

    assert dims.less(flat, N) is True
    assert dims.less(loop("i", M) * N + flat, M * N) is True


def test_parity_decides_equality():
    assert dims.equal(2 * N, 2 * M + 1) is False
    assert dims.equal(N, M) is None
    assert dims.equal(N + M, M + N) is True


def test_minimum_and_maximum_are_chosen_where_decided():
    assert dims.minimum(N, N + 1) == N
    assert dims.maximum(N, 1) == N
    assert dims.maximum(2, 3) == 3
    with pytest.raises(dims.UndecidedComparison, match="minimum"):
        dims.minimum(N, M)


def test_exact_division_must_be_shown():
    assert dims.exact_div(4 * N * M, 2 * M) == 2 * N
    assert dims.exact_div(12, 4) == 3
    with pytest.raises(DimensionError, match=r"cannot divide n by 2 \(remainder n % 2"):
        dims.exact_div(N, 2)


def test_coefficient_is_none_inside_divisions_and_powers():
    i = symbol("i")

    assert dims.coefficient(i * N + 4 * i + M, "i") == N + 4
    assert dims.coefficient(N, "i") == 0
    assert dims.coefficient(i * i, "i") is None
    assert dims.coefficient(i * (i // 2), "i") is None


def test_substitution_simplifies_and_narrows_loops():
    n, k = symbol("n", 1), symbol("k")
    i = loop("i", n)

    assert dims.substitute((n + 3) // 4, {"n": 4 * k}) == k
    assert dims.substitute(i, {"n": 4}) == loop("i", 4)
    assert dims.substitute((i + 4 * k) // 4, {"n": 4}) == k
    assert dims.substitute(2 * n + k, {"n": k, "k": n}) == 2 * k + n


def test_evaluation_asks_for_every_symbol():
    with pytest.raises(DimensionError, match=r"cannot find a value for m \(given: n\)"):
        dims.evaluate(N * M, {"n": 2})


def test_product_is_static_where_the_shape_is():
    assert dims.is_static(dims.product((2, 3, 4)))
    assert dims.product(()) == 1
    assert dims.product((N, 2, M)) == 2 * N * M


def test_deep_nesting_costs_no_exponential_time():
    x: Size = symbol("x")
    for level in range(25):
        x = (x // 3 + x % 5 + level) % 7 + x // 2

    assert dims.bounds(x)[0] == 0


# --- laws -------------------------------------------------------------------------------------

A = symbol("a", 0, 5)
B = symbol("b", -3, 4)
C = symbol("c", 1, 3)
LOOP_C = symbol("i", 0, C - 1)
LOOP_AC = symbol("j", LOOP_C, A + C)
SYMBOLS = {"a": A, "b": B, "c": C, "i": LOOP_C, "j": LOOP_AC}


def assignments():
    for a, b, c in itertools.product(range(6), range(-3, 5), range(1, 4)):
        for i in range(c):
            for j in range(i, a + c + 1):
                yield {"a": a, "b": b, "c": c, "i": i, "j": j}


ALL = list(assignments())
DIVISORS = st.one_of(st.integers(1, 12), st.sampled_from([-3, C, 4 * C, C + 1, A + 2]))


def plain(tree: object, values: dict[str, int]) -> int:
    match tree:
        case int():
            return tree
        case str():
            return values[tree]
        case (operation, a, b):
            return operation(plain(a, values), plain(b, values))
        case Dim():
            return dims.evaluate(tree, values)
    raise AssertionError(tree)


def symbolic(tree: object) -> Size:
    match tree:
        case int() | Dim():
            return tree
        case str():
            return SYMBOLS[tree]
        case (operation, a, b):
            return operation(symbolic(a), symbolic(b))
    raise AssertionError(tree)


def trees():
    leaf = st.one_of(st.integers(-6, 12), st.sampled_from(sorted(SYMBOLS)))
    ring = st.sampled_from([operator.add, operator.sub, operator.mul])
    division = st.sampled_from([operator.floordiv, operator.mod])
    return st.recursive(
        leaf, lambda t: st.one_of(st.tuples(ring, t, t), st.tuples(division, t, DIVISORS)), max_leaves=9
    )


@settings(max_examples=400, deadline=None)
@given(trees(), st.lists(st.sampled_from(ALL), min_size=12, max_size=12))
def test_simplified_expressions_equal_integer_arithmetic(tree: object, samples: list):
    x = symbolic(tree)

    for values in samples:
        assert plain(tree, values) == dims.evaluate(x, values)


@settings(max_examples=300, deadline=None)
@given(trees())
def test_parsing_what_was_printed_gives_the_same_object(tree: object):
    x = symbolic(tree)

    assert dims.parse(str(x), SYMBOLS) == x


@settings(max_examples=300, deadline=None)
@given(trees(), st.lists(st.sampled_from(ALL), min_size=40, max_size=40))
def test_values_lie_within_bounds(tree: object, samples: list):
    low, high = dims.bounds(symbolic(tree))

    for values in samples:
        value = plain(tree, values)
        assert low is None or low <= value
        assert high is None or value <= high


@settings(max_examples=200, deadline=None)
@given(trees(), st.fixed_dictionaries({"a": st.integers(0, 5), "c": st.integers(1, 3)}))
def test_substitution_commutes_with_evaluation(tree: object, substitution: dict[str, int]):
    x = dims.substitute(symbolic(tree), substitution)

    for values in [v for v in ALL if substitution.items() <= v.items()][:20]:
        assert plain(tree, values) == dims.evaluate(x, values)


SMALL = [A, B, C, LOOP_C, A + B, A - C, 2 * A, 2 * B + 1, A // 2, A % C, A * C, LOOP_C - C, A * B]
PAIRS = list(itertools.product([*SMALL, 0, 3], repeat=2))


@pytest.mark.parametrize(
    ("decide", "truth"), [(dims.less, operator.lt), (dims.at_most, operator.le), (dims.equal, operator.eq)]
)
def test_a_comparison_that_answers_is_right_for_every_value(decide, truth):
    for a, b in PAIRS:
        answer = decide(a, b)
        if answer is None:
            continue
        for values in ALL[::3]:
            assert truth(dims.evaluate(a, values), dims.evaluate(b, values)) is answer, (a, b)


@pytest.mark.parametrize(("rows", "columns", "split"), [(6, 4, 3), (4, 6, 8), (5, 12, 4)])
def test_reshape_index_maps_are_right_for_every_element(rows: int, columns: int, split: int):
    i, j = loop("i", rows), loop("j", columns)
    flat = i * columns + j

    for at, element in itertools.product(range(rows), range(columns)):
        values = {"i": at, "j": element}
        expected = divmod(at * columns + element, split)
        assert expected == (dims.evaluate(flat // split, values), dims.evaluate(flat % split, values))


def test_text_that_python_refuses_by_another_error_is_refused_in_the_same_way(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:  # as Python 3.11.3 and older
        raise ValueError("source code string cannot contain null bytes")

    monkeypatch.setattr(ast, "parse", refuse)

    with pytest.raises(DimensionError, match=r"parse: cannot read 'n.*source code string cannot contain null bytes"):
        dims.parse("n\0", {"n": N})
