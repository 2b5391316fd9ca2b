"""Schedules: functions from the step count, a traced i32, to a learning rate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import rune.numpy as rnp
from rune.array import Array
from rune.errors import ArgumentError
from rune.optim.schedules import (
    Schedule,
    exponential_decay,
    join_schedules,
    linear_schedule,
    steps_of,
    warmed_up,
    warmup_cosine_decay_schedule,
)
from rune.typing import ArrayLike


def polynomial_schedule(
    init_value: float, end_value: float, power: float, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """end + (init - end) (1 - t)**power, t going from 0 to 1 after `transition_begin` steps.

    Shapes: count [*S] -> [*S]. Types: f32, or that of a floating count.
    Errors: ArgumentError if an argument is not an array.

    >>> from rune.optim import deprecated
    >>> float(deprecated.polynomial_schedule(1.0, 0.0, 2, 4)(2))
    0.25
    """
    steps = steps_of("polynomial_schedule", "transition_steps", transition_steps)

    def schedule(count: ArrayLike) -> Array:
        fraction = rnp.clip(rnp.divide(rnp.subtract(count, transition_begin), steps), 0.0, 1.0)
        return end_value + (init_value - end_value) * rnp.power(1.0 - fraction, power)

    return schedule


def _boundaries(name: str, scales: Mapping[int, float] | None) -> Mapping[int, float]:
    """Scales by step, none by default."""
    for boundary in scales or {}:
        if not isinstance(boundary, int) or boundary < 0:
            raise ArgumentError(f"{name}: cannot use the boundary {boundary!r} (a step from 0 on)")
    return scales or {}


def piecewise_constant_schedule(init_value: float, boundaries_and_scales: dict[int, float] | None = None) -> Schedule:
    """`init_value` times the scales of all boundaries that the step count has reached.

    Shapes: count [*S] -> [*S]. Types: f32.
    Errors: ArgumentError if a boundary is not an integer of at least 0.

    >>> from rune.optim import deprecated
    >>> schedule = deprecated.piecewise_constant_schedule(1.0, {2: 0.5, 4: 0.1})
    >>> [round(float(schedule(k)), 3) for k in (1, 2, 4)]
    [1.0, 0.5, 0.05]
    """
    steps = sorted(_boundaries("piecewise_constant_schedule", boundaries_and_scales).items())

    def schedule(count: ArrayLike) -> Any:
        value: Array | float = init_value
        for boundary, factor in steps:
            value = value * rnp.where(rnp.greater_equal(count, boundary), factor, 1.0)
        return value

    return schedule


def piecewise_interpolate_schedule(
    interpolate_type: str, init_value: float, boundaries_and_scales: dict[int, float] | None = None
) -> Schedule:
    """Through `init_value` times the scales at the boundaries, by lines or half cosines.

    interpolate_type: "linear" or "cosine".
    Shapes: count [*S] -> [*S]. Types: f32, or that of a floating count.
    Errors: ArgumentError for another type, and if a boundary is not an integer of at least 0.

    >>> from rune.optim import deprecated
    >>> schedule = deprecated.piecewise_interpolate_schedule("linear", 1.0, {4: 3.0})
    >>> [float(schedule(k)) for k in (0, 2, 4)]
    [1.0, 2.0, 3.0]
    """
    if interpolate_type not in ("linear", "cosine"):
        raise ArgumentError(f"piecewise_interpolate_schedule: cannot use {interpolate_type!r} (linear or cosine)")
    points, value = [(0, init_value)], init_value
    scales = _boundaries("piecewise_interpolate_schedule", boundaries_and_scales)
    for boundary, factor in sorted(scales.items()):
        value = value * factor
        points.append((boundary, value))

    def schedule(count: ArrayLike) -> Array:
        rate: Any = points[0][1]
        for (start, low), (end, high) in itertools.pairwise(points):
            progress = rnp.clip(rnp.divide(rnp.subtract(count, start), max(end - start, 1)), 0.0, 1.0)
            if interpolate_type == "cosine":
                progress = 0.5 * (1.0 - rnp.cos(math.pi * progress))
            rate = rate + (high - low) * progress
        return rate

    return schedule


def _onecycle(kind: str, steps: int, peak: float, start: float, end: float, points: dict[int, float]) -> Schedule:
    steps_of(f"{kind}_onecycle_schedule", "transition_steps", steps)
    if list(points) != sorted(points) or max(points) > steps:
        raise ArgumentError(f"{kind}_onecycle_schedule: cannot place the turns at {list(points)} of {steps} steps")
    return piecewise_interpolate_schedule(kind, peak / start, {**points, steps: 1 / end})


def cosine_onecycle_schedule(
    transition_steps: int,
    peak_value: float,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Up from peak / div_factor within the first `pct_start` of the steps, down to
    peak / div_factor / final_div_factor at the last, by half cosines.

    Shapes: count [*S] -> [*S]. Types: f32, or that of a floating count.
    Source: Smith & Topin 2017, arXiv:1708.07120.
    Errors: ArgumentError for fewer than one step.

    >>> from rune.optim import deprecated
    >>> round(float(deprecated.cosine_onecycle_schedule(10, 1.0)(3)), 6)
    1.0
    """
    points = {int(pct_start * transition_steps): div_factor}
    return _onecycle("cosine", transition_steps, peak_value, div_factor, div_factor * final_div_factor, points)


