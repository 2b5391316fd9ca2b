"""eigh and svd without Python, by LAPACK's address or our own code: laws, and the fallbacks.

The oracle is NumPy in f64.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, ops
from rune.backends import cpu
from rune.backends.cpu import spectra
from rune.backends.cpu.linalg import lapack
from rune.backends.cpu.spectra import spectrum_of
from rune.lowering.plan import Call, all_steps
from tests.support.close import near
from tests.support.sampling import each_value

pytestmark = [
    each_value(),
    pytest.mark.skipif(lapack.address("eigh", dtypes.f32) is None, reason="this NumPy hides its LAPACK"),
]

NUMBERS = [np.float32, np.float64, np.complex64, np.complex128]
SIZES = [1, 2, 3, 5, 7, 8, 11, 16, 17, 25, 31, 33, 47, 64, 67, 97, 130]
RNG = np.random.default_rng(7)
of_numbers = pytest.mark.parametrize("dtype", NUMBERS, ids=lambda d: d.__name__)


def drawn(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    a = RNG.standard_normal(shape)
    return (a + 1j * RNG.standard_normal(shape) if np.issubdtype(dtype, np.complexfloating) else a).astype(dtype)


def hermitian(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    a = drawn((*shape, shape[-1]), dtype)
    return a + adjoint(a)


def adjoint(a: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(a, -1, -2))


def with_values(w: np.ndarray, dtype: type) -> np.ndarray:
    """A Hermitian matrix with about these eigenvalues."""
    q, _ = np.linalg.qr(drawn((len(w), len(w)), np.complex128 if np.dtype(dtype).kind == "c" else np.float64))
    a = (q * w) @ adjoint(q)
    return ((a + adjoint(a)) / 2).astype(dtype)


def compiled(function: Callable[..., Any], a: np.ndarray) -> list[np.ndarray]:
    return [np.asarray(x) for x in rune.jit(function)(rnp.asarray(a, a.dtype))]


def eigh(a: Any) -> Any:
    return ops.linalg.eigh(a, lower=True, vectors=True)


def svd(a: Any, full: bool = True) -> Any:
    return ops.linalg.svd(a, full_matrices=full, vectors=True)


def size_of(a: np.ndarray) -> float:
    """The greatest number of a matrix, as a double."""
    return float(np.max(np.abs(a.astype(np.complex128)), initial=1e-300))


def require_eigenvectors(a: np.ndarray, w: np.ndarray, v: np.ndarray) -> None:
    """A v = v w, V orthonormal, w ascending and NumPy's, all within n eps of the matrix."""
    n = a.shape[-1]
    eps, wide = float(np.finfo(a.dtype).eps), np.complex128
    size = size_of(a) * n**0.5
    a, v = a.astype(wide) / size, v.astype(wide)
    w = w.astype(np.float64) / size
    assert np.max(np.abs(a @ v - v * w[..., None, :])) < 8 * n * eps
    assert np.max(np.abs(adjoint(v) @ v - np.eye(n))) < 8 * n * eps
    assert np.max(np.abs(w - np.linalg.eigvalsh(a))) < 8 * n * eps
    assert (np.diff(w) >= 0).all()


def native(function: Callable[..., Any], a: np.ndarray) -> list[bool]:
    """For each Python function among the steps, whether native code works without it."""
    steps = all_steps(rune.explain(function)(rnp.asarray(a, a.dtype)).plan)
    return [spectrum_of(s) is not None for s in steps if isinstance(s, Call) and s.routine == "callback"]


@of_numbers
@pytest.mark.parametrize("n", SIZES)
def test_eigenvectors_are_orthonormal_and_multiplied_by_their_values(n: int, dtype: type):
    for batch in ((), (3,), (2, 5)):
        a = hermitian((*batch, n), dtype)

        w, v = compiled(eigh, a)

        require_eigenvectors(a, w, v)
        (alone,) = compiled(lambda x: ops.linalg.eigh(x, lower=True, vectors=False), a)
        near(w, alone, relative=0, absolute=4 * n * float(np.finfo(dtype).eps) * n**0.5, why="another algorithm")


