"""The norms of Fourier transforms: which of a transform and its inverse is divided, and by what."""

from __future__ import annotations

from rune.errors import ArgumentError

_NORMS = ("backward", "ortho", "forward")
_SWAPPED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def checked_norm(name: str, norm: str | None) -> str:
    """The norm, "backward" by default. Errors: ArgumentError for any other value."""
    if norm is not None and norm not in _NORMS:
        raise ArgumentError(f"{name}: cannot use norm={norm!r} (one of {', '.join(_NORMS)})")
    return norm or "backward"


def swapped_norm(norm: str) -> str:
    """The norm that scales the forward transform as this one scales the inverse."""
    return _SWAPPED[norm]
