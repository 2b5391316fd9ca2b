"""Details of the text of kernel code: reserved words and constants."""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.lowering.kernel.expr import Const, const

RESERVED = frozenset(
    "for if else in store update atomic alloc barrier fetch multiply var true false".split()
    + "contract sizes aliases ordered".split()
)
DEFAULT_NAN = {dtype: const(np.nan, dtype) for dtype in dtypes.FLOATING}


def const_text(c: Const) -> str:
    """A constant: a number where that gives the same bits, else the bits.

    >>> const_text(const(1 / 3, dtypes.f32)), const_text(const(-1, dtypes.i8))
    ('0.33333334_f32', '-1_i8')
    """
    short = dtypes.short(c.dtype)
    if c == const(True, dtypes.bool_) or c == const(False, dtypes.bool_):
        return "true" if c.value else "false"
    # Other NaNs have a payload, which only `bits_` keeps.
    if c == DEFAULT_NAN.get(c.dtype):
        return f"nan_{short}"
    if c.dtype in dtypes.INTEGER and const(int(c.value), c.dtype) == c:
        return f"{int(c.value)}_{short}"
    if c.dtype in dtypes.FLOATING:
        # `str` of a narrow float gives its shortest digits; as a Python float it would print many
        # more.
        text = repr(float(c.value)) if c.dtype == dtypes.f64 else str(c.value)
        if const(float(text), c.dtype) == c:
            return f"{text}_{short}"
    # Bits are little-endian; reversed, the hex digits read as a number.
    return f"bits_{short}({c.bits[::-1].hex()})"


def read_const(text: str) -> Const:
    """The constant that `const_text` printed as a number."""
    number, _, short = text.partition("_")
    dtype = dtypes.FROM_SHORT[short]
    if number == "nan":
        return DEFAULT_NAN[dtype]
    return const(int(number) if dtype in dtypes.INTEGER else float(number), dtype)
