"""How many kernels the functions of rune.nn and a step of rune.optim become on the CPU.

The counts are goals of the design: one pass over the data where the formula allows it, forward and
backward. A count that grows is a slower model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune import nn, optim

ROWS, WEIGHT = rnp.ones((64, 128)), rnp.ones(128)
LABELS = rnp.zeros(64, int)
ADAM = optim.adam(1e-3)


def loss(logits: Any) -> Any:
    return rnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits, LABELS))


def adam_step(params: Any, grads: Any, state: Any) -> Any:
    updates, state = ADAM.update(grads, state, params)
    return optim.apply_updates(params, updates), state


COUNTS: dict[str, tuple[int, Callable[..., Any], tuple]] = {
    "relu": (1, nn.relu, (ROWS,)),
    "gelu": (1, nn.gelu, (ROWS,)),
    "softplus": (1, nn.softplus, (ROWS,)),
    "softmax": (1, nn.softmax, (ROWS,)),
    "log_softmax": (1, nn.log_softmax, (ROWS,)),
    "logsumexp": (1, lambda x: nn.logsumexp(x, -1), (ROWS,)),
    "layer_norm": (1, lambda x: nn.layer_norm(x, WEIGHT, WEIGHT), (ROWS,)),
    "rms_norm": (1, lambda x: nn.rms_norm(x, WEIGHT), (ROWS,)),
    "cross entropy": (1, lambda x: nn.softmax_cross_entropy_with_integer_labels(x, LABELS), (ROWS,)),
    "mean cross entropy": (2, loss, (ROWS,)),
    "gradient of cross entropy": (1, rune.grad(loss), (ROWS,)),
    "a step of adam": (1, adam_step, (WEIGHT, WEIGHT, ADAM.init(WEIGHT))),
}


@pytest.mark.parametrize("name", COUNTS)
def test_a_formula_takes_no_more_kernels_than_it_needs(name: str):
    expected, function, args = COUNTS[name]

    costs = rune.explain(function)(*args).costs
    assert (costs.launches, costs.calls) == (expected, 0)
