"""rune.optim: optimisers as pairs of pure functions on trees, in the form of Optax.

    optimizer = optim.adam(1e-3)
    state = optimizer.init(params)
    updates, state = optimizer.update(grads, state, params)
    params = optim.apply_updates(params, updates)

optimizers  sgd, adam, adamw, rmsprop, lion, …     transforms, scaling, factored  what they are of
adaptive    radam, adabelief, novograd, …           signs       sign_sgd, rprop, polyak_sgd, …
quasi_newton, line_searches   lbfgs                 schedules   rates as functions of the step
wrappers    masked, multi_steps, apply_if_finite, … clipping    gradients within bounds
averages    lookahead, incremental_update           hyperparameters  inject_hyperparams

A state is a tree of arrays, step count included, so the whole step can be jitted, donated and
saved. A learning rate is a number, an array, or a schedule: a function of the step count.

A state keeps the dtypes of the parameters, whatever those of the gradients: a step may be the body
of a loop. Squares of complex numbers are those of magnitudes, and real in the state; optimisers
that compare numbers refuse complex leaves. Downhill is minus the conjugate of `rune.grad`, as in
Optax.
"""

# isort: off
import typing as _typing

from rune.absent import of as _absent
from rune.optim.adaptive import (
    adabelief,
    adan,
    amsgrad,
    novograd,
    radam,
    scale_by_adan,
    scale_by_amsgrad,
    scale_by_belief,
    scale_by_novograd,
    scale_by_radam,
)
from rune.optim.averages import LookaheadParams, incremental_update, lookahead, periodic_update
from rune.optim.clipping import (
    adaptive_grad_clip,
    centralize,
    clip,
    clip_by_block_rms,
    clip_by_global_norm,
    ema,
    zero_nans,
)
from rune.optim.factored import scale_by_factored_rms
from rune.optim.hyperparameters import inject_hyperparams
from rune.optim.line_searches import (
    scale_by_backtracking_linesearch,
    scale_by_zoom_linesearch,
    value_and_grad_from_state,
)
from rune.optim.optimizers import (
    adadelta,
    adafactor,
    adagrad,
    adam,
    adamax,
    adamaxw,
    adamw,
    lamb,
    lars,
    lion,
    momentum,
    nadam,
    nadamw,
    rmsprop,
    sgd,
    yogi,
)
from rune.optim.quasi_newton import lbfgs, scale_by_lbfgs
from rune.optim.scaling import (
    scale,
    scale_by_adadelta,
    scale_by_adamax,
    scale_by_lion,
    scale_by_param_block_rms,
    scale_by_rms,
    scale_by_rss,
    scale_by_schedule,
    scale_by_stddev,
    scale_by_trust_ratio,
    scale_by_yogi,
)
from rune.optim.schedules import (
    constant_schedule,
    cosine_decay_schedule,
    cosine_onecycle_schedule,
    exponential_decay,
    join_schedules,
    linear_onecycle_schedule,
    linear_schedule,
    piecewise_constant_schedule,
    piecewise_interpolate_schedule,
    polynomial_schedule,
    sgdr_schedule,
    warmup_constant_schedule,
    warmup_cosine_decay_schedule,
    warmup_exponential_decay_schedule,
)
from rune.optim.signs import (
    add_noise,
    noisy_sgd,
    normalize_by_update_norm,
    optimistic_gradient_descent,
    polyak_sgd,
    rprop,
    scale_by_optimistic_gradient,
    scale_by_polyak,
    scale_by_rprop,
    scale_by_sign,
    sign_sgd,
    signum,
)
from rune.optim.transforms import (
    ExtraArgsOptimizer,
    Optimizer,
    add_decayed_weights,
    apply_updates,
    chain,
    global_norm,
    identity,
    named_chain,
    scale_by_adam,
    scale_by_learning_rate,
    stateless,
    trace,
    with_extra_args_support,
)
from rune.optim.wrappers import (
    apply_every,
    apply_if_finite,
    conditionally_transform,
    freeze,
    keep_params_nonnegative,
    masked,
    multi_steps,
    multi_transform,
    set_to_zero,
)

GradientTransformation = Optimizer
GradientTransformationExtraArgs = ExtraArgsOptimizer
MultiSteps = multi_steps
partition = multi_transform

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
