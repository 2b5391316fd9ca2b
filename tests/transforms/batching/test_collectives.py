"""Named axes: collectives between the lanes of vmap and pmap, under every transformation.

The oracle is NumPy on the whole array, whose leading axis is the lanes.
"""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.errors import ArgumentError, ShapeError, UnboundAxisError

LANES, WIDTH = 3, 4
X = np.linspace(-1, 2, LANES * WIDTH, dtype=np.float32).reshape(LANES, WIDTH)
SQUARE = np.linspace(-1, 2, LANES * LANES, dtype=np.float32).reshape(LANES, LANES)
RING = [(0, 1), (1, 2), (2, 0)]


def over(f, *args, **kwargs):
    return rune.vmap(f, axis_name="i", **kwargs)(*args)


def in_every_lane(x):
    return np.broadcast_to(x, (LANES, *np.shape(x)))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: lax.psum(x, "i"), in_every_lane(X.sum(0))),
        (lambda x: lax.pmean(x, "i"), in_every_lane(X.mean(0))),
        (lambda x: lax.pmax(x, "i"), in_every_lane(X.max(0))),
        (lambda x: lax.pmin(x, "i"), in_every_lane(X.min(0))),
        (lambda x: lax.psum(x > 0, "i"), in_every_lane((X > 0).sum(0))),
        (lambda x: lax.psum(rnp.ones(2), "i"), in_every_lane([3, 3])),
        (lambda x: lax.all_gather(x, "i"), in_every_lane(X)),
        (lambda x: lax.all_gather(x, "i", axis=1), in_every_lane(X.T)),
        (lambda x: lax.all_gather(x, "i", tiled=True), in_every_lane(X.ravel())),
        (lambda x: lax.axis_index("i") + x, X + np.arange(3)[:, None]),
        (lambda x: lax.ppermute(x, "i", RING), np.roll(X, 1, 0)),
        (lambda x: lax.ppermute(x, "i", [(0, 2)]), np.stack([0 * X[0], 0 * X[0], X[0]])),
        (lambda x: lax.pshuffle(x, "i", [2, 0, 1]), X[[2, 0, 1]]),
    ],
)
def test_a_collective_is_an_operation_along_the_axis_of_lanes(function, expected):
    np.testing.assert_allclose(over(function, X), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: lax.psum_scatter(x, "i"), SQUARE.sum(0)),
        (lambda x: lax.psum_scatter(x, "i", tiled=True), SQUARE.sum(0)[:, None]),
        (lambda x: lax.all_to_all(x, "i", 0, 0), SQUARE.T),
        (lambda x: lax.pswapaxes(x, "i", 0), SQUARE.T),
        (lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), SQUARE.T),
    ],
)
def test_a_collective_deals_parts_out_to_the_lanes(function, expected):
    np.testing.assert_allclose(over(function, SQUARE), expected, rtol=1e-6)


def test_a_number_is_summed_in_python():
    lane_counts = []
    over(lambda x: lane_counts.append(lax.psum(1, "i")) or x, X)

    assert lane_counts == [3]
    assert type(lane_counts[0]) is int


@pytest.mark.parametrize("names", [("i", "j"), ("j", "i")])
def test_several_axes_are_one_in_row_major_order(names):
    def lane(x):
        return lax.psum(x, names), lax.axis_index(names), lax.all_gather(x, names)

    sums, numbers, rows = over(rune.vmap(lane, axis_name="j"), X)

    along = X if names == ("i", "j") else X.T
    order = np.arange(X.size).reshape(along.shape)
    np.testing.assert_allclose(sums, np.full_like(X, X.sum()), rtol=1e-6)
    np.testing.assert_array_equal(numbers, order if names == ("i", "j") else order.T)
    np.testing.assert_array_equal(rows[1, 2], along.ravel())


def test_an_inner_axis_hides_an_outer_one_of_the_same_name():
    inner = rune.vmap(lambda x: lax.psum(x, "i"), axis_name="i")

    np.testing.assert_allclose(over(inner, X), np.broadcast_to(X.sum(1, keepdims=True), X.shape), rtol=1e-6)


