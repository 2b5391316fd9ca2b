"""Dropout: elements set to zero at random, the others scaled up to preserve the mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rune.numpy as rnp
from rune import random
from rune.array import Array
from rune.nn.support import real
from rune.ops.conventions import distinct, normalised_axes
from rune.random.streams import take_key
from rune.transforms.arguments import required_number
from rune.typing import ArrayLike


def dropout(
    x: Any,
    rate: Any,
    key: ArrayLike | None = None,
    *,
    deterministic: bool = False,
    broadcast_dims: Sequence[int] = (),
    name: str | None = None,
) -> Array:
    """`x` with each element set to 0 with probability `rate`, otherwise divided by 1 - rate.

    key:             a key, or None to draw one from `with rune.random.seed(…)`; with a `name`, that
                     key does not depend on other draws.
    deterministic:   returns x unchanged and draws nothing: for evaluation.
    broadcast_dims:  axes along which elements are kept or dropped together.
    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError for a rate outside 0…1; AxisError for an axis that x does not have.
    Source: Srivastava et al. 2014, JMLR 15; the scaling during training is the "inverted" form.

    >>> import rune, rune.nn as nn, rune.numpy as rnp
    >>> nn.dropout(rnp.ones(4), 0.5, rune.random.key(0))
    Array([0., 0., 2., 2.], f32[4], cpu:0)
    """
    required_number("dropout", "rate", rate, 0, 1)
    original, x = x, real(x)
    axes = normalised_axes("dropout", tuple(broadcast_dims), x.type)
    if deterministic or (isinstance(rate, int | float) and rate == 0):
        return distinct(x, original)
    shape = tuple(1 if a in axes else d for a, d in enumerate(x.shape))
    keep = 1.0 - rate
    lives = random.bernoulli(take_key("dropout", key, name), keep, shape)
    # If keep is 0 the quotient is infinite, but no element is selected.
    return rnp.where(lives, x / keep, 0.0).astype(x.dtype)
