"""Cross entropy: how improbable the right class is, in nats.

A label is a class 0…C-1. Any other label, even a negative one, gives NaN: torch raises an error and
Optax counts it from the end, but the value of a traced label is not known. The one exception is
torch's `ignore_index`.
"""

from __future__ import annotations

from typing import Any

import rune.numpy as rnp
from rune.array import Array
from rune.errors import DtypeError, ShapeError
from rune.nn.losses.reduction import Reduction, reduced
from rune.nn.normalisation import is_class, log_softmax
from rune.nn.support import real
from rune.ops.conventions import normalised_axis
from rune.transforms.arguments import required_number
from rune.typing import ArrayLike


def softmax_cross_entropy(logits: ArrayLike, labels: ArrayLike, axis: int = -1) -> Array:
    """-sum(labels log(softmax(logits))) over an axis: labels are distributions.

    Shapes: logits, labels [*B, C] -> [*B].
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError if `logits` is complex;
            ShapeError if the shapes do not match; AxisError for an axis out of range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.softmax_cross_entropy(rnp.array([0.0, 0.0]), rnp.array([1.0, 0.0]))
    Array(0.6931472, f32[], cpu:0)
    """
    return _of_distributions(log_softmax(logits, axis), labels, axis)


def softmax_cross_entropy_with_integer_labels(logits: ArrayLike, labels: ArrayLike, axis: int = -1) -> Array:
    """-log(softmax(logits)) at the label of each example.

    Shapes: logits [*B, C], labels int[*B] -> [*B]. A label outside 0…C-1 gives NaN.
    Types:  real; bools and integers become floats.
    Errors: DtypeError for labels that are not integers; ShapeError for those of another rank.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.softmax_cross_entropy_with_integer_labels(rnp.array([[1e4, 0.0]]), rnp.array([1]))
    Array([10000.], f32[1], cpu:0)
    """
    name = "softmax_cross_entropy_with_integer_labels"
    x, labels = real(logits), _labels(name, labels)
    if labels.ndim != x.ndim - 1:
        raise ShapeError(
            f"{name}: cannot use labels {labels.type} for logits {x.type}",
            hint="labels have the axes of the logits without that of the classes",
        )
    axis = normalised_axis(name, axis, x.type)
    return -_at_label(log_softmax(x, axis), labels, axis)


def _labels(name: str, labels: ArrayLike) -> Array:
    labels = rnp.asarray(labels)
    if not rnp.issubdtype(labels.dtype, rnp.integer):
        raise DtypeError(
            f"{name}: cannot use {labels.type} as classes (integers required)",
            hint="softmax_cross_entropy and cross_entropy also take distributions",
        )
    return labels


def _at_label(x: Array, labels: Array, axis: int) -> Array:
    """x at the label of each example; NaN where the label is not a class."""
    count = x.shape[axis]
    # Compared with every class instead of gathered: the row is read anyway, and the derivative
    # needs no scatter.
    at_label = rnp.sum(rnp.where(is_class(labels, count, axis), x, 0), axis)
    return rnp.where((labels >= 0) & (labels < count), at_label, rnp.nan)


def _of_distributions(log_probs: Array, probs: ArrayLike, axis: int, class_weights: Array | int = 1) -> Array:
    terms = rnp.multiply(probs, class_weights) * log_probs
    # A class of probability 0 adds nothing, even where its logit is -inf.
    return -rnp.sum(rnp.where(rnp.equal(probs, 0), 0, terms), axis)


