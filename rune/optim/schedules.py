"""Schedules: functions from the step count, a traced i32, to a learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rune.numpy as rnp
from rune.errors import ArgumentError

Schedule = Callable[[Any], Any]


def _steps(name: str, what: str, count: int) -> int:
    if count <= 0:
        raise ArgumentError(f"{name}: cannot use {what}={count} (at least one step required)")
    return count


def constant_schedule(value: float) -> Schedule:
    """The same rate at every step."""
    return lambda count: value


def linear_schedule(init_value: float, end_value: float, transition_steps: int) -> Schedule:
    """A straight line from `init_value` to `end_value`, then flat.

    >>> import rune.optim as optim
    >>> float(optim.linear_schedule(1.0, 0.0, 4)(1))
    0.75
    """
    steps = _steps("linear_schedule", "transition_steps", transition_steps)

    def schedule(count: Any) -> Any:
        done = rnp.minimum(rnp.divide(count, steps), 1.0)
        return init_value + (end_value - init_value) * done

    return schedule


def exponential_decay(
    init_value: float, transition_steps: int, decay_rate: float, staircase: bool = False
) -> Schedule:
    """init_value decay_rate**(count / transition_steps), in whole powers if `staircase`.

    >>> import rune.optim as optim
    >>> float(optim.exponential_decay(1.0, 2, 0.25)(1))
    0.5
    """
    steps = _steps("exponential_decay", "transition_steps", transition_steps)

    def schedule(count: Any) -> Any:
        power = rnp.divide(count, steps)
        return init_value * rnp.power(decay_rate, rnp.floor(power) if staircase else power)

    return schedule


def cosine_decay_schedule(init_value: float, decay_steps: int, alpha: float = 0.0) -> Schedule:
    """Half a cosine from `init_value` down to alpha times it. Source: arXiv:1608.03983.

    >>> import rune.optim as optim
    >>> float(optim.cosine_decay_schedule(1.0, 10)(10))
    0.0
    """
    steps = _steps("cosine_decay_schedule", "decay_steps", decay_steps)

    def schedule(count: Any) -> Any:
        done = rnp.minimum(rnp.divide(count, steps), 1.0)
        cosine = 0.5 * (1.0 + rnp.cos(math.pi * done))
        return init_value * ((1 - alpha) * cosine + alpha)

    return schedule


def warmup_cosine_decay_schedule(
    init_value: float, peak_value: float, warmup_steps: int, decay_steps: int,
    end_value: float = 0.0,
) -> Schedule:  # fmt: skip
    """A line up to `peak_value`, then half a cosine to `end_value` at step `decay_steps`.

    Errors: ArgumentError unless the warm-up is shorter than `decay_steps`.

    >>> import rune.optim as optim
    >>> float(optim.warmup_cosine_decay_schedule(0.0, 1.0, 4, 10)(2))
    0.5
    """
    rest = _steps(
        "warmup_cosine_decay_schedule", "decay_steps - warmup_steps", decay_steps - warmup_steps
    )
    up = linear_schedule(init_value, peak_value, warmup_steps)
    down = cosine_decay_schedule(peak_value, rest, end_value / peak_value if peak_value else 0.0)
    return lambda count: rnp.where(
        rnp.less(count, warmup_steps), up(count), down(rnp.subtract(count, warmup_steps))
    )
