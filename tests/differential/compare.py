"""How rune's answer differs from JAX's, in a few words; "" where it does not.

Numbers agree if they are within 256 units in the last place of the expected one, or within 64 units
of the largest number of ordinary size in the same answer, since sums are taken in another order.
Derivatives are of sums of about 1 that may cancel, so they agree within 64 units of 1, too. NaN and
infinities are compared exactly.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.differential.answers import Answer, Leaf

ORDINARY = 1e6  # beyond that, numbers of a hard operand tell nothing about rounding elsewhere


def difference(expected: Answer, actual: Answer, slack: float = 1.0, unit: float = 0.0) -> str:
    """The first difference of the answers; `unit` is the magnitude of the terms of a sum."""
    if expected.error or actual.error:
        return "" if expected.error else f"raises {actual.error}"
    if len(expected.leaves) != len(actual.leaves):
        return f"has {len(actual.leaves)} results, not {len(expected.leaves)}"
    pairs = zip(expected.leaves, actual.leaves)
    return next(filter(None, (_leaf(*pair, slack, unit) for pair in pairs)), "")


def _leaf(expected: Leaf, actual: Leaf, slack: float, unit: float) -> str:
    x, y = expected.value, actual.value
    if x.shape != y.shape:
        return f"has the shape {y.shape}, not {x.shape}"
    if x.dtype != y.dtype:
        return f"has the dtype {y.dtype}, not {x.dtype}"
    if expected.weak != actual.weak:
        return f"is {'weak' if actual.weak else 'strong'}"
    agreement = agree(x, y, slack, unit)
    if agreement.all():
        return ""
    at = tuple(map(int, np.argwhere(~agreement)[0]))
    return f"gives {y[at]}, not {x[at]}"


def agree(x: np.ndarray, y: np.ndarray, slack: float, unit: float) -> np.ndarray:
    """Where numbers agree."""
    if x.dtype.kind == "c":
        parts = [agree(part(x), part(y), slack, unit) for part in (np.real, np.imag)]
        return (parts[0] & parts[1]) | _near(x, y, slack, unit)
    if x.dtype.kind != "f" and x.dtype != ml_dtypes.bfloat16:
        return np.asarray(x == y)
    return _near(x, y, slack, unit)


def _near(x: np.ndarray, y: np.ndarray, slack: float, unit: float) -> np.ndarray:
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    eps = float(ml_dtypes.finfo(x.dtype).eps) * slack
    x, y = x.astype(wide), y.astype(wide)
    ordinary = np.abs(x[np.isfinite(x) & (np.abs(x) < ORDINARY)])
    limit = 256 * eps * np.abs(x) + 64 * eps * ordinary.max(initial=unit)
    with np.errstate(all="ignore"):
        near = np.abs(x - y) <= limit
    return (x == y) | (np.isnan(x) & np.isnan(y)) | (near & np.isfinite(x) & np.isfinite(y))
