"""Values at limits, by letters: the places where functions are most likely to be wrong.

There are no denormals, which JAX flushes to zero on the CPU and rune does not.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

_INF, _NAN = np.inf, np.nan
_X = [_NAN, _INF, -_INF, -0.0, 0.0, 3.4028235e38, -3.4028235e38, 1e-30, -1e-30, 2e38]
_X += [1.0, -1.0, 0.5, -2.5, 1.1920929e-07, 88.8, -16777217.0]
_H = [_NAN, _INF, -_INF, -0.0, 0.0, 65504.0, -65504.0, 6.2e-5, -6.2e-5, 3e4]
_H += [1.0, -1.0, 0.5, -2.5, 9.77e-4, 11.1, -2049.0]
_I = [0, 1, -1, 2, -2, 3, -7, 2147483647, -2147483648, 2147483646, -2147483647]
_I += [46341, -46341, 65536, 16777217, 5, 100]

LIMITS: dict[str, np.ndarray] = {
    "X": np.array(_X, np.float32),
    "Y": np.array([_NAN, -_INF, _INF, -0.0, 0.0, 3.4028235e38, 1e-30, -1.5, 2.0], np.float32),
    "H": np.array(_H, np.float16),
    "G": np.array(_X, ml_dtypes.bfloat16),
    "I": np.array(_I, np.int32),
    "J": np.array([1, -1, 2, -2, 7, -7, 31, 2147483647, -2147483648], np.int32),
    "U": np.array([0, 1, 2, 3, 7, 8, 4294967295, 4294967294, 2147483648, 65535, 65536] + 6 * [31], np.uint32),
    "B": np.array([0, 1, -1, 127, -128, 2, -2, 3, -3, 64, -64, 100, -100, 7, 12, 15, 16], np.int8),
    "Z": np.array(
        [complex(x, y) for x in (_NAN, _INF, -0.0, 1.5) for y in (_NAN, -_INF, 0.0, -2.0)] + [1e30j], np.complex64
    ),
    "E": np.zeros((0, 3), np.float32),
}
