"""Reduces one loss per example or element as the caller requests."""

from __future__ import annotations

from typing import Any, Literal

import rune.numpy as rnp
from rune.errors import ArgumentError
from rune.ops.family import wide
from rune.typing import ArrayLike

Reduction = Literal["mean", "sum", "none"]


def reduced(name: str, losses: ArrayLike, reduction: str, weights: ArrayLike | None = None) -> Any:
    """The mean or the sum of losses, or the losses themselves.

    weights: the factor already applied to each loss; the mean divides by their sum.
    Errors: ArgumentError for any other reduction.
    """
    if reduction == "mean" and weights is not None:
        # In f32 at least: the weights of many losses add up to more than a half type holds.
        total, count = (rnp.sum(x, dtype=wide(rnp.result_type(x))) for x in (losses, weights))
        return (total / count).astype(rnp.result_type(losses))
    if reduction == "mean":
        return rnp.mean(losses)
    if reduction not in ("sum", "none"):
        raise ArgumentError(f"{name}: cannot reduce by {reduction!r} (mean, sum or none)")
    return rnp.sum(losses) if reduction == "sum" else losses