COMPOSED = [
    lambda x: rune.jit(lambda y: lax.psum(y, "i") + lax.axis_index("i"))(x),
    lambda x: rune.checkpoint(lambda y: lax.psum(y, "i"))(x) + lax.axis_index("i"),
    lambda x: lax.cond(True, lambda y: lax.psum(y, "i"), lambda y: y, x) + lax.axis_index("i"),
    lambda x: lax.scan(lambda c, y: (c, lax.psum(y, "i")), 0, x)[1] + lax.axis_index("i"),
    lambda x: rune.vmap(lambda y: lax.psum(y, "i"))(x) + lax.axis_index("i"),
]


@pytest.mark.parametrize("function", COMPOSED)
@pytest.mark.parametrize("outside", [lambda f: f, rune.jit])
def test_collectives_work_in_nested_functions_that_are_mapped(function, outside):
    sums = outside(rune.vmap(function, axis_name="i"))(X)

    np.testing.assert_allclose(sums, X.sum(0) + np.arange(3)[:, None], rtol=1e-6)


def test_a_loop_may_end_when_all_lanes_agree():
    def lane(x):
        goes_on = lambda c: lax.pmax(c[0], "i") < 9  # noqa: E731
        return lax.while_loop(goes_on, lambda c: (c[0] + 1 + lax.axis_index("i"), c[1] + 1), (x, 0))

    values, steps = over(lane, rnp.zeros(3))

    np.testing.assert_array_equal(values, [3, 6, 9])
    np.testing.assert_array_equal(steps, [3, 3, 3])


def test_a_jitted_function_is_traced_again_only_for_another_number_of_lanes():
    function = rune.jit(lambda x: x * lax.axis_size("i"))

    with rune.counting() as counts:
        results = [over(function, X[:n]) for n in (3, 3, 2)]

    assert counts.traces == 2
    for n, sums in zip((3, 3, 2), results):
        np.testing.assert_allclose(sums, X[:n] * n)


LINEAR = {
    "psum": (lambda x: lax.psum(x, "i"), X),
    "all_gather": (lambda x: lax.all_gather(x, "i", axis=1), X),
    "ppermute": (lambda x: lax.ppermute(x, "i", RING[:2]), X),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), SQUARE),
    "all_to_all": (lambda x: lax.all_to_all(x[:, None] * rnp.ones((3, 2)), "i", 0, 1), SQUARE),
}


@pytest.mark.parametrize("name", LINEAR)
def test_the_transpose_of_a_linear_collective_is_exact_over_all_lanes(name):
    function, x = LINEAR[name]
    generator = np.random.default_rng(0)
    direction = generator.normal(size=x.shape).astype(np.float32)

    def lane(x, dx, ct):
        tangent = rune.jvp(function, (x,), (dx,))[1]
        return tangent, rune.vjp(function, x)[1](ct)[0]

    shape = over(function, x).shape
    cotangent = generator.normal(size=shape).astype(np.float32)
    tangent, transpose = over(lane, x, direction, cotangent)

    np.testing.assert_allclose(np.vdot(cotangent, tangent), np.vdot(transpose, direction), rtol=1e-4, atol=1e-5)


def test_a_gradient_in_each_lane_sums_the_cotangents_of_all():
    gradient = over(rune.grad(lambda y: lax.psum(y**2, "i")), rnp.arange(3.0))

    np.testing.assert_array_equal(gradient, [0, 6, 12])  # semantics of JAX: 2y, three times


def test_custom_rules_may_use_collectives_over_lanes():
    @rune.custom_vjp
    def mean(y):
        return lax.pmean(y, "i")

    mean.defvjp(lambda y: (mean(y), None), lambda _, ct: (lax.psum(ct, "i") * lax.axis_index("i"),))

    @rune.custom_jvp
    def double(y):
        return y * 2

    double.defjvp(lambda primals, tangents: (double(*primals), lax.psum(tangents[0], "i")))

    by_vjp = over(rune.grad(lambda y: mean(y).sum()), X)
    by_jvp = over(lambda y: rune.jvp(double, (y,), (y,))[1], X)

    np.testing.assert_array_equal(by_vjp, 3 * np.arange(3)[:, None] * np.ones_like(X))
    np.testing.assert_allclose(by_jvp, in_every_lane(X.sum(0)), rtol=1e-6)


