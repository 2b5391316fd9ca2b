"""Routines of the CPU ask between pieces of work whether they were interrupted, and if so, stop.

tests/looking/test_stop.py sends signals; this file counts the questions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.backends.cpu import pulse, transforms, watch
from rune.backends.cpu.gemm import blocks
from tests.backends.cpu.gemm.test_gemm import library

QUESTION = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)
rng = np.random.default_rng(0)


def random(*shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def definite(*shape: int) -> np.ndarray:
    a = random(*shape, shape[-1])
    return a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.float32)


def q_times_r(a: Any) -> Any:
    q, r = rnp.linalg.qr(a)
    return q @ r


KERNEL = random(67, 512, 1, 1)

# What is computed, its oracle, its argument, and how often it asks at least: once for each matrix,
# or group of lanes, or block of columns, or block of depth. Products are of 2^28 operations and
# more, since shorter ones do not ask.
ROUTINES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], np.ndarray, int]] = {
    "product": (lambda a: a @ a.T, lambda a: a @ a.T, random(661, 1031), 1 + 3),
    "products": (lambda a: a @ a, lambda a: a @ a, random(5, 401, 401), 5 + 5),
    "product of views": (lambda a: a[:, ::2] @ a[::2], lambda a: a[:, ::2] @ a[::2], random(851, 851), 1 + 1),
    "convolution": (
        lambda a: rune.lax.conv(a, rnp.asarray(KERNEL), (1, 1), "VALID"),
        lambda a: np.einsum("ncij,kc->nkij", a, KERNEL[..., 0, 0]),
        random(5, 512, 41, 41),
        5 + 5,
    ),
    "cholesky": (rnp.linalg.cholesky, np.linalg.cholesky, definite(3, 101), 3 * 4),
    "cholesky in lanes": (rnp.linalg.cholesky, np.linalg.cholesky, definite(67, 7), 4),
    "lu": (lambda a: rnp.einsum("...ij,...jk->...ik", *rune.scipy.linalg.lu(a, permute_l=True)), lambda a: a,
           random(3, 67, 67), 3),
    "qr": (q_times_r, lambda a: a, random(3, 71, 71), 3),
    "triangular solution": (
        lambda a: rune.scipy.linalg.solve_triangular(a, rnp.ones((67, 5)), lower=True),
        lambda a: np.linalg.solve(np.tril(a), np.ones((67, 5))),
        definite(67),
        3,
    ),
    "eigenvalues": (rnp.linalg.eigvalsh, np.linalg.eigvalsh, definite(3, 67), 3),
    "singular values": (
        lambda a: rnp.linalg.svd(a, compute_uv=False),
        lambda a: np.linalg.svd(a, compute_uv=False),
        random(3, 47, 67),
        3,
    ),
    "fourier transform": (rnp.fft.fft, np.fft.fft, random(67, 240), 5),
}  # fmt: skip


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The questions of routines that are long for the time of a test."""
    questions: list[int] = []

    @QUESTION
    def is_over(watch: int) -> bool:
        questions.append(watch)
        return False

    monkeypatch.setattr(pulse, "watch_address", lambda: ctypes.cast(is_over, ctypes.c_void_p).value)
    monkeypatch.setattr(watch, "WATCHED_OPERATIONS", 1)
    monkeypatch.setattr(transforms, "BATCH_OPERATIONS", 1)
    return questions


@pytest.mark.parametrize("name", ROUTINES)
def test_a_long_routine_polls_between_pieces_of_its_work(name: str, questions: list[int]):
    function, oracle, x, least = ROUTINES[name]

    y = rune.jit(lambda x: function(x), device="cpu")(x)

    np.testing.assert_allclose(y, oracle(x), rtol=2e-3, atol=2e-3)
    assert len(questions) >= least


def test_short_routines_do_not_poll_for_interrupts(monkeypatch: pytest.MonkeyPatch):
    def address() -> int:
        raise AssertionError("a watch was made")

    monkeypatch.setattr(pulse, "watch_address", address)
    for name in (
        "cholesky",
        "cholesky in lanes",
        "lu",
        "qr",
        "triangular solution",
        "eigenvalues",
        "fourier transform",
    ):
        function, _, x, _ = ROUTINES[name]
        rune.jit(lambda x, f=function: f(x) + 3, device="cpu")(x)


# --- products, called directly ------------------------------------------------------------------


def multiplied(m: int, n: int, k: int, answers: list[bool]) -> tuple[int, np.ndarray]:
    """The number of polls of a product of ones, given the first answers, and C over NaN memory."""
    count = 0

    @QUESTION
    def is_over(_: int) -> bool:
        nonlocal count
        count += 1
        return count > len(answers) or answers[count - 1]

    words = (ctypes.c_int64 * pulse.WATCH_WORDS)(ctypes.cast(is_over, ctypes.c_void_p).value or 0, 0)
    a, b, c = np.ones((m, k), np.float32), np.ones((k, n), np.float32), np.full((m, n), np.nan, np.float32)
    kinds = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 4 + [ctypes.c_bool] * 2 + [ctypes.c_void_p]
    call = ctypes.CFUNCTYPE(None, *kinds)(library("host", dtypes.f32).address("dot"))
    call(a.ctypes.data, b.ctypes.data, c.ctypes.data, 1, m, n, k, False, False, ctypes.addressof(words))
    return count, c


def test_a_long_product_polls_once_per_block():
    pieces = library("host", dtypes.f32).shape
    m, n, k = 331, 3 * pieces.width, 2 * blocks.DEPTH + 7
    assert m * n * k >= blocks.WATCHED_OPERATIONS

    count, c = multiplied(m, n, k, [False] * 100)

    assert count == 1 + 3 * 3  # the matrix, and blocks of columns and of depth
    assert (c == k).all()


def test_a_product_that_is_over_computes_no_further_block():
    pieces = library("host", dtypes.f32).shape
    m, n, k = 331, 3 * pieces.width, 2 * blocks.DEPTH + 7

    _, no_block = multiplied(m, n, k, [])
    _, first_block = multiplied(m, n, k, [False] * 4)  # the matrix, and all of its first columns

    assert np.isnan(no_block).all()
    assert (first_block[:, : pieces.width] == k).all()
    assert np.isnan(first_block[:, pieces.width :]).all()


def test_a_short_product_does_not_poll():
    count, c = multiplied(64, 64, 64, [])

    assert count == 0
    assert (c == 64).all()
