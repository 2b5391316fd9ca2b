"""Eager routines whose units cores share: large transforms, and packed bits.

A part that is too small to be shared is the oracle of bits, and NumPy that of values.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import rune.numpy as rnp
from rune.backends.cpu.routine_calls import Work
from tests.backends.cpu.test_transforms import drawn, exact
from tests.backends.cpu.test_transforms_of_arrays import real
from tests.support.close import same

LARGE = 250_000  # operations: enough for cores to share them
PART = 37  # rows or columns, which one core transforms
KINDS = ["fft", "ifft", "rfft", "irfft"]


def operand(shape: tuple[int, ...], kind: str) -> np.ndarray:
    return real(shape, np.complex64) if kind == "rfft" else drawn(shape, np.complex64)


def in_parts(x: np.ndarray, kind: str, axis: int) -> np.ndarray:
    """The transform along an axis of a matrix, by parts of the other axis."""
    other = 1 + axis  # -1 is the last axis of two, and the other one the first
    cuts = np.split(x, range(PART, x.shape[other], PART), axis=other)
    return np.concatenate([transformed(np.ascontiguousarray(part), kind, axis) for part in cuts], axis=other)


def transformed(x: np.ndarray, kind: str, axis: int) -> np.ndarray:
    return np.asarray(getattr(rnp.fft, kind)(exact(x), axis=axis))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(257, 1025), (131, 2049), (4099, 65)], ids=str)
def test_rows_that_cores_share_have_the_bits_of_those_of_one_core(shape: tuple[int, int], kind: str):
    # The spectrum of an even number of reals has an odd length.
    columns = shape[1] if kind == "irfft" else shape[1] - 1
    x = operand((shape[0], columns), kind)

    same(in_parts(x, kind, -1), transformed(x, kind, -1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(257, 1021), (2049, 67)], ids=str)
def test_columns_that_cores_share_have_the_bits_of_those_of_one_core(shape: tuple[int, int], kind: str):
    rows = shape[0] if kind == "irfft" else shape[0] - 1
    x = operand((rows, shape[1]), kind)

    same(in_parts(x, kind, 0), transformed(x, kind, 0))


def test_threads_that_share_cores_at_the_same_time_do_not_mix_their_work_memory():
    arrays = [operand((257, 1024), "fft") * np.float32(k + 1) for k in range(4)]
    results = [transformed(x, "fft", -1) for x in arrays]

    def again(number: int) -> list[np.ndarray]:
        return [transformed(arrays[number], "fft", -1) for _ in range(20)]

    with ThreadPoolExecutor(4) as pool:
        for number, repeated in enumerate(pool.map(again, range(4))):
            for result in repeated:
                same(results[number], result)


@pytest.mark.parametrize("order", ["big", "little"])
def test_bits_that_cores_share_are_packed_as_numpy_packs_them(order: Any):
    truths = np.random.default_rng(5).random(3_000_017) > 0.5

    same(np.packbits(truths, bitorder=order), np.asarray(rnp.packbits(exact(truths), bitorder=order)))


@pytest.mark.parametrize(
    ("units", "cores", "share"), [(100, 1, 100), (100, 2, 50), (101, 2, 51), (3, 16, 1), (1, 16, 1)]
)
def test_each_core_takes_one_share_of_much_work(units: int, cores: int, share: int):
    assert Work(units, LARGE, 0).units_of_share(cores) == share


def test_little_work_and_none_stay_with_one_core():
    assert Work(100, LARGE - 1, 0).units_of_share(8) == 100
    assert Work(0, 0, 0).units_of_share(8) == 1
