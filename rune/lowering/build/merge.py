"""Merge: combine the last axes of the domain into one.

Before   for o in 64, h in 28, w in 28: y[784*o + 28*h + w] = ... x[30*h + w + ...]
After    for o in 64, p in 784:         y[784*o + p]        = ... x[30*(p // 28) + p % 28 + ...]

Tiles of a convolution need many columns, and the rows of an image are short. (Axes that every
access walks as one have been merged before: collapse.py.)

Invariant: the same points in the same order.
"""

from __future__ import annotations

from dataclasses import replace

from rune.lowering.build.schedule import Merge
from rune.lowering.build.tile import place_body
from rune.lowering.kernels import Axis, Kernel, points, positions


def merged_axes(kernel: Kernel, merge: Merge) -> tuple[Axis, ...]:
    """The axes that become one: from the first one to the last."""
    names = [a.name for a in kernel.domain]
    return kernel.domain[names.index(merge.axis) :]


def merged(kernel: Kernel, merge: Merge) -> Kernel:
    """The kernel with one axis in place of the last ones."""
    axes = merged_axes(kernel, merge)
    axis = Axis("_".join(a.name for a in axes), points(axes))
    # Positions on the old axes are quotients and remainders of the new one.
    at, at_first = positions(axis.symbol, axes[1:])
    domain = (*kernel.domain[: -len(axes)], axis)
    return replace(kernel, domain=domain, body=place_body(kernel.body, {**at, axes[0].name: at_first}))
