"""Lanes of vmap around sharding constraints keep their layout or follow `spmd_axis_name`.

The oracle of the specs is JAX 0.10.2 on the same programs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import NamedSharding, P, make_mesh
from tests.sharding.eight_devices.traffic import partitioned_traffic

GRID = make_mesh((4, 2), ("a", "b"))
X = np.sin(np.arange(8 * 6, dtype="f")).reshape(8, 6)


def put(spec: P) -> Any:
    return rune.device_put(X, NamedSharding(GRID, spec))


def laid_out(spec: P) -> Callable[[Any], Any]:
    """Twice a row, laid out by a spec."""
    return lambda row: lax.with_sharding_constraint(row * 2, NamedSharding(GRID, spec))


def repeated(row: Any) -> Any:
    return lax.scan(lambda c, _: (laid_out(P("b"))(c), None), row, None, length=3)[0] / 4


def until(row: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, laid_out(P("b"))(c[1])), (0, row))[1] / 4


def chosen(row: Any) -> Any:
    return lax.cond(rnp.ones(()) > 0, laid_out(P("b")), rnp.negative, row)


def squares(row: Any) -> Any:
    return rune.grad(lambda r: (laid_out(P("b"))(r) * r).sum())(row) / 2


@pytest.mark.parametrize("function", [laid_out(P("b")), repeated, until, squares, rune.jit(laid_out(P("b")))])
def test_lanes_of_a_constraint_keep_their_layout(function: Callable[..., Any]):
    for lanes in (rune.vmap(function), rune.jit(rune.vmap(function))):
        assert partitioned_traffic(lanes, GRID, [P("a", "b")], [P("a", "b")], X) == {}
        assert lanes(put(P("a", "b"))).sharding.spec == P("a", "b")
        np.testing.assert_allclose(np.asarray(lanes(put(P("a", "b")))), 2 * X, rtol=1e-6)


def test_lanes_that_an_axis_of_the_constraint_splits_are_joined():
    result = rune.jit(rune.vmap(laid_out(P("b"))))(put(P("b")))

    assert result.sharding.spec == P(None, "b")
    np.testing.assert_array_equal(np.asarray(result), 2 * X)


@pytest.mark.parametrize(
    ("spec", "result"),
    [
        (P(P.UNCONSTRAINED, None), P("a")),
        (P(None, P.UNCONSTRAINED), P(None, "b")),
        (P("b", P.UNCONSTRAINED), P("b")),
        (P(P.UNCONSTRAINED), P("a")),
    ],
    ids=str,
)
def test_unconstrained_axes_keep_their_layout(spec: P, result: P):
    for function in (laid_out(spec), rune.jit(laid_out(spec))):
        array = function(put(P("a", "b")))

        assert NamedSharding(GRID, array.sharding.spec).is_equivalent_to(NamedSharding(GRID, result), 2)
        np.testing.assert_array_equal(np.asarray(array), 2 * X)


@pytest.mark.parametrize(
    ("names", "spec", "result"), [("a", P("b"), P("a", "b")), (("a",), P(), P("a")), (("b", "a"), P(), P(("b", "a")))]
)
def test_lanes_are_split_by_the_axes_that_vmap_names(names: Any, spec: P, result: P):
    for function in (laid_out(spec), rune.jit(laid_out(spec))):
        lanes = rune.vmap(function, spmd_axis_name=names)
        for array in (lanes(X), rune.jit(lanes)(X), rune.jit(lanes)(put(P("b")))):
            assert array.sharding.spec == result
            np.testing.assert_array_equal(np.asarray(array), 2 * X)


def test_lanes_within_lanes_are_split_by_an_axis_each():
    inner = rune.vmap(laid_out(P()), spmd_axis_name="b")
    array = rune.jit(rune.vmap(inner, spmd_axis_name="a"))(X.reshape(8, 2, 3))

    assert array.sharding.spec == P("a", "b")


@pytest.mark.parametrize("function", [repeated, until, chosen, squares])
def test_lanes_of_control_flow_and_derivatives_are_split_by_the_axes_that_vmap_names(function: Callable[..., Any]):
    program = rune.jit(function)  # one trace, which all lanes rewrite
    for names, spec in ((None, P(None, "b")), ("a", P("a", "b"))):
        array = rune.jit(rune.vmap(program, spmd_axis_name=names))(X)

        assert array.sharding.spec == spec
        np.testing.assert_allclose(np.asarray(array), 2 * X, rtol=1e-6)


def test_lanes_of_unconstrained_values_are_not_split():
    array = rune.jit(rune.vmap(lambda row: row * 2, spmd_axis_name="a"))(X)

    assert array.sharding.device_set == rnp.ones(1).sharding.device_set


def on_devices(body: Callable[..., Any], spec: P, result: P, **options: Any) -> Callable[..., Any]:
    return rune.shard_map(body, mesh=GRID, in_specs=spec, out_specs=result, **options)


@pytest.mark.parametrize("axis_names", [(), ("b",)])
@pytest.mark.parametrize("axis_name", [None, "lanes"])
def test_lanes_of_a_shard_map_are_split_by_the_axes_that_vmap_names(axis_names: Any, axis_name: Any):
    def body(row: Any) -> Any:
        assert row.shape == (3,)
        return row * 2 + lax.psum(row.sum(), "b")

    split = rune.vmap(on_devices(body, P("b"), P("b"), axis_names=axis_names), axis_name=axis_name, spmd_axis_name="a")
    for array in (split(X), rune.jit(split)(put(P("b")))):
        assert array.sharding.spec == P("a", "b")
        np.testing.assert_allclose(np.asarray(array), 2 * X + X.sum(1, keepdims=True), rtol=1e-5)


def test_lanes_that_the_body_of_a_shard_map_names_are_not_split():
    def body(row: Any) -> Any:
        return row - lax.pmean(row, "lanes")

    lanes = rune.vmap(on_devices(body, P("b"), P("b")), axis_name="lanes", spmd_axis_name="a")
    np.testing.assert_allclose(np.asarray(rune.jit(lanes)(X)), X - X.mean(0), atol=1e-6)

    of_devices = rune.vmap(on_devices(lambda row: row * lax.axis_size("a"), P("b"), P("b")), spmd_axis_name="a")
    np.testing.assert_array_equal(np.asarray(rune.jit(of_devices)(X)), 4 * X)
    sums = rune.vmap(on_devices(lambda row: lax.psum(row, "a"), P("b"), P("b")), spmd_axis_name="a")
    np.testing.assert_allclose(np.asarray(rune.jit(sums)(X)), 4 * X, rtol=1e-6)


@pytest.mark.parametrize("function", [laid_out(P("b")), on_devices(lambda row: row, P("b"), P("b"))])
def test_axes_that_cannot_split_lanes_are_named(function: Callable[..., Any]):
    with pytest.raises(rune.errors.ArgumentError, match="cannot cut along 'q'"):
        rune.vmap(function, spmd_axis_name="q")(X)
    with pytest.raises(rune.errors.ArgumentError, match="cannot cut along 'b' twice"):
        rune.vmap(function, spmd_axis_name="b")(X)
    with pytest.raises(rune.errors.ShapeError, match="into 4 equal parts"):
        rune.vmap(function, spmd_axis_name="a")(X[:6])
