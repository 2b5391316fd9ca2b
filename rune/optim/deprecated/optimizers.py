"""More of the usual optimizers, as chains of parts, under Optax's names and arguments.

A learning rate is a number, an array, or a schedule. `mask` says which leaves decay.
"""

from __future__ import annotations

from typing import Any

from rune.optim.deprecated.clipping import clip_by_block_rms, ema
from rune.optim.deprecated.factored import scale_by_factored_rms
from rune.optim.deprecated.scaling import (
    scale,
    scale_by_adadelta,
    scale_by_adamax,
    scale_by_param_block_rms,
    scale_by_trust_ratio,
    scale_by_yogi,
)
from rune.optim.deprecated.states import Optimizer
from rune.optim.deprecated.wrappers import masked
from rune.optim.optimizers import adam, adamw
from rune.optim.parts import Rate, add_decayed_weights, scale_by_adam, scale_by_learning_rate, trace
from rune.optim.transforms import chain


def nadam(
    learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0
) -> Optimizer:
    """Adam with Nesterov momentum. Source: Dozat 2016, Incorporating Nesterov momentum, ICLR.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.nadam(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
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

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.nadamw(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.7369,  0.7367], f32[2], cpu:0)
    """
    return adamw(learning_rate, b1, b2, eps, eps_root, weight_decay, mask, nesterov=True)


def adamax(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimizer:
    """Adam by the largest gradient. Source: Kingma & Ba 2014, arXiv:1412.6980, algorithm 2.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.adamax(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
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
    """`adamax` with decoupled weight decay.

    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.adamaxw(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.5   ,  0.4999], f32[2], cpu:0)
    """
    return chain(
        scale_by_adamax(b1, b2, eps), add_decayed_weights(weight_decay, mask), scale_by_learning_rate(learning_rate)
    )


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

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.adadelta(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
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

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.yogi(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.4998,  0.4999], f32[2], cpu:0)
    """
    return chain(scale_by_yogi(b1, b2, eps), scale_by_learning_rate(learning_rate))


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

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.lamb(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
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

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o = deprecated.lars(0.5, trust_coefficient=0.1)
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

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.adafactor(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
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
    """Updates times the learning rate, without a change of sign."""
    rate: Any = learning_rate
    return scale_by_learning_rate(lambda count: -rate(count)) if callable(learning_rate) else scale(rate)
