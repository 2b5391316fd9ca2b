"""Training: one compiled step, on one device or with the rows of each batch over several.

The batch of step n is drawn from n alone, and the state has all that a step reads. So a run that is
stopped and resumed from its checkpoints ends with the bits of one that was not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llm_model as model
import numpy as np
from llm_config import Config

import rune
import rune.numpy as rnp
from rune import nn, optim
from rune.checkpoints import Manager
from rune.sharding import Mesh, NamedSharding, P

State = dict[str, Any]  # params, optimizer, losses f32[steps]
SMALL = Config(
    vocab_size=512,
    hidden_size=128,
    intermediate_size=352,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=32,
    max_position_embeddings=256,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to train, on how much, and how fast. Units: tokens, steps."""

    steps: int = 400
    batch: int = 8
    context: int = 128
    peak_rate: float = 3e-3
    warmup: int = 20
    seed: int = 0
    save_every: int = 50


def rate(plan: Plan) -> Callable[[Any], Any]:
    """The learning rate of each step: a line up, then half a cosine down to a tenth."""

    def at(step: Any) -> Any:
        share = rnp.asarray(step) / plan.steps
        return plan.peak_rate * rnp.minimum((step + 1) / plan.warmup, 0.55 + 0.45 * rnp.cos(math.pi * share))

    return at


def optimizer(plan: Plan) -> Any:
    """AdamW, of gradients whose common norm is 1 at the most."""
    return optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(rate(plan), b2=0.95, weight_decay=0.1))


def loss(params: Any, tokens: Any, config: Config) -> Any:
    """The cross entropy of every next token, in nats. Shapes: tokens i32[B, T + 1] -> []."""
    logits = model.logits(params, tokens[:, :-1], config)
    return rnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]))


def initial(config: Config, plan: Plan) -> State:
    """The state before the first step."""
    params = model.init(config, rune.random.key(plan.seed))
    return {"params": params, "optimizer": optimizer(plan).init(params), "losses": rnp.zeros(plan.steps)}


def make_step(config: Config, plan: Plan, mesh: Mesh) -> Callable[[State, Any, Any], State]:
    """State, tokens i32[B, T + 1], number of the step -> the next state, by rows on each device."""
    rows, copies = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())

    def step(state: State, tokens: Any, number: Any) -> State:
        value, gradients = rune.value_and_grad(loss)(state["params"], tokens, config)
        updates, memory = optimizer(plan).update(gradients, state["optimizer"], state["params"])
        params = optim.apply_updates(state["params"], updates)
        return {"params": params, "optimizer": memory, "losses": state["losses"].at[number].set(value)}

    return rune.jit(step, donate_argnums=0, in_shardings=(copies, rows, copies), out_shardings=copies)


def batch(tokens: np.ndarray, plan: Plan, number: int) -> np.ndarray:
    """The batch of one step, i32[B, T + 1], from anywhere in the tokens."""
    starts = np.random.default_rng((plan.seed, number)).integers(0, len(tokens) - plan.context, plan.batch)
    return tokens[starts[:, None] + np.arange(plan.context + 1)]


def train(tokens: np.ndarray, config: Config, plan: Plan, mesh: Mesh, folder: Path) -> Iterator[tuple[int, State]]:
    """Each step that was done, and the state after it, from the newest checkpoint on.

    tokens: i32[n], what is learned.   folder: of checkpoints
    """
    step = make_step(config, plan, mesh)
    with Manager(folder, keep=2) as manager:
        first, state = manager.resume(initial(config, plan))
        state = rune.device_put(state, NamedSharding(mesh, P()))
        for number in range(first + 1, plan.steps + 1):
            state = step(state, batch(tokens, plan, number), number - 1)
            if number % plan.save_every == 0 or number == plan.steps:
                manager.save(number, state)
            yield number, state


def held_out_loss(params: Any, tokens: np.ndarray, config: Config, plan: Plan) -> float:
    """The loss on a text that was not learned, in nats a token."""
    count = (len(tokens) - 1) // plan.context
    starts = np.arange(count) * plan.context
    rows = tokens[starts[:, None] + np.arange(plan.context + 1)]
    each = rune.jit(lambda params, row: loss(params, row[None], config))
    return float(np.mean([float(each(params, row)) for row in rows]))
