"""Store the paths that Optax 0.2.8's optimisers take on a small problem, in f64. Run by hand, where
Optax is installed:

python tests/optim/make_optax_curves.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent))

from tests.optim.problem import LABELS, POINTS, START, STEPS  # noqa: E402

VERSION = "0.2.8"
TARGET = FOLDER / "optax_0_2_8.json"


def optimizers(o: Any) -> dict[str, Any]:
    """name -> optimizer, with the arguments of test_optax_curves.py; `o` is Optax or rune.optim."""
    return {
        "adabelief": o.adabelief(0.1),
        "adabelief with nesterov": o.adabelief(0.1, nesterov=True),
        "adan": o.adan(0.1, weight_decay=0.01),
        "amsgrad": o.amsgrad(0.1, b2=0.9),
        "novograd": o.novograd(0.1, weight_decay=0.01),
        "radam": o.radam(0.1),
        "radam of a short memory": o.radam(0.1, b2=0.9, nesterov=True),
        "sign_sgd": o.sign_sgd(0.01),
        "signum": o.signum(0.01),
        "optimistic": o.optimistic_gradient_descent(0.1, 1.0, 0.5),
        "normed": o.chain(o.normalize_by_update_norm(0.5), o.sgd(0.1)),
        "polyak": o.polyak_sgd(0.5, f_min=0.1),
        "lbfgs without a search": o.lbfgs(0.5, memory_size=3, linesearch=None),
        "lbfgs of one change": o.lbfgs(0.5, 1, scale_init_precond=False, linesearch=None),
        "backtracking": o.chain(o.sgd(20.0), o.scale_by_backtracking_linesearch(30, store_grad=True)),
        "injected": o.inject_hyperparams(o.adam)(o.linear_schedule(0.2, 0.0, 30, 5), b1=0.8),
        "apply_every": o.chain(o.adam(0.1), o.apply_every(3)),
        "conditional": o.chain(o.conditionally_transform(o.scale(0.5), lambda step: step % 3 == 1), o.sgd(0.1)),
        "nonnegative": o.chain(o.sgd(0.5), o.keep_params_nonnegative()),
        "named": o.named_chain(("clip", o.clip(0.1)), ("sgd", o.sgd(0.3))),
        "adadelta, said in full": o.adadelta(0.5, rho=0.8, eps=1e-3, weight_decay=0.1),
        "adafactor, said in full": o.adafactor(
            0.1, decay_rate=0.7, clipping_threshold=0.5, momentum=0.5, weight_decay_rate=0.01
        ),
        "adamaxw, said in full": o.adamaxw(0.1, b1=0.8, b2=0.7, eps=1e-2, weight_decay=0.1),
        "adamw, said in full": o.adamw(0.1, b1=0.8, b2=0.7, eps=1e-2, eps_root=1e-3, weight_decay=0.2, nesterov=True),
        "lamb, said in full": o.lamb(0.1, b1=0.8, b2=0.9, eps=1e-2, weight_decay=0.1),
        "lars, said in full": o.lars(0.1, 0.1, trust_coefficient=0.5, momentum=0.5, nesterov=True),
        "nadamw, said in full": o.nadamw(0.1, b1=0.8, b2=0.9, eps=1e-2, weight_decay=0.1),
        "rmsprop, said in full": o.rmsprop(
            0.1, decay=0.8, eps=1e-2, initial_scale=0.3, eps_in_sqrt=False, centered=True, momentum=0.5, nesterov=True
        ),
        "yogi, said in full": o.yogi(0.1, b1=0.8, b2=0.9, eps=1e-2),
    }


def schedules(o: Any) -> dict[str, Any]:
    """name -> schedule."""
    cycle = {"init_value": 0.1, "peak_value": 1.0, "warmup_steps": 3, "decay_steps": 10}
    return {
        "sgdr": o.sgdr_schedule([cycle, {**cycle, "end_value": 0.2}]),
        "warm-up": o.warmup_constant_schedule(0.1, 0.7, 5),
        "warm-up and decay": o.warmup_exponential_decay_schedule(0.0, 1.0, 4, 3, 0.5, 2, False, 0.1),
        "decay from a step": o.exponential_decay(2.0, 3, 0.5, 4, True, 0.3),
        "growth": o.exponential_decay(0.1, 3, 2.0, end_value=1.0),
        "power of a cosine": o.cosine_decay_schedule(2.0, 10, 0.1, 2.0),
        "warm-up and a cosine": o.warmup_cosine_decay_schedule(0.0, 1.0, 0, 10, 0.1, 3.0),
        "line from a step": o.linear_schedule(1.0, 0.2, 8, 4),
        "pieces": o.piecewise_constant_schedule(2.0, {3: 0.5, 9: 0.1}),
        "pieces of cosines": o.piecewise_interpolate_schedule("cosine", 1.0, {4: 3.0, 8: 0.5}),
        "a cycle of lines": o.linear_onecycle_schedule(20, 1.0, 0.2, 0.7, 10.0, 100.0),
    }


def path(jax: Any, optax: Any, optimizer: Any) -> list[list[float]]:
    """The parameters after every step of the logistic problem."""
    jnp = jax.numpy
    points, labels, weights = jnp.array(POINTS), jnp.array(LABELS), jnp.array(START)

    def loss(w: Any) -> Any:
        return jnp.mean(jax.nn.softplus(-labels * (points @ w))) + 0.05 * jnp.sum(w**2)

    state, curve = optimizer.init(weights), []
    for _ in range(STEPS):
        value, grad = jax.value_and_grad(loss)(weights)
        updates, state = optax.with_extra_args_support(optimizer).update(
            grad, state, weights, value=value, grad=grad, value_fn=loss
        )
        weights = optax.apply_updates(weights, updates)
        curve.append(weights.tolist())
    return curve


def main() -> None:
    """Run every optimiser and schedule."""
    import jax  # pyright: ignore[reportMissingImports]
    import optax  # pyright: ignore[reportMissingImports]

    assert optax.__version__ == VERSION, f"Optax {VERSION} required"
    jax.config.update("jax_enable_x64", True)
    curves = {name: path(jax, optax, o) for name, o in optimizers(optax).items()}
    rates = {name: [float(s(n)) for n in range(25)] for name, s in schedules(optax).items()}
    TARGET.write_text(json.dumps({"curves": curves, "rates": rates}))


if __name__ == "__main__":
    main()
