"""linear_transpose, closure_convert, eval_shape: functions analysed without evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.core.interpreter import type_of
from rune.dims import symbol
from rune.errors import ArgumentError, TransformError
from tests.support.arrays import array
from tests.support.close import near, same
from tests.support.derivatives import inner

X = array([0.5, 1.0, 2.0])
W = array(np.arange(6, dtype=np.float32).reshape(2, 3))

# --- linear_transpose ---------------------------------------------------------------------------

LINEAR: dict[str, Any] = {
    "scaled": lambda x: 2.0 * x,
    "matrix": lambda x: W @ x,
    "moved": lambda x: rnp.flip(x)[1:],
    "summed": lambda x: rnp.cumsum(x) + x.sum(),
    "jitted": rune.jit(lambda x: W @ x),
    "batched": lambda x: rune.vmap(lambda row: row @ x)(W),
    "selected": lambda x: rnp.where(array([True, False, True]), x, 0.0),
}


@pytest.mark.parametrize("name", LINEAR)
def test_the_transpose_of_a_linear_function_is_its_adjoint(name: str):
    function = LINEAR[name]
    out = function(X)
    ct = array(np.linspace(-1.0, 1.0, out.size).reshape(out.shape).astype(np.float32))

    (cotangent,) = rune.linear_transpose(function, X)(ct)

    near(inner([ct], [out]), inner([cotangent], [X]), relative=1e-5, why="f32")


def test_the_transpose_of_the_transpose_is_the_function():
    forward = LINEAR["matrix"]
    back = rune.linear_transpose(forward, X)
    twice = rune.linear_transpose(lambda ct: back(ct)[0], forward(X))

    near(forward(X), twice(X)[0], relative=1e-6, why="f32")


def test_nothing_is_evaluated_and_arguments_may_be_types():
    shape = rune.ShapeDtypeStruct((3,), "f32")

    same(np.full(3, 2.0, np.float32), rune.linear_transpose(LINEAR["scaled"], shape)(rnp.ones(3))[0])


def test_arguments_and_results_may_be_trees():
    back = rune.linear_transpose(lambda p: {"y": W @ p["x"] + 3.0 * p["b"]}, {"x": X, "b": 1.0})

    (cotangent,) = back({"y": rnp.ones(2)})

    same({"x": np.array([3.0, 5.0, 7.0], np.float32), "b": np.float32(6)}, cotangent)


def test_an_argument_that_is_not_used_gets_zero():
    _, cotangent = rune.linear_transpose(lambda x, y: 2.0 * x, X, X)(X)

    same(np.zeros(3, np.float32), cotangent)


def test_over_the_complex_numbers_nothing_is_conjugated():
    (cotangent,) = rune.linear_transpose(lambda z: z * (1 + 2j), 1j)(1 + 0j)

    near(np.complex64(1 + 2j), cotangent, relative=1e-6, why="f32")


def test_the_transposed_function_can_be_transformed():
    back = rune.linear_transpose(LINEAR["matrix"], X)
    cts = array(np.eye(2, dtype=np.float32))

    same(np.asarray(W), rune.jit(rune.vmap(back))(cts)[0])


NOT_LINEAR: list[tuple[str, Any, str]] = [
    ("a function", rnp.sin, r"cannot transpose sin \(it is not linear\)"),
    ("a product with itself", lambda x: x * x, "its derivative depends on the argument"),
    ("a step", rnp.floor, r"cannot transpose floor \(it is not linear\)"),
    ("within jit", rune.jit(lambda x: rnp.exp(x)), r"cannot transpose exp \(it is not linear\)"),
]


@pytest.mark.parametrize(("name", "function", "reason"), NOT_LINEAR, ids=[n[0] for n in NOT_LINEAR])
def test_a_function_that_is_not_linear_is_refused(name: str, function: Any, reason: str):
    with pytest.raises(TransformError, match=reason):
        rune.linear_transpose(function, X)


def test_integers_and_other_cotangents_are_refused():
    with pytest.raises(TransformError, match=r"argument\[1\] of type i32"):
        rune.linear_transpose(lambda x, n: x * n, X, rnp.arange(3))
    with pytest.raises(TransformError, match=r"a cotangent f32\[2\] for an output f32\[3\]"):
        rune.linear_transpose(LINEAR["scaled"], X)(rnp.ones(2))


# --- closure_convert ----------------------------------------------------------------------------


def test_hidden_arguments_are_the_traced_values_that_can_be_differentiated():
    counts: list[int] = []

    def function(y: Any, n: Any) -> Any:
        function_of_captures, captures = rune.closure_convert(lambda x: (x * y * n * W).sum(), 1.0)
        counts.append(len(captures))
        return function_of_captures(2.0, *captures)

    near(rune.grad(lambda y, n: (2.0 * y * n * W).sum())(3.0, 2), rune.grad(function)(3.0, 2), relative=1e-6, why="f32")
    rune.jit(function)(3.0, 2)
    assert counts == [1, 1]


def test_a_closed_function_has_no_hidden_arguments():
    function_of_captures, captures = rune.closure_convert(lambda x: x * 3.0, 1.0)

    assert (captures, float(function_of_captures(2.0))) == ([], 6.0)


CONSTANTS = {
    "f64": lambda: rnp.asarray(np.float64(1 / 3), "float64"),
    "i64": lambda: rnp.asarray(2**40 + 1, "int64"),
    "weak": lambda: 2.5,
    "key": lambda: rune.random.key(5),
    "rows": lambda: rnp.arange(3.0),
    "none": lambda: rnp.zeros((0, 2), "bfloat16"),
}


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_result_keeps_its_type(name: str, wrap: Any):
    constant = CONSTANTS[name]()
    function_of_captures, _ = rune.closure_convert(lambda x: (constant, x), 1.0)

    result, _ = wrap(function_of_captures)(1.0)

    assert type_of(result) == type_of(constant)
    assert rnp.all(result == constant)


def test_a_converted_function_takes_arguments_like_the_examples():
    function_of_captures, _ = rune.closure_convert(lambda p: p["a"], {"a": 1.0})

    with pytest.raises(TransformError, match="cannot match arguments to the examples"):
        function_of_captures(1.0)


# --- eval_shape ---------------------------------------------------------------------------------


def test_eval_shape_gives_the_tree_of_the_result():
    types = rune.eval_shape(lambda x, *, y: {"a": x @ y, "n": 3}, W, y=X)

    assert types == {"a": rune.ShapeDtypeStruct((2,), "f32"), "n": rune.ShapeDtypeStruct((), "i32", weak_type=True)}


def test_eval_shape_computes_nothing():
    huge = rune.ShapeDtypeStruct((1 << 40, 3), "f32")

    assert rune.eval_shape(lambda x: rnp.sin(x) @ X, huge).shape == (1 << 40,)


def test_eval_shape_takes_symbolic_sizes():
    n = symbol("n", 1, 9)

    assert rune.eval_shape(lambda x: rnp.concatenate([x, x]), rune.ShapeDtypeStruct((n, 2), "f32")).shape == (2 * n, 2)


def test_structs_replace_arrays_where_only_types_matter():
    struct = rune.ShapeDtypeStruct(shape=(3,), dtype=np.float32)

    assert (struct.ndim, struct.size, len(struct)) == (1, 3, 3)
    assert str(rune.make_program(rnp.sin)(struct)) == str(rune.make_program(rnp.sin)(X))
    assert str(struct) == "ShapeDtypeStruct(shape=(3,), dtype=float32)"


def test_a_value_that_is_not_an_array_is_refused():
    with pytest.raises(ArgumentError, match=r"cannot take str as an array"):
        rune.eval_shape(lambda p: p, {"name": "Ada"})


@pytest.mark.parametrize("way", [lambda f: f, rune.jit, rune.checkpoint], ids=["eager", "jit", "checkpoint"])
def test_an_identity_without_a_derivative_is_transposed_as_an_identity(way):
    f = way(lambda x: 2.0 * rune.lax.stop_gradient(x) + x)

    assert rune.linear_transpose(f, 1.0)(1.0) == (3.0,)
    assert rune.grad(f)(1.0) == 1.0
