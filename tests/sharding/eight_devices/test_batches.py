"""A batch that is split over devices: every operation runs where its lanes are, and equals vmap.

The operations are those of tests/ops/samples.py, each under vmap with its lanes on four devices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import ops
from rune.array import Array
from rune.core.lower import Bitcast, Scatter, View
from rune.core.primitive import Collective, Primitive
from rune.core.types import ArrayType
from rune.sharding import NamedSharding, P, make_mesh
from tests.ops.calls import Sample
from tests.ops.samples import samples
from tests.sharding.eight_devices.traffic import partitioned_traffic
from tests.support.close import same
from tests.support.sampling import one_in

LANES = 8
MESH = make_mesh((4,), ("d",))
PRIMITIVES = [p for p in ops.PRIMITIVES if not isinstance(p, Collective) and all(s.operands for s in samples(p))]
MOVING = [p for p in PRIMITIVES if isinstance(p.lower, View | Scatter | Bitcast)]


def batched(sample: Sample) -> tuple[Callable[..., Any], list[Array]]:
    """A function of lanes, and the lanes."""
    lanes = [Array(o.draw(sample.rng, LANES), ArrayType((LANES, *o.shape), o.dtype)) for o in sample.operands]
    return rune.vmap(lambda *xs: sample.primitive(*xs, **sample.params)), lanes


def sends(primitive: Primitive) -> bool:
    """Whether something is sent in any of its samples that has elements."""
    for sample in (s for s in samples(primitive) if all(0 not in o.shape for o in s.operands)):
        function, lanes = batched(sample)
        if partitioned_traffic(function, MESH, [P("d")] * len(lanes), [P("d")], *lanes):
            return True
    return False


def test_nothing_is_sent_for_lanes_that_are_cut():
    assert not [p.name for p in PRIMITIVES if sends(p)]


@pytest.mark.parametrize("primitive", one_in(2, MOVING), ids=lambda p: p.name)
def test_lanes_on_several_devices_are_moved_as_on_one(primitive: Primitive):
    for sample in samples(primitive)[:4]:
        function, lanes = batched(sample)
        x_on_devices = rune.device_put(tuple(lanes), NamedSharding(MESH, P("d")))

        same(function(*lanes).numpy(), function(*x_on_devices).numpy())


@pytest.mark.parametrize("spec", [P("d"), P(None, "d")], ids=repr)
def test_rows_of_a_table_are_read_and_written_where_the_indices_are(spec: P):
    table, indices = np.sin(np.arange(24.0, dtype="f")).reshape(6, 4), np.array([[5, 0], [2, 2], [1, 9], [3, 4]])
    mesh = make_mesh((2,), ("d",))
    x_on_devices = rune.device_put(indices, NamedSharding(mesh, P("d")))

    def rows(table: Any, indices: Any) -> Any:
        return rune.numpy.take(table, indices, axis=0, mode="clip")

    def written(table: Any, indices: Any) -> Any:
        return table.at[indices].add(2 * table[:2], mode="drop")

    cut = rune.device_put(table, NamedSharding(mesh, spec))
    assert partitioned_traffic(rows, mesh, [P(), P("d")], [P("d")], table, indices) == {}
    assert partitioned_traffic(rows, mesh, [P(None, "d"), P()], [P(None, None, "d")], table, indices) == {}
    assert partitioned_traffic(written, mesh, [P(None, "d"), P()], [P(None, "d")], table, indices) == {}
    functions: list[Callable[..., Any]] = [rows, written, rune.grad(lambda t, i: (rows(t, i) ** 3).sum())]
    for function in functions:
        expected = function(rune.numpy.asarray(table), indices)
        np.testing.assert_allclose(function(cut, indices), expected, rtol=1e-6)
        np.testing.assert_allclose(rune.jit(function)(cut, x_on_devices), expected, rtol=1e-6)


@pytest.mark.parametrize("method", ["add", "min", "max", "multiply", "set"])
def test_updates_that_are_cut_are_united_where_their_order_does_not_matter(method: str):
    table, rows = np.sin(np.arange(24.0, dtype="f")).reshape(6, 4), np.cos(np.arange(32.0, dtype="f")).reshape(8, 4)
    indices = np.array([5, 0, 2, 2, 1, 9, 5, 2], "i4")
    parts = NamedSharding(MESH, P("d"))

    def written(table: Any, indices: Any, rows: Any) -> Any:
        return getattr(table.at[indices], method)(rows, mode="drop")

    messages = partitioned_traffic(written, MESH, [P(), P("d"), P("d")], [P()], table, indices, rows)
    unites = {"add": "psum", "min": "pmin", "max": "pmax"}
    assert messages == {unites[method]: (1, 4 * 24)} if method in unites else "all_gather" in messages
    expected = written(rune.numpy.asarray(table), indices, rows)
    actual = rune.jit(written)(table, rune.device_put(indices, parts), rune.device_put(rows, parts))
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
