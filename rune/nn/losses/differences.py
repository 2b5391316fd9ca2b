"""Losses of the distance between a prediction and its target."""

from __future__ import annotations

import rune.numpy as rnp
from rune.array import Array
from rune.nn.losses.reduction import Reduction, reduced
from rune.transforms.arguments import required_number
from rune.typing import ArrayLike


def l1_loss(x: ArrayLike, targets: ArrayLike, reduction: Reduction = "mean") -> Array:
    """|x - targets|; the derivative at 0 is 0.

    Shapes: broadcast together -> []; for reduction "none" their joint shape.
    Types:  integers become floats.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.l1_loss(rnp.array([1.0, 4.0]), 2.0)
    Array(1.5, f32[], cpu:0)
    """
    difference = rnp.subtract(x, targets)
    return reduced("l1_loss", difference * rnp.sign(difference), reduction)


def mse_loss(x: ArrayLike, targets: ArrayLike, reduction: Reduction = "mean") -> Array:
    """(x - targets)².

    Shapes: broadcast together -> []; for reduction "none" their joint shape.
    Types:  integers become floats.
    Errors: ArgumentError if an argument is not an array or `reduction` is unknown.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.mse_loss(rnp.array([1.0, 4.0]), 2.0, "sum")
    Array(5., f32[], cpu:0)
    """
    return reduced("mse_loss", rnp.square(rnp.subtract(x, targets)), reduction)


def huber_loss(x: ArrayLike, targets: ArrayLike, reduction: Reduction = "mean", delta: float = 1.0) -> Array:
    """d² / 2 for |d| up to delta, then delta (|d| - delta / 2). Source: Huber 1964.

    Shapes: broadcast together -> []; for reduction "none" their joint shape.
    Types:  integers become floats.
    Errors: ArgumentError if an argument is not an array or `reduction` is unknown; DtypeError for
            complex numbers.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.huber_loss(rnp.array([1.0, 3.0]), 0.0, "none")
    Array([0.5, 2.5], f32[2], cpu:0)
    """
    required_number("huber_loss", "delta", delta, 0)
    difference = rnp.subtract(x, targets)
    size = difference * rnp.sign(difference)
    inside = size <= delta
    losses = rnp.where(inside, 0.5 * rnp.square(difference), delta * (size - 0.5 * delta))
    return reduced("huber_loss", losses, reduction)


def smooth_l1_loss(x: ArrayLike, targets: ArrayLike, reduction: Reduction = "mean", beta: float = 1.0) -> Array:
    """huber_loss divided by its threshold, beta; l1_loss for beta 0.

    Shapes: broadcast together -> []; for reduction "none" their joint shape.
    Types:  integers become floats.
    Errors: ArgumentError if an argument is not an array or `reduction` is unknown; DtypeError for
            complex numbers.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.smooth_l1_loss(rnp.array([1.0, 3.0]), 0.0, "none", beta=2.0)
    Array([0.25, 2.  ], f32[2], cpu:0)
    """
    required_number("smooth_l1_loss", "beta", beta, 0)
    if beta == 0:
        return l1_loss(x, targets, reduction)
    return reduced("smooth_l1_loss", huber_loss(x, targets, "none", beta) / beta, reduction)