@of_numbers
@pytest.mark.parametrize("lower", [True, False], ids=["lower", "upper"])
def test_only_the_named_triangle_is_read(lower: bool, dtype: type):
    a = hermitian((37,), dtype)
    unread = np.triu(np.ones((37, 37), bool), 1)
    a_other = np.where(unread if lower else unread.T, 1e3, a).astype(dtype)

    w, v = compiled(lambda x: ops.linalg.eigh(x, lower=lower, vectors=True), a_other)

    require_eigenvectors(a, w, v)


SPECTRA = {
    "clustered": np.repeat([1.0, 1.0 + 1e-5, 2.0], [20, 20, 21]),
    "graded": 10.0 ** np.linspace(-12, 0, 61),
    "of rank three": np.r_[np.zeros(58), 1.0, 2.0, -3.0],
    "graded from above": 10.0 ** np.linspace(0, -12, 61),
    "zero": np.zeros(61),
    "one": np.ones(61),
    "alternating": np.resize([1.0, -1.0], 61),
}


@of_numbers
@pytest.mark.parametrize("name", SPECTRA)
def test_hard_spectra_are_resolved(name: str, dtype: type):
    a = with_values(SPECTRA[name], dtype)

    require_eigenvectors(a, *compiled(eigh, a))
    u, s, vh = compiled(svd, a)
    n, eps = len(a), float(np.finfo(dtype).eps)
    assert np.max(np.abs((u * s) @ vh - a)) <= 30 * n * eps * size_of(a)
    assert np.max(np.abs(adjoint(u) @ u - np.eye(n))) < 30 * n * eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("place", ["subnormal", "huge"])
def test_matrices_at_the_ends_of_the_range_are_scaled(place: str, dtype: type):
    info = np.finfo(dtype)
    scale = float(info.tiny) / 16 if place == "subnormal" else float(info.max) / 64
    a = (hermitian((29,), np.float64) * scale).astype(dtype)

    w, v = compiled(eigh, a)
    u, s, vh = compiled(svd, a)

    exact = a.astype(np.float64) / scale
    # A subnormal number has an absolute error, half of the smallest number.
    error = 8 * 29 * (float(info.eps) * size_of(exact) + float(info.smallest_subnormal) / scale)
    assert np.max(np.abs(w.astype(np.float64) / scale - np.linalg.eigvalsh(exact))) < error
    assert np.max(np.abs(exact @ v - v * (w.astype(np.float64) / scale))) < error
    assert np.max(np.abs((u * (s.astype(np.float64) / scale)) @ vh - exact)) < error


@of_numbers
@pytest.mark.parametrize("full", [True, False], ids=["full", "thin"])
@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 3), (5, 4), (7, 11), (3, 17, 16), (33, 32), (2, 31, 61), (130, 97)], ids=str
)
def test_a_singular_value_decomposition_multiplies_to_the_matrix(shape: tuple[int, ...], full: bool, dtype: type):
    a = drawn(shape, dtype)
    k, eps = min(shape[-2:]), float(np.finfo(dtype).eps)

    u, s, vh = compiled(lambda x: svd(x, full), a)

    error = 20 * max(shape[-2:]) * eps
    assert np.max(np.abs((u[..., :k] * s[..., None, :]) @ vh[..., :k, :] - a)) < error * size_of(a)
    assert np.max(np.abs(adjoint(u) @ u - np.eye(u.shape[-1]))) < error
    assert np.max(np.abs(vh @ adjoint(vh) - np.eye(vh.shape[-2]))) < error
    truth = np.linalg.svd(a.astype(np.complex128), compute_uv=False)
    assert np.max(np.abs(s - truth)) < error * float(np.max(truth))
    (alone,) = compiled(lambda x: ops.linalg.svd(x, full_matrices=False, vectors=False), a)
    assert np.max(np.abs(alone - truth)) < error * float(np.max(truth))


@of_numbers
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_matrix_that_is_not_finite_gives_nan_for_itself_only(value: float, dtype: type):
    a = hermitian((4, 13), dtype)
    a[2, 9, 3] = value

    for results in (compiled(eigh, a), compiled(svd, a)):
        assert all(np.isnan(x[2]).all() for x in results)
        assert all(np.isfinite(x[[0, 1, 3]]).all() for x in results)


