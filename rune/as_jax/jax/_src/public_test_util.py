"""`jax._src.public_test_util`: tinygp compares trees of numbers by it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jax.test_util import check_grads, check_jvp, check_vjp

from rune import absent, dtypes, tree

__all__ = ["check_close", "check_grads", "check_jvp", "check_vjp"]

__getattr__ = absent.of(__name__)

Tolerance = float | Mapping[object, float] | None
# Of one element, by the bytes of a real number.
_TOLERANCES = {1: 1e-1, 2: 1e-3, 4: 1e-6, 8: 1e-15}


def check_close(xs: object, ys: object, atol: Tolerance = None, rtol: Tolerance = None, err_msg: str = "") -> None:
    """Errors: AssertionError unless two trees have the same shapes and close numbers.

    atol, rtol: of one element, a number or one for each dtype; by default 1e-6 in 32 bits, 1e-15
                in 64, and 0 for integers. They grow with the size of the array.
    """
    tree.map(lambda x, y: _check_leaf(x, y, atol, rtol, err_msg), xs, ys)


def _check_leaf(x: object, y: object, atol: Tolerance, rtol: Tolerance, message: str) -> None:
    a, b = np.asarray(x), np.asarray(y)
    if a.shape != b.shape:
        raise AssertionError(f"{message}: shapes {list(a.shape)} and {list(b.shape)} differ")
    absolute, relative = (max(_tolerance(v.dtype, limit) for v in (a, b)) * a.size for limit in (atol, rtol))
    np.testing.assert_allclose(_wide(a), _wide(b), relative, absolute, err_msg=message)


def _tolerance(dtype: np.dtype, limit: Tolerance) -> float:
    if limit is not None and not isinstance(limit, Mapping):
        return limit
    by_dtype = {dtypes.named(k): v for k, v in (limit or {}).items()}
    if dtype not in dtypes.INEXACT:
        return by_dtype.get(dtype, 0.0)
    real = dtype.itemsize // (2 if dtype in dtypes.COMPLEX else 1)
    return by_dtype.get(dtype, 1e-2 if dtype == dtypes.bf16 else _TOLERANCES[real])


def _wide(array: np.ndarray) -> np.ndarray:
    """The array in a dtype that NumPy compares: it has no comparison for short floats."""
    return array.astype(np.float32) if array.dtype in dtypes.FLOATING and array.itemsize < 4 else array
