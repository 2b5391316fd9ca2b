"""L-BFGS and line searches: directions against dense BFGS in NumPy, lengths against the conditions
they promise, and minima that are reached; all of it compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import optim
from rune.optim import deprecated
from tests.support.arrays import array
from tests.support.close import near


def valley(x: Any) -> Any:
    """Rosenbrock's function of many numbers: 0 at ones."""
    return rnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def bowl(tree: Any) -> Any:
    """A convex function of a tree, with its minimum at w = 2, b = -1."""
    return rnp.sum(rnp.cosh(tree["w"] - 2.0)) + 3.0 * (tree["b"] + 1.0) ** 2


def walked(optimizer: optim.GradientTransformation, loss: Any, params: Any, steps: int) -> tuple[Any, Any]:
    """The parameters and state after some steps in one compiled loop."""
    value_and_grad = deprecated.value_and_grad_from_state(loss)

    def step(_: Any, carry: Any) -> Any:
        params, state = carry
        value, grad = value_and_grad(params, state=state)
        updates, state = optimizer.update(grad, state, params, value=value, grad=grad, value_fn=loss)
        return optim.apply_updates(params, updates), state

    run = rune.jit(lambda p: rune.lax.fori_loop(0, steps, step, (p, optimizer.init(p))))
    return run(params)


def test_the_minimum_of_a_valley_is_found():
    end, state = walked(deprecated.lbfgs(), valley, array(np.array([-1.2, 1.0, -0.5, 2.0])), 60)

    near(np.ones(4), end, relative=1e-5, why="flat at the minimum: values agree to f64's root")
    assert float(state[-1].value) < 1e-10


def test_parameters_may_be_a_tree():
    params = {"w": rnp.zeros((2, 3)), "b": rnp.float32(4.0)}

    end, _ = walked(deprecated.lbfgs(memory_size=4), bowl, params, 15)

    near({"w": np.full((2, 3), 2.0), "b": np.array(-1.0)}, end, relative=1e-3, why="f32 values")


def test_a_direction_is_that_of_bfgs_with_the_full_matrix():
    random = np.random.default_rng(1)
    root = random.normal(size=(4, 4))
    hessian, w = root @ root.T + np.eye(4), random.normal(size=4)
    part = deprecated.scale_by_lbfgs(memory_size=3)
    state, points, slopes, direction = part.init(array(w)), [], [], array(w)
    for _ in range(6):
        points.append(w)
        slopes.append(hessian @ w)
        direction, state = part.update(array(slopes[-1]), state, array(w))
        w = w - 0.3 * np.asarray(direction)

    s, y = np.diff(points, axis=0)[-3:], np.diff(slopes, axis=0)[-3:]
    inverse = np.eye(4) * (s[-1] @ y[-1]) / (y[-1] @ y[-1])
    for a, b in zip(s, y, strict=True):
        keep = np.eye(4) - np.outer(b, a) / (a @ b)
        inverse = keep.T @ inverse @ keep + np.outer(a, a) / (a @ b)
    near(inverse @ slopes[-1], direction, relative=1e-9, why="another order of operations")


def test_a_direction_always_goes_up_along_the_gradient():
    """Where curvature is negative, its change is left out."""
    part, w = deprecated.scale_by_lbfgs(), np.array([0.1, -0.2])
    state = part.init(array(w))

    for _ in range(4):
        g = -w  # of the concave function -|w|²/2
        direction, state = part.update(array(g), state, array(w))
        assert float(np.asarray(direction) @ g) > 0
        w = w - 0.5 * np.asarray(direction)


@pytest.mark.parametrize("first", [1e-3, 1.0, 40.0])
def test_a_zoomed_length_satisfies_the_strong_wolfe_conditions(first: float):
    part, w = deprecated.scale_by_zoom_linesearch(30, 1e-4, 0.1), np.array([-1.2, 1.0])
    value, grad = rune.value_and_grad(valley)(array(w))
    updates = -first * grad

    update, state = rune.jit(lambda u: part.update(u, part.init(u), array(w), value=value, grad=grad, value_fn=valley))(
        updates
    )

    end, slopes = rune.value_and_grad(valley)(array(w) + update)
    slope, later = float(rnp.dot(grad, updates)), float(rnp.dot(slopes, updates))
    assert bool(state.is_met)
    assert float(end) <= float(value) + 1e-4 * float(state.learning_rate) * slope
    assert abs(later) <= 0.1 * abs(slope)
    near((end, slopes), (state.value, state.grad), relative=1e-9, why="the same point")