def shared(function: Callable[..., Any], a: np.ndarray, cores: int) -> list[np.ndarray]:
    """The results of the function's plan for a device with this many cores."""
    explanation = rune.explain(function)(rnp.asarray(a, a.dtype))
    targets, _ = cpu.probe()
    executable = cpu.open_device(replace(targets[0], cores=cores)).record(explanation.plan)
    return [np.array(x) for x in executable([np.ascontiguousarray(a)])]


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)
@pytest.mark.parametrize(("batch", "n"), [(1, 64), (2, 60), (61, 33), (67, 32), (103, 17), (1009, 7), (5, 65)])
@pytest.mark.parametrize("cores", [2, 3, 7])
def test_cores_that_share_a_batch_give_every_matrix_the_same_bits_as_alone(cores: int, batch: int, n: int, dtype: type):
    a = hermitian((batch, n), dtype)
    a[batch // 2, 0, 0] = np.nan

    results = shared(decomposed, a, cores)

    for k in {0, batch // 3, batch // 2, batch - 1}:
        assert all(map(partial(np.array_equal, equal_nan=True), [x[k] for x in results], compiled(decomposed, a[k])))
        if k != batch // 2:
            w, v, u, s, vh = (x[k] for x in results)
            require_eigenvectors(a[k], w, v)
            near(np.linalg.svd(a[k].astype(np.float64))[1], s, relative=1e3 * np.finfo(dtype).eps * s[0], why="size")
            near(a[k], (u * s) @ vh, relative=1e3 * np.finfo(dtype).eps * s[0], why="size")


def decomposed(a: Any) -> Any:
    return (*eigh(a), *svd(a))


def test_large_batches_are_shared_and_small_ones_are_not():
    batches = [(1009, 7), (10, 7), (3, 64), (100, 65)]

    assert [spectra.shares_of(spectrum(*sizes), 4) for sizes in batches] == [4, 1, 3, 1]


def spectrum(batch: int, n: int) -> lapack.Spectrum:
    return lapack.Spectrum("eigh", dtypes.f32, batch, n, n, vectors=True)


def test_operands_may_be_views_and_results_are_read_on():
    a = hermitian((40,), np.float64)
    wide = np.zeros((80, 120))
    wide[::2, ::-3] = a

    w, v, back = compiled(lambda x: (lambda w, v: (w, v, (v * w) @ v.T))(*eigh(x[::2, ::-3].T + 0)), wide)

    require_eigenvectors(a, w, v)
    assert np.max(np.abs(back - a)) < 1e-13 * 40


def test_loops_and_branches_decompose_where_they_are():
    a = hermitian((11,), np.float64)

    def rotated(x: Any) -> Any:
        def step(_: Any, y: Any) -> Any:
            w, v = eigh(y)
            return rune.lax.cond(w[0] < 0, lambda: (v * -w) @ v.T, lambda: (v * w) @ v.T)

        return [rune.lax.fori_loop(0, 3, step, x)]

    (result,) = compiled(rotated, a)

    assert np.max(np.abs(result + a)) < 1e-12
    assert native(rotated, a) == [True]


def test_a_plan_of_decompositions_calls_no_python_but_a_large_matrix_may_be_stopped():
    assert native(lambda a: (*eigh(a), *svd(a)), hermitian((spectra.MOST,), np.float32)) == [True, True]
    assert native(eigh, np.zeros((spectra.MOST + 1,) * 2, np.float32)) == [False]


def test_numpy_is_called_if_lapack_is_not_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lapack, "address", lambda routine, dtype: None)
    a = hermitian((19,), np.complex128)

    assert native(lambda x: (*eigh(x), *svd(x)), a) == [False, False]
    require_eigenvectors(a, *compiled(lambda x: eigh(x), a))


def test_threads_have_their_own_work_arrays():
    a = hermitian((60,), np.float64)
    function = rune.jit(eigh)
    operand = rnp.asarray(a, a.dtype)
    first = [np.asarray(x) for x in function(operand)]
    equal: list[bool] = []

    def run() -> None:
        for _ in range(30):
            equal.append(all(np.array_equal(x, y) for x, y in zip(first, function(operand), strict=True)))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert equal == [True] * 120
