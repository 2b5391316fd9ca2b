"""Loops called eagerly: compiled once, never stale, and searched for the source of a NaN."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.arrays import array

X = array([0.5, 1.0, 2.0])


# --- equal programs are compiled once ------------------------------------------------------------


def eager(xs: Any) -> Any:
    return rune.scan(lambda c, x: (c * 0.5 + x, c), 0.0, xs)  # a new lambda in every call


def test_an_eager_loop_compiles_once_however_often_its_function_is_made():
    eager(X)

    with rune.counting() as counts:
        for _ in range(3):
            eager(X)
    assert (counts.compiles, counts.runs) == (0, 3)


def test_an_eager_gradient_of_a_loop_compiles_once():
    def slope(x: Any) -> Any:
        def body(s: Any) -> Any:
            return s[0] + 1, rune.cond(s[1] > 0, rnp.sin, lambda v: -v, s[1])

        return rune.grad(lambda v: rune.while_loop(lambda s: s[0] < 3, body, (0, v))[1])(x)

    slope(array(1.0))
    with rune.counting() as counts:
        slope(array(2.0))
    assert counts.compiles == 0


@rune.custom_jvp
def own_slope(x: Any) -> Any:
    return rnp.sin(x)


own_slope.defjvp(lambda p, t: (own_slope(*p), 2.0 * t[0]))


@rune.custom_vjp
def own_pullback(x: Any, factor: Any) -> Any:
    return rnp.sin(x) * factor


own_pullback.defvjp(lambda x, f: (own_pullback(x, f), f), lambda f, ct: (ct * f, None))


def _print(x: Any) -> Any:
    rune.debug.print("{:.1f}", x)
    return x


def _called(x: Any) -> Any:
    return rune.pure_callback(np.sin, rune.ShapeDtypeStruct((), "f32"), x)


BODIES: dict[str, Any] = {
    "custom_jvp": own_slope,
    "custom_vjp": lambda x: own_pullback(x, 2.0),
    "checkpoint": rune.checkpoint(rnp.sin, policy=rune.checkpoint_policies.save_only_these_names("a")),
    "debug.print": _print,
    "pure_callback": _called,
}


@pytest.mark.parametrize("name", BODIES)
def test_an_eager_loop_over_what_holds_python_functions_compiles_once(name: str):
    body = BODIES[name]

    def function(x: Any) -> Any:
        return rune.scan(lambda c, _: (body(c), None), x, None, length=2)[0]

    of = function if name == "pure_callback" else rune.grad(function)
    of(0.5)

    with rune.counting() as counts:
        of(0.5)
    assert counts.compiles == 0


def test_a_rule_with_another_static_argument_is_another_rule():
    @functools.partial(rune.custom_jvp, nondiff_argnums=(1,))
    def scaled(x: Any, factor: Any) -> Any:
        return x * 1.0

    scaled.defjvp(lambda factor, p, t: (scaled(p[0], factor), t[0] * factor))

    def slope(factor: float) -> Any:
        return rune.grad(lambda x: rune.scan(lambda c, _: (scaled(c, factor), None), x, None, 1)[0])

    assert [float(slope(f)(1.0)) for f in (2.0, 3.0, 2.0)] == [2.0, 3.0, 2.0]


def test_a_number_that_the_body_closes_over_is_never_stale():
    def scaled(factor: Any) -> Any:
        return rune.scan(lambda c, _: (c * factor, None), 1.0, None, length=2)[0]

    assert [float(scaled(f)) for f in (2.0, 3.0, 2.0)] == [4.0, 9.0, 4.0]


# --- where a NaN comes from ----------------------------------------------------------------------


def test_the_nan_check_names_the_operation_inside_a_loop():
    def function(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            lower = c - 1.0
            return rnp.sqrt(lower), None  # here

        return rune.scan(step, x, None, length=4)[0]

    for run in (function, rune.jit(function)):
        with rune.configure(check_nans=True), pytest.raises(rune.errors.NaNError) as error:
            run(array(2.0))
        assert "sqrt: found NaN" in str(error.value)
        assert "# here" in str(error.value)
