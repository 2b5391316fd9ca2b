"""Products of vectors and of matrices a few elements wide beside NumPy in f64, at all lengths.

Their loops are generated rather than a routine's. An element may be off by as many roundings as
the sum of its products has in one chain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import control

KINDS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
LENGTHS = (1, 2, 3, 7, 31, 33, 64, 127, 130, 257, 1_031, 4_099, 65_537)
SHAPES = [
    (n, k, few) for n in (127, 257, 4_099, 65_537) for k, few in ((1, 1), (2, 2), (3, 3), (4, 16), (5, 7), (8, 8))
]


def operands(*shapes: tuple[int, ...], kind: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(map(sum, shapes)))
    return [rng.standard_normal(shape).astype(kind) for shape in shapes]


def is_near(product: Callable[[Any, Any], Any], a: np.ndarray, b: np.ndarray) -> None:
    result = rune.jit(product)(*(rnp.asarray(x, dtype=x.dtype) for x in (a, b)))
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    # Sums of half types are rounded once; theirs and those of f32 are added up in f32.
    stored, added = (float(ml_dtypes.finfo(x).eps) for x in (a.dtype, np.promote_types(a.dtype, np.float32)))
    error = np.abs(np.asarray(result).astype(np.float64) - a64 @ b64)
    roundings = stored + added * np.sqrt(a.shape[-1])
    least = float(ml_dtypes.finfo(a.dtype).smallest_subnormal)
    assert result.dtype == a.dtype
    assert np.all(error <= roundings * (np.abs(a64) @ np.abs(b64)) + least)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_thin_matrices_are_multiplied_as_numpy_does(shape: tuple[int, int, int], kind: str):
    n, k, few = shape
    if kind in ("f16", "bf16") and n > 257:
        pytest.skip("long half types say nothing more")
    a, b = operands((n, k), (k, few), kind=KINDS[kind])

    is_near(rnp.matmul, a, b)
    is_near(rnp.matmul, b.T.copy(), a.T.copy())


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("depth", LENGTHS)
def test_a_matrix_and_a_vector_are_multiplied_as_numpy_does(depth: int, kind: str):
    rows = 1 + 70_000 // depth
    a, x = operands((rows, depth), (depth,), kind=KINDS[kind])

    is_near(rnp.matmul, a, x)
    is_near(rnp.matmul, x, a.T.copy())


@pytest.mark.parametrize("depth", [1_025, 4_099, 65_535, 65_536])
def test_a_product_down_columns_of_equal_numbers_keeps_their_digits(depth: int):
    a, x = np.full((depth, 7), 0.1, np.float32), np.full(depth, 0.3, np.float32)

    products = rune.jit(rnp.matmul)(x, a)

    np.testing.assert_allclose(np.asarray(products), x.astype(np.float64) @ a, rtol=4e-6)


def test_arithmetic_before_a_loop_has_the_values_of_its_steps():
    (w, x), steps = operands((130, 130), (130,), kind=np.float32), 5

    def run(w: Any, x: Any) -> Any:
        return control.fori_loop(0, steps, lambda i, x: (w * 0.07 + 0.001) @ x + (w[0] * 2.0 + 1.0) * w[1], x)

    exact = x.astype(np.float64)
    for _ in range(steps):
        exact = (w.astype(np.float64) * 0.07 + 0.001) @ exact + (w[0] * 2.0 + 1.0) * w[1]
    np.testing.assert_allclose(np.asarray(rune.jit(run)(w, x)), exact, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("count", [2, 8, 9, 10, 13, 33])
def test_many_pieces_are_joined_in_their_order(count: int):
    lengths = np.random.default_rng(count).choice([1, 2, 3, 5, 8, 130, 257], count)
    (x,) = operands((257,), kind=np.float32)
    expected = np.concatenate([x[:n] * np.float32(k) for k, n in enumerate(lengths)])

    joined = rune.jit(lambda x: rnp.concatenate([x[:n] * np.float32(k) for k, n in enumerate(lengths)]))(x)

    np.testing.assert_array_equal(np.asarray(joined), expected)