def test_updates_that_point_uphill_are_not_followed():
    part, w = deprecated.scale_by_zoom_linesearch(20), array(np.array([-1.2, 1.0]))
    value, grad = rune.value_and_grad(valley)(w)

    update, state = part.update(grad, part.init(w), w, value=value, grad=grad, value_fn=valley)

    assert not np.any(np.asarray(update))
    assert float(state.value) == float(value)


def test_backtracking_ends_at_the_first_length_that_is_short_enough():
    part = deprecated.scale_by_backtracking_linesearch(30, slope_rtol=0.5, decrease_factor=0.5)
    w = rnp.array([3.0])

    def loss(p: Any) -> Any:
        return rnp.sum(p**2)

    update, state = part.update(-8.0 * w, part.init(w), w, value=9.0, grad=2.0 * w, value_fn=loss)

    # value(a) = (3 - 24 a)² <= 9 - 72 a holds up to a = 1/8.
    assert float(state.learning_rate) == 0.125
    assert (update.tolist(), int(state.steps), bool(state.is_met)) == ([-3.0], 4, True)


def test_backtracking_makes_no_step_where_nothing_is_gained():
    part, w = deprecated.scale_by_backtracking_linesearch(5), rnp.array([1.0])

    def loss(p: Any) -> Any:
        return rnp.sum(p)

    update, state = part.update(w, part.init(w), w, value=1.0, grad=w, value_fn=loss)

    assert (update.tolist(), bool(state.is_met)) == ([0.0], False)


def test_a_loss_receives_its_further_arguments():
    part, w = deprecated.lbfgs(), rnp.array([1.0])

    def loss(p: Any, batch: Any) -> Any:
        return rnp.sum((p - batch) ** 2)

    value, grad = rune.value_and_grad(loss)(w, 5.0)
    updates, _ = part.update(grad, part.init(w), w, value=value, grad=grad, value_fn=loss, batch=5.0, unknown=1)

    assert float(loss(w + updates, 5.0)) < float(value)


def test_a_loss_that_accepts_any_keyword_receives_all_of_them():
    part, w = deprecated.scale_by_backtracking_linesearch(5), rnp.array([1.0])

    def loss(p: Any, **batch: Any) -> Any:
        return rnp.sum((p - batch["shift"]) ** 2)

    update, _ = part.update(
        rnp.array([2.0]), part.init(w), w, value=4.0, grad=rnp.array([-4.0]), value_fn=loss, shift=3.0
    )

    assert update.tolist() == [2.0]


def test_value_and_gradient_are_computed_once_and_then_read_from_the_state():
    calls = []

    def loss(p: Any) -> Any:
        rune.debug.callback(lambda: calls.append(1))
        return rnp.sum((p - 1.0) ** 2)

    optimizer, params = deprecated.lbfgs(), rnp.zeros(2)
    value_and_grad = deprecated.value_and_grad_from_state(loss)
    value, grad = value_and_grad(params, state=optimizer.init(params))
    updates, state = optimizer.update(grad, optimizer.init(params), params, value=value, grad=grad, value_fn=loss)
    before = len(calls)
    value_and_slope = value_and_grad(optim.apply_updates(params, updates), state=state)

    assert len(calls) == before > 0
    near(rune.value_and_grad(loss)(params + updates), value_and_slope, relative=1e-6, why="the same point")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda w: deprecated.lbfgs().update(w, deprecated.lbfgs().init(w), w), "without value, grad, value"),
        (lambda w: deprecated.scale_by_lbfgs(0), "cannot remember 0 changes"),
        (lambda w: deprecated.scale_by_zoom_linesearch(5, initial_guess_strategy="two"), "'two'"),
        (lambda w: deprecated.scale_by_backtracking_linesearch(5, decrease_factor=2.0), "factor=2.0"),
        (lambda w: deprecated.value_and_grad_from_state(valley)(w, state=()), "among 0 line searches"),
        (lambda w: deprecated.polyak_sgd().update(w, deprecated.polyak_sgd().init(w), w), "without the loss"),
    ],
)
def test_an_error_names_the_missing_or_wrong_argument(call: Any, message: str):
    with pytest.raises(ValueError, match=message):
        call(rnp.ones(2))
