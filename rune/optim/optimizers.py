"""The usual optimisers, as chains of parts, under Optax's names and arguments.

A learning rate is a number, an array, or a schedule. `mask` says which leaves decay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rune.optim.clipping import clip_by_block_rms, ema
from rune.optim.factored import scale_by_factored_rms
from rune.optim.scaling import (
    scale,
    scale_by_adadelta,
    scale_by_adamax,
    scale_by_lion,
    scale_by_param_block_rms,
    scale_by_rms,
    scale_by_rss,
    scale_by_stddev,
    scale_by_trust_ratio,
    scale_by_yogi,
)
from rune.optim.transforms import (
    Optimizer,
    Rate,
    add_decayed_weights,
    chain,
    scale_by_adam,
    scale_by_learning_rate,
    trace,
)
from rune.optim.wrappers import masked


def sgd(learning_rate: Rate, momentum: float | None = None, nesterov: bool = False) -> Optimizer:
    """Stochastic gradient descent, with momentum if given.

    Shapes: updates are a tree like the gradients, and so is the velocity of momentum in the state.
    Types:  each leaf in its dtype, floating or complex.
    Errors: ArgumentError if an argument is not an array.

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
    """Gradient descent with momentum: `sgd(learning_rate, decay, nesterov)`.

    Shapes: updates, and the velocity in the state, are trees like the parameters.
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.momentum(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-1.5,  2. ], f32[2], cpu:0)
    """
    return sgd(learning_rate, decay, nesterov)


def adam(
    learning_rate: Rate,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    *,
    nesterov: bool = False,
) -> Optimizer:
    """Adam. Source: Kingma & Ba 2014, arXiv:1412.6980.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> optimizer = optim.adam(0.5)
    >>> updates, _ = optimizer.update(rnp.array([3.0]), optimizer.init(rnp.zeros(1)))
    >>> rnp.round(updates, 3)
    Array([-0.5], f32[1], cpu:0)
    """
    return chain(scale_by_adam(b1, b2, eps, eps_root, nesterov), scale_by_learning_rate(learning_rate))


def adamw(
    learning_rate: Rate,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    weight_decay: float = 1e-4,
    mask: object = None,
    *,
    nesterov: bool = False,
) -> Optimizer:
    """Adam with decay of the weights beside it. Source: Loshchilov & Hutter, arXiv:1711.05101.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.adamw(0.5, weight_decay=0.1), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.55,  0.4 ], f32[2], cpu:0)
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, nesterov),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


def nadam(
    learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0
) -> Optimizer:
    """Adam with Nesterov momentum. Source: Dozat 2016, Incorporating Nesterov momentum, ICLR.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.nadam(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.7368,  0.7368], f32[2], cpu:0)
    """
    return adam(learning_rate, b1, b2, eps, eps_root, nesterov=True)


def nadamw(
    learning_rate: Rate,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    weight_decay: float = 1e-4,
    mask: object = None,
) -> Optimizer:
    """`adamw` with Nesterov momentum.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.nadamw(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.7369,  0.7367], f32[2], cpu:0)
    """
    return adamw(learning_rate, b1, b2, eps, eps_root, weight_decay, mask, nesterov=True)


def adamax(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimizer:
    """Adam by the largest gradient. Source: Kingma & Ba 2014, arXiv:1412.6980, algorithm 2.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.adamax(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.5,  0.5], f32[2], cpu:0)
    """
    return chain(scale_by_adamax(b1, b2, eps), scale_by_learning_rate(learning_rate))


def adamaxw(
    learning_rate: Rate,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 1e-4,
    mask: object = None,
) -> Optimizer:
    """`adamax` with decay of the weights beside it.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.adamaxw(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.5   ,  0.4999], f32[2], cpu:0)
    """
    return chain(
        scale_by_adamax(b1, b2, eps), add_decayed_weights(weight_decay, mask), scale_by_learning_rate(learning_rate)
    )


def rmsprop(
    learning_rate: Rate,
    decay: float = 0.9,
    eps: float = 1e-8,
    initial_scale: float = 0.0,
    eps_in_sqrt: bool = True,
    centered: bool = False,
    momentum: float | None = None,
    nesterov: bool = False,
) -> Optimizer:
    """Gradients over the root of their mean square, with momentum if given.

    centered: squares are taken about the running mean.   eps_in_sqrt: eps below the root.
    Shapes: updates, and nu in the state (centered: mu too; with momentum: the velocity), are trees
            like the parameters.
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Source: Hinton 2012, lecture 6a; centered, Graves 2013, arXiv:1308.0850.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.rmsprop(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-1.5811,  1.5811], f32[2], cpu:0)
    """
    by = scale_by_stddev if centered else scale_by_rms
    parts = [by(decay, eps, initial_scale, eps_in_sqrt), scale_by_learning_rate(learning_rate)]
    return chain(*parts) if momentum is None else chain(*parts, trace(momentum, nesterov))


def adagrad(learning_rate: Rate, initial_accumulator_value: float = 0.1, eps: float = 1e-7) -> Optimizer:
    """Gradients over the root of the sum of their squares. Source: Duchi et al. 2011, JMLR 12.

    Shapes: updates, and nu in the state, are trees like the parameters.
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.adagrad(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.4972,  0.4984], f32[2], cpu:0)
    """
    return chain(scale_by_rss(initial_accumulator_value, eps), scale_by_learning_rate(learning_rate))


def adadelta(
    learning_rate: Rate = 1.0,
    rho: float = 0.9,
    eps: float = 1e-6,
    weight_decay: float = 0.0,
    weight_decay_mask: object = None,
) -> Optimizer:
    """Updates in the unit of the parameters. Source: Zeiler 2012, arXiv:1212.5701.

    Shapes: updates, and e_g and e_x in the state, are trees like the parameters.
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.adadelta(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.0016,  0.0016], f32[2], cpu:0)
    """
    return chain(
        add_decayed_weights(weight_decay, weight_decay_mask),
        scale_by_adadelta(rho, eps),
        scale_by_learning_rate(learning_rate),
    )


def yogi(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-3) -> Optimizer:
    """Adam whose mean of squares moves additively. Source: Zaheer et al. 2018, NeurIPS.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.yogi(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.4998,  0.4999], f32[2], cpu:0)
    """
    return chain(scale_by_yogi(b1, b2, eps), scale_by_learning_rate(learning_rate))


def lion(
    learning_rate: Rate, b1: float = 0.9, b2: float = 0.99, weight_decay: float = 1e-3, mask: object = None
) -> Optimizer:
    """Steps of one size, by the momentum's sign. Source: Chen et al. 2023, arXiv:2302.06675.

    Shapes: updates, and mu in the state, are trees like the parameters.
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.lion(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.5005,  0.499 ], f32[2], cpu:0)
    """
    return chain(scale_by_lion(b1, b2), add_decayed_weights(weight_decay, mask), scale_by_learning_rate(learning_rate))


# --- layer by layer ---------------------------------------------------------------------------


def lamb(
    learning_rate: Rate,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-6,
    eps_root: float = 0.0,
    weight_decay: float = 0.0,
    mask: object = None,
) -> Optimizer:
    """Adam, each leaf's step as long as its parameter. Source: You et al., arXiv:1904.00962.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.lamb(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.7906,  0.7906], f32[2], cpu:0)
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_trust_ratio(),
        scale_by_learning_rate(learning_rate),
    )