def cross_entropy(
    logits: ArrayLike,
    targets: ArrayLike,
    weight: ArrayLike | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """-log(softmax(logits)) at the target, or -Σ p log(softmax(logits)) for distributions p.

    Shapes: logits [N, C, *S] or [C]; targets int[N, *S], or a distribution [N, C, *S].
    Types:  real; bools and integers become floats.
    label_smoothing: this much of the target is spread evenly over the classes.
    weight, ignore_index, "mean": as for `nll_loss`; distributions are averaged over examples.
    Errors: ArgumentError for a smoothing outside 0…1. A target that is neither a class nor
            ignore_index gives NaN.
    Source: Szegedy et al. 2015, arXiv:1512.00567 (smoothing).

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.cross_entropy(rnp.array([[1e4, 0.0]]), rnp.array([1]))
    Array(10000., f32[], cpu:0)
    """
    required_number("cross_entropy", "label_smoothing", label_smoothing, 0, 1)
    x, targets = real(logits), rnp.asarray(targets)
    axis = _class_axis("cross_entropy", x)
    log_probs, class_weights = log_softmax(x, axis), _class_weights(weight, x, axis)
    if targets.ndim == x.ndim and not rnp.issubdtype(targets.dtype, rnp.integer):
        probs = targets * (1 - label_smoothing) + label_smoothing / x.shape[axis]
        losses = _of_distributions(log_probs, probs, axis, class_weights)
        return reduced("cross_entropy", losses, reduction)
    losses, weights = _of_labels("cross_entropy", log_probs, targets, class_weights, ignore_index, axis)
    if label_smoothing != 0:
        even = -rnp.sum(log_probs * class_weights, axis) / x.shape[axis]
        even = rnp.where(targets == ignore_index, 0, even)
        losses = (1 - label_smoothing) * losses + label_smoothing * even
    return reduced("cross_entropy", losses, reduction, weights)


def nll_loss(
    log_probs: ArrayLike,
    targets: ArrayLike,
    weight: ArrayLike | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Array:
    """-weight · log_probs at the target of each example; 0 where that is ignore_index.

    Shapes: log_probs [N, C, *S] or [C], targets int[N, *S] or int[], weight [C].
    Types:  bools and integers become floats.
    "mean" divides by the weights of the examples that count. A target that is neither a class nor
    ignore_index gives NaN.
    Errors: ShapeError for targets of another shape, DtypeError for targets that are not integers.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.nll_loss(rnp.array([[-1.0, -2.0], [-3.0, -4.0]]), rnp.array([0, -100]))
    Array(1., f32[], cpu:0)
    """
    x = real(log_probs)
    axis = _class_axis("nll_loss", x)
    class_weights = _class_weights(weight, x, axis)
    losses, weights = _of_labels("nll_loss", x, targets, class_weights, ignore_index, axis)
    return reduced("nll_loss", losses, reduction, weights)


def _class_axis(name: str, x: Array) -> int:
    if x.ndim == 0:
        raise ShapeError(f"{name}: cannot find the classes of {x.type} ([C] or [N, C, *S])")
    return 0 if x.ndim == 1 else 1


def _class_weights(weight: ArrayLike | None, x: Array, axis: int) -> Array:
    """The weight of each class, in a shape that broadcasts to x."""
    if weight is None:
        return rnp.ones((), x.dtype)
    return rnp.reshape(weight, (-1, *(1,) * (x.ndim - 1 - axis))).astype(x.dtype)


def _of_labels(
    name: str, log_probs: Array, labels: ArrayLike, class_weights: ArrayLike, ignore_index: int, axis: int
) -> tuple[Array, Array]:
    """-weight · log_probs at the label of each example, and the weight of each example."""
    labels = _labels(name, labels)
    if labels.shape != (*log_probs.shape[:axis], *log_probs.shape[axis + 1 :]):
        raise ShapeError(
            f"{name}: cannot choose classes of {log_probs.type} by {labels.type} (one target for "
            f"every example required, classes stand at axis {axis})"
        )
    is_ignored = labels == ignore_index
    label_log_probs = rnp.where(is_ignored, 0, _at_label(log_probs, labels, axis))
    weights = rnp.where(is_ignored, 0, _weight_at_label(class_weights, labels, axis))
    return -label_log_probs * weights, weights


def _weight_at_label(class_weights: Any, labels: Array, axis: int) -> Any:
    if class_weights.ndim == 0:
        return class_weights
    is_label = is_class(labels, class_weights.size, axis)
    return rnp.sum(rnp.where(is_label, class_weights, 0), axis)
