"""Products with repeated rows compute them once, and give the values of the full product.

The gradient of a sum over a convolution or a layer contains such products. The oracle is NumPy.
"""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax

ROUNDED = 1e-12  # relative, of sums of some hundred doubles


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape)


def convolution(x: np.ndarray, w: np.ndarray, stride: int, dilation: int, low: int, high: int) -> np.ndarray:
    """[n, c, s], [o, c, k] -> [n, o, t], by its definition."""
    signal = np.pad(x, ((0, 0), (0, 0), (low, high)))
    count = (signal.shape[2] - (w.shape[2] - 1) * dilation - 1) // stride + 1
    starts = np.arange(count)[:, None] * stride + np.arange(w.shape[2]) * dilation
    return np.einsum("nctk,ock->not", signal[:, :, starts], w)


def derivatives(x: np.ndarray, w: np.ndarray, *window: int) -> list[np.ndarray]:
    """Gradients of the sum of the convolution, which is linear in each operand: values at units."""
    gradients = []
    for number, operand in enumerate((x, w)):
        gradient = np.empty_like(operand)
        for place in np.ndindex(operand.shape):
            unit = np.zeros_like(operand)
            unit[place] = 1
            gradient[place] = convolution(*((unit, w) if number == 0 else (x, unit)), *window).sum()
        gradients.append(gradient)
    return gradients


@pytest.mark.parametrize("window", [(1, 1, 1, 1), (2, 1, 0, 1), (1, 2, 2, 3), (3, 1, 0, 0)], ids=str)
@pytest.mark.parametrize(("n", "c", "o", "size"), [(3, 2, 5, 11), (1, 3, 7, 7), (2, 1, 1, 9)])
def test_gradients_of_a_sum_of_a_convolution_are_sums_of_windows(
    n: int, c: int, o: int, size: int, window: tuple[int, int, int, int]
):
    x, w = drawn(n, c, size), drawn(o, c, 3)
    stride, dilation, low, high = window

    def total(x: rune.Array, w: rune.Array) -> rune.Array:
        y = lax.conv_general_dilated(x, w, (stride,), ((low, high),), rhs_dilation=(dilation,))
        return rnp.sum(y)

    gradients = rune.jit(rune.grad(total, argnums=(0, 1)))(rnp.asarray(x, "f64"), rnp.asarray(w, "f64"))

    for actual, expected in zip(gradients, derivatives(x, w, *window), strict=True):
        np.testing.assert_allclose(np.asarray(actual), expected, rtol=ROUNDED, atol=1e-13)


SIZES = [(7, 5, 1), (64, 129, 17), (3, 1, 2), (1, 4, 3), (0, 3, 2), (5, 0, 2)]


@pytest.mark.parametrize(("rows", "inner", "columns"), SIZES)
def test_a_product_with_repeated_rows_agrees_with_numpy(rows: int, inner: int, columns: int):
    row, b = drawn(inner), drawn(inner, columns)

    product = rune.jit(lambda row, b: rnp.broadcast_to(row, (rows, inner)) @ b)(
        rnp.asarray(row, "f64"), rnp.asarray(b, "f64")
    )

    np.testing.assert_allclose(np.asarray(product), np.broadcast_to(row, (rows, inner)) @ b, rtol=ROUNDED, atol=1e-13)


@pytest.mark.parametrize("special", [np.inf, np.nan])
def test_a_factor_that_is_not_finite_reaches_the_same_results_as_in_the_whole_product(special: float):
    row, b = np.array([1.0, 0.0, -2.0]), drawn(3, 4)
    b[1, 2] = special  # times zero

    product = rune.jit(lambda row, b: rnp.broadcast_to(row, (5, 3)) @ b)(rnp.asarray(row), rnp.asarray(b))

    with np.errstate(invalid="ignore"):
        expected = np.broadcast_to(row, (5, 3)) @ b
    assert np.array_equal(np.isnan(product), np.isnan(expected))
