"""The loss of sequences whose alignment with the target is not known."""

from __future__ import annotations

import rune.numpy as rnp
from rune import control, ops
from rune.array import Array
from rune.errors import ShapeError
from rune.nn.losses.reduction import Reduction, reduced
from rune.nn.support import real
from rune.typing import ArrayLike


def ctc_loss(
    log_probs: ArrayLike,
    targets: ArrayLike,
    input_lengths: ArrayLike,
    target_lengths: ArrayLike,
    blank: int = 0,
    reduction: Reduction = "mean",
    zero_infinity: bool = False,
) -> Array:
    """-log of the probability of every target sequence, summed over all its alignments.

    Shapes: log_probs [T, N, C], targets int[N, S], lengths int[N].
    Types:  real; bools and integers become floats.
    reduction: "mean" divides each loss by its target's length first.
    zero_infinity: 0, and no gradient, where no alignment is long enough (otherwise +inf).
    Source: Graves et al. 2006, Connectionist temporal classification, ICML.
    Errors: DtypeError if an argument is not an array, for complex `log_probs` or `input_lengths`,
            unless `targets` are integers, and unless `target_lengths` are integers or bools;
            ShapeError if the shapes do not match; AxisError for an axis out of range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> even = rnp.log(rnp.full((2, 1, 2), 0.5))
    >>> loss = nn.ctc_loss(even, rnp.array([[1]]), rnp.array([2]), rnp.array([1]))
    >>> rnp.exp(-loss)  # three of four alignments: 11, 1-, -1
    Array(0.75, f32[], cpu:0)
    """
    x, targets = real(log_probs), rnp.asarray(targets)
    lengths, sizes = rnp.asarray(input_lengths), rnp.asarray(target_lengths)
    if x.ndim != 3 or targets.ndim != 2 or targets.shape[0] != x.shape[1]:
        raise ShapeError(f"ctc_loss: cannot align {targets.type} with {x.type} ([T, N, C] and int[N, S])")
    n, s = targets.shape
    # What stands behind a target need not be a class, and is not read.
    targets = rnp.where(rnp.arange(s) < sizes[:, None], targets, blank)
    labels = rnp.full((n, 2 * s + 1), blank, targets.dtype).at[:, 1::2].set(targets)
    # A place may be reached from two before it if that is another label.
    skips = (labels != _later(labels, 2, blank)) & (labels != blank)
    least = rnp.asarray(-rnp.inf, x.dtype)
    label_scores = rnp.take_along_axis(x, rnp.broadcast_to(labels, (x.shape[0], n, 2 * s + 1)), 2)
    # Before the first step, as after a blank.
    start = rnp.broadcast_to(rnp.where(rnp.arange(2 * s + 1) == 0, 0, least), (n, 2 * s + 1))

    def step(alpha: Array, row: tuple[Array, Array]) -> tuple[Array, None]:
        emission, t = row
        skipped = rnp.where(skips, _later(alpha, 2, least), least)
        after = _log_add(_log_add(alpha, _later(alpha, 1, least)), skipped) + emission
        return rnp.where((t < lengths)[:, None], after, alpha), None

    alpha, _ = control.scan(step, start, (label_scores, rnp.arange(x.shape[0])))
    end = rnp.take_along_axis(alpha, (2 * sizes)[:, None], 1)[:, 0]
    before = rnp.take_along_axis(alpha, rnp.maximum(2 * sizes - 1, 0)[:, None], 1)[:, 0]
    losses = -_log_add(end, rnp.where(sizes > 0, before, least))
    if zero_infinity:
        losses = rnp.where(rnp.isinf(ops.stop_gradient(losses)), 0, losses)
    if reduction == "mean":
        return rnp.mean(losses / rnp.maximum(sizes, 1).astype(x.dtype))
    return reduced("ctc_loss", losses, reduction)


def _later(rows: Array, by: int, fill: ArrayLike) -> Array:
    """The elements of rows moved to later places, and numbers in the first ones."""
    return rnp.pad(rows, ((0, 0), (by, 0)), constant_values=fill)[:, : rows.shape[1]]


def _log_add(a: Array, b: Array) -> Array:
    """log(exp a + exp b); where both are -inf, -inf with derivatives 0 instead of NaN."""
    largest = rnp.maximum(a, b)
    nothing = rnp.isneginf(largest)
    shift = ops.stop_gradient(rnp.where(nothing, 0, largest))
    total = rnp.exp(a - shift) + rnp.exp(b - shift)
    return rnp.where(nothing, -rnp.inf, rnp.log(rnp.where(nothing, 1, total)) + shift)
