"""Transforms and packed bits, as each library's users write them: of one long row, and eager ones.

Eager calls of rune and torch are on one array of ordinary size, where a call's overhead counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Sizes, complex_normal, normal

Call = Callable[[], Any]


def transforms(jit: Any, fft: Any, asarray: Any, wait: Any, axis: str = "axis") -> dict[str, Callable[[Sizes], Call]]:
    """The calls by name. axis: what the library calls the argument"""

    def on(function: Any, data: Callable[[int], np.ndarray], **options: int) -> Callable[[Sizes], Call]:
        def make(s: Sizes) -> Call:
            x = asarray(data(s.matrix // 4))
            return lambda: wait(function(x, **options))

        return make

    def million(s: Sizes) -> Call:
        function, x = jit(fft.fft), asarray(complex_normal(s.elements // 4))
        return lambda: wait(function(x))

    def square(n: int) -> np.ndarray:
        return complex_normal((n, n))

    return {
        "fft_million": million,
        "fft2_eager": on(fft.fft2, square),
        "rfft2_eager": on(fft.rfft2, lambda n: normal((n, n), 1)),
        "fft_rows_eager": on(fft.fft, lambda n: complex_normal((n // 4, 4 * n))),
        "fft_columns_eager": on(fft.fft, square, **{axis: 0}),
        "rfft_rows_eager": on(fft.rfft, lambda n: normal((n // 4, 4 * n), 1)),
    }


def packed(jit: Any, xp: Any, wait: Any) -> dict[str, Callable[[Sizes], Call]]:
    """Truths as bits, jitted and not."""

    def packing(function: Any) -> Callable[[Sizes], Call]:
        def make(s: Sizes) -> Call:
            truths = xp.asarray(normal(s.elements // 4, 1) > 0)
            return lambda: wait(function(truths))

        return make

    return {"packbits": packing(jit(xp.packbits)), "packbits_eager": packing(xp.packbits)}
