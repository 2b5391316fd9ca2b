"""Losses with a reduction, by torch's names, arguments and formulas.

Classes stand at axis 1 of [N, C, *S], at axis 0 of [C]. reduction: "mean", "sum", or "none" for one
number per example or element. The older forms of losses.py give one number per example.
"""

from __future__ import annotations

from typing import Any, Literal

import rune.numpy as rnp
from rune import control, ops
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.nn.activations import log_sigmoid
from rune.nn.normalisation import is_class, log_softmax
from rune.nn.support import real
from rune.transforms.arguments import required_number

Reduction = Literal["mean", "sum", "none"]


def _reduced(name: str, losses: Any, reduction: Reduction) -> Any:
    if reduction == "mean":
        return rnp.mean(losses)
    if reduction == "sum":
        return rnp.sum(losses)
    return _as_they_are(name, losses, reduction)


def _as_they_are(name: str, losses: Any, reduction: str) -> Any:
    if reduction != "none":
        raise ArgumentError(f"{name}: cannot reduce by {reduction!r} (mean, sum or none)")
    return losses


# --- of classes -------------------------------------------------------------------------------


def nll_loss(
    log_probs: Any, targets: Any, weight: Any = None, ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Any:  # fmt: skip
    """-weight · log_probs at the target of each example; 0 where that is ignore_index.

    Shapes: log_probs [N, C, *S] or [C], targets int[N, *S] or int[], weight [C].
    Types:  bools and integers become floats.
    "mean" divides by the weights of the examples that count. A target out of range gives NaN.
    Errors: ShapeError for targets of another shape, DtypeError for targets that are not integers.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.nll_loss(rnp.array([[-1.0, -2.0], [-3.0, -4.0]]), rnp.array([0, -100]))
    Array(1., f32[], cpu:0)
    """
    x, targets = real(log_probs), rnp.asarray(targets)
    axis = _class_axis("nll_loss", x)
    chosen, weights = _chosen("nll_loss", x, targets, weight, ignore_index, axis)
    return _weighted("nll_loss", -chosen, weights, reduction)


def _class_axis(name: str, x: Any) -> int:
    if x.ndim == 0:
        raise ShapeError(f"{name}: cannot find the classes of {x.type} ([C] or [N, C, *S])")
    return 0 if x.ndim == 1 else 1


def _chosen(
    name: str, x: Any, targets: Any, weight: Any, ignore_index: int, axis: int
) -> tuple[Any, Any]:
    """x at the targets, and what each example weighs."""
    count = x.shape[axis]
    if targets.shape != (*x.shape[:axis], *x.shape[axis + 1 :]):
        raise ShapeError(
            f"{name}: cannot choose classes of {x.type} by {targets.type} (one target for every "
            f"example required, classes stand at axis {axis})"
        )
    if not rnp.issubdtype(targets.dtype, rnp.integer):
        raise DtypeError(f"{name}: cannot use {targets.type} as classes (integers required)")
    held = is_class(targets, count, axis)
    chosen = rnp.sum(rnp.where(held, x, 0), axis)
    weights = rnp.ones(targets.shape, x.dtype)
    if weight is not None:
        spread = rnp.reshape(weight, (-1, *(1,) * (x.ndim - 1 - axis)))
        weights = rnp.sum(rnp.where(held, spread.astype(x.dtype), 0), axis)
    ignored = targets == ignore_index
    known = (targets >= 0) & (targets < count)
    chosen = rnp.where(ignored, 0, rnp.where(known, chosen, rnp.nan))
    return chosen, rnp.where(ignored, 0, weights)


def _weighted(name: str, losses: Any, weights: Any, reduction: Reduction) -> Any:
    losses = losses * weights
    if reduction == "mean":
        return rnp.sum(losses) / rnp.sum(weights)
    return rnp.sum(losses) if reduction == "sum" else _as_they_are(name, losses, reduction)


def cross_entropy(
    logits: Any, targets: Any, weight: Any = None, ignore_index: int = -100,
    reduction: Reduction = "mean", label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """-log(softmax(logits)) at the target, or -Σ p log(softmax(logits)) for distributions p.

    Shapes: logits [N, C, *S] or [C]; targets int[N, *S], or a distribution [N, C, *S].
    Types:  real; bools and integers become floats.
    label_smoothing: this much of the target is spread evenly over the classes.
    weight, ignore_index, "mean": as for `nll_loss`; distributions are averaged over examples.
    Errors: ArgumentError for a smoothing outside 0…1.
    Source: Szegedy et al. 2015, arXiv:1512.00567 (smoothing).

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.cross_entropy(rnp.array([[1e4, 0.0]]), rnp.array([1]))
    Array(10000., f32[], cpu:0)
    """
    required_number("cross_entropy", "label_smoothing", label_smoothing, 0, 1)
    x, targets = real(logits), rnp.asarray(targets)
    axis = _class_axis("cross_entropy", x)
    log_probs = log_softmax(x, axis)
    if targets.ndim == x.ndim and not rnp.issubdtype(targets.dtype, rnp.integer):
        return _of_distributions(log_probs, targets, weight, axis, reduction, label_smoothing)
    chosen, weights = _chosen("cross_entropy", log_probs, targets, weight, ignore_index, axis)
    if label_smoothing == 0:
        return _weighted("cross_entropy", -chosen, weights, reduction)
    spread = _class_weights(weight, x, axis)
    even = -rnp.sum(log_probs * spread, axis) / x.shape[axis]
    even = rnp.where(targets == ignore_index, 0, even)
    losses = (1 - label_smoothing) * (-chosen * weights) + label_smoothing * even
    if reduction == "mean":
        return rnp.sum(losses) / rnp.sum(weights)
    return _reduced("cross_entropy", losses, reduction)


def _class_weights(weight: Any, x: Any, axis: int) -> Any:
    if weight is None:
        return rnp.ones((), x.dtype)
    return rnp.reshape(weight, (-1, *(1,) * (x.ndim - 1 - axis))).astype(x.dtype)


def _of_distributions(
    log_probs: Any, targets: Any, weight: Any, axis: int, reduction: Reduction, smoothing: float
) -> Any:
    mixed = targets * (1 - smoothing) + smoothing / log_probs.shape[axis]
    terms = mixed * _class_weights(weight, log_probs, axis) * log_probs
    # A class of probability 0 adds nothing, even where its logit is -inf.
    losses = -rnp.sum(rnp.where(mixed == 0, 0, terms), axis)
    return _reduced("cross_entropy", losses, reduction)


def binary_cross_entropy(
    probs: Any, targets: Any, weight: Any = None, reduction: Reduction = "mean"
) -> Any:
    """-(t log p + (1 - t) log(1 - p)), both logarithms kept at least -100.

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
    return _reduced("binary_cross_entropy", losses, reduction)


def _log_above(x: Any) -> Any:
    some = x > 0
    return rnp.where(some, rnp.maximum(rnp.log(rnp.where(some, x, 1)), -100.0), -100.0)


def binary_cross_entropy_with_logits(
    logits: Any, targets: Any, weight: Any = None, reduction: Reduction = "mean",
    pos_weight: Any = None,
) -> Any:  # fmt: skip
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
    return _reduced("binary_cross_entropy_with_logits", losses, reduction)


def kl_div(
    log_probs: Any, targets: Any, reduction: Literal["mean", "sum", "none", "batchmean"] = "mean",
    log_target: bool = False,
) -> Any:  # fmt: skip
    """t (log t - log_probs), 0 where t is 0; with log_target the targets are logarithms.

    reduction: also "batchmean", the sum divided by the size of the first axis.
    Source: Kullback & Leibler 1951.
    Shapes: broadcast together -> []; for reduction "none" their joint shape.
    Types:  bools and integers become floats.
    Errors: ArgumentError for another `reduction`; DtypeError if an argument is not an array or
            `targets` is complex; ShapeError for shapes that do not fit.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.kl_div(rnp.array([-1.0, -2.0]), rnp.array([0.0, 1.0]), "sum")
    Array(2., f32[], cpu:0)
    """
    x, t = real(log_probs), real(targets)
    if log_target:
        losses = rnp.exp(t) * (t - x)
    else:
        known = t > 0
        losses = rnp.where(known, t * (rnp.log(rnp.where(known, t, 1)) - x), 0 * t)
    if reduction == "batchmean":
        if losses.ndim == 0:
            raise ShapeError("kl_div: cannot divide by the size of a batch ('batchmean' of rank 0)")
        return rnp.sum(losses) / losses.shape[0]
    return _reduced("kl_div", losses, reduction)


# --- of differences ---------------------------------------------------------------------------


def l1_loss(x: Any, targets: Any, reduction: Reduction = "mean") -> Any:
    """|x - targets|; the derivative at 0 is 0.

    Shapes: broadcast together -> []; for reduction "none" their joint shape.
    Types:  integers become floats.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.l1_loss(rnp.array([1.0, 4.0]), 2.0)
    Array(1.5, f32[], cpu:0)
    """
    difference = rnp.subtract(x, targets)
    return _reduced("l1_loss", difference * rnp.sign(difference), reduction)


def mse_loss(x: Any, targets: Any, reduction: Reduction = "mean") -> Any:
    """(x - targets)².

    Shapes: broadcast together -> []; for reduction "none" their joint shape.
    Types:  integers become floats.
    Errors: ArgumentError if an argument is not an array or `reduction` is unknown.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.mse_loss(rnp.array([1.0, 4.0]), 2.0, "sum")
    Array(5., f32[], cpu:0)
    """
    return _reduced("mse_loss", rnp.square(rnp.subtract(x, targets)), reduction)


def huber_loss(x: Any, targets: Any, reduction: Reduction = "mean", delta: float = 1.0) -> Any:
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
    return _reduced("huber_loss", losses, reduction)


def smooth_l1_loss(x: Any, targets: Any, reduction: Reduction = "mean", beta: float = 1.0) -> Any:
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
    return _reduced("smooth_l1_loss", huber_loss(x, targets, "none", beta) / beta, reduction)


# --- of sequences -----------------------------------------------------------------------------


def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: Reduction = "mean", zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """-log of the probability of every target sequence, summed over all its alignments.

    Shapes: log_probs [T, N, C], targets int[N, S], lengths int[N].
    Types:  real; bools and integers become floats.
    reduction: "mean" divides each loss by its target's length first.
    zero_infinity: 0, and no gradient, where no alignment is long enough (otherwise +inf).
    Source: Graves et al. 2006, Connectionist temporal classification, ICML.
    Errors: DtypeError if an argument is not an array, complex numbers as `log_probs`, anything but
            integers as `targets`, complex numbers as `input_lengths` and anything but integers and
            bools as `target_lengths`; ShapeError for shapes that do not fit; AxisError for an axis
            out of range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> even = rnp.log(rnp.full((2, 1, 2), 0.5))
    >>> loss = nn.ctc_loss(even, rnp.array([[1]]), rnp.array([2]), rnp.array([1]))
    >>> rnp.exp(-loss)  # three of four alignments: 11, 1-, -1
    Array(0.75, f32[], cpu:0)
    """
    x, targets = real(log_probs), rnp.asarray(targets)
    lengths, sizes = rnp.asarray(input_lengths), rnp.asarray(target_lengths)
    if x.ndim != 3 or targets.ndim != 2 or targets.shape[0] != x.shape[1]:
        raise ShapeError(
            f"ctc_loss: cannot align {targets.type} with {x.type} ([T, N, C] and int[N, S])"
        )
    n, s = targets.shape
    labels = rnp.full((n, 2 * s + 1), blank, targets.dtype).at[:, 1::2].set(targets)
    # A place may be reached from two before it if that is another label.
    skips = rnp.concatenate([rnp.zeros((n, 2), bool), labels[:, 2:] != labels[:, :-2]], 1) & (
        labels != blank
    )
    least = rnp.asarray(-rnp.inf, x.dtype)
    emitted = rnp.take_along_axis(x, rnp.broadcast_to(labels, (x.shape[0], n, 2 * s + 1)), 2)
    first = rnp.where(rnp.arange(2 * s + 1) < 2, emitted[0], least)

    def step(alpha: Any, row: Any) -> tuple[Any, None]:
        emission, t = row
        one = rnp.concatenate([rnp.full((n, 1), least), alpha[:, :-1]], 1)
        two = rnp.concatenate([rnp.full((n, 2), least), alpha[:, :-2]], 1)
        after = _log_add(_log_add(alpha, one), rnp.where(skips, two, least)) + emission
        return rnp.where((t < lengths)[:, None], after, alpha), None

    alpha, _ = control.scan(step, first, (emitted[1:], rnp.arange(1, x.shape[0])))
    end = rnp.take_along_axis(alpha, (2 * sizes)[:, None], 1)[:, 0]
    before = rnp.take_along_axis(alpha, rnp.maximum(2 * sizes - 1, 0)[:, None], 1)[:, 0]
    losses = -_log_add(end, rnp.where(sizes > 0, before, least))
    if zero_infinity:
        losses = rnp.where(rnp.isinf(ops.stop_gradient(losses)), 0, losses)
    if reduction == "mean":
        return rnp.mean(losses / rnp.maximum(sizes, 1).astype(x.dtype))
    return _reduced("ctc_loss", losses, reduction)


def _log_add(a: Any, b: Any) -> Any:
    """log(exp a + exp b); where both are -inf, -inf with derivatives 0 instead of NaN."""
    largest = rnp.maximum(a, b)
    nothing = rnp.isneginf(largest)
    shift = ops.stop_gradient(rnp.where(nothing, 0, largest))
    total = rnp.exp(a - shift) + rnp.exp(b - shift)
    return rnp.where(nothing, -rnp.inf, rnp.log(rnp.where(nothing, 1, total)) + shift)
