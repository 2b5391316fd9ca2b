"""Factorisations by groups of threads, run by the kernel interpreter, where races are errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import rune
from rune import dtypes
from rune import numpy as rnp
from rune.lowering.codegen.target import Target
from rune.lowering.explain import Lowered
from rune.lowering.factorisations.panels import block_of
from rune.lowering.plan import Loop
from rune.lowering.stages import stages
from tests.backends import plans
from tests.backends.cuda.fake import TARGET, FakeCuda, opened
from tests.support.close import near
from tests.support.gpus import H100
from tests.support.sampling import IS_WHOLE, each_value

in_both = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])


def of_sizes(f32: Sequence[Any], f64: Sequence[Any], names: str) -> pytest.MarkDecorator:
    """Sizes at and past the blocks of each dtype: up to 64 rows of f32, 32 of f64; all of both if
    the whole is asked for."""
    if IS_WHOLE:
        f32 = f64 = sorted({*f32, *f64})
    cases = [(size, dtype) for dtype, sizes in ((np.float32, f32), (np.float64, f64)) for size in sizes]
    return pytest.mark.parametrize((names, "dtype"), cases, ids=lambda x: getattr(x, "__name__", str(x)))


def lowered(function: Callable[..., Any], *args: np.ndarray, device: Target = H100) -> Lowered:
    types = [rune.ShapeDtypeStruct(x.shape, x.dtype) for x in args]
    return stages(rune.make_program(function)(*types), device, check=True)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[np.ndarray]]:
    """The results of a function on a device whose kernels are interpreted."""

    def results(function: Callable[..., Any], *args: np.ndarray, device: Target = TARGET) -> list[np.ndarray]:
        return plans.run(opened(monkeypatch, FakeCuda(13000)), lowered(function, *args, device=device).plan, *args)

    return results


def kernels(result: Lowered) -> str:
    return " ".join(result.codes)


def positive(n: int, dtype: Any, lanes: tuple[int, ...] = ()) -> np.ndarray:
    a = np.random.default_rng(n).normal(size=(*lanes, n, n))
    return (a @ np.swapaxes(a, -1, -2) / n + np.eye(n)).astype(dtype)


def precision(dtype: Any) -> float:
    return 200 * float(np.finfo(dtype).eps)


@of_sizes((1, 33, 63, 64, 65), (17, 31, 32, 33, 97), "n")
def test_a_positive_matrix_is_the_square_of_its_factor(run: Any, n: int, dtype: Any):
    a = positive(n, dtype, (2,))

    (factor,) = run(rnp.linalg.cholesky, a)

    assert factor.dtype == dtype
    exact = np.linalg.cholesky(a.astype(np.float64))
    near(exact, factor.astype(np.float64), relative=precision(dtype), absolute=precision(dtype), why="rounding")


def test_a_matrix_that_is_not_positive_is_nan_and_no_other_lane_is(run: Any):
    places = (0, 31, 32, 63, 64, 69)  # a lane each, and one without
    a = np.stack([np.eye(70, dtype=np.float32)] * 7)
    for lane, at in enumerate(places):
        a[lane, at, at] = -1

    (factor,) = run(rnp.linalg.cholesky, a)

    for lane in range(len(places)):
        np.testing.assert_array_equal(np.isnan(factor[lane]), np.tri(70, dtype=bool))
    np.testing.assert_array_equal(factor[-1], np.eye(70))


@each_value()
@in_both
@pytest.mark.parametrize(("lower", "unit"), [(True, False), (False, False), (True, True), (False, True)])
@pytest.mark.parametrize(("n", "sides"), [(17, 1), (33, 3), (64, 65), (65, 2), (130, 1)])
def test_a_triangle_is_divided_out(run: Any, n: int, sides: int, lower: bool, unit: bool, dtype: Any):
    rng = np.random.default_rng(n)
    a = (rng.normal(size=(n, n)) / n + 2 * np.eye(n)).astype(dtype)
    b = rng.normal(size=(n, sides)).astype(dtype)

    (x,) = run(lambda a, b: rune.scipy.linalg.solve_triangular(a, b, lower=lower, unit_diagonal=unit), a, b)

    wide = a.astype(np.float64), b.astype(np.float64)
    exact = scipy.linalg.solve_triangular(*wide, lower=lower, unit_diagonal=unit)
    near(exact, x.astype(np.float64), relative=precision(dtype), absolute=precision(dtype), why="rounding")


@of_sizes([(17, 17), (20, 40), (64, 64), (65, 65)], [(33, 20), (20, 40), (33, 33), (97, 33)], "shape")
def test_rows_are_exchanged_as_lapack_does(run: Any, shape: tuple[int, int], dtype: Any):
    m, n = shape
    a = np.random.default_rng(m).normal(size=(2, m, n)).astype(dtype)

    lu, pivots, order = run(rune.lax.linalg.lu, a)

    for lane in range(2):
        exact, exact_pivots = scipy.linalg.lu_factor(a[lane].astype(np.float64))
        np.testing.assert_array_equal(pivots[lane], exact_pivots)
        scale = np.abs(exact).max()
        near(exact / scale, lu[lane] / scale, relative=0, absolute=10 * precision(dtype), why="rounding")
        unit = np.tril(lu[lane][:, : min(m, n)], -1) + np.eye(m, min(m, n))
        product = unit @ np.triu(lu[lane][: min(m, n)])
        near(a[lane][order[lane]], product, relative=0, absolute=10 * precision(dtype), why="rounding")


def test_columns_of_zeros_are_eliminated_as_by_loops(run: Any):
    a = np.random.default_rng(0).normal(size=(2, 40, 40)).astype(np.float32)
    a[0, :, 35], a[1] = 0, 0

    by_groups = run(rune.lax.linalg.lu, a)
    by_loops = run(rune.lax.linalg.lu, a, device=replace(TARGET, threads_per_workgroup=64))

    for x, y in zip(by_groups, by_loops, strict=True):
        near(y.astype(np.float64), x.astype(np.float64), relative=1e-4, absolute=1e-4, why="another order")


def test_a_nan_reaches_only_what_depends_on_it(run: Any):
    a = np.random.default_rng(0).normal(size=(40, 40)).astype(np.float32)
    a[20, 33] = np.nan

    lu, _, order = run(rune.lax.linalg.lu, a)

    at = int(np.flatnonzero(order == 20)[0])
    assert np.isfinite(lu[:, :33]).all()
    assert np.isfinite(lu[:at, 33]).all()
    assert np.isnan(lu[at:, 33]).all()


def test_factorisations_without_written_kernels_use_loops():
    n = rune.dims.symbol("n", 1, 64)
    open_size = stages(rune.make_program(rnp.linalg.cholesky)(rune.ShapeDtypeStruct((n, n), "f32")), H100)
    complex_ = lowered(rnp.linalg.cholesky, positive(40, np.complex64))
    few_threads = lowered(rnp.linalg.cholesky, positive(40, np.float32), device=replace(H100, threads_per_workgroup=64))

    assert "factor_block" in kernels(lowered(rnp.linalg.cholesky, positive(40, np.float32)))
    assert not any("factor_block" in kernels(x) for x in (open_size, complex_, few_threads))


def test_a_block_fits_the_memory_of_a_group():
    assert block_of(500, dtypes.f32, 48 << 10) == 64
    assert block_of(500, dtypes.f64, 48 << 10) == 32
    assert block_of(500, dtypes.f64, 227 << 10) == 64
    assert block_of(30, dtypes.f32, 227 << 10) == 32


def test_a_factor_costs_some_kernels_for_each_block():
    result = lowered(rnp.linalg.cholesky, positive(257, np.float32))
    (loop,) = [s for s in result.plan.steps if isinstance(s, Loop)]

    assert loop.count == 5
    assert len(loop.body.steps) <= 9
