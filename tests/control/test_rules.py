"""Every primitive of control flow has every rule, and composes with others that hold programs.

jit, checkpoint and custom rules inside bodies and branches, and draws without a key, which differ
from step to step and are the same however the loop is run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.control.implicit.linear_solve import linear_solve
from rune.control.text import CONTROL
from rune.core.higher import HigherOrder
from rune.errors import TransformError
from tests.control.cases import interpreted
from tests.support.arrays import array
from tests.support.close import near, same

X = array([0.3, 1.0, -0.5])
TABLE = array([1.0, 2.0, 3.0])


@pytest.mark.parametrize("primitive", CONTROL, ids=lambda p: p.name)
def test_no_rule_is_missing(primitive: HigherOrder):
    rules = [
        primitive.type_rule,
        primitive.run,
        primitive.interpret,
        primitive.jvp_equation,
        primitive.transpose,
        primitive.batch,
        primitive.lower or primitive.expand,
    ]
    if primitive is not linear_solve:  # its solution cannot be partly known or partly unused
        rules += [primitive.partial_equation, primitive.dead_code]

    assert primitive.multiple_results
    assert all(rules)


# --- what a body may hold -----------------------------------------------------------------------


@rune.custom_vjp
def tripled(x: Any) -> Any:
    """sin(x) times a table; its derivative is three times what it should be."""
    return rnp.sin(x) * TABLE


def _forward(x: Any) -> Any:
    return tripled(x), x


def _backward(x: Any, ct: Any) -> Any:
    return (3.0 * ct * rnp.cos(x) * TABLE,)


tripled.defvjp(_forward, _backward)


@rune.custom_jvp
def doubled(x: Any) -> Any:
    """sin(x), with twice its derivative."""
    return rnp.sin(x) * TABLE


doubled.defjvp(lambda p, t: (doubled(p[0]), 2.0 * t[0] * rnp.cos(p[0]) * TABLE))

INNER: dict[str, Callable[..., Any]] = {
    "jit": rune.jit(lambda x: rnp.sin(x) * TABLE),
    "checkpoint": rune.checkpoint(lambda x: rnp.sin(rnp.cos(x)) * TABLE),
    "custom_vjp": tripled,
    "custom_jvp": doubled,
}


def in_scan(f: Any, x: Any) -> Any:
    return rune.scan(lambda c, _: (f(c), c), x, None, length=3)[0].sum()


def in_while(f: Any, x: Any) -> Any:
    return rune.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, f(s[1])), (0, x))[1].sum()


def in_cond(f: Any, x: Any) -> Any:
    for sign in (1.0, -1.0, 1.0):
        x = rune.cond(x.sum() * 0.0 < sign, f, f, x)
    return x.sum()


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("around", [in_scan, in_while, in_cond], ids=lambda f: f.__name__)
def test_functions_with_custom_rules_keep_them_inside(inner: str, around: Any):
    f = INNER[inner]

    def function(x: Any) -> Any:
        return around(f, x)

    def twin(x: Any) -> Any:
        return f(f(f(x))).sum()

    expected = rune.grad(twin)(X)
    near(expected, rune.grad(function)(X), relative=2e-6, why="f32")
    near(expected, rune.jit(rune.grad(function))(X), relative=2e-6, why="f32")
    lanes = rune.vmap(rune.grad(function))(array(np.stack([np.asarray(X), np.asarray(X)])))
    near(np.stack([np.asarray(expected)] * 2), lanes, relative=2e-6, why="f32")


def test_a_loop_inside_a_checkpoint_is_computed_again():
    def function(x: Any) -> Any:
        return in_while(lambda v: rnp.sin(v) * x, x) + in_scan(rnp.cos, x)

    near(rune.grad(function)(X), rune.grad(rune.checkpoint(function))(X), relative=1e-6, why="f32")


def test_a_loop_inside_a_custom_rule_is_not_differentiated():
    @rune.custom_jvp
    def root(x: Any) -> Any:
        return rune.while_loop(lambda v: abs(v * v - x) > 1e-5, lambda v: 0.5 * (v + x / v), x)

    @root.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        y = root(*primals)
        return y, tangents[0] / (2.0 * y)

    near(0.25, rune.grad(root)(4.0), relative=1e-5, why="1 / 2 sqrt x")
    near(-1 / 32, rune.grad(rune.grad(root))(4.0), relative=1e-5, why="its derivative")


# --- draws --------------------------------------------------------------------------------------


def seeded(function: Callable[..., Any], *args: Any) -> Any:
    with rune.random.seed(0):
        return function(*args)


def by_step(count: int) -> list[np.ndarray]:
    """The numbers of one draw in every step."""
    draws = []
    for i in range(count):
        with rune.random.seed(0).fold(i):
            draws.append(np.asarray(rune.random.uniform()))
    return draws


def draws_of_scan(**options: Any) -> Any:
    return rune.scan(lambda c, _: (c, rune.random.uniform()), 0.0, None, length=4, **options)[1]


def test_every_step_draws_its_own():
    draws = seeded(draws_of_scan)

    same(np.stack(by_step(4)), draws)
    same(draws, seeded(rune.jit(draws_of_scan)))


def test_steps_are_numbered_as_they_run():
    same(np.stack(by_step(4))[::-1], seeded(lambda: draws_of_scan(reverse=True)))
    same(np.stack(by_step(4)), seeded(lambda: draws_of_scan(unroll=2)))


def test_a_while_loop_draws_as_a_scan_does():
    def function() -> Any:
        def body(s: Any) -> Any:
            i, draws = s
            return i + 1, draws.at[i].set(rune.random.uniform())

        return rune.while_loop(lambda s: s[0] < 4, body, (0, rnp.zeros(4)))[1]

    same(np.stack(by_step(4)), seeded(function))
    same(np.stack(by_step(4)), seeded(rune.jit(function)))


def test_draws_after_a_branch_do_not_depend_on_which_was_taken():
    def function(p: Any) -> Any:
        sample = rune.cond(p, lambda: rune.random.uniform() + rune.random.uniform(), lambda: 0.0)
        return sample, rune.random.uniform()

    same(seeded(function, True)[1], seeded(function, False)[1])
    same(seeded(function, True), seeded(rune.jit(function), True))


def test_lanes_and_steps_all_differ():
    draws = np.asarray(seeded(lambda: rune.vmap(lambda _: draws_of_scan())(np.zeros(3))))

    assert len(np.unique(draws)) == 12


def test_the_gradient_draws_what_the_function_draws():
    def function(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            return c * rune.random.uniform(), None

        return rune.scan(body, x, None, length=4)[0]

    expected = np.prod(by_step(4))
    near(expected, seeded(rune.grad(function), 2.0), relative=1e-6, why="f32")


def test_a_draw_in_the_condition_of_a_loop_is_refused():
    with pytest.raises(TransformError, match=r"cannot draw in cond_fun[\s\S]*draw in body_fun"):
        seeded(rune.while_loop, lambda c: rune.random.uniform() < c, lambda c: c * 0.5, 1.0)


def test_keys_are_scanned_over_and_chosen():
    keys = rune.random.split(rune.random.key(0), 3)

    _, draws = rune.scan(lambda c, k: (c, rune.random.normal(k)), None, keys)
    with interpreted():
        draw = rune.cond(True, lambda k: rune.random.normal(k), lambda k: 0.0, keys[1])

    same(np.stack([np.asarray(rune.random.normal(k)) for k in keys]), draws)
    same(draws[1], draw)
