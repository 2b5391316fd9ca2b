"""The largest measured errors in ulps, rounded up to 0.05: limits that no change may exceed.

(f32, f64) of each function, over the arguments of test_llvm_math.py; of `pow` and `atan2`, over the
pairs of test_math_expand.py. The error functions of f64 have no oracle with more digits and are
compared with the C library's, so that their entry is 2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

# In f64 or the C library's extended precision; those of the same name in NumPy are not listed.
ORACLE: dict[str, Callable[..., np.ndarray]] = {
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": special.erf,
    "erfc": special.erfc,
    "erf_inv": special.erfinv,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "logistic": lambda x: np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x)))),
}
NO_EXTENDED_ORACLE = {"erf", "erfc", "erf_inv"}

ON_THE_CPU: dict[str, tuple[float, float]] = {  # with a fused multiply-add, and f64 for some of f32
    "acos": (0.8, 0.8),
    "acosh": (1.45, 1.45),
    "asin": (0.6, 0.6),
    "asinh": (1.55, 1.5),
    "atan": (1.1, 0.95),
    "atan2": (1.4, 1.3),
    "atanh": (1.45, 1.4),
    "cbrt": (0.75, 1.45),
    "cos": (0.55, 0.8),
    "cosh": (1.2, 1.2),
    "erf": (1.0, 2),
    "erf_inv": (0.65, 2),
    "erfc": (0.55, 2),
    "exp": (0.85, 0.85),
    "exp2": (0.85, 0.8),
    "expm1": (1.15, 1.15),
    "log": (0.8, 0.8),
    "log1p": (1.45, 1.3),
    "log2": (1.1, 1.1),
    "logistic": (1.55, 1.55),
    "pow": (0.55, 0.85),
    "rsqrt": (1.45, 1.5),
    "sin": (0.55, 0.75),
    "sinh": (1.6, 1.55),
    "tan": (0.55, 0.9),
    "tanh": (1.3, 1.3),
}
ON_DEVICES: dict[str, tuple[float, float]] = {  # in plain arithmetic of their own format
    "acos": (0.8, 0.8),
    "acosh": (1.45, 1.45),
    "asin": (0.65, 0.65),
    "asinh": (1.6, 1.6),
    "atan": (1.05, 0.95),
    "atan2": (1.45, 1.3),
    "atanh": (1.6, 1.5),
    "cbrt": (0.85, 0.7),
    "cos": (0.8, 0.8),
    "cosh": (1.25, 1.2),
    "erf": (1.3, 2),
    "erf_inv": (1.55, 2),
    "erfc": (1.25, 2),
    "exp": (0.85, 0.85),
    "exp2": (0.85, 0.95),
    "expm1": (1.15, 1.15),
    "log": (0.8, 0.8),
    "log1p": (1.45, 1.3),
    "log2": (1.05, 1.05),
    "logistic": (1.55, 1.55),
    "pow": (0.85, 0.9),
    "rsqrt": (1.45, 1.5),
    "sin": (0.85, 0.85),
    "sinh": (1.6, 1.55),
    "tan": (1.1, 1.05),
    "tanh": (1.25, 1.25),
}
