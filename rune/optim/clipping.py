"""Parts that limit gradients; they come first in a chain."""

from __future__ import annotations

import rune.numpy as rnp
from rune import tree
from rune.optim.leaves import Tree, real_leaves, scaled
from rune.optim.transforms import GradientTransformation, global_norm, stateless
from rune.transforms.arguments import required_number


def clip(max_delta: float) -> GradientTransformation:
    """Every element of the gradients clipped to ±max_delta.

    Shapes: as the gradients; no state. Types: as the gradients, real.
    Errors: ArgumentError for a bound below 0; DtypeError from `update` for complex leaves.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> optim.clip(1.0).update(rnp.array([-3.0, 0.5]), ())[0]
    Array([-1. ,  0.5], f32[2], cpu:0)
    """
    required_number("clip", "max_delta", max_delta, 0)
    return stateless(
        lambda grads, _: tree.map(lambda g: rnp.clip(g, -max_delta, max_delta), real_leaves("clip", grads))
    )


def clip_by_global_norm(max_norm: float) -> GradientTransformation:
    """All updates scaled down by one factor, so that their global norm is at most `max_norm`.

    Shapes: as the gradients; no state. Types: as the gradients.
    Errors: ArgumentError for a norm below 0. Source: Pascanu et al. 2012, arXiv:1211.5063.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> optim.clip_by_global_norm(1.0).update(rnp.array([3.0, -4.0]), ())[0]
    Array([ 0.6, -0.8], f32[2], cpu:0)
    """
    required_number("clip_by_global_norm", "max_norm", max_norm, 0)

    def rule(grads: Tree, params: Tree) -> Tree:
        norm = global_norm(grads)
        return scaled(grads, rnp.where(norm > max_norm, max_norm / norm, 1.0))

    return stateless(rule)
