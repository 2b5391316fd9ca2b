"""Find matrix multiplication: the BLAS that NumPy brought along, by the address of its symbol.

OpenBLAS wheels name their symbols with a prefix and, where integers are 64-bit, a suffix; macOS
has Accelerate. What is not found is not offered: the target then lists no "dot".
"""

from __future__ import annotations

import ctypes
import functools
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rune import dtypes

_LETTER = {dtypes.f32: "s", dtypes.f64: "d"}
# (pattern of the symbol, IR type of the library's integers)
_VARIANTS = (
    ("scipy_cblas_{}gemm64_", "i64"),
    ("cblas_{}gemm64_", "i64"),
    ("scipy_cblas_{}gemm", "i32"),
    ("cblas_{}gemm", "i32"),
)
_ACCELERATE = "/System/Library/Frameworks/Accelerate.framework/Accelerate"


@dataclass(frozen=True, slots=True)
class Gemm:
    """cblas_?gemm of one dtype: its address, and the IR type of its integers."""

    address: int
    integer: str


def _candidates() -> list[str]:
    root = Path(np.__file__).parent
    folders = (root.parent / "numpy.libs", root / ".dylibs", root / ".libs")
    found = [str(f) for folder in folders if folder.is_dir() for f in sorted(folder.iterdir())]
    libraries = [f for f in found if "openblas" in f or "blas" in f]
    return libraries + ([_ACCELERATE] if sys.platform == "darwin" else [])


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    opened = []
    for path in _candidates():
        try:
            opened.append(ctypes.CDLL(path))
        except OSError:
            continue
    return tuple(opened)


@functools.cache
def find_gemm(dtype: np.dtype) -> Gemm | None:
    """The routine for f32 or f64, or None."""
    for library in _libraries():
        for pattern, integer in _VARIANTS:
            symbol = getattr(library, pattern.format(_LETTER[dtype]), None)
            if symbol is not None:
                address = ctypes.cast(symbol, ctypes.c_void_p).value
                assert address is not None
                return Gemm(address, integer)
    return None
