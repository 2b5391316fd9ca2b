"""The usual optimizers, as chains of parts, under Optax's names and arguments.

`learning_rate` is a number, a rank-0 array, or a schedule: a function from the step count to one.
`mask` says which leaves decay: a tree of bools like the parameters (or a prefix of it), or a
function from the parameters to such a tree.
"""

from __future__ import annotations

from rune.optim import parts
from rune.optim.parts import Mask, Rate
from rune.optim.transforms import GradientTransformation, chain


def sgd(learning_rate: Rate, momentum: float | None = None, nesterov: bool = False) -> GradientTransformation:
    """Stochastic gradient descent, with momentum if given. Source: Robbins & Monro 1951.

    The update is -learning_rate · g for the gradient g, or -learning_rate · v with the velocity
    v ← g + momentum · v; with `nesterov`, -learning_rate · (g + momentum · v).

    Shapes: updates, and a velocity in the state, as the parameters. Types: as the parameters.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g = optim.sgd(0.5), rnp.array([2.0])
    >>> o.update(g, o.init(g))[0]
    Array([-1.], f32[1], cpu:0)
    """
    step = parts.scale_by_learning_rate(learning_rate)
    return chain(step) if momentum is None else chain(parts.trace(momentum, nesterov), step)


def momentum(learning_rate: Rate, decay: float = 0.9, nesterov: bool = False) -> GradientTransformation:
    """Gradient descent with momentum: `sgd(learning_rate, decay, nesterov)`.

    Shapes: updates, and the velocity in the state, as the parameters. Types: as the parameters.
    Errors: ArgumentError if an argument is not an array.
    Source: Polyak 1964; nesterov, Nesterov 1983.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g = optim.momentum(0.5), rnp.array([3.0, -4.0])
    >>> o.update(g, o.init(g))[0]
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
) -> GradientTransformation:
    """Adam: the running mean m of gradients over the root of the running mean v of their squares.

    The update is -learning_rate · m / (sqrt(v + eps_root) + eps); m decays by b1 and v by b2 in
    each step, and both are corrected for their start at 0. With `nesterov`, m is the mean as it
    will be after one more step with this gradient.

    Shapes: updates, mu and nu as the parameters; count i32 []. Types: as the parameters, nu real.
    Errors: ArgumentError if an argument is not an array.
    Source: Kingma & Ba 2014, arXiv:1412.6980.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g = optim.adam(0.5), rnp.array([3.0])
    >>> rnp.round(o.update(g, o.init(g))[0], 3)
    Array([-0.5], f32[1], cpu:0)
    """
    return chain(parts.scale_by_adam(b1, b2, eps, eps_root, nesterov), parts.scale_by_learning_rate(learning_rate))


def adamw(
    learning_rate: Rate,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    weight_decay: float = 1e-4,
    mask: Mask = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Adam with decoupled weight decay: the update also has -learning_rate · weight_decay · p.

    `update` needs the parameters p. `mask` selects the leaves that decay, by default all; the other
    arguments are those of `adam`.

    Shapes: updates, mu and nu as the parameters; count i32 []. Types: as the parameters, nu real.
    Errors: ArgumentError if an argument is not an array.
    Source: Loshchilov & Hutter 2017, arXiv:1711.05101.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.adamw(0.5, weight_decay=0.1), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.55,  0.4 ], f32[2], cpu:0)
    """
    decay = parts.add_decayed_weights(weight_decay, mask)
    return chain(
        parts.scale_by_adam(b1, b2, eps, eps_root, nesterov), decay, parts.scale_by_learning_rate(learning_rate)
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
) -> GradientTransformation:
    """Gradients over the root of the running mean v of their squares.

    The update is -learning_rate · g / sqrt(v + eps), or -learning_rate · g / (sqrt(v) + eps)
    without `eps_in_sqrt`; v starts at `initial_scale` and decays by `decay` in each step. With
    `centered`, v is the variance of the gradients, not the mean of their squares. `momentum` and
    `nesterov` act on these updates as in `sgd`.

    Shapes: updates and nu, with `centered` mu and with momentum the velocity, as the parameters.
    Types:  as the parameters, nu real. Errors: ArgumentError if an argument is not an array.
    Source: Hinton 2012, lecture 6a; centered, Graves 2013, arXiv:1308.0850.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g = optim.rmsprop(0.5), rnp.array([3.0, -4.0])
    >>> rnp.round(o.update(g, o.init(g))[0], 4)
    Array([-1.5811,  1.5811], f32[2], cpu:0)
    """
    by_squares = parts.scale_by_rms(decay, eps, initial_scale, eps_in_sqrt, centered)
    steps = [by_squares, parts.scale_by_learning_rate(learning_rate)]
    return chain(*steps) if momentum is None else chain(*steps, parts.trace(momentum, nesterov))


def adagrad(learning_rate: Rate, initial_accumulator_value: float = 0.1, eps: float = 1e-7) -> GradientTransformation:
    """Gradients over the root of the sum of their squares so far. Source: Duchi et al. 2011, JMLR
    12.

    The update is -learning_rate · g / sqrt(s + eps), where s starts at `initial_accumulator_value`
    and grows by |g|² in each step; it is 0 where s is 0.

    Shapes: updates and nu as the parameters. Types: as the parameters, nu real.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g = optim.adagrad(0.5), rnp.array([3.0, -4.0])
    >>> rnp.round(o.update(g, o.init(g))[0], 4)
    Array([-0.4972,  0.4984], f32[2], cpu:0)
    """
    return chain(parts.scale_by_rss(initial_accumulator_value, eps), parts.scale_by_learning_rate(learning_rate))


def lion(
    learning_rate: Rate, b1: float = 0.9, b2: float = 0.99, weight_decay: float = 1e-3, mask: Mask = None
) -> GradientTransformation:
    """Lion: steps of one size, in the direction of the momentum's sign.

    The update is -learning_rate · (sign((1 - b1) · g + b1 · m) + weight_decay · p), where the
    running mean m of gradients decays by b2 in each step. `update` needs the parameters p; `mask`
    selects the leaves that decay, by default all.

    Shapes: updates and mu as the parameters. Types: as the parameters.
    Errors: ArgumentError if an argument is not an array.
    Source: Chen et al. 2023, arXiv:2302.06675.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.lion(0.5, weight_decay=0.1), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.55,  0.4 ], f32[2], cpu:0)
    """
    return chain(
        parts.scale_by_lion(b1, b2),
        parts.add_decayed_weights(weight_decay, mask),
        parts.scale_by_learning_rate(learning_rate),
    )
