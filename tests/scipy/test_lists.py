"""Nested lists as operands of functions of rune.scipy, where JAX's functions accept them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError
from rune.scipy import linalg, ndimage, signal, special

MATRIX, OTHER, VECTOR = (
    [[4.0, 1.0, 0.5], [1.0, 3.0, 0.0], [0.5, 0.0, 2.0]],
    [[1, 2, 0], [0, 5, 1], [2, 0, 7]],
    [1, 2, 3],
)

# Each of operands that are lists, or what `wrap` makes of them.
CALLS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "cholesky": lambda wrap: linalg.cholesky(wrap(MATRIX)),
    "cho_factor": lambda wrap: linalg.cho_factor(wrap(MATRIX)),
    "cho_solve": lambda wrap: linalg.cho_solve((wrap(MATRIX), True), wrap(VECTOR)),
    "lu": lambda wrap: linalg.lu(wrap(MATRIX)),
    "lu_factor": lambda wrap: linalg.lu_factor(wrap(MATRIX)),
    "lu_solve": lambda wrap: linalg.lu_solve((wrap(MATRIX), rnp.array([0, 1, 2])), wrap(VECTOR)),
    "qr": lambda wrap: linalg.qr(wrap(MATRIX)),
    "svd": lambda wrap: linalg.svd(wrap(MATRIX)),
    "eigh": lambda wrap: linalg.eigh(wrap(MATRIX)),
    "eigh of two": lambda wrap: linalg.eigh(wrap(MATRIX), wrap(MATRIX)),
    "eigh_tridiagonal": lambda wrap: linalg.eigh_tridiagonal(wrap(VECTOR), wrap([1.0, 2.0]), eigvals_only=True),
    "solve_triangular": lambda wrap: linalg.solve_triangular(wrap(MATRIX), wrap(VECTOR)),
    "solve_sylvester": lambda wrap: linalg.solve_sylvester(wrap(MATRIX), wrap(MATRIX), wrap(OTHER)),
    "funm": lambda wrap: linalg.funm(wrap(MATRIX), rnp.sin),
    "polar": lambda wrap: linalg.polar(wrap(MATRIX)),
    "rsf2csf": lambda wrap: linalg.rsf2csf(wrap(MATRIX), wrap(OTHER)),
    "expm_frechet": lambda wrap: linalg.expm_frechet(wrap(MATRIX), wrap(OTHER)),
    "detrend": lambda wrap: signal.detrend(wrap(VECTOR)),
    "map_coordinates": lambda wrap: ndimage.map_coordinates(wrap(MATRIX), [wrap([0.5, 1.0]), wrap([1, 2])], 1),
    "ndtr": lambda wrap: special.ndtr(wrap([0, 0.5, 2])),
    "log_ndtr": lambda wrap: special.log_ndtr(wrap((-3.0, 0.5))),
    "spence": lambda wrap: special.spence(wrap([0.5, 2.0])),
    "expn": lambda wrap: special.expn(wrap([1, 2, 3]), 0.5),
    "hyp1f1": lambda wrap: special.hyp1f1(2, 2, wrap(VECTOR)),
}


@pytest.mark.parametrize("name", CALLS)
def test_lists_mean_the_arrays_that_are_made_of_them(name: str):
    expected, actual = (CALLS[name](wrap) for wrap in (rnp.array, lambda x: x))

    for x, y in zip(rune.tree.leaves(expected), rune.tree.leaves(actual), strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_array_equal(x, y)


def test_lists_may_hold_traced_values():
    def volume(x: Any) -> Any:
        matrix: Any = [[x, 1.0], [1.0, x]]
        return rnp.diag(linalg.cholesky(matrix)).prod()

    np.testing.assert_allclose(rune.jit(rune.grad(volume))(3.0), 3 / np.sqrt(8), rtol=1e-6)


def test_functions_refuse_lists_if_jax_does():
    refused: list[Callable[..., Any]] = [special.gamma, linalg.inv, linalg.det, linalg.expm]
    for function in refused:
        with pytest.raises(ArgumentError, match="cannot take list as an array"):
            function(MATRIX)
