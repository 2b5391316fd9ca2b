"""Eager transforms of complex rows: one routine for all lengths that it takes, NumPy's for others.

The oracle is NumPy's transform in f64.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.cpu import compiler, meanings
from rune.backends.cpu.fft import rows, stage_lists
from rune.backends.cpu.fft.conventions import IN_PARTS
from rune.core.types import ArrayType
from rune.ops.fourier import fft
from tests.backends.cpu.test_transforms import ERRORS, distance, drawn, exact
from tests.support.sampling import each_value

pytestmark = each_value()

INVERSE = {"fft": False, "ifft": True}
LIMIT = meanings.LARGE
# The limit and its neighbours, a prime, each radix first and last, factors that differ.
LENGTHS = [LIMIT - 1, LIMIT, LIMIT + 1, 1031, 1080, 1250, 2048, 3**7, 5**5, 4096, 6000, 16_384, 30_720, 65_536, 131_072]


def is_by_the_routine(n: int, dtype: type = np.complex64, **params: object) -> bool:
    options = {"kind": "fft", "axes": (0,), "odd": False, **params}
    run = meanings.meaning_of(fft, (ArrayType((n,), np.dtype(dtype)),), options)
    return isinstance(run, partial) and run.args[:1] != () and run.args[0].func is rows.call_for


@pytest.mark.parametrize("name", INVERSE)
@pytest.mark.parametrize("dtype", ERRORS, ids=lambda d: d.__name__)
@pytest.mark.parametrize("n", LENGTHS)
def test_a_row_of_any_length_is_transformed_as_numpy_transforms_it(n: int, dtype: type, name: str):
    x = drawn((n,), dtype)

    result = np.asarray(getattr(rnp.fft, name)(exact(x)))

    assert result.dtype == dtype
    assert distance(result, getattr(np.fft, name)(x.astype(np.complex128))) < 2 * ERRORS[dtype]


@pytest.mark.parametrize("shape", [(1, 1024), (3, 1024), (2, 3, 5, 1200), (17, 4096)], ids=str)
@pytest.mark.parametrize("dtype", ERRORS, ids=lambda d: d.__name__)
def test_each_row_of_an_array_has_the_same_bits_as_alone(shape: tuple[int, ...], dtype: type):
    x = drawn(shape, dtype)

    together = np.asarray(rnp.fft.fft(exact(x)))

    alone = [np.asarray(rnp.fft.fft(exact(row))) for row in x.reshape(-1, shape[-1])]
    assert np.array_equal(together.reshape(-1, shape[-1]), np.stack(alone))


@pytest.mark.parametrize("view", [lambda x: x[::2], lambda x: x[::-1], lambda x: x.reshape(2, -1).T.reshape(2, -1)])
def test_rows_out_of_order_are_copied_first(view):
    x = view(drawn((8192,)))

    assert distance(rnp.fft.fft(exact(x)), np.fft.fft(x.astype(np.complex128))) < 5e-7


def test_the_operand_stays_unchanged():
    x = drawn((2048,))
    operand = exact(x)

    rnp.fft.ifft(operand)

    assert np.array_equal(np.asarray(operand), x)


@pytest.mark.parametrize(("n", "is_taken"), [(LIMIT - 1, False), (LIMIT, True), (1031, True), (7 * 256, True)])
def test_long_rows_go_by_the_routine_and_short_ones_by_numpy(n: int, is_taken: bool):
    assert is_by_the_routine(n) is is_taken


def test_a_nan_affects_only_its_own_row():
    x = drawn((3, 2048))
    x[1, 77] = np.nan

    spectrum = np.asarray(rnp.fft.fft(exact(x)))

    assert np.isnan(spectrum[1]).all()
    assert np.isfinite(spectrum[[0, 2]]).all()


def test_several_threads_transform_rows_of_one_length_at_once():
    rows_of = [drawn((1, n)) for n in (8192,) * 8]
    expected = np.asarray(rnp.fft.fft(exact(rows_of[0])))

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda x: np.asarray(rnp.fft.fft(exact(x))), rows_of))

    assert all(np.array_equal(result, expected) for result in results)


def test_an_eager_gradient_through_a_transform_is_its_transposition():
    x = drawn((2048,), np.complex128)
    weights = drawn((2048,), np.complex128)

    _, pull = rune.vjp(rnp.fft.fft, exact(x))
    (cotangent,) = pull(exact(weights))

    assert distance(cotangent, np.fft.fft(weights)) < 2e-15


def test_code_that_two_threads_make_at_once_is_kept_for_both():
    """A cache remembers one of them; the address of the other is among the words of a length."""
    first, second = (stage_lists._code.__wrapped__(np.dtype(np.float32), "turned4", IN_PARTS) for _ in range(2))

    assert first is not second
    assert all(any(code is lasting for lasting in compiler.LASTING) for code in (first, second))


def test_threads_that_begin_together_transform_lengths_that_none_has_met():
    xs = [drawn((n,), np.complex64) for n in (1024, 1125, 2187, 3125, 6000, 16_384)]
    for function in (stage_lists._code, stage_lists.stages_of, rows.length_of, rows.call_for, rows._code):
        function.cache_clear()
    start = threading.Barrier(6)

    def transformed(_: int) -> list[np.ndarray]:
        start.wait()
        return [np.asarray(rnp.fft.fft(exact(x))) for x in xs]

    with ThreadPoolExecutor(6) as pool:
        for results in pool.map(transformed, range(6)):
            for x, result in zip(xs, results, strict=True):
                assert distance(result, np.fft.fft(x.astype(np.complex128))) < 2 * ERRORS[np.complex64]
