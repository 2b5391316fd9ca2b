"""`x.view(dtype)` reads the bytes of x as NumPy does, for every pair of dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, lax
from rune.errors import DtypeError

DTYPES = [*sorted(dtypes.NUMERIC - {dtypes.i4, dtypes.u4}, key=str), dtypes.bool_]


def random_bytes(dtype: np.dtype, *, columns: int) -> np.ndarray:
    """Rows of every byte in `dtype`; bools hold 0 or 1 alone."""
    content = np.random.default_rng(7).integers(0, 256, (3, columns * 16), np.uint8)
    return (content > 127) if dtype == dtypes.bool_ else content.view(dtype)


def bits(x: Any) -> np.ndarray:
    """The bytes of an array, those of NaN too."""
    return np.ascontiguousarray(x).view(np.uint8)


@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_bytes_are_read_as_numpy_reads_them(source: np.dtype):
    with rune.enable_x64():
        for columns in (1, 7):
            x = random_bytes(source, columns=columns)
            for target in DTYPES:
                expected = x.view(np.uint8) != 0 if target == dtypes.bool_ else x.view(target)
                for view in (lambda v, d=target: v.view(d), rune.jit(lambda v, d=target: v.view(d))):
                    actual = view(rnp.asarray(x))
                    assert (actual.dtype, actual.shape) == (target, expected.shape)
                    np.testing.assert_array_equal(bits(actual), bits(expected), f"{source} as {target}")


def test_a_bool_is_bitcast_to_nothing_but_itself():
    truths = rnp.array([True, False, True])
    np.testing.assert_array_equal(lax.bitcast_convert_type(truths, bool), [True, False, True])
    with pytest.raises(DtypeError, match="bitcast"):
        lax.bitcast_convert_type(truths, "int8")
