"""The one way to compare numbers: bit for bit, or within ulps with the reason given.

same(expected, actual)                            equal bits, NaN equal to NaN
close(expected, actual, ulps=2, why="one rounding per product")
near(expected, actual, relative=1e-6, why="central differences, h = 1e-5")
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rune import dtypes, tree

_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def same(expected: Any, actual: Any) -> None:
    """Equal structure, dtypes, shapes and bits; all NaNs are one value."""
    close(expected, actual, ulps=0, why="exact")


def close(expected: Any, actual: Any, *, ulps: int, why: str) -> None:
    """Equal structure, dtypes and shapes, and elements at most `ulps` representable steps apart."""
    for path, (x, y) in _pairs(expected, actual):
        assert (x.dtype, x.shape) == (y.dtype, y.shape), path
        steps = ulp_distance(x, y)
        worst = int(steps.max(initial=0))
        assert worst <= ulps, f"{path}: {worst} ulps apart ({why})\n{x}\n{y}"


def near(expected: Any, actual: Any, *, relative: float, absolute: float | None = None, why: str) -> None:
    """Equal structure and shapes, and elements within a tolerance; for truncation errors."""
    for path, (x, y) in _pairs(expected, actual):
        assert x.shape == y.shape, (path, x.shape, y.shape)
        if x.dtype in dtypes.KEYS:
            assert (x == y).all(), f"{path}: {x} and {y} are other keys"
            continue
        limit = relative if absolute is None else absolute
        np.testing.assert_allclose(y, x, rtol=relative, atol=limit, err_msg=f"{path} ({why})")


def ulp_distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How many representable numbers lie between, +0 and -0 being two; 0 where both are NaN.

    Of finite complex numbers: the distance in the plane, in steps at the larger part of `x`.
    """
    if x.dtype in dtypes.COMPLEX:
        return _distance_in_plane(x, y)
    if x.dtype not in dtypes.FLOATING:
        return (x != y).astype(np.int64) * (1 << 31)
    both_are_nan = np.isnan(x) & np.isnan(y)
    one_is_nan = np.isnan(x) ^ np.isnan(y)
    places = _ordered(x), _ordered(y)
    # Of unsigned numbers, the larger one first: the difference of two signed ones may overflow.
    distance = (np.maximum(*places) - np.minimum(*places)).astype(np.float64)
    return np.where(both_are_nan, 0.0, np.where(one_is_nan, 2.0**62, distance))


def _distance_in_plane(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    steps = np.maximum(*(ulp_distance(part(x), part(y)) for part in (np.real, np.imag)))
    with np.errstate(all="ignore"):
        longest = np.maximum(np.abs(np.real(x)), np.abs(np.imag(x)))
        apart = np.maximum(np.abs(np.real(x - y)), np.abs(np.imag(x - y))) / np.spacing(longest)
    finite = np.isfinite(x) & np.isfinite(y) & (steps > 0)
    return np.where(finite, np.ceil(apart), steps)


def _ordered(x: np.ndarray) -> np.ndarray:
    """Bits as unsigned integers in the order of the numbers."""
    bits = np.ascontiguousarray(x).view(_BITS[x.dtype.itemsize]).reshape(x.shape)
    sign = bits.dtype.type(1 << (8 * bits.itemsize - 1))
    return np.where(bits & sign, ~bits, bits | sign)


def _pairs(expected: Any, actual: Any) -> list[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    expected_leaves, actual_leaves = tree.leaves_with_path(expected), tree.leaves_with_path(actual)
    keys = [tree.keystr(p) for p, _ in expected_leaves]
    assert keys == [tree.keystr(p) for p, _ in actual_leaves], "the trees differ"
    values = [(_host(x), _host(y)) for (_, x), (_, y) in zip(expected_leaves, actual_leaves)]
    return list(zip(keys, values))


def _host(value: Any) -> np.ndarray:
    """The elements in NumPy; keys as records, which `numpy.asarray` refuses to make of them."""
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)
