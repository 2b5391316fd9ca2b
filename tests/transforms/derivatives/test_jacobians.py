"""Jacobians, Hessians and products with them; complex derivatives; integers; auxiliary results.

Values for complex arguments are JAX's convention: of f: C → R the gradient is ∂f/∂x − i ∂f/∂y, and
nothing is conjugated in a vjp. Those named so were made with jax 0.10.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import ops
from rune.errors import TransformError
from tests.support.arrays import array
from tests.support.close import near, same
from tests.support.derivatives import STEP, WHY

Z = 1 + 2j
X = array([0.5, 1.0, 2.0])


def loss(x: Any) -> Any:
    return (ops.sin(x) * x).sum()


# --- modes --------------------------------------------------------------------------------------


def basis_rows(jacobian: Any, x: Any) -> list[int]:
    """How many directions are followed at once: the unit vectors in the program's constants."""
    constants = [np.asarray(v) for _, v in rune.make_program(jacobian)(x).constants]
    return [len(c) for c in constants if c.ndim == 2 and np.array_equal(c, np.eye(len(c)))]


@pytest.mark.parametrize("shape", [(2, 9), (9, 2)], ids=str)
def test_jacobian_takes_the_cheaper_mode(shape: tuple[int, int]):
    matrix = np.linspace(-1.0, 1.0, 18).reshape(shape).astype(np.float32)
    x = array(np.ones(shape[1], np.float32))

    def function(v: Any) -> Any:
        return rnp.sin(array(matrix) @ v)

    assert basis_rows(rune.jacobian(function), x) == [2]
    near(rune.jacrev(function)(x), rune.jacobian(function)(x), relative=1e-5, why="other sums")


def test_jacobian_takes_the_requested_mode():
    def total(v: Any) -> Any:
        return rnp.sin(v).sum()

    assert basis_rows(rune.jacobian(total), X) == []  # one row: a vector of length 1
    assert basis_rows(rune.jacobian(total, mode="forward"), X) == [3]
    with pytest.raises(TransformError, match="cannot use mode 'sideways'"):
        rune.jacobian(total, mode="sideways")  # type: ignore[arg-type]


def test_jacobian_takes_reverse_mode_for_functions_without_forward_mode():
    function = rune.custom_vjp(lambda x: rnp.stack([x, x]))
    function.defvjp(lambda x: (rnp.stack([x, x]), None), lambda _, ct: (ct.sum(),))

    same(np.ones(2, np.float32), rune.jacobian(function)(1.0))
    same(np.ones(2, np.float32), rune.jacobian(rune.jit(function))(1.0))


@pytest.mark.parametrize("jacobian", [rune.jacfwd, rune.jacrev, rune.jacobian])
def test_jacobians_of_trees_are_trees_of_blocks(jacobian: Any):
    def function(p: Any, y: Any) -> Any:
        return {"out": p["a"] * y, "sum": p["a"].sum() * p["b"]}

    blocks = jacobian(function, argnums=(0, 1))({"a": X, "b": 2.0}, 3.0)

    of_p, of_y = blocks["out"]
    near(3 * np.eye(3), of_p["a"], relative=0, why="exact")
    near(np.zeros(3), of_p["b"], relative=0, why="exact")
    near(np.asarray(X), of_y, relative=0, why="exact")
    near(np.full(3, 2.0), blocks["sum"][0]["a"], relative=0, why="exact")


def test_auxiliary_results_are_the_second_result():
    def function(x: Any) -> Any:
        return x**3, {"x": x}

    for transform in (rune.jacfwd, rune.jacrev, rune.jacobian):
        jacobian, aux = transform(function, has_aux=True)(2.0)
        assert (float(jacobian), float(aux["x"])) == (12.0, 2.0)
    second, aux = rune.hessian(function, has_aux=True)(2.0)
    assert (float(second), float(aux["x"])) == (12.0, 2.0)


def test_jvp_and_linearize_have_auxiliary_results_too():
    value, tangent, aux = rune.jvp(lambda x: (x**3, x), (2.0,), (1.0,), has_aux=True)
    assert (float(value), float(tangent), float(aux)) == (8.0, 12.0, 2.0)

    value, push, aux = rune.linearize(lambda x: (x**3, x), 2.0, has_aux=True)
    assert (float(value), float(push(1.0)), float(aux)) == (8.0, 12.0, 2.0)


# --- products with the Hessian ------------------------------------------------------------------


def test_hvp_is_the_product_with_the_hessian():
    v = array([1.0, -1.0, 0.5])

    product = rune.hvp(loss, (X,), (v,))

    full = np.asarray(rune.hessian(loss)(X)) @ np.asarray(v)
    near(full, product, relative=1e-5, why="sums in another order")


def test_hvp_of_several_arguments_is_a_tuple_and_agrees_with_differences():
    def function(x: Any, p: Any) -> Any:
        return (ops.sin(x) * p["w"]).sum() * p["b"]

    def shifted(step: float) -> Any:
        return [np.asarray(a) + step * np.asarray(b) for a, b in zip(point, direction)]

    x, w = np.array([0.5, 1.0]), np.array([2.0, -1.0])
    point, direction = (x, w, np.float64(3)), (w, x, np.float64(0.5))
    as_args = lambda a: (array(a[0]), {"w": array(a[1]), "b": array(a[2])})  # noqa: E731
    gradient = rune.grad(function, argnums=(0, 1))

    product = rune.hvp(function, as_args(point), as_args(direction))

    upper, lower = gradient(*as_args(shifted(STEP))), gradient(*as_args(shifted(-STEP)))
    expected = rune.tree.map(lambda a, b: (np.asarray(a) - np.asarray(b)) / (2 * STEP), upper, lower)
    near(expected, product, relative=1e-6, why=WHY)


