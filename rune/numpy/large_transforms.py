"""Fourier transforms of many elements, which eager calls compile once for each size.

This applies only to transforms that a library routine of the device computes: kernels would take
most of a second to compile.
"""

from __future__ import annotations

import functools

from rune import ops
from rune.array import Array
from rune.core.interpreter import is_evaluating, type_of
from rune.numpy.composites import is_large
from rune.ops.fourier import is_by_routine
from rune.transforms.compile.jit import Jitted, jit
from rune.typing import ArrayLike


def transformed(x: ArrayLike, kind: str, axes: tuple[int, ...], odd: bool) -> Array:
    """`ops.fft`, compiled if an eager call has enough elements to make up for compiling."""
    if is_evaluating() and is_large((x,)) and is_by_routine(type_of(x), kind=kind, axes=axes, odd=odd):
        return _compiled(kind, axes, odd)(x)
    return ops.fft(x, kind=kind, axes=axes, odd=odd)


@functools.cache
def _compiled(kind: str, axes: tuple[int, ...], odd: bool) -> Jitted[[ArrayLike], Array]:
    def transform(x: ArrayLike) -> Array:
        return ops.fft(x, kind=kind, axes=axes, odd=odd)

    return jit(transform)