def test_pmap_is_one_compiled_program_for_all_lanes():
    parallel = rune.pmap(lambda x, w: x - lax.pmean(x @ w, "i"), "i", in_axes=(0, None))
    w = np.ones((WIDTH, WIDTH), np.float32)

    with rune.counting() as counts:
        result = [parallel(X, w) for _ in range(2)][1]

    assert (counts.traces, counts.compiles) == (1, 1)
    np.testing.assert_allclose(result, X - (X @ w).mean(0), rtol=1e-5, atol=1e-6)


def test_pmap_takes_static_arguments_and_results_that_all_lanes_share():
    parallel = rune.pmap(lambda x, times: lax.psum(x, "i") * times, "i", out_axes=None, static_broadcasted_argnums=1)

    np.testing.assert_allclose(parallel(X, 2), X.sum(0) * 2, rtol=1e-6)


def test_the_mean_of_gradients_over_shards_is_the_gradient_of_the_whole():
    x, y = np.random.default_rng(0).normal(size=(2, 12)).astype(np.float32)

    def loss(w, x, y):
        return ((w * x - y) ** 2).mean()

    shards = (x.reshape(3, 4), y.reshape(3, 4))
    step = rune.pmap(lambda w, x, y: lax.pmean(rune.grad(loss)(w, x, y), "i"), "i", in_axes=(None, 0, 0), out_axes=None)

    np.testing.assert_allclose(step(0.5, *shards), rune.grad(loss)(0.5, x, y), rtol=1e-5)


def test_an_unnamed_axis_is_an_error_that_explains_how_to_name_it():
    with pytest.raises(UnboundAxisError, match="cannot find the axis 'k'") as error:
        over(lambda x: lax.psum(x, "k"), X)

    assert isinstance(error.value, NameError)
    assert "rune.vmap(f, axis_name='k')" in str(error.value)


@pytest.mark.parametrize("size", [1, 2, 7, 129])
def test_the_largest_and_the_smallest_bool_are_bools(size: int):
    x = np.arange(size) % 3 == 1

    largest, smallest = over(lambda v: (lax.pmax(v, "i"), lax.pmin(v, "i")), x)

    assert largest.dtype == smallest.dtype == np.bool_
    np.testing.assert_array_equal(largest, np.broadcast_to(x.max(), size))
    np.testing.assert_array_equal(smallest, np.broadcast_to(x.min(), size))


@pytest.mark.parametrize("name", ["psum", "pmean", "pmax", "pmin", "all_gather", "pvary", "axis_size", "axis_index"])
def test_an_error_about_an_unnamed_axis_names_the_collective(name: str):
    operands = [] if name.startswith("axis") else [X]

    with pytest.raises(UnboundAxisError, match=f"^{name}: cannot find the axis 'k'"):
        getattr(lax, name)(*operands, "k")


@pytest.mark.parametrize("name", ["psum_scatter", "pswapaxes", "pbroadcast", "ppermute", "pshuffle", "all_to_all"])
def test_an_error_about_an_unnamed_axis_names_the_exchange(name: str):
    settings = {"psum_scatter": (), "ppermute": ([(0, 1)],), "pshuffle": ([0],), "all_to_all": (0, 0)}.get(name, (0,))

    with pytest.raises(UnboundAxisError, match=f"^{name}: cannot find the axis 'k'"):
        getattr(lax, name)(X, "k", *settings)


def test_the_derivative_of_pmax_is_refused():
    with pytest.raises(rune.errors.TransformError, match="pmax"):
        over(rune.grad(lambda x: lax.pmax(x, "i").sum()), X)


@pytest.mark.parametrize("perm", [[(0, 1), (0, 2)], [(0, 1), (2, 1)], [(0, 3)]])
def test_an_invalid_permutation_is_refused(perm):
    with pytest.raises(ArgumentError, match="ppermute: cannot permute 3 lanes"):
        over(lambda x: lax.ppermute(x, "i", perm), X)


def test_parts_that_do_not_fit_the_lanes_are_refused():
    with pytest.raises(ShapeError, match="4 parts for 3 lanes"):
        over(lambda x: lax.psum_scatter(x, "i"), X)
    with pytest.raises(ShapeError, match="4 is not a multiple of 3"):
        over(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), X)
