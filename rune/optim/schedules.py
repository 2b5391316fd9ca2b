"""Schedules: functions from the step count, a traced i32, to a learning rate.

A rate is f32, or of the dtype of a floating count. Any such function is a schedule:
`lambda n: rnp.where(n < 100, 0.1, 0.01)`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import rune.numpy as rnp
from rune.array import Array
from rune.errors import ArgumentError
from rune.typing import ArrayLike

Schedule = Callable[[ArrayLike], Array]
StepFunction = Callable[[Array], ArrayLike]  # what counts as a schedule


def steps_of(name: str, argument: str, count: int) -> int:
    """`count`. Errors: ArgumentError unless it is a positive number."""
    if not isinstance(count, int | float) or count <= 0:
        raise ArgumentError(f"{name}: cannot use {argument}={count!r} (at least one step required)")
    return count


def constant_schedule(value: float) -> Callable[[ArrayLike], float]:
    """The same rate at every step.

    Shapes: any count -> []. Types: `value` unchanged. Errors: none.

    >>> import rune.optim as optim
    >>> optim.constant_schedule(0.5)(3)
    0.5
    """
    return lambda count: value


def linear_schedule(init_value: float, end_value: float, transition_steps: int, transition_begin: int = 0) -> Schedule:
    """A straight line from `init_value` to `end_value`, constant before and after it.

    transition_steps: the length of the line, in steps
    transition_begin: the step at which it begins
    Shapes: as the count. Types: f32. Errors: ArgumentError for fewer than one step.

    >>> import rune.optim as optim
    >>> float(optim.linear_schedule(1.0, 0.0, 4)(1))
    0.75
    """
    steps = steps_of("linear_schedule", "transition_steps", transition_steps)

    def schedule(count: ArrayLike) -> Array:
        fraction = rnp.clip(rnp.divide(rnp.subtract(count, transition_begin), steps), 0.0, 1.0)
        return init_value + (end_value - init_value) * fraction

    return schedule


def exponential_decay(
    init_value: float,
    transition_steps: int,
    decay_rate: float,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: float | None = None,
) -> Schedule:
    """init_value · decay_rate**(count / transition_steps), in whole powers if `staircase`.

    transition_begin: the step at which counting starts
    end_value: a bound that the rate does not cross
    Shapes: as the count. Types: f32. Errors: ArgumentError for no steps, or a decay by 0 or less.

    >>> import rune.optim as optim
    >>> float(optim.exponential_decay(1.0, 2, 0.25)(1))
    0.5
    """
    steps = steps_of("exponential_decay", "transition_steps", transition_steps)
    if isinstance(decay_rate, int | float) and decay_rate <= 0:
        raise ArgumentError(f"exponential_decay: cannot decay by {decay_rate=} (above 0 required)")

    def schedule(count: ArrayLike) -> Array:
        power = rnp.divide(rnp.maximum(rnp.subtract(count, transition_begin), 0), steps)
        value = init_value * rnp.power(decay_rate, rnp.floor(power) if staircase else power)
        bound = rnp.maximum if decay_rate < 1 else rnp.minimum
        return value if end_value is None else bound(value, end_value)

    return schedule


def cosine_decay_schedule(init_value: float, decay_steps: int, alpha: float = 0.0, exponent: float = 1.0) -> Schedule:
    """Half a cosine, to the power `exponent`, from `init_value` down to alpha · init_value.

    It ends at step `decay_steps`, and is constant from there on.
    Shapes: as the count. Types: f32. Errors: ArgumentError for fewer than one step.
    Source: Loshchilov & Hutter 2016, arXiv:1608.03983.

    >>> import rune.optim as optim
    >>> float(optim.cosine_decay_schedule(1.0, 10)(10))
    0.0
    """
    steps = steps_of("cosine_decay_schedule", "decay_steps", decay_steps)

    def schedule(count: ArrayLike) -> Array:
        cosine = 0.5 * (1.0 + rnp.cos(math.pi * rnp.minimum(rnp.divide(count, steps), 1.0)))
        return init_value * ((1 - alpha) * cosine**exponent + alpha)

    return schedule


def join_schedules(schedules: Sequence[StepFunction], boundaries: Sequence[int]) -> Schedule:
    """One schedule after another: each from its boundary on, with steps counted from there.

    `boundaries` are the steps at which the second and later schedules begin.
    Shapes: as the count. Types: f32. Errors: ArgumentError unless the boundaries rise.

    >>> import rune.optim as optim
    >>> schedule = optim.join_schedules([lambda n: 1.0, optim.linear_schedule(1.0, 0.0, 4)], [10])
    >>> float(schedule(11))
    0.75
    """
    rises = all(a <= b for a, b in itertools.pairwise(boundaries))
    if len(schedules) != len(boundaries) + 1 or not all(map(callable, schedules)) or not rises:
        raise ArgumentError(
            f"join_schedules: cannot join {len(schedules)} schedules at {list(boundaries)} "
            "(functions of the step, and boundaries that rise, one fewer, required)"
        )

    def schedule(count: ArrayLike) -> Array:
        value = rnp.asarray(schedules[0](rnp.asarray(count)))
        for boundary, following in zip(boundaries, schedules[1:], strict=True):
            value = rnp.where(rnp.less(count, boundary), value, following(rnp.subtract(count, boundary)))
        return value

    return schedule


def warmup_cosine_decay_schedule(
    init_value: float,
    peak_value: float,
    warmup_steps: int,
    decay_steps: int,
    end_value: float = 0.0,
    exponent: float = 1.0,
) -> Schedule:
    """A line from `init_value` to `peak_value`, then half a cosine to `end_value`.

    warmup_steps: the length of the line, in steps
    decay_steps: the step at which the cosine ends, warm-up included
    Shapes: as the count. Types: f32. Errors: ArgumentError for a warm-up of all the steps.

    >>> import rune.optim as optim
    >>> float(optim.warmup_cosine_decay_schedule(0.0, 1.0, 4, 10)(2))
    0.5
    """
    steps = steps_of("warmup_cosine_decay_schedule", "decay_steps - warmup_steps", decay_steps - warmup_steps)
    alpha = end_value / peak_value if peak_value else 0.0
    down = cosine_decay_schedule(peak_value, steps, alpha, exponent)
    return warmed_up(init_value, peak_value, warmup_steps, down)


def warmed_up(start: float, peak: float, steps: int, following: Schedule) -> Schedule:
    """A line from start to peak, then the other schedule; the latter alone if the line has no
    steps.
    """
    return join_schedules([linear_schedule(start, peak, steps), following], [steps]) if steps else following
