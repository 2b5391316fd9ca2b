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
    adabelief as adabelief,
    adan as adan,
    amsgrad as amsgrad,
    novograd as novograd,
    radam as radam,
    scale_by_adan as scale_by_adan,
    scale_by_amsgrad as scale_by_amsgrad,
    scale_by_belief as scale_by_belief,
    scale_by_novograd as scale_by_novograd,
    scale_by_radam as scale_by_radam,
)
from rune.optim.averages import (
    LookaheadParams as LookaheadParams,
    incremental_update as incremental_update,
    lookahead as lookahead,
    periodic_update as periodic_update,
)
from rune.optim.clipping import (
    adaptive_grad_clip as adaptive_grad_clip,
    centralize as centralize,
    clip as clip,
    clip_by_block_rms as clip_by_block_rms,
    clip_by_global_norm as clip_by_global_norm,
    ema as ema,
    zero_nans as zero_nans,
)
from rune.optim.factored import scale_by_factored_rms as scale_by_factored_rms
from rune.optim.hyperparameters import inject_hyperparams as inject_hyperparams
from rune.optim.line_searches import (
    scale_by_backtracking_linesearch as scale_by_backtracking_linesearch,
    scale_by_zoom_linesearch as scale_by_zoom_linesearch,
    value_and_grad_from_state as value_and_grad_from_state,
)
from rune.optim.optimizers import (
    adadelta as adadelta,
    adafactor as adafactor,
    adagrad as adagrad,
    adam as adam,
    adamax as adamax,
    adamaxw as adamaxw,
    adamw as adamw,
    lamb as lamb,
    lars as lars,
    lion as lion,
    momentum as momentum,
    nadam as nadam,
    nadamw as nadamw,
    rmsprop as rmsprop,
    sgd as sgd,
    yogi as yogi,
)
from rune.optim.quasi_newton import lbfgs as lbfgs, scale_by_lbfgs as scale_by_lbfgs
from rune.optim.scaling import (
    scale as scale,
    scale_by_adadelta as scale_by_adadelta,
    scale_by_adamax as scale_by_adamax,
    scale_by_lion as scale_by_lion,
    scale_by_param_block_rms as scale_by_param_block_rms,
    scale_by_rms as scale_by_rms,
    scale_by_rss as scale_by_rss,
    scale_by_schedule as scale_by_schedule,
    scale_by_stddev as scale_by_stddev,
    scale_by_trust_ratio as scale_by_trust_ratio,
    scale_by_yogi as scale_by_yogi,
)
from rune.optim.schedules import (
    constant_schedule as constant_schedule,
    cosine_decay_schedule as cosine_decay_schedule,
    cosine_onecycle_schedule as cosine_onecycle_schedule,
    exponential_decay as exponential_decay,
    join_schedules as join_schedules,
    linear_onecycle_schedule as linear_onecycle_schedule,
    linear_schedule as linear_schedule,
    piecewise_constant_schedule as piecewise_constant_schedule,
    piecewise_interpolate_schedule as piecewise_interpolate_schedule,
    polynomial_schedule as polynomial_schedule,
    sgdr_schedule as sgdr_schedule,
    warmup_constant_schedule as warmup_constant_schedule,
    warmup_cosine_decay_schedule as warmup_cosine_decay_schedule,
    warmup_exponential_decay_schedule as warmup_exponential_decay_schedule,
)
from rune.optim.signs import (
    add_noise as add_noise,
    noisy_sgd as noisy_sgd,
    normalize_by_update_norm as normalize_by_update_norm,
    optimistic_gradient_descent as optimistic_gradient_descent,
    polyak_sgd as polyak_sgd,
    rprop as rprop,
    scale_by_optimistic_gradient as scale_by_optimistic_gradient,
    scale_by_polyak as scale_by_polyak,
    scale_by_rprop as scale_by_rprop,
    scale_by_sign as scale_by_sign,
    sign_sgd as sign_sgd,
    signum as signum,
)
from rune.optim.transforms import (
    ExtraArgsOptimizer as ExtraArgsOptimizer,
    Optimizer as Optimizer,
    add_decayed_weights as add_decayed_weights,
    apply_updates as apply_updates,
    chain as chain,
    global_norm as global_norm,
    identity as identity,
    named_chain as named_chain,
    scale_by_adam as scale_by_adam,
    scale_by_learning_rate as scale_by_learning_rate,
    stateless as stateless,
    trace as trace,
    with_extra_args_support as with_extra_args_support,
)
from rune.optim.wrappers import (
    apply_every as apply_every,
    apply_if_finite as apply_if_finite,
    conditionally_transform as conditionally_transform,
    freeze as freeze,
    keep_params_nonnegative as keep_params_nonnegative,
    masked as masked,
    multi_steps as multi_steps,
    multi_transform as multi_transform,
    set_to_zero as set_to_zero,
)

GradientTransformation = Optimizer
GradientTransformationExtraArgs = ExtraArgsOptimizer
MultiSteps = multi_steps
partition = multi_transform

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
