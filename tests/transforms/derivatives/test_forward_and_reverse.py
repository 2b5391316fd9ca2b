"""Derivatives of functions: what jvp, linearize, vjp and grad promise, in reading order.

First arguments and results as trees, then which arguments can be differentiated, then nesting:
no perturbation is confused with another, and closed-over values are constants of the inner one.
Last, what reverse mode keeps in memory, and for how long.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, ops
from rune.core.interpreter import current, type_of
from rune.errors import TransformError
from rune.transforms.derivatives.linearize import linearize_flat
from tests.support.arrays import array
from tests.support.close import near, same
from tests.support.derivatives import WHY, differences, inner

X = array([0.5, 1.0, 2.0])


def loss(x: Any) -> Any:
    return (ops.sin(x) * x).sum()


# --- arguments and results --------------------------------------------------------------------


def test_jvp_gives_the_value_and_the_tangent():
    value, tangent = rune.jvp(lambda x: x * x, (3.0,), (2.0,))

    assert (float(value), float(tangent)) == (9.0, 12.0)


def test_tangents_and_results_are_trees_like_the_primals():
    def function(p: Any) -> Any:
        return {"out": p["a"] * p["b"][0]}

    primals = ({"a": X, "b": [2.0]},)
    value, tangent = rune.jvp(function, primals, ({"a": X, "b": [1.0]},))

    same({"out": np.asarray(X) * 2}, value)
    same({"out": np.asarray(X) * 3}, tangent)


def test_a_constant_result_has_the_tangent_zero():
    _, tangent = rune.jvp(lambda x: array([1.0, 2.0]), (X,), (X,))

    same(np.zeros(2, np.float32), tangent)


def test_integer_primals_take_float0_tangents_and_integer_results_give_them():
    zero = np.zeros((), dtypes.float0)

    value, tangent = rune.jvp(lambda x, n: (x * 2.0, n + 1), (1.5, 3), (1.0, zero))

    assert (float(value[0]), int(value[1])) == (3.0, 4)
    assert float(tangent[0]) == 2.0
    assert np.asarray(tangent[1]).dtype == dtypes.float0


def test_vjp_of_an_integer_argument_gives_float0():
    _, pull = rune.vjp(lambda x, n: x * ops.convert(n, dtype=dtypes.f32), X, array([1, 2, 3]))

    cts = pull(X)
    assert np.asarray(cts[1]).dtype == dtypes.float0


def test_grad_chooses_arguments_by_number():
    def function(x: Any, y: Any, z: Any) -> Any:
        return x * y + z

    args = (2.0, 3.0, 5.0)
    assert float(rune.grad(function)(*args)) == 3.0
    assert float(rune.grad(function, argnums=1)(*args)) == 2.0
    assert list(map(float, rune.grad(function, argnums=(0, 2))(*args))) == [3.0, 1.0]
    assert float(rune.grad(function, argnums=-1)(*args)) == 1.0


def test_an_argument_that_is_not_used_has_the_gradient_zero():
    same(np.zeros(3, np.float32), rune.grad(lambda x, y: y.sum())(X, X))


def test_none_in_the_arguments_stays_none_in_the_gradient():
    gradient = rune.grad(lambda p: p["a"] * 2.0)({"a": 1.0, "b": None})

    assert gradient["b"] is None
    assert float(gradient["a"]) == 2.0


def test_keyword_arguments_reach_the_function():
    assert float(rune.grad(lambda x, scale: x * scale)(2.0, scale=7.0)) == 7.0


def test_value_and_grad_runs_the_function_once():
    calls = []

    def function(x: Any) -> Any:
        calls.append(x)
        return x * x

    value, gradient = rune.value_and_grad(function)(3.0)

    assert (float(value), float(gradient), len(calls)) == (9.0, 6.0, 1)


def test_aux_results_come_back_as_plain_values():
    (value, aux), gradient = rune.value_and_grad(lambda x: (x * x, {"x": x, "n": 3}), has_aux=True)(3.0)

    assert (float(value), float(gradient)) == (9.0, 6.0)
    assert (float(aux["x"]) + 0.5, aux["n"]) == (3.5, 3)


def test_aux_of_an_inner_derivative_is_still_differentiated_by_the_outer_one():
    def outer(x: Any) -> Any:
        inner_gradient, aux = rune.grad(lambda y: (y * y, x * 5.0), has_aux=True)(x)
        return inner_gradient + aux

    assert float(rune.grad(outer)(3.0)) == 7.0


class Noted:
    """A node that remembers in which transformation it was made."""

    def __init__(self, x: Any):
        self.x, self.interpreter = x, current()


rune.tree.register_node(Noted, lambda n: ((n.x,), None), lambda _, xs: Noted(*xs))

WITH_AUX: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: rune.grad(f, has_aux=True)(x)[1],
    "value_and_grad": lambda f, x: rune.value_and_grad(f, has_aux=True)(x)[0][1],
    "vjp": lambda f, x: rune.vjp(f, x, has_aux=True)[2],
    "jvp": lambda f, x: rune.jvp(f, (x,), (x,), has_aux=True)[2],
    "linearize": lambda f, x: rune.linearize(f, x, has_aux=True)[2],
    "jacfwd": lambda f, x: rune.jacfwd(f, has_aux=True)(x)[1],
    "jacrev": lambda f, x: rune.jacrev(f, has_aux=True)(x)[1],
    "hessian": lambda f, x: rune.hessian(f, has_aux=True)(x)[1],
}


@pytest.mark.parametrize("name", WITH_AUX)
def test_nodes_of_aux_are_made_outside_of_the_derivative(name: str):
    def is_outside(x: Any) -> bool:
        return WITH_AUX[name](lambda y: (y * y, Noted(y)), x).interpreter is current()

    assert is_outside(3.0)
    assert rune.vmap(lambda x: is_outside(x) * x)(rnp.ones(2)).sum() == 2.0


def test_vjp_with_aux_gives_it_third():
    value, pull, aux = rune.vjp(lambda x: (x * x, x + 1.0), 3.0, has_aux=True)

    assert (float(value), float(pull(1.0)[0]), float(aux)) == (9.0, 6.0, 4.0)


def test_a_vjp_function_can_be_called_many_times():
    _, pull = rune.vjp(lambda x: x * x, X)

    first, second = pull(X)[0], pull(X)[0]

    same(np.asarray(first), second)
    same(2 * np.asarray(X) * np.asarray(X), second)


def test_vjp_is_linear_in_the_cotangent_and_takes_a_zero():
    _, pull = rune.vjp(lambda x: (x * x, ops.exp(x)), X)
    zero = array(np.zeros(3, np.float32))

    same(np.zeros(3, np.float32), pull((zero, zero))[0])


def test_gradients_have_the_dtype_of_their_argument():
    for dtype in (dtypes.bf16, dtypes.f16, dtypes.f32, dtypes.f64):
        x = array(np.ones(3), dtype)

        assert rune.grad(lambda v: (v * v).sum())(x).dtype == dtype


# --- what can be differentiated ---------------------------------------------------------------


def test_grad_of_an_integer_argument_is_an_error_with_its_path():
    with pytest.raises(TransformError, match=r"argument 0\['n'\] of type i32\[\]"):
        rune.grad(lambda p: p["x"])({"x": 1.0, "n": array(np.int32(2))})


def test_grad_of_a_python_integer_is_an_error():
    with pytest.raises(TransformError, match="floating dtype required"):
        rune.grad(lambda x: x * 1.0)(3)


def test_grad_of_a_result_that_is_not_a_scalar_is_an_error():
    with pytest.raises(TransformError, match=r"a result f32\[3\] \(scalar required\)"):
        rune.grad(lambda x: x * x)(X)


def test_grad_of_an_integer_result_is_an_error():
    with pytest.raises(TransformError, match=r"a result i32\[\] \(real floating required\)"):
        rune.grad(lambda x: ops.convert(x, dtype=dtypes.i32))(1.0)


def test_grad_of_a_complex_result_is_an_error():
    with pytest.raises(TransformError, match="real floating required"):
        rune.grad(lambda z: z * z)(array(np.complex64(1 + 2j)))


def test_grad_of_several_results_is_an_error():
    with pytest.raises(TransformError, match=r"a result of 2 arrays \(one scalar required\)"):
        rune.grad(lambda x: (x, x))(1.0)


def test_argnums_out_of_range_is_an_error():
    with pytest.raises(TransformError, match="cannot differentiate argument 2"):
        rune.grad(lambda x, y: x * y, argnums=2)(1.0, 2.0)


def test_tangents_must_match_their_primals():
    with pytest.raises(TransformError, match=r"a tangent f32\[2\] for a primal f32\[3\]"):
        rune.jvp(ops.sin, (X,), (array([1.0, 2.0]),))
    with pytest.raises(TransformError, match="cannot match tangents to primals"):
        rune.jvp(ops.sin, (X,), (X, X))


def test_cotangents_must_match_their_outputs():
    _, pull = rune.vjp(lambda x: {"y": x * x}, X)

    with pytest.raises(TransformError, match=r"output f32\[3\] \(output\['y'\]\)"):
        pull({"y": array([1.0])})
    with pytest.raises(TransformError, match="cannot match cotangents to outputs"):
        pull(X)


def test_transforming_a_value_that_is_not_a_function_is_an_error():
    with pytest.raises(TransformError, match="cannot transform float"):
        rune.grad(3.0)  # type: ignore[arg-type]


# --- nesting ----------------------------------------------------------------------------------


def test_nested_grad_does_not_confuse_perturbations():
    gradient = rune.grad(lambda x: x * rune.grad(lambda y: x + y)(1.0))(5.0)

    assert float(gradient) == 1.0


def test_a_closed_over_value_is_a_constant_of_the_inner_derivative():
    gradient = rune.grad(lambda x: rune.grad(lambda y: x * y * y)(x))(3.0)

    assert float(gradient) == 12.0


def test_forward_inside_forward_does_not_confuse_perturbations():
    def outer(x: Any) -> Any:
        return x * rune.jvp(lambda y: x * y, (2.0,), (1.0,))[1]

    assert float(rune.jvp(outer, (3.0,), (1.0,))[1]) == 6.0


def test_derivatives_of_every_order_of_a_monomial():
    function, expected = (lambda x: ops.integer_pow(x, exponent=5)), 2.0**5
    for order in range(6):
        assert float(function(array(np.float64(2)))) == expected
        function, expected = rune.grad(function), expected * (5 - order) / 2


def test_forward_over_reverse_equals_reverse_over_forward():
    v = array([1.0, -1.0, 0.5])

    forward = rune.jvp(rune.grad(loss), (X,), (v,))[1]
    reverse = rune.grad(lambda x: rune.jvp(loss, (x,), (v,))[1])(X)

    near(forward, reverse, relative=1e-6, why="the same products in another order")


def test_a_hessian_vector_product_equals_the_product_with_the_hessian():
    v = array([1.0, -1.0, 0.5])

    product = rune.jvp(rune.grad(loss), (X,), (v,))[1]

    full = np.asarray(rune.hessian(loss)(X)) @ np.asarray(v)
    near(full, product, relative=1e-5, why="sums in another order")


def test_the_hessian_is_symmetric_and_agrees_with_differences():
    x = array(np.array([0.5, 1.0, 2.0]))

    hessian = np.asarray(rune.hessian(loss)(x))

    near(hessian, hessian.T, relative=1e-12, why="rounding")
    e0 = array(np.array([1.0, 0.0, 0.0]))
    near(differences(rune.grad(loss), [x], [e0]), hessian[:, 0], relative=1e-6, why=WHY)


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)], ids=str)
def test_jacfwd_equals_jacrev(shape: tuple[int, ...]):
    x = array(np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape), np.float32)

    def function(v: Any) -> Any:
        return {"a": ops.sin(v) * v, "b": (v * v).sum()}

    forward, reverse = rune.jacfwd(function)(x), rune.jacrev(function)(x)

    assert forward["a"].shape == shape + shape
    near(forward, reverse, relative=1e-6, why="the same products")


def test_jacobians_of_several_arguments_are_tuples():
    jacobian = rune.jacrev(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)

    assert tuple(map(float, jacobian)) == (3.0, 2.0)
    assert tuple(map(float, rune.jacfwd(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0))) == (3, 2)


# --- stop_gradient ----------------------------------------------------------------------------


def test_stop_gradient_is_the_identity_with_derivative_zero():
    same(np.asarray(X), ops.stop_gradient(X))
    assert float(rune.grad(lambda x: x * ops.stop_gradient(x))(3.0)) == 3.0


def test_stop_gradient_holds_at_every_level_of_nesting():
    def function(x: Any) -> Any:
        return ops.stop_gradient(x * x) * x

    first, second = rune.grad(function), rune.grad(rune.grad(function))
    assert (float(first(3.0)), float(second(3.0))) == (9.0, 0.0)
    assert float(rune.jvp(rune.grad(function), (3.0,), (1.0,))[1]) == 0.0


@pytest.mark.parametrize("wrap", [rune.jit, rune.vmap], ids=["jit", "vmap"])
def test_stop_gradient_holds_inside_other_transformations(wrap: Any):
    def function(x: Any) -> Any:
        return wrap(lambda v: v * ops.stop_gradient(v))(x).sum()

    same(np.asarray(X), rune.grad(function)(X))


def test_truncated_backpropagation_through_time_stops_at_the_cut():
    def run(w: Any, cut: int) -> Any:
        state = w * 0.0 + 1.0
        for step in range(4):
            state = ops.stop_gradient(state) if step == cut else state
            state = state * w
        return state

    full, last_two = (float(rune.grad(run)(3.0, cut)) for cut in (-1, 2))
    assert (full, last_two) == (4 * 27.0, 9.0 * 2 * 3.0)


# --- linearize --------------------------------------------------------------------------------


def test_linearize_is_linear_and_equals_jvp():
    value, push = rune.linearize(loss, X)
    u, v = array([1.0, 2.0, 3.0]), array([0.5, -1.0, 2.0])

    near(rune.jvp(loss, (X,), (u,)), (value, push(u)), relative=1e-6, why="the same rules")
    near(2 * float(push(u)) - float(push(v)), push(2.0 * u - v), relative=1e-5, why="rounding")


def test_linearize_and_vjp_are_adjoint():
    u, ct = array([1.0, 2.0, 3.0]), array([0.5, -1.0, 2.0])

    def function(x: Any) -> Any:
        return ops.exp(x) * x.sum()

    _, push = rune.linearize(function, X)
    _, pull = rune.vjp(function, X)

    near(inner([ct], [push(u)]), inner(pull(ct), [u]), relative=1e-5, why="sums reordered")


RESIDUALS: list[tuple[str, Any, int]] = [
    ("a sum keeps nothing", lambda x: x + x, 0),
    ("a product with a literal keeps nothing", lambda x: x * 3.0, 0),
    ("a movement keeps nothing", lambda x: ops.reverse(x, axes=(0,)), 0),
    ("a reduction keeps nothing", lambda x: x.sum(), 0),
    ("a square keeps its operand", lambda x: x * x, 1),
    ("exp keeps its result", ops.exp, 1),
    ("sin keeps the cosine", ops.sin, 1),
    ("tanh keeps one array", ops.tanh, 1),
    ("log keeps its operand", ops.log, 1),
    ("a chain keeps one array per step", lambda x: ops.exp(ops.sin(x)), 2),
    ("a constant branch keeps nothing", lambda x: x + ops.exp(ops.stop_gradient(x)), 0),
]


@pytest.mark.parametrize(("claim", "function", "count"), RESIDUALS, ids=[r[0] for r in RESIDUALS])
def test_residuals_are_what_transposition_reads(claim: str, function: Any, count: int):
    _, linear = linearize_flat(lambda x: [function(x)], [X], [True])

    assert len(linear.residuals) == count, claim
    read = {a for e in linear.program.equations for a in e.operands}
    assert set(linear.program.inputs[:count]) <= read


def test_a_matrix_product_keeps_only_the_other_factor():
    w, x = array(np.ones((3, 4), np.float32)), array(np.ones((5, 3), np.float32))

    _, linear = linearize_flat(lambda v: [v @ w], [x], [True])

    assert [type_of(r).shape for r in linear.residuals] == [(3, 4)]


def test_dropping_the_vjp_function_frees_its_residuals():
    def scaled() -> tuple[Any, Any]:
        residual = ops.exp(X)
        return weakref.ref(residual), rune.vjp(lambda x: x * residual, X)[1]

    alive, pull = scaled()
    gc.collect()
    assert alive() is not None

    del pull
    gc.collect()
    assert alive() is None


def test_the_forward_pass_keeps_no_intermediate_that_is_not_a_residual():
    references = []

    def function(x: Any) -> Any:
        y = x + 1.0
        references.append(weakref.ref(y.primal))
        return y * 2.0

    pull = rune.vjp(function, X)[1]
    gc.collect()

    assert references[0]() is None
    same(np.full(3, 2.0, np.float32), pull(array([1.0, 1.0, 1.0]))[0])