def linear_onecycle_schedule(
    transition_steps: int,
    peak_value: float,
    pct_start: float = 0.3,
    pct_final: float = 0.85,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Up, down again until `pct_final` of the steps, and on to the final value, by lines.

    Shapes: count [*S] -> [*S]. Types: f32, or that of a floating count.
    Source: Smith & Topin 2017, arXiv:1708.07120.
    Errors: ArgumentError for fewer than one step.

    >>> from rune.optim import deprecated
    >>> schedule = deprecated.linear_onecycle_schedule(20, 1.0)
    >>> [round(float(schedule(k)), 3) for k in (0, 6, 17)]
    [0.04, 1.0, 0.04]
    """
    points = {int(pct_start * transition_steps): div_factor, int(pct_final * transition_steps): 1 / div_factor}
    return _onecycle("linear", transition_steps, peak_value, div_factor, final_div_factor, points)


def warmup_constant_schedule(init_value: float, peak_value: float, warmup_steps: int) -> Schedule:
    """A line from `init_value` up to `peak_value`, then flat.

    Shapes: count [*S] -> [*S]. Types: f32, or that of a floating count.
    Errors: ArgumentError if an argument is not an array.

    >>> from rune.optim import deprecated
    >>> float(deprecated.warmup_constant_schedule(0.0, 1.0, 4)(2))
    0.5
    """
    return linear_schedule(init_value, peak_value, warmup_steps)


def warmup_exponential_decay_schedule(
    init_value: float,
    peak_value: float,
    warmup_steps: int,
    transition_steps: int,
    decay_rate: float,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: float | None = None,
) -> Schedule:
    """A line up to `peak_value`, then `exponential_decay` from there.

    Shapes: count [*S] -> [*S]. Types: f32, or that of a floating count.
    Errors: ArgumentError if an argument is not an array.

    >>> from rune.optim import deprecated
    >>> float(deprecated.warmup_exponential_decay_schedule(0.0, 1.0, 2, 1, 0.5)(3))
    0.5
    """
    down = exponential_decay(peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value)
    return warmed_up(init_value, peak_value, warmup_steps, down)


def sgdr_schedule(cosine_kwargs: Iterable[Mapping[str, float]]) -> Schedule:
    """`warmup_cosine_decay_schedule` again and again, each with its own arguments.

    Shapes: count [*S] -> [*S]. Types: f32, or that of a floating count.
    Errors: ArgumentError for no cycles, or one without its decay_steps.
    Source: Loshchilov & Hutter 2016, arXiv:1608.03983.

    >>> from rune.optim import deprecated
    >>> cycle = {"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 2, "decay_steps": 4}
    >>> [float(deprecated.sgdr_schedule([cycle, cycle])(n)) for n in (0, 1, 2, 4, 5)]
    [0.0, 0.5, 1.0, 0.0, 0.5]
    """
    cycles: list[Any] = [dict(kwargs) for kwargs in cosine_kwargs]
    if any("decay_steps" not in cycle for cycle in cycles):
        raise ArgumentError("sgdr_schedule: cannot join cycles without their decay_steps")
    ends = list(itertools.accumulate(int(cycle["decay_steps"]) for cycle in cycles))
    return join_schedules([warmup_cosine_decay_schedule(**c) for c in cycles], ends[:-1])
