"""`set_mesh` and `with mesh:` set the mesh for a PartitionSpec without one."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError
from rune.sharding import (
    AbstractMesh,
    AxisType,
    NamedSharding,
    P,
    SingleDeviceSharding,
    get_abstract_mesh,
    get_mesh,
    make_mesh,
    set_mesh,
    use_abstract_mesh,
)

ROWS = NamedSharding(make_mesh((1,), ("data",)), P("data"))


@pytest.mark.parametrize("block_of", [set_mesh, lambda mesh: mesh], ids=["set_mesh", "with mesh"])
def test_a_spec_alone_is_read_by_the_mesh_of_the_block(block_of: Callable):
    x, block = rnp.arange(6.0), block_of(ROWS.mesh)

    with block, block:
        results = [
            rune.device_put(x, P("data")),
            rune.lax.with_sharding_constraint(x, P("data")),
            rune.jit(lambda v: 2 * v, in_shardings=P("data"), out_shardings=P("data"))(x),
            rune.jit(lambda v: rune.lax.with_sharding_constraint(2 * v, P("data")))(x),
        ]

    assert [y.sharding for y in results] == [ROWS] * 4
    assert get_mesh() is None


def test_a_sharding_over_axes_alone_means_the_mesh_of_the_block():
    x, rows = rnp.arange(6.0), NamedSharding(ROWS.mesh.abstract_mesh, P("data"))

    with set_mesh(ROWS.mesh):
        results = [
            rune.device_put(x, rows),
            rune.lax.with_sharding_constraint(x, rows),
            rune.jit(lambda v: 2 * v, in_shardings=rows, out_shardings=rows)(x),
            rune.jit(lambda v: rune.lax.with_sharding_constraint(2 * v, rows))(x),
        ]

    assert [y.sharding for y in results] == [ROWS] * 4
    assert rows != ROWS
    assert (rows.shard_shape((6,)), rows.is_fully_replicated) == ((6,), True)


def test_a_sharding_over_axes_alone_has_no_devices():
    rows = NamedSharding(AbstractMesh((2,), ("data",)), P("data"))

    with pytest.raises(ArgumentError, match="cannot say its devices"):
        _ = rows.device_set
    with pytest.raises(ArgumentError, match=r"device_put: cannot lay out by NamedSharding.*no mesh is in force"):
        rune.device_put(rnp.arange(6.0), rows)
    with set_mesh(ROWS.mesh), pytest.raises(ArgumentError, match=r"cannot lay out by .*Mesh\('data': 1\) is in force"):
        rune.device_put(rnp.arange(6.0), rows)


def test_an_axis_that_a_constraint_leaves_to_others_is_whole():
    x, open_end = rnp.ones((2, 3)), P("data", P.UNCONSTRAINED)

    with set_mesh(ROWS.mesh):
        result = rune.lax.with_sharding_constraint(x, open_end)
        copy = rune.device_put(x, NamedSharding(ROWS.mesh, open_end))

    assert result.sharding == copy.sharding == NamedSharding(ROWS.mesh, P("data", None))
    assert open_end != P("data", None)
    assert repr(open_end) == "P('data', UNCONSTRAINED)"
    assert pickle.loads(pickle.dumps(open_end)) == open_end


@pytest.mark.parametrize("static", [{"static_argnums": 1}, {"static_argnums": -2}, {"static_argnames": "power"}])
def test_shardings_are_those_of_the_arguments_that_are_not_static(static: dict):
    f = rune.jit(lambda x, power, y: x**power + y, in_shardings=(ROWS, None), **static)

    np.testing.assert_array_equal(f(rnp.arange(3.0), 2, rnp.ones(3)), [1, 2, 5])


def test_the_array_of_a_reference_gets_the_layout_of_its_argument():
    f = rune.jit(lambda ref, x: ref.addupdate(x), in_shardings=(ROWS, None), out_shardings=None)
    ref = rune.new_ref(rnp.arange(3.0))

    f(ref, 1.0 + rnp.zeros(3))

    np.testing.assert_array_equal(ref[...], [1, 2, 3])
    assert ref[...].sharding == ROWS


def test_a_function_with_laid_out_results_takes_references():
    f = rune.jit(lambda ref: ref[...] + 1, out_shardings=ROWS)

    assert f(rune.new_ref(rnp.arange(3.0))).sharding == ROWS


def test_shard_map_takes_the_mesh_of_the_block():
    double = rune.shard_map(lambda x: 2 * x, in_specs=P("data"), out_specs=P("data"))

    with set_mesh(ROWS.mesh):
        np.testing.assert_array_equal(double(rnp.arange(3)), [0, 2, 4])
    with pytest.raises(ArgumentError, match="cannot find a mesh"):
        double(rnp.arange(3))


def test_a_traced_function_is_traced_again_under_another_mesh():
    meshes = []
    f = rune.jit(lambda x: meshes.append(get_mesh()) or x)

    f(1.0)
    with set_mesh(ROWS.mesh):
        f(1.0)
    f(1.0)

    assert meshes == [None, ROWS.mesh]


def test_without_a_mesh_the_error_explains_how_to_set_one():
    with pytest.raises(ArgumentError, match="by P\\('data'\\) alone") as error:
        rune.device_put(rnp.ones(2), P("data"))

    assert "set_mesh" in str(error.value)


def test_get_abstract_mesh_describes_the_mesh_in_force():
    with set_mesh(make_mesh((1, 1), ("a", "b"), (AxisType.Auto, AxisType.Explicit))):
        mesh = get_abstract_mesh()

    assert mesh == AbstractMesh((1, 1), ("a", "b"), (AxisType.Auto, AxisType.Explicit))
    assert (mesh.auto_axes, mesh.explicit_axes, mesh.manual_axes) == (("a",), ("b",), ())
    assert get_abstract_mesh().empty
    with use_abstract_mesh(AbstractMesh((8,), "x")):
        assert (get_abstract_mesh().size, get_mesh()) == (8, None)


def test_meshes_of_other_kinds_of_axes_are_not_equal_and_are_pickled_with_them():
    explicit = make_mesh((1,), ("data",), AxisType.Explicit)

    assert explicit != ROWS.mesh
    assert pickle.loads(pickle.dumps(explicit)) == explicit
    assert explicit.update(axis_types=None) == ROWS.mesh


def test_devices_have_one_memory():
    assert NamedSharding(ROWS.mesh, P(), memory_kind="device").memory_kind == "device"
    assert ROWS.with_memory_kind("device") == ROWS
    with pytest.raises(ArgumentError, match="cannot use memory_kind='pinned_host'"):
        SingleDeviceSharding("cpu", memory_kind="pinned_host")


def test_specs_are_put_together_like_tuples():
    prefix: tuple = ("a",)

    assert P("a") + P(None, ("b", "c")) == P("a", None, ("b", "c"))
    assert prefix + P(None, ("b", "c")) == P("a", None, ("b", "c"))
    assert (P("a", None).index(None), P("a", "b").count("b"), P("a").partitions) == (1, 1, ("a",))


@pytest.mark.parametrize("kinds", [(AxisType.Auto,) * 2, ("auto",), ()])
def test_each_axis_has_one_kind(kinds: tuple):
    with pytest.raises(ArgumentError, match="an AxisType for each required"):
        make_mesh((1,), ("data",), kinds)


# --- types --------------------------------------------------------------------------------------


def test_a_type_answers_for_its_layout_as_one_without_a_mesh():
    layout = rune.typeof(rnp.ones((2, 3))).sharding

    assert layout.spec == P(None, None)
    assert layout.mesh == AbstractMesh((), ())
    assert layout.is_fully_replicated
    assert layout.update(spec=P(None)).spec == P(None)


def test_a_mesh_without_axes_has_no_axes_of_any_kind():
    mesh = AbstractMesh((), ())

    assert [mesh.are_all_axes_auto, mesh.are_all_axes_explicit, mesh.are_all_axes_manual] == [False] * 3


def test_the_layout_of_a_type_requests_no_layout():
    x = rnp.ones(3)
    layout: Any = rune.typeof(x).sharding

    assert rnp.zeros(3, out_sharding=layout).sharding == rnp.zeros(3).sharding
    assert rune.random.normal(rune.random.key(0), (3,), out_sharding=layout).shape == (3,)
    assert x.at[0].set(2.0, out_sharding=layout)[0] == 2.0
    assert rune.ShapeDtypeStruct((3,), "f32", sharding=layout).sharding is None
    assert rune.typeof(x).update(sharding=layout) is rune.typeof(x)


def test_the_layout_of_a_type_takes_meshes_whose_axes_the_compiler_lays_out():
    layout: Any = rune.typeof(rnp.ones(3)).sharding

    for mesh in (None, AbstractMesh((), ()), AbstractMesh((2,), ("a",))):
        assert layout.update(mesh=mesh, spec=P(None, None)).spec == P(None, None)
    assert layout.update() == layout
    with pytest.raises(ArgumentError, match="update: cannot put a type without a layout on the Explicit axes"):
        layout.update(mesh=AbstractMesh((2,), ("a",), AxisType.Explicit))
