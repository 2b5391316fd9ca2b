"""Names that release 0.2.0 removes from rune.optim: Optax has all of them, and runs on rune.

`rune.optim` returns each of these names with a DeprecationWarning; this package returns them
without one. A module is loaded when one of its names is first used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rune import locks
from rune.absent import MissingName

RELEASE = "0.2.0"
NAMES: Mapping[str, str] = {
    "rune.optim.transforms": "global_norm stateless",
    "rune.optim.parts": """
        add_decayed_weights scale_by_adam scale_by_learning_rate scale_by_lion scale_by_rms scale_by_rss trace
        """,
    "rune.optim.deprecated.states": """
        ExtraArgsOptimizer GradientTransformationExtraArgs Optimizer identity named_chain with_extra_args_support
        """,
    "rune.optim.deprecated.scaling": """
        scale scale_by_adadelta scale_by_adamax scale_by_param_block_rms scale_by_schedule scale_by_stddev
        scale_by_trust_ratio scale_by_yogi
        """,
    "rune.optim.deprecated.optimizers": "adadelta adafactor adamax adamaxw lamb lars nadam nadamw yogi",
    "rune.optim.deprecated.adaptive": """
        adabelief adan amsgrad novograd radam scale_by_adan scale_by_amsgrad scale_by_belief scale_by_novograd
        scale_by_radam
        """,
    "rune.optim.deprecated.signs": """
        add_noise noisy_sgd normalize_by_update_norm optimistic_gradient_descent polyak_sgd rprop
        scale_by_optimistic_gradient scale_by_polyak scale_by_rprop scale_by_sign sign_sgd signum
        """,
    "rune.optim.deprecated.factored": "scale_by_factored_rms",
    "rune.optim.deprecated.clipping": "adaptive_grad_clip centralize clip_by_block_rms ema zero_nans",
    "rune.optim.deprecated.schedules": """
        cosine_onecycle_schedule linear_onecycle_schedule piecewise_constant_schedule piecewise_interpolate_schedule
        polynomial_schedule sgdr_schedule warmup_constant_schedule warmup_exponential_decay_schedule
        """,
    "rune.optim.deprecated.averages": "LookaheadParams incremental_update lookahead periodic_update",
    "rune.optim.deprecated.wrappers": """
        MultiSteps apply_every apply_if_finite conditionally_transform freeze keep_params_nonnegative masked multi_steps
        multi_transform partition set_to_zero
        """,
    "rune.optim.deprecated.hyperparameters": "inject_hyperparams",
    "rune.optim.deprecated.line_searches": """
        scale_by_backtracking_linesearch scale_by_zoom_linesearch value_and_grad_from_state
        """,
    "rune.optim.deprecated.quasi_newton": "lbfgs scale_by_lbfgs",
}
MODULES = {name: module for module, names in NAMES.items() for name in names.split()}
# Names that differ in Optax.
IN_OPTAX = {
    "ExtraArgsOptimizer": "GradientTransformationExtraArgs",
    "Optimizer": "GradientTransformation",
    "multi_steps": "MultiSteps",
}


def note(name: str) -> str:
    """What to use instead of a name, and when rune removes it.

    >>> print(note("lamb"))
    rune.optim.lamb leaves with rune 0.2.0
    hint: pip install optax, and `import rune.as_jax` before it: optax.lamb
    """
    instead = f"pip install optax, and `import rune.as_jax` before it: optax.{IN_OPTAX.get(name, name)}"
    return f"rune.optim.{name} leaves with rune {RELEASE}\nhint: {instead}"


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise MissingName(__name__, name)
    return getattr(locks.load(MODULES[name]), name)
