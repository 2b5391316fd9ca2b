"""Bodies over some axes of a mesh: arrays stay split along the others, in eager calls too.

Layouts of results are those of jax 0.10.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import AxisType, NamedSharding, P, get_abstract_mesh, make_mesh
from rune.transforms.sharding import primitive
from rune.transforms.sharding.exchanges import exchanges

MESH = make_mesh((4, 2), ("a", "b"))
X = np.sin(np.arange(64, dtype="f")).reshape(8, 8)


class Body(NamedTuple):
    """A body along 'a', its specs, that of its argument and that of its result."""

    function: Callable[[Any], Any]
    spec: P
    out_spec: P
    present: P
    result: P


BODIES = {
    "a permutation": Body(lambda x: lax.ppermute(x, "a", [(0, 1), (1, 0)]), P("a"), P("a"), P("a", "b"), P("a", "b")),
    "a sum": Body(lambda x: lax.psum(x, "a"), P("a"), P(), P("a", "b"), P(None, "b")),
    "elements": Body(lambda x: rnp.sin(x) + lax.axis_index("a"), P("a"), P("a"), P("a", "b"), P("a", "b")),
    "a gather": Body(lambda x: lax.all_gather(x, "a", tiled=True), P("a"), P("a"), P("a", "b"), P("a", "b")),
    "columns": Body(lambda x: x * 2, P(None, "a"), P(None, "a"), P("b", "a"), P("b", "a")),
}


@pytest.mark.parametrize("name", BODIES)
def test_an_eager_call_leaves_arrays_split_along_the_other_axes(name: str):
    body = BODIES[name]
    f = rune.shard_map(body.function, mesh=MESH, in_specs=body.spec, out_specs=body.out_spec, axis_names={"a"})
    alone = rune.shard_map(body.function, mesh=MESH, in_specs=body.spec, out_specs=body.out_spec)

    x = rune.device_put(X, NamedSharding(MESH, body.present))
    results = f(x), rune.jit(f)(x)

    for result in results:
        assert result.sharding.spec == body.result
        np.testing.assert_array_equal(result, alone(X))
    gradients = [rune.grad(lambda x, f=f: (f(x) ** 2).sum())(x) for f in (f, alone)]
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-6)


def test_an_eager_call_sends_nothing_along_the_other_axes(monkeypatch: pytest.MonkeyPatch):
    programs = []
    run = primitive.mesh_program
    monkeypatch.setattr(primitive, "mesh_program", lambda *args: programs.append(args) or run(*args))
    x = rune.device_put(X, NamedSharding(MESH, P("a", "b")))

    rune.shard_map(lambda x: lax.psum(x, "a"), mesh=MESH, in_specs=P("a"), out_specs=P(), axis_names={"a"})(x)

    ((local, mesh, *_),) = programs
    assert [(e.kind, e.axis, int(e.bytes_in)) for e in exchanges(local, mesh)] == [("psum", "a", 4 * 2 * 4)]


# --- the mesh of a body ---------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("a",), ("b",), ("a", "b")], ids=repr)
def test_the_mesh_of_a_body_has_its_axes_manual(names: tuple[str, ...]):
    meshes = []
    f = rune.shard_map(
        lambda x: (meshes.append(get_abstract_mesh()), x)[1], mesh=MESH, in_specs=P(), out_specs=P(), axis_names=names
    )

    f(X)

    assert meshes[0].shape == MESH.shape
    assert meshes[0].manual_axes == names
    assert {*meshes[0].auto_axes} == {"a", "b"} - {*names}
    assert get_abstract_mesh().empty


def test_nested_bodies_have_the_axes_of_both():
    kinds = []

    def inner(x: Any) -> Any:
        kinds.append(get_abstract_mesh().axis_types)
        return lax.psum(x, "b")

    def outer(x: Any) -> Any:
        return rune.shard_map(inner, in_specs=P(None, "b"), out_specs=P(), axis_names={"b"})(x)

    rune.jit(rune.shard_map(outer, mesh=MESH, in_specs=P("a"), out_specs=P("a"), axis_names={"a"}))(X)

    assert kinds == [(AxisType.Manual, AxisType.Manual)]


@pytest.mark.parametrize("says", ["a spec", "the mesh of the body"])
def test_a_constraint_in_a_body_is_along_its_other_axes(says: str):
    def body(x: Any) -> Any:
        where = P(None, "b") if says == "a spec" else NamedSharding(get_abstract_mesh(), P(None, "b"))
        return lax.with_sharding_constraint(x * 2, where)

    f = rune.shard_map(body, mesh=MESH, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})

    for result in (f(X), rune.jit(f)(X)):
        assert result.sharding.spec == P("a", "b")
        np.testing.assert_array_equal(result, X * 2)
