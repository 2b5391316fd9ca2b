"""custom_jvp: the rule takes the place of the derivative, in every order of transformations.

First what a rule means and where it is called, then arguments that are not differentiated, then
the program that jit and vmap see, then what a function may close over, last what is refused.
The function and its rule disagree on purpose (by a factor of ten), so that the rule shows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.errors import EscapedTracerError, TransformError
from tests.support.arrays import array
from tests.support.close import near, same
from tests.support.derivatives import WHY, differences, inner
from tests.transforms.custom.orders import GRADIENTS, LANES

X = array([0.5, 1.0, 2.0])
F32 = "f32, other order of operations"


@rune.custom_jvp
def wave(x: Any, y: Any) -> Any:
    """sin(x) y, whose rule gives ten times its derivative with respect to x."""
    return rnp.sin(x) * y


@wave.defjvp
def _wave_rule(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    return wave(x, y), 10.0 * rnp.cos(x) * y * dx + rnp.sin(x) * dy


def honest(function: Callable[..., Any], jvp: Callable[..., Any]) -> Any:
    """A function of one argument with its true derivative as the rule."""
    operation = rune.custom_jvp(function)
    operation.defjvps(jvp)
    return operation


# --- what a rule means --------------------------------------------------------------------------


def test_without_a_derivative_the_function_itself_runs():
    near(np.sin(np.asarray(X)) * 2.0, wave(X, 2.0), relative=1e-6, why=F32)


def test_jvp_calls_the_rule():
    value, tangent = rune.jvp(wave, (1.0, 2.0), (1.0, 0.0))

    near(2 * np.sin(1.0), value, relative=1e-6, why=F32)
    near(20 * np.cos(1.0), tangent, relative=1e-6, why=F32)


def test_grad_transposes_the_rule():
    dx, dy = rune.grad(wave, argnums=(0, 1))(1.0, 2.0)

    near(20 * np.cos(1.0), dx, relative=1e-6, why=F32)
    near(np.sin(1.0), dy, relative=1e-6, why=F32)


def test_a_second_derivative_calls_the_rule_twice():
    # The rule's own 10 cos(x) y is differentiated by the rules of cos and mul.
    near(-20 * np.sin(1.0), rune.grad(rune.grad(wave))(1.0, 2.0), relative=1e-6, why=F32)


ORDERS: dict[str, Callable[[Any], Any]] = {
    **GRADIENTS,
    "jvp of jit": lambda f: lambda x, y: rune.jvp(rune.jit(f), (x, y), (1.0, 0.0))[1],
    "jit of jvp": lambda f: rune.jit(lambda x, y: rune.jvp(f, (x, y), (1.0, 0.0))[1]),
    "linearize": lambda f: lambda x, y: rune.linearize(f, x, y)[1](1.0, 0.0),
}


@pytest.mark.parametrize("name", ORDERS)
def test_the_rule_survives_jit_in_every_order(name: str):
    near(20 * np.cos(1.0), ORDERS[name](wave)(1.0, 2.0), relative=1e-6, why=F32)


@pytest.mark.parametrize("name", LANES)
def test_the_rule_survives_vmap_in_every_order(name: str):
    near(20 * np.cos(np.asarray(X)), LANES[name](wave)(X, 2.0), relative=1e-5, why=F32)


def test_a_value_shared_by_lanes_gets_the_sum_of_their_derivatives():
    gradient = rune.grad(lambda y: rune.jit(rune.vmap(wave, (0, None)))(X, y).sum())(2.0)

    near(np.sin(np.asarray(X)).sum(), gradient, relative=1e-6, why=F32)


def test_an_honest_rule_agrees_with_differences_and_is_adjoint():
    softplus = honest(lambda x: rnp.log(1.0 + rnp.exp(x)), lambda t, y, x: t / (1.0 + rnp.exp(-x)))
    x, v = array(np.array([-1.0, 0.3, 2.0])), array(np.array([0.5, 1.0, -1.0]))

    push, pull = rune.linearize(softplus, x)[1], rune.vjp(softplus, x)[1]

    near(differences(softplus, [x], [v]), push(v), relative=1e-6, why=WHY)
    near(inner([v], [push(v)]), inner(pull(v), [v]), relative=1e-12, why="f64")


# --- forms of rules -----------------------------------------------------------------------------


def test_one_rule_per_argument_may_be_none():
    function = rune.custom_jvp(lambda x, y: x * y)
    function.defjvps(lambda t, result, x, y: 7.0 * t, None)

    assert float(rune.grad(function)(2.0, 3.0)) == 7.0
    assert float(rune.grad(function, argnums=1)(2.0, 3.0)) == 0.0


def test_the_rule_receives_trees_of_arguments_and_results_unchanged():
    @rune.custom_jvp
    def function(p: Any) -> Any:
        return {"out": p["a"] * p["b"][0]}

    @function.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (p,), (t,) = primals, tangents
        return function(p), {"out": 5.0 * t["a"] + t["b"][0]}

    gradient = rune.grad(lambda p: function(p)["out"])({"a": 2.0, "b": (3.0,)})
    assert (float(gradient["a"]), float(gradient["b"][0])) == (5.0, 1.0)


def test_zero_tangents_are_arrays_unless_symbolic_zeros_are_requested():
    tangents_of_y: list[Any] = []

    def rule(primals: Any, tangents: Any) -> Any:
        tangents_of_y.append(tangents[1])
        return primals[0] * primals[1], tangents[0] * primals[1]

    for symbolic in (False, True):
        function = rune.custom_jvp(lambda x, y: x * y)
        function.defjvp(rule, symbolic_zeros=symbolic)
        rune.grad(function)(2.0, 3.0)

    assert float(tangents_of_y[0]) == 0.0
    assert isinstance(tangents_of_y[1], rune.SymbolicZero)


def test_the_tangent_of_an_integer_is_float0():
    tangents_of_y: list[Any] = []

    @rune.custom_jvp
    def scaled(x: Any, n: Any) -> Any:
        return x * n

    @scaled.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        tangents_of_y.append(tangents[1])
        return scaled(*primals), tangents[0] * primals[1]

    assert float(rune.grad(scaled)(2.0, 3)) == 3.0
    assert tangents_of_y[0].dtype == rune.float0


def test_arguments_that_are_not_differentiated_come_first_and_may_be_anything():
    @functools.partial(rune.custom_jvp, nondiff_argnums=(0,))
    def applied(function: Any, x: Any) -> Any:
        return function(x)

    @applied.defjvp
    def _(function: Any, primals: Any, tangents: Any) -> Any:
        return applied(function, *primals), 3.0 * tangents[0]

    assert float(rune.grad(applied, argnums=1)(rnp.sin, 1.0)) == 3.0
    assert float(rune.jit(rune.grad(applied, argnums=1), static_argnums=0)(rnp.sin, 1.0)) == 3.0


@functools.partial(rune.custom_jvp, nondiff_argnums=(0,))
def tenfold(n: Any, x: Any) -> Any:
    """n x² with ten times its derivative, 20 n x."""
    return n["by"] * x**2


@tenfold.defjvp
def _(n: Any, primals: Any, tangents: Any) -> Any:
    return tenfold(n, *primals), 20.0 * n["by"] * primals[0] * tangents[0]


def one_by_one(n: Any, x: Any) -> Any:
    return tenfold({"by": n}, x)


TRACED: dict[str, Callable[[Any, Any], Any]] = {
    "vmap": rune.vmap(one_by_one),
    "vmap of jit": rune.vmap(rune.jit(one_by_one)),
    "jit of vmap": rune.jit(rune.vmap(one_by_one)),
    "checkpoint": rune.vmap(rune.checkpoint(one_by_one)),
    "scan": lambda n, x: rune.lax.scan(lambda _, lane: (None, one_by_one(*lane)), None, (n, x))[1],
    "cond": rune.vmap(lambda n, x: rune.lax.cond(x > 0, one_by_one, lambda n, x: 0 * x, n, x)),
}


@pytest.mark.parametrize("way", TRACED)
def test_traced_arguments_that_are_not_differentiated_reach_the_rule(way: str):
    n, x = np.array([0.5, -1.0, 3.0], np.float32), np.array([1.0, 2.0, 5.0], np.float32)

    def total(x: Any) -> Any:
        return TRACED[way](n, x).sum()

    for grad in (rune.grad, lambda f: rune.jit(rune.grad(f))):
        np.testing.assert_allclose(grad(total)(x), 20 * n * x, rtol=1e-6)
    np.testing.assert_allclose(rune.hessian(total)(x), np.diag(20 * n), rtol=1e-6)
    np.testing.assert_allclose(rune.jvp(total, (x,), (n,))[1], (20 * n * n * x).sum(), rtol=1e-6)


def test_the_derivative_of_a_traced_argument_that_has_none_is_refused():
    with pytest.raises(TransformError, match="nondiff_argnums says that this argument is not differentiated"):
        rune.grad(lambda n: rune.vmap(one_by_one)(n, rnp.ones(3)).sum())(rnp.ones(3))


def test_keywords_and_defaults_find_their_places():
    function = rune.custom_jvp(lambda x, y=3.0: x * y)
    function.defjvps(lambda t, r, x, y: t * y, lambda t, r, x, y: t * x)

    assert float(rune.grad(lambda x: function(x))(2.0)) == 3.0
    assert float(rune.grad(lambda x: function(y=x, x=5.0))(2.0)) == 5.0


def test_a_method_has_a_rule_too():
    class Model:
        @functools.partial(rune.custom_jvp, nondiff_argnums=(0,))
        def forward(self, x: Any) -> Any:
            return x * 2.0

        @forward.defjvp
        def _rule(self, primals: Any, tangents: Any) -> Any:
            return primals[0] * 2.0, tangents[0] * 9.0

    assert float(rune.grad(Model().forward)(1.0)) == 9.0


def test_eager_derivatives_let_python_branch_on_values():
    @rune.custom_jvp
    def ramp(x: Any) -> Any:
        return x if x > 0 else 0.0 * x

    ramp.defjvps(lambda t, y, x: t * (2.0 if x > 0 else 0.0))

    assert [float(rune.grad(ramp)(x)) for x in (3.0, -3.0)] == [2.0, 0.0]


# --- programs -----------------------------------------------------------------------------------


def test_a_program_holds_the_function_and_names_its_rule(expect: Any):
    function = honest(lambda x: rnp.sin(x), lambda t, y, x: t)

    expect(
        rune.make_program(rune.vmap(function))(X),
        """
        program vmap_lambda(%0: f32[3]) {
          %1: f32[3] = custom_jvp %0 {hidden=0, program=program vmap_lambda(%0: f32[3]) {
            %1: f32[3] = sin %0
            return %1
          }, rule=<rule of lambda on lanes>}
          return %1
        }""",
    )


def test_compiled_code_has_the_function_inlined():
    function = rune.jit(lambda x: rnp.exp(wave(x, 2.0)))

    with rune.counting() as counts:
        function(X)

    assert (counts.compiles, counts.runs) == (1, 1)


# --- what a function may close over -------------------------------------------------------------


def closing_over(y: Any, wrap: Callable[[Any], Any] = lambda f: f, *, in_rule: bool = False) -> Any:
    """The derivative at 2 of x ↦ x y; y is closed over, by the rule as well if asked."""
    function = rune.custom_jvp(lambda x: x * y)
    function.defjvp(lambda p, t: (p[0] * (y if in_rule else 1.0), 5.0 * t[0]))
    return rune.grad(wrap(function))(2.0)


def test_arrays_may_be_closed_over_by_the_rule_in_compiled_code():
    weights = array([1.0, 2.0, 3.0])
    function = rune.custom_jvp(lambda x: (x * weights).sum())
    function.defjvp(lambda p, t: (function(p[0]), (t[0] * weights * array([1.0, 10.0, 1.0])).sum()))

    for f in (function, rune.jit(function), rune.jit(rune.jit(function))):
        same(np.array([1.0, 20.0, 3.0], np.float32), rune.grad(f)(X))
        same(np.array([1.0, 20.0, 3.0], np.float32), rune.jit(rune.grad(f))(X))
        same(np.tile([1.0, 20.0, 3.0], (2, 1)).astype(np.float32), rune.vmap(rune.grad(f))(rnp.stack([X, X])))


def test_a_traced_value_of_an_outer_transformation_may_be_closed_over():
    assert float(rune.jit(closing_over)(3.0)) == 5.0
    same(np.full(3, 5.0, np.float32), rune.vmap(closing_over)(X))
    same(np.asarray(X) * 2.0, rune.vmap(lambda y: wave_like(y)(2.0))(X))


def wave_like(y: Any) -> Any:
    """x ↦ x y with a rule."""
    function = rune.custom_jvp(lambda x: x * y)
    function.defjvp(lambda p, t: (function(p[0]), t[0]))
    return function


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_a_closed_over_value_cannot_be_differentiated(wrap: Any):
    with pytest.raises(TransformError, match=r"with respect to a value f32.* that it closes over"):
        rune.grad(lambda y: wrap(wave_like(y))(2.0))(3.0)


class Scaled:
    """A model whose method has a rule without a derivative for its weight."""

    def __init__(self, weight: Any):
        self.layers = [{"weight": weight}]

    @functools.partial(rune.custom_jvp, nondiff_argnums=(0,))
    def forward(self, x: Any) -> Any:
        return x * self.layers[0]["weight"]

    @forward.defjvp
    def _rule(self, primals: Any, tangents: Any) -> Any:
        return primals[0], tangents[0]


HIDING: dict[str, Callable[[Any], Any]] = {
    "a method": lambda y: Scaled(y).forward(2.0),
    "a function in a closure": lambda y: wave_like_of(lambda: y)(2.0),
    "a bound argument": lambda y: ruled(functools.partial(lambda w, x: w * x, y))(2.0),
}


def wave_like_of(weight: Callable[[], Any]) -> Any:
    """x ↦ x weight() with a rule."""
    return ruled(lambda x: x * weight())


def ruled(function: Any) -> Any:
    """A function with the identity's rule."""
    operation = rune.custom_jvp(function)
    operation.defjvp(lambda p, t: (p[0], t[0]))
    return operation


