"""Arrays that must have the same bits, and a message that says where they do not."""

from __future__ import annotations

import numpy as np


def canonical(array: np.ndarray) -> np.ndarray:
    """A copy with one NaN standing for all: IEEE 754 leaves open which it is."""
    copy = np.array(array)
    copy[np.isnan(copy)] = np.nan if copy.dtype.kind in "fc" else 0
    return copy


def bits(array: np.ndarray) -> bytes:
    """The bits of an array, with one NaN for all."""
    return canonical(array).tobytes()


def assert_same_bits(before: np.ndarray, after: np.ndarray, subject: object = "") -> None:
    """Errors: AssertionError with the number of elements that differ, and the first four."""
    kinds = [(x.shape, x.dtype) for x in (before, after)]
    assert kinds[0] == kinds[1], (subject, *kinds)
    rows = [np.frombuffer(bits(x), np.uint8).reshape(x.size, x.itemsize) for x in (before, after)]
    places = np.flatnonzero((rows[0] != rows[1]).any(axis=1))
    pairs = [(int(place), before.flat[place], after.flat[place]) for place in places[:4]]
    assert not pairs, f"{subject}: {places.size} of {before.size} elements differ, (number, before, after): {pairs}"
