"""Losses of probabilities: for binary outcomes, and between distributions."""

from __future__ import annotations

from typing import Any, Literal

import rune.numpy as rnp
from rune.array import Array
from rune.errors import ShapeError
from rune.nn.activations import log_sigmoid
from rune.nn.losses.reduction import Reduction, reduced
from rune.nn.support import real
from rune.typing import ArrayLike


def binary_cross_entropy(
    probs: ArrayLike, targets: ArrayLike, weight: ArrayLike | None = None, reduction: Reduction = "mean"
) -> Array:
    """-(t log p + (1 - t) log(1 - p)), with both logarithms at least -100.

    Shapes: broadcast together -> []; for reduction "none" their joint shape.
    Types:  bools and integers become floats.
    Errors: DtypeError if an argument is not an array or `probs` is complex.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.binary_cross_entropy(rnp.array([0.0]), rnp.array([1.0]))
    Array(100., f32[], cpu:0)
    """
    p, t = real(probs), rnp.asarray(targets)
    yes, no = (_log_above(x) for x in (p, 1 - p))
    losses = -(t * yes + (1 - t) * no)
    losses = losses if weight is None else losses * weight
    return reduced("binary_cross_entropy", losses, reduction)


def _log_above(x: Array) -> Array:
    is_positive = x > 0
    return rnp.where(is_positive, rnp.maximum(rnp.log(rnp.where(is_positive, x, 1)), -100.0), -100.0)


def binary_cross_entropy_with_logits(
    logits: ArrayLike,
    targets: ArrayLike,
    weight: Any = None,
    reduction: Reduction = "mean",
    pos_weight: ArrayLike | None = None,
) -> Array:
    """binary_cross_entropy(sigmoid(logits)) without overflow; pos_weight times the first term.

    Shapes: broadcast together -> []; for reduction "none" their joint shape.
    Types:  bools and integers become floats.
    Errors: DtypeError if an argument is not an array or `logits` is complex.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.binary_cross_entropy_with_logits(rnp.array([1e4]), rnp.array([0.0]))
    Array(10000., f32[], cpu:0)
    """
    x, t = real(logits), rnp.asarray(targets)
    positive = 1.0 if pos_weight is None else pos_weight
    losses = -(positive * t * log_sigmoid(x) + (1 - t) * log_sigmoid(-x))
    losses = losses if weight is None else losses * weight
    return reduced("binary_cross_entropy_with_logits", losses, reduction)


def sigmoid_binary_cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Array:
    """-log(sigmoid(logits)) where labels are 1, -log(1 - sigmoid(logits)) where they are 0.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: DtypeError if an argument is not an array or `logits` is complex; ShapeError if the
            shapes do not match.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.sigmoid_binary_cross_entropy(rnp.array([1e4, 1e4]), rnp.array([1.0, 0.0]))
    Array([    0., 10000.], f32[2], cpu:0)
    """
    return binary_cross_entropy_with_logits(logits, labels, reduction="none")


def kl_div(
    log_probs: ArrayLike,
    targets: ArrayLike,
    reduction: Literal["mean", "sum", "none", "batchmean"] = "mean",
    log_target: bool = False,
) -> Array:
    """t (log t - log_probs), 0 where t is 0; with log_target the targets are logarithms.

    reduction: also "batchmean", the sum divided by the size of the first axis.
    Source: Kullback & Leibler 1951.
    Shapes: broadcast together -> []; for reduction "none" their joint shape.
    Types:  bools and integers become floats.
    Errors: ArgumentError for an unknown `reduction`; DtypeError if an argument is not an array or
            `targets` is complex; ShapeError if the shapes do not match.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.kl_div(rnp.array([-1.0, -2.0]), rnp.array([0.0, 1.0]), "sum")
    Array(2., f32[], cpu:0)
    """
    x, t = real(log_probs), real(targets)
    probs = rnp.exp(t) if log_target else t
    is_possible = probs > 0
    logs = rnp.where(is_possible, t, 0) if log_target else rnp.log(rnp.where(is_possible, t, 1))
    losses = rnp.where(is_possible, probs * (logs - x), 0 * probs)
    if reduction == "batchmean":
        if losses.ndim == 0:
            raise ShapeError("kl_div: cannot divide by the size of a batch ('batchmean' of rank 0)")
        return rnp.sum(losses) / losses.shape[0]
    return reduced("kl_div", losses, reduction)
