"""packbits and unpackbits of arrays that are too long to be specialised.

NumPy computes them, except for packing 2**18 or more bools, for which there is a routine.
"""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError, AxisError, DtypeError
from rune.numpy.composites import LARGE
from rune.numpy.whole_numbers import LONG

SHAPES = [(LONG - 1,), (LONG,), (LONG + 7,), (3, 5, LONG // 8 + 3), (40_009, 1), (0, 5)]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Some integers, half of them zero."""
    generator = np.random.default_rng(len(shape))
    return (generator.integers(0, 200, shape) * generator.integers(0, 2, shape)).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("bitorder", ["big", "little"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32"])
def test_the_bits_of_truths_are_those_of_numpy(shape: tuple[int, ...], axis: int | None, bitorder: str, dtype: str):
    truths = numbers(shape, dtype)
    order = "big" if bitorder == "big" else "little"

    packed = rnp.packbits(rnp.asarray(truths), axis, bitorder)
    assert packed.dtype == np.uint8
    np.testing.assert_array_equal(np.asarray(packed), np.packbits(truths, axis, bitorder=order))


# If an axis has no bits, NumPy fills up to `count` with uninitialised memory.
@pytest.mark.parametrize("shape", SHAPES[:-1])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("count", [None, 5, -3])
@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_the_truths_of_bits_are_those_of_numpy(
    shape: tuple[int, ...], axis: int | None, count: int | None, bitorder: str
):
    packed = numbers(shape, "uint8")
    order = "big" if bitorder == "big" else "little"
    truths = rnp.unpackbits(rnp.asarray(packed), axis, count, bitorder)
    assert truths.dtype == np.uint8
    np.testing.assert_array_equal(np.asarray(truths), np.unpackbits(packed, axis, count, order))


@pytest.mark.parametrize("shape", [(LARGE,), (LARGE + 1,), (LARGE + 63,), (3, LARGE // 2), (3, 5, 20_001), (2, 0)])
@pytest.mark.parametrize("bitorder", ["big", "little"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int32"])
def test_bits_of_words_and_of_what_fills_no_word_are_those_of_numpy(shape: tuple[int, ...], bitorder: str, dtype: str):
    order = "big" if bitorder == "big" else "little"
    truths = numbers(shape, dtype)

    for operand in (truths, truths[..., ::-1]):
        for axis in (None, len(shape) - 1):
            packed = np.asarray(rnp.packbits(rnp.asarray(operand), axis, bitorder))
            np.testing.assert_array_equal(packed, np.packbits(operand, axis, bitorder=order))


def test_packed_bits_of_an_array_on_a_device_are_on_that_device():
    truths = rune.device_put(np.ones(LONG, bool), rune.devices()[0])

    assert rnp.packbits(truths).device == truths.device
    assert rnp.unpackbits(rnp.packbits(truths)).device == truths.device


@pytest.mark.parametrize("function", [rnp.packbits, rnp.unpackbits])
def test_long_arrays_are_refused_like_short_arrays(function):
    bits = rnp.zeros(LONG, "uint8")

    with pytest.raises(ArgumentError, match="bitorder"):
        function(bits, bitorder="middle")
    with pytest.raises(DtypeError):
        function(rnp.zeros(LONG, "float32"))
    with pytest.raises(AxisError):
        function(bits, axis=1)