def lars(
    learning_rate: Rate,
    weight_decay: float = 0.0,
    weight_decay_mask: object = True,
    trust_coefficient: float = 0.001,
    eps: float = 0.0,
    trust_ratio_mask: object = True,
    momentum: float = 0.9,
    nesterov: bool = False,
) -> Optimizer:
    """Momentum with every leaf's step in proportion to its parameter.

    Shapes: updates, and the velocity in the state, are trees like the parameters.
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Source: You et al. 2017, arXiv:1708.03888.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o = optim.lars(0.5, trust_coefficient=0.1)
    >>> g, p = rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.0671,  0.0894], f32[2], cpu:0)
    """
    return chain(
        add_decayed_weights(weight_decay, weight_decay_mask),
        masked(scale_by_trust_ratio(0.0, trust_coefficient, eps), trust_ratio_mask),
        scale_by_learning_rate(learning_rate),
        trace(momentum, nesterov),
    )


def adafactor(
    learning_rate: Rate | None = None,
    min_dim_size_to_factor: int = 128,
    decay_rate: float = 0.8,
    decay_offset: int = 0,
    multiply_by_parameter_scale: bool = True,
    clipping_threshold: float | None = 1.0,
    momentum: float | None = None,
    weight_decay_rate: float | None = None,
    eps: float = 1e-30,
    factored: bool = True,
    weight_decay_mask: object = None,
) -> Optimizer:
    """Adam with second moments of matrices kept as rows and columns.

    Shapes: updates are a tree like the parameters; the state is that of `scale_by_factored_rms`,
            and with momentum that of `ema`.
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Source: Shazeer & Stern 2018, arXiv:1804.04235.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.adafactor(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.7906,  0.7906], f32[2], cpu:0)
    """
    parts = [scale_by_factored_rms(factored, decay_rate, decay_offset, min_dim_size_to_factor, eps)]
    if clipping_threshold is not None:
        parts.append(clip_by_block_rms(clipping_threshold))
    if learning_rate is not None:
        parts.append(_uphill(learning_rate))
    if multiply_by_parameter_scale:
        parts.append(scale_by_param_block_rms())
    if momentum is not None:
        parts.append(ema(momentum, debias=False))
    if weight_decay_rate is not None:
        parts.append(add_decayed_weights(weight_decay_rate, weight_decay_mask))
    return chain(*parts, scale(-1.0))


def _uphill(learning_rate: Rate) -> Optimizer:
    """Updates times the learning rate, the sign kept."""
    if not callable(learning_rate):
        return scale(learning_rate)
    schedule: Callable[[Any], Any] = learning_rate
    return scale_by_learning_rate(lambda count: -schedule(count))
