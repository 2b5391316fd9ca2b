"""Half types and 8-bit floats: sums and products are computed in f32 and rounded once.

On every executor. A sum that is rounded after each step would be wrong by many units in the last
place, or stop growing; a sum that is rounded once is next to the exact sum. Reductions, running
sums, means, dots; then dots with a result of another dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.backends import Device
from tests.support.arrays import array
from tests.support.close import close, near
from tests.support.sampling import in_turn

pytestmark = in_turn()

COMPUTING = [d for d in rune.devices() if d.target.backend != "null"]
NARROW = (dtypes.bf16, dtypes.f16, dtypes.f8_e4m3, dtypes.f8_e5m2)
ONCE = "f32 all the way, then one rounding"
Run = Callable[[Callable[..., Any], tuple[Any, ...]], np.ndarray]


def eagerly(function: Callable[..., Any], args: tuple[Any, ...]) -> np.ndarray:
    return np.asarray(function(*args))


def on(device: Device) -> Run:
    return lambda f, args: np.asarray(rune.jit(f, device=device.name)(*args))


everywhere = pytest.mark.parametrize(
    "run", [eagerly, *map(on, COMPUTING)], ids=["eagerly", *(d.name for d in COMPUTING)]
)
each_dtype = pytest.mark.parametrize("dtype", NARROW, ids=dtypes.short)


def drawn(dtype: np.dtype, *shape: int, seed: int = 0) -> np.ndarray:
    """Positive numbers, so that no sum cancels."""
    return np.random.default_rng(seed).uniform(0.5, 1.0, shape).astype(dtype)


def exact(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


@everywhere
@each_dtype
def test_a_sum_is_rounded_once(dtype: np.dtype, run: Run):
    x = drawn(dtype, 3, 250)

    close(exact(x).sum(1).astype(dtype), run(lambda x: rnp.sum(x, axis=1), (array(x),)), ulps=1, why=ONCE)


@everywhere
@pytest.mark.parametrize("dtype", NARROW[:2], ids=dtypes.short)
def test_a_sum_in_two_steps_stays_in_f32_between_them(dtype: np.dtype, run: Run):
    x = np.full(1 << 17, 0.25, dtype)
    x[:100] = 0.5

    expected = np.asarray(exact(x).sum()).astype(np.float32).astype(dtype)
    close(expected, run(rnp.sum, (array(x),)), ulps=0, why="whole numbers are exact in f32")


@everywhere
@each_dtype
def test_a_product_is_rounded_once(dtype: np.dtype, run: Run):
    x = (1 + drawn(dtype, 4, 12).astype(np.float32) / 8).astype(dtype)

    close(exact(x).prod(1).astype(dtype), run(lambda x: rnp.prod(x, axis=1), (array(x),)), ulps=1, why=ONCE)


@everywhere
@each_dtype
def test_a_running_sum_is_rounded_only_where_it_is_written(dtype: np.dtype, run: Run):
    x = drawn(dtype, 2, 200)

    close(exact(x).cumsum(1).astype(dtype), run(lambda x: rnp.cumsum(x, axis=1), (array(x),)), ulps=1, why=ONCE)


@everywhere
def test_a_mean_is_finite_even_if_the_sum_overflows_the_dtype(run: Run):
    x = np.full(200, 1000.0, np.float16)

    assert run(rnp.mean, (array(x),)) == 1000
    assert np.isinf(run(rnp.sum, (array(x),)))


@everywhere
@each_dtype
def test_a_dot_is_rounded_once(dtype: np.dtype, run: Run):
    a, b = drawn(dtype, 3, 100), drawn(dtype, 100, 4, seed=1)

    with np.errstate(over="ignore"):
        expected = (exact(a) @ exact(b)).astype(dtype)
    close(expected, run(rnp.matmul, (array(a), array(b))), ulps=1, why=ONCE)


@everywhere
@pytest.mark.parametrize("rows", [3, 64])
@pytest.mark.parametrize("dtype", NARROW[:2], ids=dtypes.short)
def test_large_dots_are_rounded_once_by_every_routine(dtype: np.dtype, rows: int, run: Run):
    a, b = drawn(dtype, rows, 128), drawn(dtype, 128, 64, seed=1)

    close((exact(a) @ exact(b)).astype(dtype), run(rnp.matmul, (array(a), array(b))), ulps=1, why=ONCE)


@everywhere
@each_dtype
def test_a_dot_gives_the_element_type_that_is_preferred(dtype: np.dtype, run: Run):
    a, b = drawn(dtype, 3, 100), drawn(dtype, 100, 4, seed=1)

    product = run(lambda a, b: rnp.matmul(a, b, preferred_element_type="f32"), (array(a), array(b)))

    assert product.dtype == dtypes.f32
    near(exact(a) @ exact(b), product, relative=1e-6, why="sums of 100 in f32")


@everywhere
def test_a_dot_of_small_integers_is_exact_where_i32_is_preferred(run: Run):
    a = np.random.default_rng(0).integers(-128, 128, (4, 300)).astype(np.int8)

    product = run(lambda a: rnp.matmul(a, a.T, preferred_element_type="i32"), (array(a),))

    assert (product == a.astype(np.int64) @ a.T.astype(np.int64)).all()


def test_a_preferred_element_type_adds_no_kernel():
    a, b = array(drawn(dtypes.bf16, 4, 100)), array(drawn(dtypes.bf16, 100, 8))

    dot = rune.explain(lambda a, b: rnp.matmul(a, b, preferred_element_type="f32"))

    assert (dot(a, b).costs.launches, dot(a, b).costs.calls) == (1, 0)


@pytest.mark.parametrize(
    ("dtype", "bits", "eps", "largest", "tiny"),
    [
        ("bf16", 16, 2**-7, 3.3895313892515355e38, 2**-126),
        ("f16", 16, 2**-10, 65504, 2**-14),
        ("f8_e4m3", 8, 2**-3, 448, 2**-6),
        ("f8_e5m2", 8, 2**-2, 57344, 2**-14),
        ("f32", 32, 2**-23, 3.4028234663852886e38, 2**-126),
    ],
)
def test_finfo_describes_the_narrow_formats(dtype: str, bits: int, eps: float, largest: float, tiny: float):
    info = rnp.finfo(dtype)

    assert (info.bits, float(info.eps)) == (bits, eps)
    assert (float(info.max), float(info.min), float(info.tiny)) == (largest, -largest, tiny)


@pytest.mark.parametrize(("dtype", "low", "high"), [("int4", -8, 7), ("uint4", 0, 15)])
def test_iinfo_describes_the_narrow_integers(dtype: str, low: int, high: int):
    info = rnp.iinfo(dtype)

    assert (int(info.min), int(info.max)) == (low, high)
