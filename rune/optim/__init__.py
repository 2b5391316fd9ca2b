"""rune.optim: optimisers as pairs of pure functions on trees, in the form of Optax.

    optimizer = optim.adam(1e-3)
    state = optimizer.init(params)
    updates, state = optimizer.update(grads, state, params)
    params = optim.apply_updates(params, updates)

A state is a tree of arrays, step count included, so the whole step can be jitted, donated and
saved. A learning rate is a number, an array, or a schedule: a function of the step count.
"""

# isort: off
from rune.optim.optimizers import adam, adamw, momentum, sgd
from rune.optim.schedules import (
    constant_schedule, cosine_decay_schedule, exponential_decay, linear_schedule,
    warmup_cosine_decay_schedule,
)  # fmt: skip
from rune.optim.transforms import (
    Optimizer, add_decayed_weights, apply_updates, chain, clip_by_global_norm, global_norm,
    scale_by_adam, scale_by_learning_rate, trace,
)  # fmt: skip
