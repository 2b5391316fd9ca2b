"""The usual optimisers, as chains of parts."""

from __future__ import annotations

from rune.optim.transforms import (
    Optimizer,
    Rate,
    add_decayed_weights,
    chain,
    scale_by_adam,
    scale_by_learning_rate,
    trace,
)


def sgd(learning_rate: Rate, momentum: float | None = None, nesterov: bool = False) -> Optimizer:
    """Stochastic gradient descent, with momentum if given.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> optimizer = optim.sgd(0.5)
    >>> updates, _ = optimizer.update(rnp.array([2.0]), optimizer.init(rnp.zeros(1)))
    >>> updates
    Array([-1.], f32[1], cpu:0)
    """
    if momentum is None:
        return chain(scale_by_learning_rate(learning_rate))
    return chain(trace(momentum, nesterov), scale_by_learning_rate(learning_rate))


def momentum(learning_rate: Rate, decay: float = 0.9, nesterov: bool = False) -> Optimizer:
    """Gradient descent with momentum: `sgd(learning_rate, decay, nesterov)`."""
    return sgd(learning_rate, decay, nesterov)


def adam(
    learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
    eps_root: float = 0.0,
) -> Optimizer:  # fmt: skip
    """Adam. Source: Kingma & Ba 2014, arXiv:1412.6980.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> optimizer = optim.adam(0.5)
    >>> updates, _ = optimizer.update(rnp.array([3.0]), optimizer.init(rnp.zeros(1)))
    >>> rnp.round(updates, 3)
    Array([-0.5], f32[1], cpu:0)
    """
    return chain(scale_by_adam(b1, b2, eps, eps_root), scale_by_learning_rate(learning_rate))


def adamw(
    learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
    eps_root: float = 0.0, weight_decay: float = 1e-4,
) -> Optimizer:  # fmt: skip
    """Adam with decay of the weights beside it. Source: Loshchilov & Hutter, arXiv:1711.05101."""
    return chain(
        scale_by_adam(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay),
        scale_by_learning_rate(learning_rate),
    )
