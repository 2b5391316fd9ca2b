"""rune.optim: optimisers as pairs of pure functions on trees, in the form of Optax.

    optimizer = optim.adam(1e-3)
    state = optimizer.init(params)
    updates, state = optimizer.update(grads, state, params)
    params = optim.apply_updates(params, updates)

optimizers  sgd, adam, adamw, rmsprop, lion, …     transforms, scaling, factored  what they are of
schedules   rates as functions of the step          clipping    gradients within bounds
wrappers    masked, multi_steps, apply_if_finite, …

A state is a tree of arrays, step count included, so the whole step can be jitted, donated and
saved. A learning rate is a number, an array, or a schedule: a function of the step count.
"""

# isort: off
from rune.optim.clipping import (
    adaptive_grad_clip, centralize, clip, clip_by_block_rms, clip_by_global_norm, ema, zero_nans,
)  # fmt: skip
from rune.optim.factored import scale_by_factored_rms
from rune.optim.optimizers import (
    adadelta, adafactor, adagrad, adam, adamax, adamaxw, adamw, lamb, lars, lion, momentum, nadam,
    nadamw, rmsprop, sgd, yogi,
)  # fmt: skip
from rune.optim.scaling import (
    scale, scale_by_adadelta, scale_by_adamax, scale_by_lion, scale_by_param_block_rms,
    scale_by_rms, scale_by_rss, scale_by_schedule, scale_by_stddev, scale_by_trust_ratio,
    scale_by_yogi,
)  # fmt: skip
from rune.optim.schedules import (
    constant_schedule, cosine_decay_schedule, cosine_onecycle_schedule, exponential_decay,
    join_schedules, linear_onecycle_schedule, linear_schedule, piecewise_constant_schedule,
    piecewise_interpolate_schedule, polynomial_schedule, warmup_cosine_decay_schedule,
)  # fmt: skip
from rune.optim.transforms import (
    Optimizer, add_decayed_weights, apply_updates, chain, global_norm, identity, scale_by_adam,
    scale_by_learning_rate, trace,
)  # fmt: skip
from rune.optim.wrappers import apply_if_finite, masked, multi_steps, multi_transform

GradientTransformation = Optimizer