@pytest.mark.parametrize("name", HIDING)
def test_a_value_hidden_in_objects_and_functions_is_found(name: str):
    with pytest.raises(TransformError, match="that it closes over"):
        rune.grad(lambda y: HIDING[name](y) + 0.0 * y)(3.0)
    with pytest.raises(TransformError, match="that it closes over"):
        rune.grad(lambda y: rune.grad(lambda x: HIDING[name](y) * x)(1.0))(3.0)


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_an_object_closed_over_may_have_values_that_the_function_does_not_read(wrap: Any):
    def doubled(y: Any) -> Any:
        model = Scaled(y)
        return wrap(ruled(lambda x: x * len(model.layers)))(3.0 * y) + model.layers[0]["weight"]

    assert float(rune.grad(doubled)(2.0)) == 4.0
    assert float(rune.jvp(doubled, (2.0,), (1.0,))[1]) == 4.0


def test_a_rule_may_close_over_a_traced_value_in_jit():
    slope = rune.jit(lambda y: closing_over(y, rune.jit, in_rule=True))

    assert [float(slope(y)) for y in (3.0, 4.0)] == [5.0, 5.0]


def test_a_rule_that_uses_a_value_of_the_derivative_itself_is_refused():
    values: list[Any] = []
    function = rune.custom_jvp(lambda x: x)
    function.defjvp(lambda p, t: (p[0], t[0] * values[0]))

    with pytest.raises(EscapedTracerError, match="cannot run the rule of lambda"):
        rune.grad(lambda x: (values.append(x), function(x))[1])(3.0)


