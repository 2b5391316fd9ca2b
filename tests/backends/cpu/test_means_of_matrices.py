"""(a + aᵀ) / 2 of eager functions by a routine: NumPy's bits at every size, for every number.

Squares of vectors overlap where the number of rows is no multiple of the lanes.
"""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.cpu import compiler
from rune.backends.cpu.linalg import means
from rune.backends.cpu.meanings import LARGE
from rune.errors import NaNError
from rune.numpy.linalg.arguments import symmetrised

FLOATS = ["float32", "float64"]
LARGEST, TINIEST = np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal


def lanes(dtype: str) -> int:
    """Numbers in a vector."""
    return compiler.machine().vector_bytes // np.dtype(dtype).itemsize


def matrices(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Some matrices."""
    return np.random.default_rng(shape[-1]).standard_normal(shape).astype(dtype)


def of_numpy(x: np.ndarray) -> np.ndarray:
    """The result of the routine, by NumPy."""
    with np.errstate(all="ignore"):
        return (x + np.swapaxes(x, -1, -2)) * x.dtype.type(0.5)


def equal_bits(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two arrays have the same bytes."""
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("stack", [(), (3,), (2, 5)])
def test_means_have_numpys_bits_at_and_past_every_number_of_lanes(dtype: str, stack: tuple[int, ...]):
    for n in (lanes(dtype), lanes(dtype) + 1, 2 * lanes(dtype) - 1, 2 * lanes(dtype), 37, 101):
        x = matrices((*stack, n, n), dtype)

        assert means.is_routine(x)
        assert equal_bits(means.means(x), of_numpy(x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_cores_share_the_means_of_a_large_matrix(dtype: str):
    x = matrices((1021, 1021), dtype)

    assert equal_bits(means.means(x), of_numpy(x))


@pytest.mark.parametrize("value", [np.inf, np.nan, -0.0, LARGEST, -LARGEST, TINIEST, 3 * TINIEST])
@pytest.mark.parametrize("other", [np.inf, -np.inf, -0.0, LARGEST, -TINIEST])
def test_means_of_hard_numbers_have_numpys_bits(value: float, other: float):
    x = matrices((37, 37), "float32")
    x[3, 20], x[20, 3], x[36, 36], x[0, 1] = value, other, value, other

    result, expected = means.means(x), of_numpy(x)
    assert equal_bits(np.isnan(result), np.isnan(expected))
    assert equal_bits(np.nan_to_num(result), np.nan_to_num(expected))


def test_views_are_read_without_a_copy():
    x = matrices((3, 80, 80), "float32")

    for view in (x[:, ::-2, ::2], x[1, 40:, 40:], x[2].T, np.broadcast_to(x[0, :, :1], (2, 80, 80))):
        assert equal_bits(means.means(view), of_numpy(view))


@pytest.mark.parametrize("dtype", ["complex64", "float16", "int32"])
def test_other_dtypes_are_numpys(dtype: str):
    assert not means.is_routine(np.zeros((64, 64), dtype))


@pytest.mark.parametrize("shape", [(0, 0), (0, 64, 64), (3, 1, 1)])
def test_empty_stacks_and_short_rows_are_numpys(shape: tuple[int, ...]):
    assert not means.is_routine(np.zeros(shape, np.float32))


@pytest.mark.parametrize("n", [31, 32, 67, 131])
@pytest.mark.parametrize("dtype", FLOATS)
def test_eager_and_compiled_functions_decompose_the_same_matrix(n: int, dtype: str):
    x = rnp.asarray(matrices((n, n), dtype))
    mean = rune.jit(lambda x: (x + x.T) * 0.5)(x)

    assert equal_bits(np.asarray(symmetrised(x)), np.asarray(mean))
    for eager, compiled in zip(rnp.linalg.eigh(x), rnp.linalg.eigh(mean, symmetrize_input=False), strict=True):
        assert equal_bits(np.asarray(eager), np.asarray(compiled))


def test_small_matrices_are_symmetrised_by_numpy():
    n = int(LARGE**0.5) - 1
    x = matrices((n, n), "float32")

    assert equal_bits(np.asarray(symmetrised(rnp.asarray(x))), of_numpy(x))


def test_the_mean_of_a_matrix_on_a_device_is_on_that_device():
    x = rune.device_put(matrices((64, 64), "float32"), rune.devices()[0])

    assert symmetrised(x).device == x.device


def test_a_sum_that_is_not_a_number_is_found_under_checks():
    x = np.eye(64, dtype=np.float32)
    x[3, 20], x[20, 3] = np.inf, -np.inf

    with rune.configure(check_nans=True), pytest.raises(NaNError):
        rnp.linalg.eigh(rnp.asarray(x))


def test_gradients_pass_through_the_mean():
    x = matrices((64, 64), "float32")

    gradient = np.asarray(rune.grad(lambda x: rnp.linalg.eigvalsh(x)[-1])(rnp.asarray(x)))
    np.testing.assert_array_equal(gradient, gradient.T)
