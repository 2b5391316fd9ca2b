"""Sums of quotients of the same number are simplified without changing any value."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rune import dims
from rune.dims import Dim, Size, symbol

N, M = symbol("n", 1), symbol("m", 1)
Y: dict[str, Size] = {
    "n": N,
    "3*n": 3 * N,
    "n + m": N + M,
    "n - 2*m": N - 2 * M,
    "n*m": N * M,
    "5 - n": 5 - N,
    "n//2": N // 2,
    "n % 3 + m": N % 3 + M,
}


@pytest.mark.parametrize("k", [2, 3, 4, 7])
@pytest.mark.parametrize("y", Y.values(), ids=Y)
def test_the_quotients_of_all_shifts_add_up_to_the_number(y: Size, k: int):
    total: Size = 0
    for j in reversed(range(k)):
        total = (y + j) // k + total

    assert total == y
    assert 2 * M * total - 2 * M * y == 0


def test_the_size_minus_its_first_half_is_its_second_half():
    assert N - N // 2 == (N + 1) // 2
    assert N - (N + 1) // 2 == N // 2
    assert (N - 1) // 2 + N // 2 + 1 == N
    assert 2 * N - N // 2 == N + (N + 1) // 2
    assert N - (N + 1) // 3 - (N + 2) // 3 == N // 3


def test_rounding_up_has_one_form():
    assert -(-N // 4) == (N + 3) // 4
    assert -((1 - N) // 2) == N // 2
    assert str(-N // 2) == "-((n + 1)//2)"


def test_a_sum_that_would_not_be_shorter_stays():
    assert str(N // 2 + 1) == "n//2 + 1"
    assert str(N - 2 * (N // 2)) == "n - 2*(n//2)"
    assert str(N - N // 3) == "n - (n//3)"
    assert str(N // 1000 + (N + 1) // 1000) == "(n + 1)//1000 + n//1000"


def test_a_quotient_of_two_quotients_of_one_number_ends():
    y = N + M

    quotient = (2 * ((y + 1) // 2) + y // 2) // 8

    for n, m in itertools.product(range(1, 20), (1, 2)):
        expected = (2 * ((n + m + 1) // 2) + (n + m) // 2) // 8
        assert dims.evaluate(quotient, {"n": n, "m": m}) == expected


def test_a_quotient_of_a_product_with_a_quotient_ends():
    i = symbol("i", 0, N - 1)

    assert ((i // 2) * N * 3) // 2 // 2 == (3 * (i // 2) * N) // 4


def sums():
    """Integer combinations of numbers and of their shifted quotients, by one or another factor."""
    y = st.sampled_from(sorted(Y))
    part = st.tuples(st.integers(-2, 2), st.sampled_from(["1", "m", "n//2"]), y, st.integers(-3, 6), st.integers(1, 4))
    return st.lists(part, min_size=1, max_size=6)


def plain(total: list, n: int, m: int) -> int:
    values = {name: dims.evaluate(x, {"n": n, "m": m}) for name, x in Y.items()}
    factors = {"1": 1, "m": m, "n//2": n // 2}
    return sum(c * factors[f] * ((values[y] + j) // k) for c, f, y, j, k in total)


def symbolic(total: list) -> Size:
    factors: dict[str, Size] = {"1": 1, "m": M, "n//2": N // 2}
    size: Size = 0
    for c, f, y, j, k in total:
        size = size + c * factors[f] * ((Y[y] + j) // k)
    return size


@settings(max_examples=300, deadline=None)
@given(sums())
def test_a_shortened_sum_has_every_value_that_it_had(total: list):
    size = symbolic(total)

    for n, m in itertools.product(range(1, 10), (1, 2, 5)):
        assert dims.evaluate(size, {"n": n, "m": m}) == plain(total, n, m)


@settings(max_examples=200, deadline=None)
@given(sums())
def test_a_sum_is_its_own_canonical_form(total: list):
    size = symbolic(total)

    assert dims.parse(str(size), {"n": N, "m": M}) == size
    assert dims.substitute(size, {}) == size
    if isinstance(size, Dim):
        assert size + M * N - M * N == size


@settings(max_examples=200, deadline=None)
@given(sums())
def test_the_bounds_of_a_shortened_sum_hold_its_values(total: list):
    low, high = dims.bounds(symbolic(total))

    for n, m in itertools.product(range(1, 10), (1, 4)):
        value = plain(total, n, m)
        assert low is None or low <= value
        assert high is None or value <= high
