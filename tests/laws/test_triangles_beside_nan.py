"""Triangular systems with numbers that are not finite: which results they affect.

The oracle is substitution in NumPy: row i of a lower triangle's solution depends on no later row.
RUNE_TEST_WHOLE=1 tries every size, and all forms of a system on every executor.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import near
from tests.support.sampling import IS_WHOLE, each_value, in_turn, without

SIZES = range(1, 131) if IS_WHOLE else (1, 3, 5, 31, 33, 65, 97, 130)
DEVICES = [d.name for d in rune.devices() if d.target.backend not in ("null", "reference")]
WAYS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: f,
    **{name: lambda f, name=name: rune.jit(f, device=name) for name in DEVICES},
}
# Whether a triangle is lower, transposed, and has a diagonal of ones; each half has every pair.
FORMS = list(itertools.product((False, True), repeat=3))
HALVES = [[form for form in FORMS if sum(form) % 2 == parity] for parity in (0, 1)]
ONE_BLOCK = 33  # beyond, a form takes a driver a second and more
KINDS = ("float32", "float64", "complex64")
in_every_way = pytest.mark.parametrize("way", WAYS)
kinds = pytest.mark.parametrize("kind", KINDS)
but_f64_in_wgsl = without(lambda way, kind, **_: way.startswith("wgpu") and kind == "float64")
ERRORS = {"float32": 1e-5, "float64": 1e-13, "complex64": 1e-5}


def forms(n: int, way: str, kind: str) -> Sequence[tuple[bool, ...]]:
    """All of them on the CPU. Where each is compiled, a half at three sizes, the other at the next
    three: an executor has every third size in turn, and so both halves. Of several blocks one form
    and its opposite: the executors have all of them among themselves."""
    if IS_WHOLE or way == "eager" or way.startswith("cpu"):
        return FORMS
    if n <= ONE_BLOCK:
        return HALVES[SIZES.index(n) // 3 % 2]
    place = (SIZES.index(n) + 2 * KINDS.index(kind)) % 4
    return FORMS[place], FORMS[-1 - place]


def substituted(a: np.ndarray, b: np.ndarray, lower: bool, unit: bool) -> np.ndarray:
    """The solution, unknown after unknown, in complex numbers or reals of f64."""
    n = len(a)
    x = b.astype(np.result_type(b, np.float64))
    order = list(range(n) if lower else reversed(range(n)))
    with np.errstate(all="ignore"):
        for place, i in enumerate(order):
            for j in order[:place]:
                x[i] -= a[i, j] * x[j]
            if not unit:
                x[i] /= a[i, i].astype(x.dtype)
    return x


def triangle(n: int, kind: str) -> np.ndarray:
    """A well-conditioned matrix."""
    rng = np.random.default_rng(n)
    a = rng.normal(size=(n, n)) / (4 * n**0.5) + 2 * np.eye(n)
    return (a + (0.1j * rng.normal(size=(n, n)) / n**0.5 if kind == "complex64" else 0)).astype(kind)


def unread(a: np.ndarray, lower: bool, unit: bool) -> np.ndarray:
    """The matrix with NaN wherever it must not be read."""
    inside = np.tril(np.ones_like(a, bool), -1 if unit else 0)
    return np.where(inside if lower else inside.T, a, np.nan).astype(a.dtype)


def require_agreement(actual: object, expected: np.ndarray, kind: str) -> None:
    """The same elements are finite, and have the same values."""
    x, usual = np.asarray(actual), np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(x), usual)
    near(
        expected[usual],
        x[usual],
        relative=ERRORS[kind],
        absolute=ERRORS[kind],
        why="well-conditioned systems in this dtype",
    )


@each_value()
@in_turn("n")
@but_f64_in_wgsl
@kinds
@in_every_way
@pytest.mark.parametrize("n", SIZES)
def test_a_number_that_is_not_finite_affects_only_what_depends_on_it(n: int, way: str, kind: str):
    rng, a = np.random.default_rng(n), triangle(n, kind)

    for lower, is_transposed, unit in forms(n, way, kind):
        count = int(rng.choice([1, 2, 9]))
        b = rng.normal(size=(n, count)).astype(kind)
        b[rng.integers(n), rng.integers(count)] = rng.choice([np.nan, np.inf, -np.inf])
        matrix = unread(a, lower, unit)

        def solve(a: Any, b: Any, lower: bool = lower, is_transposed: bool = is_transposed, unit: bool = unit) -> Any:
            solve = rune.scipy.linalg.solve_triangular
            return solve(a, b, trans=int(is_transposed), lower=lower, unit_diagonal=unit)

        x = WAYS[way](solve)(rnp.asarray(matrix, kind), rnp.asarray(b, kind))

        read, is_lower = (a.T, not lower) if is_transposed else (a, lower)
        require_agreement(x, substituted(read, b, is_lower, unit), kind)


@in_turn("kind")
@kinds
@in_every_way
@but_f64_in_wgsl
def test_every_row_is_tried_in_the_blocks_of_one_matrix(way: str, kind: str):
    """A column for each row that is not finite."""
    n = 70
    a, b = triangle(n, kind), np.ones((n, n), kind)
    np.fill_diagonal(b, np.inf)

    x = WAYS[way](lambda a, b: rune.scipy.linalg.solve_triangular(a, b, lower=True))(
        rnp.asarray(unread(a, True, False), kind), rnp.asarray(b, kind)
    )

    require_agreement(x, substituted(a, b, True, False), kind)


@each_value()
@pytest.mark.parametrize("kind", ["float32", "complex64"])
@pytest.mark.parametrize("size", [1e-40, 3e38, np.inf], ids=["subnormal", "greatest", "infinite"])
@pytest.mark.parametrize("way", [w for w in WAYS if w == "eager" or w.startswith(("cpu", "opencl"))])
@pytest.mark.parametrize(("n", "count"), [(5, 3), (33, 3), (70, 1), (130, 9)])
def test_a_diagonal_without_a_reciprocal_divides(n: int, count: int, way: str, size: float, kind: str):
    """Where numbers below the normal range are kept."""
    a, b, middle = np.eye(n, dtype=kind), np.ones((n, count), kind), n // 2
    a[middle, middle] = size * (1 + 1j) if kind == "complex64" and size < 1 else size
    a[-1, 0] = 0.5
    b[middle] = 1.0 if size == np.inf else size / 10

    x = np.asarray(
        WAYS[way](lambda a, b: rune.scipy.linalg.solve_triangular(a, b, lower=True))(
            rnp.asarray(a, kind), rnp.asarray(b, kind)
        )
    )

    expected = substituted(a, b, True, False)
    near(expected, x, relative=1e-4, why="a subnormal number has few digits")
