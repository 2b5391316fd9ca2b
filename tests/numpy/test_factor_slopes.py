"""Derivatives of factorisations, against differences in f64, at every small shape.

pinv and lstsq with truncated singular values, with all of them, and below full rank; complete
factorisations of tall matrices, whose additional columns are as well determined as the first ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.arrays import array
from tests.support.close import near
from tests.support.derivatives import WHY, differences
from tests.support.sampling import one_in

Function = Callable[..., Any]
SHAPES = [(m, n) for m in range(1, 8) for n in range(1, 8)]
TALL = [(m, n) for m, n in SHAPES if m > n]
FEW = [(1, 1), (5, 3), (3, 7), (4, 4)]  # compiled, and of complex numbers
shapes = pytest.mark.parametrize("shape", one_in(2, SHAPES), ids=str)
tall = pytest.mark.parametrize("shape", TALL, ids=str)
OF_DTYPES = [*((shape, "f64") for shape in one_in(2, SHAPES)), *((shape, "c128") for shape in FEW)]
LIMIT = 0.4  # of the greatest singular value


def drawn(dtype: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng([*shape])
    real = rng.uniform(-1, 1, shape)
    return real + 1j * rng.uniform(-1, 1, shape) if dtype == "c128" else real


def with_sizes(sizes: np.ndarray, dtype: str, m: int, n: int) -> np.ndarray:
    """A matrix of these singular values."""
    u, _, vh = np.linalg.svd(drawn(dtype, m, n), full_matrices=False)
    return (u * sizes[: min(m, n)]) @ vh


def lanes(dtype: str, m: int, n: int) -> np.ndarray:
    """No truncation, values on both sides of the limit, equal values, and a rank below full."""
    distinct, equal, few = (
        [1.0, 0.3, 0.7, 0.2, 0.5, 0.1, 0.35],
        [1.0, 0.3, 1.0, 0.3, 1.0, 0.3, 1.0],
        [1.0, 0, 0.9] + 4 * [0],
    )
    all_large = np.linspace(1.0, 0.5, 7)
    return np.stack([with_sizes(np.array(sizes), dtype, m, n) for sizes in (all_large, distinct, equal, few)])


def check_slopes(function: Function, primals: list[np.ndarray], tangents: list[np.ndarray]) -> None:
    """jvp of all lanes against differences, and the cotangent against the tangent."""
    args, directions = [*map(array, primals)], [*map(array, tangents)]
    on_lanes = rune.vmap(function)

    expected = differences(on_lanes, args, directions)
    _, tangent = rune.vmap(lambda *xs: rune.jvp(function, xs[: len(args)], xs[len(args) :]))(*args, *directions)
    near(expected, tangent, relative=1e-6, absolute=1e-6, why=WHY)

    out, pull = rune.vjp(on_lanes, *args)
    weights = drawn("c128" if np.iscomplexobj(expected) else "f64", *out.shape)
    change = sum(np.sum(np.asarray(ct) * t).real for ct, t in zip(pull(array(weights)), tangents, strict=True))
    np.testing.assert_allclose(change, np.sum(weights * expected).real, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("shape", "dtype"), OF_DTYPES, ids=str)
def test_a_generalised_inverse_has_the_slope_of_what_it_computes(shape: tuple[int, int], dtype: str):
    check_slopes(lambda a: rnp.linalg.pinv(a, LIMIT), [lanes(dtype, *shape)], [drawn(dtype, 4, *shape)])


@pytest.mark.parametrize("shape", FEW, ids=str)
@pytest.mark.parametrize("dtype", ["f64", "c128"])
def test_a_compiled_generalised_inverse_has_that_slope_too(shape: tuple[int, int], dtype: str):
    a, da = array(lanes(dtype, *shape)), array(drawn(dtype, 4, *shape))

    _, tangent = rune.jit(lambda a, da: rune.jvp(lambda a: rnp.linalg.pinv(a, LIMIT), (a,), (da,)))(a, da)

    expected = differences(lambda a: rnp.linalg.pinv(a, LIMIT), [a], [da])
    near(expected, tangent, relative=1e-6, absolute=1e-6, why=WHY)


@shapes
def test_so_has_the_solution_of_least_squares(shape: tuple[int, int]):
    rows = shape[0]
    primals = [lanes("f64", *shape), drawn("f64", 4, rows)]
    tangents = [drawn("f64", 4, *shape), drawn("f64", 4, rows)[::-1]]

    check_slopes(lambda a, b: rnp.linalg.lstsq(a, b, LIMIT)[0], primals, tangents)


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (5, 3), (2, 5)], ids=str)
def test_so_has_the_slope_of_a_generalised_inverse(shape: tuple[int, int]):
    direction = array(drawn("f64", *shape))

    def slope(a: Any) -> Any:
        return rune.jvp(lambda a: rnp.linalg.pinv(a, LIMIT), (a,), (direction,))[1]

    def gradient(a: Any) -> Any:
        return rune.grad(lambda a: (rnp.linalg.pinv(a, LIMIT) * direction.T).sum())(a)

    for function in (slope, gradient):
        check_slopes(function, [lanes("f64", *shape)], [drawn("f64", 4, *shape)])


@pytest.mark.parametrize(("shape", "dtype"), [(shape, dtype) for shape, dtype in OF_DTYPES if shape in TALL], ids=str)
@pytest.mark.parametrize("part", [0, 1], ids=["Q", "R"])
def test_a_complete_factorisation_has_the_slope_of_what_it_computes(shape: tuple[int, int], dtype: str, part: int):
    def factor(a: Any) -> Any:
        return rnp.linalg.qr(a, mode="complete")[part]

    check_slopes(factor, [drawn(dtype, 3, *shape)], [drawn(dtype, 3, *shape)[::-1]])


@pytest.mark.parametrize("shape", [(3, 1), (5, 3), (7, 2)], ids=str)
def test_so_has_a_complete_slope(shape: tuple[int, int]):
    direction = array(drawn("f64", *shape))

    def slope(a: Any) -> Any:
        return rune.jvp(lambda a: rnp.linalg.qr(a, mode="complete").Q, (a,), (direction,))[1]

    check_slopes(slope, [drawn("f64", 3, *shape)], [drawn("f64", 3, *shape)[::-1]])


@tall
def test_the_projector_has_its_slope_where_a_reflection_is_the_identity(shape: tuple[int, int]):
    def projector(a: Any) -> Any:
        q = rnp.linalg.qr(a, mode="complete").Q[:, shape[1] :]
        return q @ q.T

    check_slopes(projector, [np.stack([np.eye(*shape)])], [drawn("f64", 1, *shape)])
