"""vmap: where lanes come from, where they go, and what has none.

Axes of arguments and results first, as numbers and as trees; then what stays unbatched; then
errors; then nesting and other transformations inside.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, ops
from rune.errors import ArgumentError, AxisError, MissingRule
from tests.support.arrays import array
from tests.support.close import near, same

X = array(np.arange(12.0).reshape(3, 4), np.float32)
W = array([1.0, 2.0, 3.0, 4.0])


def count(program: Any, name: str) -> int:
    """How many equations of a primitive a program has."""
    return sum(e.primitive.name == name for e in program.equations)


# --- axes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_any_axis_can_be_mapped_and_returned(axis: int):
    lanes = rune.vmap(lambda row: row * 2.0, in_axes=axis, out_axes=axis)(X)

    same(2 * np.asarray(X), lanes)


def test_the_mapped_axis_is_absent_inside():
    shapes = []

    rune.vmap(lambda column: shapes.append(column.shape) or column, in_axes=1)(X)

    assert shapes == [(3,)]


def test_lanes_go_in_front_by_default():
    lanes = rune.vmap(lambda column: column, in_axes=1)(X)

    same(np.asarray(X).T.copy(), lanes)


def test_none_gives_every_lane_the_same_value():
    lanes = rune.vmap(lambda row, w: (row * w).sum(), in_axes=(0, None))(X, W)

    same(np.asarray(X) @ np.asarray(W), lanes)


def test_axes_may_be_a_tree_prefix_of_the_arguments():
    data = {"x": X, "scale": array(2.0), "pair": (X, X)}

    lanes = rune.vmap(
        lambda d: d["x"] * d["scale"] + d["pair"][0] - d["pair"][1], in_axes=({"x": 0, "scale": None, "pair": 0},)
    )(data)

    same(2 * np.asarray(X), lanes)


def test_result_axes_may_be_a_tree_prefix_of_the_result():
    lanes = rune.vmap(lambda r: {"a": (r, r), "b": r}, out_axes={"a": 1, "b": 0})(X)

    same(np.asarray(X).T.copy(), lanes["a"][0])
    same(np.asarray(X), lanes["b"])


def test_keyword_arguments_are_mapped_over_their_leading_axis():
    lanes = rune.vmap(lambda row, w: row * w)(X, w=array([1.0, 2.0, 3.0]))

    same(np.asarray(X) * np.array([[1], [2], [3]], np.float32), lanes)


def test_a_result_without_lanes_is_broadcast_or_returned_unchanged():
    copies = rune.vmap(lambda row: W)(X)
    single = rune.vmap(lambda row: W, out_axes=None)(X)

    same(np.tile(np.asarray(W), (3, 1)), copies)
    same(np.asarray(W), single)


def test_the_name_of_the_axis_comes_before_its_size_as_in_jax():
    lanes = rune.vmap(lambda w: rune.lax.psum(w, "i"), None, 0, "i", 2)(W)

    same(np.stack([np.asarray(W) * 2] * 2), lanes)


def test_axis_size_serves_a_function_of_no_mapped_argument():
    lanes = rune.vmap(lambda w: w, in_axes=None, axis_size=2)(W)

    same(np.tile(np.asarray(W), (2, 1)), lanes)


def test_lists_of_axes_mean_the_same_as_tuples():
    same(rune.vmap(lambda a, b: a + b, in_axes=(0, None))(X, W), rune.vmap(lambda a, b: a + b, in_axes=[0, None])(X, W))


def test_an_empty_batch_gives_an_empty_result():
    lanes = rune.vmap(lambda row: ops.sin(row).sum())(array(np.zeros((0, 4), np.float32)))

    assert lanes.shape == (0,)


# --- what has no lanes ------------------------------------------------------------------------


def test_a_value_that_does_not_depend_on_the_lane_is_computed_once():
    def function(row: Any, w: Any) -> Any:
        return row * ops.exp(w) + ops.exp(w).sum()

    program = rune.make_program(rune.vmap(function, in_axes=(0, None)))(X, W)

    shapes = {str(e.results[0].type) for e in program.equations if e.primitive is ops.exp}
    assert shapes == {"f32[4]"}


def test_a_closed_over_array_has_no_lanes():
    program = rune.make_program(rune.vmap(lambda row: row * ops.sin(W)))(X)

    (sin,) = [e for e in program.equations if e.primitive is ops.sin]
    assert str(sin.results[0].type) == "f32[4]"


@pytest.mark.parametrize("constant", [np.arange(3), np.float64(0.1), np.zeros(2, rune.float0), W, 3, "a name"])
def test_an_argument_that_is_not_mapped_reaches_the_function_unchanged(constant: Any):
    arguments: list[Any] = []

    rune.vmap(lambda x, y, *, z: arguments.extend((y, z[0])) or x, in_axes=(0, None))(X, constant, z=(X,))
    rune.vmap(lambda x, y: arguments.append(y[0]) or x, in_axes=(1, None))(X, [constant])

    assert arguments[0] is constant
    assert arguments[2] is constant


def test_numpys_data_that_are_not_mapped_are_copied_into_results():
    host = np.array([1.0, 2.0])

    copy = rune.vmap(lambda x, y: y, in_axes=(0, None), out_axes=None)(X, host)
    copies = rune.vmap(lambda x, y: y, in_axes=(0, None))(X, host)
    host[:] = 7.0

    same(np.array([1.0, 2.0], np.float32), copy)
    same(np.array([[1.0, 2.0]] * 3, np.float32), copies)


def test_under_jvp_the_primal_without_lanes_is_computed_once():
    def function(x: Any) -> Any:
        directions = array(np.eye(4), np.float32)
        return rune.vmap(lambda v: rune.jvp(ops.exp, (x,), (v,))[1])(directions)

    program = rune.make_program(function)(W)

    assert count(program, "exp") == 1
    same(np.diag(np.exp(np.asarray(W))), function(W))


# --- errors -----------------------------------------------------------------------------------


def test_sizes_that_differ_are_an_error_that_lists_them():
    with pytest.raises(AxisError, match=r"sizes \(axis 0 of f32\[3,4\], axis 0 of f32\[4\]\)"):
        rune.vmap(lambda x, w: x)(X, W)


def test_a_missing_axis_is_an_error():
    with pytest.raises(AxisError, match=r"vmap: cannot find axis 2 of f32\[3,4\]"):
        rune.vmap(lambda x: x, in_axes=2)(X)
    with pytest.raises(AxisError, match=r"vmap: cannot find axis 0 of f32\[\] \(it has none\)"):
        rune.vmap(lambda x: x)(array(1.0))


def test_a_batched_result_cannot_be_returned_without_lanes():
    with pytest.raises(AxisError, match="cannot return a batched result where out_axes is None"):
        rune.vmap(lambda x: x, out_axes=None)(X)


def test_a_missing_result_axis_is_an_error():
    with pytest.raises(AxisError, match="cannot put the batch axis at 5"):
        rune.vmap(lambda x: x, out_axes=5)(X)


def test_mapping_nothing_is_an_error_that_asks_for_axis_size():
    with pytest.raises(ArgumentError, match="all in_axes are None"):
        rune.vmap(lambda x: x, in_axes=None)(X)


def test_axes_that_do_not_match_the_arguments_are_an_error():
    with pytest.raises(AxisError, match="1 entries for 2 positional arguments"):
        rune.vmap(lambda x, y: x, in_axes=(0,))(X, X)


def test_a_primitive_without_a_batch_rule_is_an_error_that_names_it():
    bare = type(ops.sin)("bare", "test", lambda x: x, lambda x: x)

    with pytest.raises(MissingRule, match="vmap: cannot batch bare"):
        rune.vmap(lambda x: bare(x))(X)


# --- nesting ----------------------------------------------------------------------------------


def test_nested_vmap_maps_both_axes():
    lanes = rune.vmap(rune.vmap(lambda s: s * s))(X)

    same(np.asarray(X) ** 2, lanes)


def test_an_outer_product_of_lanes():
    row, column = array([1.0, 2.0]), array([3.0, 4.0, 5.0])

    lanes = rune.vmap(lambda a: rune.vmap(lambda b: a * b)(column))(row)

    same(np.outer(np.asarray(row), np.asarray(column)), lanes)


def test_every_pair_of_axes_of_a_batched_matrix_product():
    a = array(np.arange(24.0).reshape(2, 3, 4), np.float32)
    b = array(np.arange(24.0).reshape(2, 4, 3), np.float32)
    for i, j in itertools.product(range(3), repeat=2):
        a_lanes, right = np.moveaxis(np.asarray(a), 0, i), np.moveaxis(np.asarray(b), 0, j)

        products = rune.vmap(lambda x, y: x @ y, in_axes=(i, j))(array(a_lanes), array(right))

        near(np.asarray(a) @ np.asarray(b), products, relative=1e-6, why="the same sums")


def test_per_example_gradients():
    def loss(w: Any, x: Any) -> Any:
        return ops.tanh((w * x).sum())

    gradients = rune.vmap(rune.grad(loss), in_axes=(None, 0))(W, X)

    loop = np.stack([np.asarray(rune.grad(loss)(W, X[i])) for i in range(3)])
    near(loop, gradients, relative=1e-6, why="the same rules")


def test_the_gradient_of_a_mapped_function_sums_over_lanes_of_shared_arguments():
    gradient = rune.grad(lambda w: rune.vmap(lambda x: (w * x).sum())(X).sum())(W)

    same(np.asarray(X).sum(0), gradient)


def test_lane_dependent_indices_gather_lane_by_lane():
    at = array(np.array([3, 0, 2], np.int32))

    elements = rune.vmap(lambda row, i: row[i])(X, at)

    same(np.array([3.0, 4.0, 10.0], np.float32), elements)


def test_integers_and_bools_have_lanes_too():
    lanes = rune.vmap(lambda x: (ops.convert(x, dtype=dtypes.i32), ops.gt(x, W)))(X)

    same(np.asarray(X).astype(np.int32), lanes[0])
    same(np.asarray(X) > np.asarray(W), lanes[1])


@pytest.mark.parametrize("transform", [rune.vmap, lambda f: rune.vmap(rune.jit(f)), lambda f: rune.jit(rune.vmap(f))])
@pytest.mark.parametrize(
    "body",
    [
        lambda v: v + 1.0,
        lambda v: rune.fori_loop(0, 2, lambda _, c: c * 2.0, v),
        lambda v: rune.while_loop(lambda c: c < 5, lambda c: c + 1.0, v),
        lambda v: rune.cond(v > 1, lambda c: c + 1.0, lambda c: c, v),
        lambda v: rune.value_and_grad(rune.jit(lambda c: c * 2.0))(v)[0],
    ],
)
def test_numbers_in_a_program_stay_weak(transform: Any, body: Any):
    lanes: Any = rune.vmap(lambda n: 1.0)(rnp.arange(3))  # weak, as JAX 0.10.2

    assert lanes.type.weak
    assert transform(body)(lanes).type.weak