def test_a_constant_argument_of_a_compiled_function_keeps_its_digits():
    function = rune.custom_jvp(lambda x, y: x * y)
    function.defjvp(lambda p, t: (function(*p), t[0] * rnp.cos(p[1])))
    x, y = array(np.float64(0.3)), array(np.float64(0.7))

    gradient = rune.grad(rune.jit(lambda v: function(v, y)))(x)

    near(np.cos(0.7), gradient, relative=1e-14, why="f64")


# --- what is refused ----------------------------------------------------------------------------

WRONG: list[tuple[str, Any, str]] = [
    ("no pair", lambda p, t: p[0], "a pair of results and tangents required"),
    ("another tree", lambda p, t: (p[0], (t[0], t[0])), "results a single value, and tangents"),
    ("another shape", lambda p, t: (p[0], array([1.0, 2.0])), r"is f32.*, its tangent f32\[2\]"),
    ("another dtype", lambda p, t: (p[0], rnp.asarray(1)), "its tangent i32"),
]


@pytest.mark.parametrize(("name", "rule", "message"), WRONG, ids=[w[0] for w in WRONG])
def test_a_rule_that_returns_something_else_is_refused(name: str, rule: Any, message: str):
    function = rune.custom_jvp(lambda x: x * 2.0)
    function.defjvp(rule)

    with pytest.raises(TransformError, match=message):
        rune.grad(function)(1.0)


