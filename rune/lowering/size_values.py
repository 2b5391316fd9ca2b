"""Sizes as values: the integers into which kernels convert sizes, and the limits of these.

A computed size has no bound of its own, but an i32 made of it is at most 2**31 - 1. The plan has
such sizes as `limits`, and each call checks them before it runs.

    code f(...) sizes n in 1.. { store y[0] = i32(index(65536*n)) }     65536*n <= 2**31 - 1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from rune import dims, dtypes
from rune.dims import Size
from rune.lowering.kernel.expr import Cast, Index
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.rewrite import expressions, size_names, walk, walk_expr
from rune.lowering.kernel.scalar import bit_width

Limits = tuple[tuple[Size, int], ...]  # (size, the most that it may be)


def value_limits(codes: Mapping[str, KernelCode]) -> Limits:
    """The sizes that are converted to an integer which may be too small, with its largest value."""
    limits = (limit for code in codes.values() if code.sizes for limit in _limits(code))
    return tuple(dict.fromkeys(limits))


def _limits(code: KernelCode) -> Iterator[tuple[Size, int]]:
    for size, dtype in _converted(code):
        most = _largest(dtype)
        # Only expressions of sizes: loop variables are bounded by their extents.
        if size_names(size) <= set(code.sizes) and not dims.at_most(size, most):
            yield size, most


def _converted(code: KernelCode) -> Iterator[tuple[Size, np.dtype]]:
    """Index expressions, and the integer dtypes to which they are converted."""
    for part in (p for s in walk(code.body) for e in expressions(s) for p in walk_expr(e)):
        match part:
            case Cast(arg=Index(dim=size), dtype=dtype) if dtype in dtypes.INTEGER:
                yield size, dtype


def _largest(dtype: np.dtype) -> int:
    # Sizes are never negative, so the least value does not matter.
    return (1 << (bit_width(dtype) - (dtype in dtypes.SIGNED))) - 1


def too_large(limits: Iterable[tuple[Size, int]], sizes: Mapping[str, int]) -> Iterator[str]:
    """Limits exceeded: "65536*n = 2147549184 (its value is an integer of at most ...)"."""
    for size, most in limits:
        value = dims.evaluate(size, sizes)
        if value > most:
            yield f"{size} = {value} (its value is an integer of at most {most})"
