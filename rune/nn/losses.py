"""Losses: one number per example, for the caller to average (mse: one number)."""

from __future__ import annotations

from typing import Any

import rune.numpy as rnp
from rune.errors import DtypeError, ShapeError
from rune.nn.activations import log_sigmoid
from rune.nn.normalisation import is_class, log_softmax
from rune.ops.conventions import normalised_axis
from rune.scipy.special.arguments import rounded, widened
from rune.scipy.special.sums import largest_of


def softmax_cross_entropy(logits: Any, labels: Any, axis: int = -1) -> Any:
    """-sum(labels log(softmax(logits))) over an axis: labels are distributions.

    Shapes: logits, labels [*B, C] -> [*B].
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError if an argument is not an array
            or `logits` is complex; ShapeError for shapes that do not fit; AxisError for an axis out
            of range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.softmax_cross_entropy(rnp.array([0.0, 0.0]), rnp.array([1.0, 0.0]))
    Array(0.6931472, f32[], cpu:0)
    """
    terms = rnp.multiply(labels, log_softmax(logits, axis))
    # A class of probability 0 adds nothing, even where its logit is -inf.
    terms = rnp.where(rnp.equal(labels, 0), 0.0, terms)
    return rnp.negative(rnp.sum(terms, axis))


def softmax_cross_entropy_with_integer_labels(logits: Any, labels: Any, axis: int = -1) -> Any:
    """-log(softmax(logits)) at the label of each example.

    Shapes: logits [*B, C], labels [*B] -> [*B]. A negative label counts from the end; one out of
            range gives NaN.
    Types:  real; bools and integers become floats.
    Errors: DtypeError for labels that are not integers; ShapeError for those of another rank.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.softmax_cross_entropy_with_integer_labels(rnp.array([[1e4, 0.0]]), rnp.array([1]))
    Array([10000.], f32[1], cpu:0)
    """
    labels = rnp.asarray(labels)
    if not rnp.issubdtype(labels.dtype, rnp.integer):
        raise DtypeError(
            f"softmax_cross_entropy_with_integer_labels: cannot use labels {labels.type} "
            "(integer dtype required)",
            hint="softmax_cross_entropy takes distributions",
        )
    x, dtype = widened(logits)
    if labels.ndim != x.ndim - 1:
        raise ShapeError(
            f"softmax_cross_entropy_with_integer_labels: cannot use labels {labels.type} for "
            f"logits {x.type} (one axis less required)"
        )
    count = x.shape[normalised_axis("softmax_cross_entropy_with_integer_labels", axis, x.type)]
    labels = rnp.where(rnp.less(labels, 0), rnp.add(labels, count), labels)
    shifted = x - largest_of(x, axis, None)
    # Compared with every class instead of gathered: the row is read anyway, and the derivative
    # needs no scatter.
    chosen = rnp.where(is_class(labels, count, axis), shifted, 0.0)
    loss = rnp.log(rnp.sum(rnp.exp(shifted), axis)) - rnp.sum(chosen, axis)
    known = rnp.logical_and(rnp.greater_equal(labels, 0), rnp.less(labels, count))
    return rounded(rnp.where(known, loss, rnp.nan), dtype)


def sigmoid_binary_cross_entropy(logits: Any, labels: Any) -> Any:
    """-log(sigmoid(logits)) where labels are 1, -log(1 - sigmoid(logits)) where they are 0.

    Shapes: broadcast together. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for bools and complex numbers
            as `logits`; ShapeError for shapes that do not fit.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.sigmoid_binary_cross_entropy(rnp.array([1e4, 1e4]), rnp.array([1.0, 0.0]))
    Array([    0., 10000.], f32[2], cpu:0)
    """
    miss = rnp.multiply(rnp.subtract(1, labels), log_sigmoid(rnp.negative(logits)))
    return rnp.negative(rnp.multiply(labels, log_sigmoid(logits)) + miss)


def mse(predictions: Any, targets: Any) -> Any:
    """Mean squared difference over all elements.

    Shapes: broadcast together -> []. Types: integers become floats.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.mse(rnp.array([1.0, 3.0]), 1.0)
    Array(2., f32[], cpu:0)
    """
    return rnp.mean(rnp.square(rnp.subtract(predictions, targets)))
