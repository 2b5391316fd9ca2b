"""Explicit Runge-Kutta methods with an error estimate, as tables, and one adaptive step of them.

A step works on one vector [N]. Within it the solution is a polynomial of the share of the step: the
method's own continuous extension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import rune.numpy as rnp
from rune.array import Array
from rune.records import dataclass
from rune.typing import ArrayLike

SAFETY, LEAST, MOST = 0.9, 0.2, 10.0


@dataclass(frozen=True)
class Method:
    """nodes c, rows a, weights b, weights of the error, order, and the continuous extension.

    dense[i] holds the coefficients of stage i's weight as a polynomial of share, share², ….
    second_error:  weights of a second estimate of the error, which moderates the first.
    more_nodes, more_rows: of the stages that only the continuous extension needs.
    """

    name: str
    nodes: tuple[float, ...]
    rows: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]
    errors: tuple[float, ...]
    order: int
    dense: tuple[tuple[float, ...], ...]
    second_error: tuple[float, ...] = ()
    more_nodes: tuple[float, ...] = ()
    more_rows: tuple[tuple[float, ...], ...] = ()


# Source: Dormand & Prince 1980; the extension is Shampine's of 1986.
DORMAND_PRINCE = Method(
    "RK45",
    (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    (
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
    (-71 / 57600, 0.0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40),
    5,
    (
        (1.0, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432),
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799),
        (0.0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072),
        (0.0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632),
        (0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
        (0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
    ),
)

# Source: Bogacki & Shampine 1989.
BOGACKI_SHAMPINE = Method(
    "RK23",
    (0.0, 1 / 2, 3 / 4, 1.0),
    ((), (1 / 2,), (0.0, 3 / 4), (2 / 9, 1 / 3, 4 / 9)),
    (2 / 9, 1 / 3, 4 / 9, 0.0),
    (5 / 72, -1 / 12, -1 / 9, 1 / 8),
    3,
    ((1.0, -4 / 3, 5 / 9), (0.0, 1.0, -2 / 3), (0.0, 4 / 3, -8 / 9), (0.0, -1.0, 1.0)),
)


def _weighed(stages: Sequence[Array], weights: Sequence[float]) -> Array:
    terms = [k * w for k, w in zip(stages, weights) if w]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def stages_of(method: Method, func: Callable[[Array, Array], Array], t: Array, y: Array, h: Array) -> list[Array]:
    """The slopes at the nodes of a step; the last one is taken at its end."""
    stages = [func(t, y)]
    for node, row in zip(method.nodes[1:], method.rows[1:]):
        stages.append(func(t + node * h, y + h * _weighed(stages, row)))
    return stages


def all_stages_of(
    method: Method, func: Callable[[Array, Array], Array], t: Array, y: Array, h: Array, stages: Sequence[Array]
) -> list[Array]:
    """The stages of a step, and the additional ones that its continuous extension needs."""
    all_stages = list(stages)
    for node, row in zip(method.more_nodes, method.more_rows):
        all_stages.append(func(t + node * h, y + h * _weighed(all_stages, row)))
    return all_stages


def end_of(method: Method, y: Array, h: Array, stages: Sequence[Array]) -> tuple[Array, Array]:
    """The solution at the end of a step, and its estimated error."""
    return y + h * _weighed(stages, method.weights), h * _weighed(stages, method.errors)


def between(method: Method, y: Array, h: Array, stages: Sequence[Array], share: Array) -> Array:
    """The solution at a share of the step."""
    weights = []
    for row in method.dense:
        total: Array | float = 0.0
        for c in reversed(row):
            total = (total + c) * share
        weights.append(total)
    total = stages[0] * weights[0]
    for k, w in zip(stages[1:], weights[1:]):
        total = total + k * w
    return y + h * total


def error_norm(error: Array, before: Array, after: Array, rtol: float, atol: float) -> Array:
    """The root mean square of the error over the tolerance; up to 1 it is acceptable."""
    scale = atol + rtol * rnp.maximum(rnp.abs(before), rnp.abs(after))
    return rnp.sqrt(rnp.mean(rnp.square(rnp.abs(error / scale))))


def step_norm(
    method: Method, h: Array, stages: Sequence[Array], before: Array, after: Array, rtol: float, atol: float
) -> Array:
    """`error_norm` of a step; for two estimates e and f, the norm of e |e| / √(|e|² + |f|²/100)."""
    first = error_norm(h * _weighed(stages, method.errors), before, after, rtol, atol)
    if not method.second_error:
        return first
    second = error_norm(h * _weighed(stages, method.second_error), before, after, rtol, atol)
    both = rnp.sqrt(rnp.square(first) + 0.01 * rnp.square(second))
    return first * first / rnp.where(both == 0, 1.0, both)


def next_step(h: Array, norm: Array, order: int, most: ArrayLike = MOST) -> Array:
    """The length of the next step, from the error of this one; at most `most` times as long."""
    safe = rnp.maximum(norm, 1e-10)
    factor = rnp.minimum(rnp.maximum(SAFETY * safe ** (-1.0 / order), LEAST), most)
    # A step that gives NaN is repeated, much shorter.
    return h * rnp.where(rnp.isfinite(norm), factor, LEAST)


def first_step(
    func: Callable[[Array, Array], Array],
    t: Array,
    y: Array,
    direction: ArrayLike,
    order: int,
    rtol: float,
    atol: float,
) -> Array:
    """A length for the first step. Source: Hairer, Nørsett & Wanner 1993, section II.4."""
    scale = atol + rtol * rnp.abs(y)
    slope = func(t, y)
    size = lambda v: rnp.sqrt(rnp.mean(rnp.square(rnp.abs(v / scale))))  # noqa: E731
    d0, d1 = size(y), size(slope)
    is_small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = rnp.where(is_small, 1e-6, 0.01 * d0 / rnp.where(is_small, 1.0, d1))
    slope_after = func(t + direction * h0, y + direction * h0 * slope)
    d2 = size(slope_after - slope) / h0
    largest = rnp.maximum(d1, d2)
    is_flat = largest <= 1e-15
    h1 = rnp.where(is_flat, rnp.maximum(1e-6, h0 * 1e-3), (0.01 / rnp.where(is_flat, 1.0, largest)) ** (1.0 / order))
    return rnp.minimum(100.0 * h0, h1)