def test_hvp_does_not_grow_with_the_number_of_arguments():
    def equations(size: int) -> int:
        x = array(np.ones(size, np.float32))
        return len(rune.make_program(lambda v: rune.hvp(loss, (v,), (v,)))(x).equations)

    assert equations(2) == equations(200)


# --- complex numbers ----------------------------------------------------------------------------


def test_the_gradient_of_a_real_function_is_that_of_jax():
    # jax 0.10.2: grad of |z|² at 1+2i
    near(np.complex64(2 - 4j), rune.grad(lambda z: rnp.abs(z) ** 2)(Z), relative=1e-6, why="f32")


def test_descent_goes_along_the_conjugate_of_the_gradient():
    def distance(z: Any) -> Any:
        return rnp.abs(z - (3 - 1j)) ** 2

    z = rnp.asarray(Z)
    for _ in range(60):
        z = z - 0.1 * np.conj(np.asarray(rune.grad(distance)(z)))
    near(np.complex64(3 - 1j), z, relative=1e-4, why="a fixed number of steps")


def test_a_vjp_is_linear_over_the_complex_numbers_without_conjugation():
    _, pull = rune.vjp(lambda z: z * z, Z)

    near(np.complex64(2 * Z), pull(1 + 0j)[0], relative=1e-6, why="f32")
    near(np.complex64(2j * Z), pull(1j)[0], relative=1e-6, why="f32")


@pytest.mark.parametrize("transform", [rune.grad, rune.jacfwd, rune.jacrev, rune.jacobian])
def test_holomorphic_derivatives_are_complex_derivatives(transform: Any):
    jacobian = transform(lambda z: rnp.sin(z) * z, holomorphic=True)(Z)

    near(np.complex64(np.cos(Z) * Z + np.sin(Z)), jacobian, relative=1e-5, why="f32")


def test_a_real_argument_with_a_complex_result_has_a_forward_jacobian():
    near(np.complex64(Z), rune.jacfwd(lambda x: x * Z)(1.0), relative=1e-6, why="f32")


NOT_ASKED_FOR: list[tuple[str, Any, str]] = [
    (
        "holomorphic, of a real argument",
        lambda: rune.grad(lambda z: z, holomorphic=True)(1.0),
        "complex dtype required",
    ),
    ("holomorphic, with a real result", lambda: rune.grad(rnp.abs, holomorphic=True)(Z), "complex required"),
    ("a complex result", lambda: rune.grad(lambda z: z * z)(Z), "real floating required"),
    ("forward, of a complex argument", lambda: rune.jacfwd(lambda z: z * z)(Z), "real floating dtype required"),
    ("reverse, with a complex result", lambda: rune.jacrev(lambda x: x * Z)(1.0), "real floating required"),
]


@pytest.mark.parametrize(("name", "call", "reason"), NOT_ASKED_FOR, ids=[n[0] for n in NOT_ASKED_FOR])
def test_a_complex_derivative_with_two_meanings_must_be_requested(name: str, call: Any, reason: str):
    with pytest.raises(TransformError, match=reason):
        call()


# --- integers -----------------------------------------------------------------------------------


def test_integers_may_stand_among_the_arguments_and_have_a_gradient_of_float0():
    dn, dx = rune.grad(lambda n, x: n * x, argnums=(0, 1), allow_int=True)(3, 2.0)

    assert (dn.dtype, dn.shape, float(dx)) == (rune.float0, (), 3.0)


def test_the_jacobian_of_an_integer_is_float0_of_the_shape_of_both():
    n = rnp.arange(2).sum()
    jacobian = rune.jacrev(lambda n: X * n, allow_int=True)(n)
    cheaper = rune.jacobian(lambda n: X * n, allow_int=True)(n)
    forward = rune.jacfwd(lambda x: rnp.floor(x).astype("i32"))(X)

    assert (jacobian.dtype, jacobian.shape) == (cheaper.dtype, cheaper.shape) == (rune.float0, (3,))
    assert (forward.dtype, forward.shape) == (rune.float0, (3, 3))


def test_the_tangent_of_an_integer_must_be_float0():
    with pytest.raises(TransformError, match=r"a tangent i32.* for a primal i32"):
        rune.jvp(lambda n: n * 2.0, (3,), (0,))
    value, tangent = rune.jvp(lambda n: n * 2.0, (3,), (np.zeros((), rune.float0),))
    assert (float(value), float(tangent)) == (6.0, 0.0)


@pytest.mark.parametrize("transform", [rune.grad, rune.jacfwd, rune.hessian])
def test_the_number_of_an_argument_is_an_integer(transform: Any):
    with pytest.raises(TransformError, match="cannot differentiate argument 'a'"):
        transform(lambda x: (x * x).sum(), argnums="a")(array([1.0]))
