"""Calls of rune.image, for rune and for JAX: shapes odd and prime, larger, smaller and both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

METHODS = ("nearest", "linear", "cubic", "lanczos3", "lanczos5", "cubic-pytorch", "area")
RESIZES = {"larger": ((5, 7), (11, 13)), "smaller": ((13, 11), (5, 4)), "both": ((2, 7, 3), (2, 3, 8))}
MOVES = {"stretched": ([1.7, 0.6], [0.0, 0.0]), "moved": ([1.0, 1.0], [2.25, -1.5]), "both": ([0.45, 2.3], [-0.7, 3.0])}

CALLS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    **{
        f"resize {size} {method} {antialias}": ("resize", (old, new, method), {"antialias": antialias})
        for size, (old, new) in RESIZES.items()
        for method in METHODS
        for antialias in (True, False)
    },
    **{
        f"{kind} {method} {antialias}": (
            "scale_and_translate",
            ((9, 3, 7), (11, 3, 6), (0, 2), np.array(scale, "f4"), np.array(translation, "f4"), method),
            {"antialias": antialias},
        )
        for kind, (scale, translation) in MOVES.items()
        for method in METHODS[1:]
        for antialias in (True, False)
    },
}


def image(shape: tuple[int, ...]) -> np.ndarray:
    """Numbers without a pattern."""
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def answers(library: Any, calls: Mapping[str, tuple[str, tuple[Any, ...], dict[str, Any]]]) -> dict[str, Any]:
    """The library's answers to the calls."""
    return {
        name: getattr(library.image, function)(library.numpy.asarray(image(args[0])), *args[1:], **options)
        for name, (function, args, options) in calls.items()
    }
