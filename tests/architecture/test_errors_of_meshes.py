"""A call for each kind of mistake with meshes, shardings and collectives.

errors_of_meshes.txt is the golden text. The mesh has two devices that are everywhere: the
processor, and the executor that defines what operations mean.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune.sharding import AbstractMesh, Mesh, NamedSharding, P, make_mesh
from tests.architecture.provocations import golden_text, has_the_form_of_the_grammar, provoke, works_as_before
from tests.architecture.sources import HERE
from tests.support.expect import expect_file

MESHES: list[tuple[str, str]] = [
    ("a device at two places", "Mesh(['cpu:0', 'cpu:0'], 'data')"),
    ("rows of different lengths", "Mesh([['cpu:0', 'reference:0'], ['null:0']], ('data', 'model'))"),
    ("no devices", "Mesh([], 'data')"),
    ("a name too few", "Mesh([['cpu:0'], ['reference:0']], 'data')"),
    ("one name for two axes", "Mesh([['cpu:0'], ['reference:0']], ('data', 'data'))"),
    ("an axis named None", "make_mesh((1,), (None,))"),
    ("a number of devices in the place of a grid", "make_mesh(2, 'data')"),
    ("an axis of -1 devices", "make_mesh((-1,), ('data',))"),
    ("sizes without names", "AbstractMesh((2, 4), ('data',))"),
    ("more places than devices", "make_mesh((2,), ('data',), devices=['cpu:0'])"),
    ("a mesh that is a number", "rune.sharding.set_mesh(3)"),
]

SHARDINGS: list[tuple[str, str]] = [
    ("an axis that the mesh lacks", "NamedSharding(mesh, P('rows'))"),
    ("an axis of the mesh for two of an array", "NamedSharding(mesh, P('data', 'data'))"),
    ("a name in the place of a spec", "NamedSharding(mesh, 'data')"),
    ("a size that the mesh does not divide", "rune.device_put({'w': x}, rows)"),
    ("more entries than axes", "rune.device_put(x, NamedSharding(mesh, P(None, 'data')))"),
    ("a spec alone", "rune.device_put({'w': x}, {'w': P('data')})"),
    ("shardings for another tree", "rune.device_put({'w': x}, {'v': rows})"),
    ("an argument that the mesh does not divide", "rune.jit(lambda a, b: b, in_shardings=(None, rows))(x, {'w': x})"),
    ("a result that the mesh does not divide", "rune.jit(lambda a: {'w': a}, out_shardings=rows)(x)"),
    ("a spec alone for jit", "rune.jit(lambda a: a, in_shardings=P('data'))(x)"),
    ("shardings for other arguments", "rune.jit(lambda a, b: a, in_shardings=(rows,))(x, x)"),
    ("shardings for other results", "rune.jit(lambda a: a, out_shardings=(rows, rows))(even)"),
    ("an eager constraint that the mesh does not divide", "lax.with_sharding_constraint(x, rows)"),
    ("a symbolic size that may not divide", "rune.jit(lambda a: a * 2, in_shardings=rows, dims={'n': (1, 9)})(even)"),
    ("blocks that the mesh does not divide", "rune.make_array_from_callback((3,), rows, lambda block: x[block])"),
    ("a block of another shape", "rune.make_array_from_callback((4,), rows, lambda block: x)"),
    ("data of another rank", "rune.make_array_from_process_local_data(rows, even, (4, 1))"),
    ("a device without its block", "rune.make_array_from_single_device_arrays((4,), rows, [even])"),
    ("arrays on two meshes", "rune.device_put(even, rows) + rune.device_put(even, NamedSharding(alone, P('data')))"),
    (
        "two meshes in one program",
        "rune.jit(lambda a, b: a + b, in_shardings=(rows, NamedSharding(alone, P('data'))))(even, even)",
    ),
    (
        "an array of another mesh in a program",
        "rune.jit(lambda a: on_each(lambda v: v)(a))(rune.device_put(even, NamedSharding(alone, P('data'))))",
    ),
    ("a donated sharded array", "put = rune.device_put(even, rows); rune.jit(rnp.sin, donate_argnums=0)(put); put + 1"),
]

BODIES: list[tuple[str, str]] = [
    (
        "an array of another mesh in a body",
        "on_each(lambda v: v)(rune.device_put(even, NamedSharding(alone, P('data'))))",
    ),
    ("no mesh", "on_each(lambda v: v, mesh=None)(even)"),
    ("a device in the place of a mesh", "on_each(lambda v: v, mesh='cpu')(even)"),
    ("an argument of a body that the mesh does not divide", "on_each(lambda v: v['w'])({'w': x})"),
    ("an axis that the mesh of a body lacks", "on_each(lambda v: v, in_specs=P('rows'))(even)"),
    ("more entries than axes of an argument", "on_each(lambda v: v, in_specs=P('data', None))(even)"),
    ("specs for other arguments", "on_each(lambda v: v, in_specs=(P('data'), P()))(even)"),
    ("a value that is not a spec", "on_each(lambda v: v, in_specs='data')(even)"),
    ("an axis of a result that the mesh lacks", "on_each(lambda v: v, out_specs=P('rows'))(even)"),
    ("more entries than axes of a result", "on_each(lambda v: v.sum())(even)"),
    ("specs for other results", "on_each(lambda v: v, out_specs=(P(), P()))(even)"),
    ("a result whose spec hides that devices differ", "on_each(lambda v: v * 2, out_specs=P())(even)"),
    ("axes to cut that the mesh lacks", "on_each(lambda v: v, axis_names=('rows',))(even)"),
    ("a collective over another axis", "on_each(lambda v: lax.psum(v, 'rows'))(even)"),
    ("a collective outside of its axis", "lax.psum(x, 'data')"),
    ("a permutation beyond the devices", "on_each(lambda v: lax.ppermute(v, 'data', [(0, 2)]))(even)"),
    ("groups that leave a device out", "on_each(lambda v: lax.psum(v, 'data', axis_index_groups=[[0]]))(even)"),
    ("devices that take different ways", "on_each(lambda v: rune.cond(v[0] > 0, lambda: v, lambda: total(v)))(even)"),
    ("the costs of what runs in parts", "rune.jit(lambda a: rune.device_put(a, away) * 2).lower(x).cost_analysis()"),
    ("lanes that devices cannot share", "rune.pmap(rnp.sin, devices=['cpu:0', 'reference:0'])(x)"),
    ("a device that is measured twice", "rune.measure_devices(['cpu:0', 'cpu:0'])"),
]

CALLS = [*MESHES, *SHARDINGS, *BODIES]


def names() -> dict[str, Any]:
    mesh = Mesh(["cpu:0", "reference:0"], "data")
    on_each = functools.partial(rune.shard_map, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    return {
        "AbstractMesh": AbstractMesh,
        "Mesh": Mesh,
        "NamedSharding": NamedSharding,
        "P": P,
        "make_mesh": make_mesh,
        "lax": lax,
        "mesh": mesh,
        "alone": Mesh(["cpu:0"], "data"),
        "rows": NamedSharding(mesh, P("data")),
        "away": "reference:0",
        "even": rune.numpy.arange(4.0),
        "on_each": on_each,
        "total": lambda v: lax.psum(v, "data"),
    }


def test_every_message_is_the_one_in_the_golden_text(request: pytest.FixtureRequest):
    expect_file(request.config, HERE / "errors_of_meshes.txt", golden_text(CALLS, names()))


@pytest.mark.parametrize(("title", "code"), CALLS, ids=[t for t, _ in CALLS])
def test_every_message_has_the_form_of_the_grammar_and_leaves_everything_usable(title: str, code: str):
    has_the_form_of_the_grammar(str(provoke(code, names())))
    works_as_before()
    rows = NamedSharding(names()["mesh"], P("data"))
    total = names()["on_each"](lambda v: lax.psum(v, "data"), out_specs=P())
    np.testing.assert_array_equal(total(rune.device_put(np.arange(4.0, dtype="f"), rows)), [2.0, 4.0])