def test_a_rule_whose_results_are_not_the_function_s_is_refused_in_compiled_code():
    function = rune.custom_jvp(lambda x: x * 2.0)
    function.defjvp(lambda p, t: (array([1.0, 2.0]), array([1.0, 2.0])))

    with pytest.raises(TransformError, match=r"its results are f32\[2\], the function's f32"):
        rune.grad(lambda x: rune.jit(function)(x).sum())(1.0)


def test_a_rule_that_is_not_linear_cannot_be_transposed():
    square = rune.custom_jvp(lambda x: x)
    square.defjvp(lambda p, t: (p[0], t[0] * t[0]))
    quotient = rune.custom_jvp(lambda x: x)
    quotient.defjvp(lambda p, t: (p[0], 1.0 / t[0]))

    with pytest.raises(TransformError, match=r"mul of .*not in operands 0 and 1 together"):
        rune.grad(square)(1.0)
    with pytest.raises(TransformError, match=r"div of .*not in operand 1"):
        rune.grad(quotient)(1.0)


def test_a_function_without_a_rule_cannot_be_called():
    with pytest.raises(TransformError, match="it has no rule"):
        rune.custom_jvp(lambda x: x)(1.0)


def _with_rule(tangent_rule: Callable[[Any], Any]) -> Callable[[Any], Any]:
    function = rune.custom_jvp(lambda x: x)
    function.defjvp(lambda primals, tangents: (primals[0], tangent_rule(tangents[0])))
    return function


def test_a_rule_that_solves_a_system_of_its_tangent_is_refused_where_it_is_transposed():
    def diagonal(t: Any) -> Any:
        return lax.custom_linear_solve(lambda v: t * v, array([1.0, 1.0]), lambda matvec, b: b, lambda matvec, b: b)

    with pytest.raises(TransformError, match=r"custom_linear_solve: cannot transpose \(it is linear only in b\)"):
        rune.grad(lambda x: rnp.sum(_with_rule(diagonal)(x)))(array([1.0, 2.0]))


def test_a_rule_whose_loop_length_depends_on_its_tangent_cannot_be_transposed():
    def loop(t: Any) -> Any:
        return lax.while_loop(lambda s: s[1] < 3.0, lambda s: (s[0], s[1] + s[0]), (t, t))[1]

    with pytest.raises(TransformError, match=r"cannot transpose while \(its condition depends on a linear value\)"):
        rune.grad(_with_rule(loop))(1.0)
