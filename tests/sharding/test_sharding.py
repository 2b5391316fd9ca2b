"""Shardings against JAX: which block each device holds, in every layout of layouts.py.

jax_blocks_0_10_2.json was made by make_jax_blocks.py. Blocks of devices are tested in a process
with eight CPU devices; meshes and specs need only one device.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
from rune.errors import ArgumentError, DeviceError, ShapeError
from rune.sharding import Mesh, NamedSharding, P, SingleDeviceSharding, make_mesh
from tests.sharding.layouts import LAYOUTS, MESHES

FOLDER = Path(__file__).parent
STORED = json.loads((FOLDER / "jax_blocks_0_10_2.json").read_text())
TWO = Mesh(["cpu:0", "reference:0"], "data")
PLAIN: Any = ("data",)
# Blocks do not depend on the devices: these names provide as many as a layout needs.
STAND_INS = [f"stand-in:{n}" for n in range(8)]


@pytest.fixture
def anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any name counts as a device."""
    monkeypatch.setattr("rune.sharding.meshes.device_of", lambda name: name)


def blocks(mesh: str, spec: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """The blocks that make_jax_blocks.py stores."""
    sizes, names = MESHES[mesh]
    grid = np.array(STAND_INS[: math.prod(sizes)]).reshape(sizes)
    try:
        sharding = NamedSharding(Mesh(grid, names), P(*spec))
        indices, shard = sharding.devices_indices_map(shape), sharding.shard_shape(shape)
    except (ArgumentError, ShapeError):
        return None
    by_device = [[[i.start, i.stop] for i in indices[d]] for d in grid.flat]
    return [list(shard), by_device, sharding.is_fully_replicated]


@pytest.mark.usefixtures("anything")
@pytest.mark.parametrize("mesh", MESHES)
def test_blocks_are_those_of_jax(mesh: str):
    ours = {layout: blocks(*layout) for layout in LAYOUTS if layout[0] == mesh}
    jaxs = {layout: jax_blocks for layout, jax_blocks in zip(LAYOUTS, STORED, strict=True) if layout[0] == mesh}

    assert ours == jaxs


@pytest.mark.usefixtures("anything")
@given(st.data())
def test_the_blocks_of_an_array_are_its_elements_once_for_each_replica(data: st.DataObject):
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    names = "abc"[: len(sizes)]
    axes = data.draw(
        st.lists(st.sampled_from([None, *names]), min_size=1, max_size=3, unique_by=lambda n: n or object())
    )
    parts = [1 if n is None else sizes[names.index(n)] for n in axes]
    shape = tuple(p * data.draw(st.integers(0, 3)) for p in parts)
    grid = np.array([f"d{n}" for n in range(math.prod(sizes))]).reshape(sizes)
    replicas = np.zeros(shape, int)

    for block in NamedSharding(Mesh(grid, tuple(names)), P(*axes)).devices_indices_map(shape).values():
        replicas[block] += 1

    assert (replicas == math.prod(sizes) // math.prod(parts)).all()


def test_a_mesh_of_eight_cpu_devices_takes_the_first_eight():
    program = """
import rune
from rune.sharding import make_mesh, NamedSharding, P
mesh = make_mesh((2, 4), ("data", "model"))
print(mesh, mesh.devices[1, 0].name)
print([d.name for d in NamedSharding(mesh, P("data")).devices_indices_map((4,))][::4])
"""
    environment = {**os.environ, "RUNE_CPU_DEVICES": "8"}
    command = [sys.executable, "-c", program]
    process = subprocess.run(
        command, env=environment, cwd=FOLDER.parents[1], capture_output=True, text=True, check=False
    )

    assert process.stdout.splitlines() == ["Mesh('data': 2, 'model': 4) cpu:4", "['cpu:0', 'cpu:4']"], process.stderr


def test_devices_of_one_kind_are_listed_without_waking_drivers_of_others():
    program = """
import sys, rune, rune.distributed
from rune.sharding import P, make_mesh
drivers = {"pyopencl", "vulkan", "wgpu", "pycuda", "cuda"}
print("devices", rune.distributed.devices() and drivers & {*sys.modules})
print("mesh", make_mesh((1,), ("a",)) and drivers & {*sys.modules})
rune.pmap(lambda x: x)(rune.numpy.ones((1, 3)))
print("pmap", drivers & {*sys.modules})
rune.distributed.initialize()
print("initialize", drivers & {*sys.modules})
"""
    environment = {name: value for name, value in os.environ.items() if name != "RUNE_DEVICE"}
    command = [sys.executable, "-c", program]
    process = subprocess.run(
        command, env=environment, cwd=FOLDER.parents[1], capture_output=True, text=True, check=False
    )

    assert process.stdout.splitlines() == ["devices set()", "mesh set()", "pmap set()", "initialize set()"], (
        process.stderr
    )


def test_a_mesh_with_more_places_than_devices_is_refused_with_the_way_to_get_them():
    count = sum(d.target.backend == "cpu" for d in rune.devices()) + 1

    with pytest.raises(DeviceError, match=rf"cannot fill {count} places .*\n.*RUNE_CPU_DEVICES={count}"):
        make_mesh((count,), ("data",))


def test_equal_meshes_and_shardings_are_one_key():
    twin = Mesh(["cpu:0", "reference:0"], ("data",))
    table = {NamedSharding(TWO, P("data")): 1}

    assert (twin, hash(twin)) == (TWO, hash(TWO))
    assert table[NamedSharding(twin, P(("data",)))] == 1
    assert twin != Mesh(["reference:0", "cpu:0"], "data")


def test_layouts_that_put_the_same_blocks_on_the_same_devices_are_equivalent():
    copies, one = NamedSharding(TWO, P()), Mesh(["cpu:0"], "data")

    assert copies.is_equivalent_to(NamedSharding(TWO, P(None, None)), 2)
    assert not copies.is_equivalent_to(NamedSharding(TWO, P("data")), 2)
    assert SingleDeviceSharding("cpu").is_equivalent_to(NamedSharding(one, P("data")), 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mesh([["cpu:0"]], "data"), r"cannot name the axes of 1 by 1 devices \('data',\) \(2 names required\)"),
        (lambda: Mesh([["cpu:0"]], ("a", "a")), "cannot name two axes 'a'"),
        (lambda: Mesh(["cpu:0", "cpu:0"], "a"), "cannot use cpu:0 at two places"),
        (lambda: NamedSharding(TWO, P("model")), r"cannot cut along 'model' \(Mesh\('data': 2\) has no such axis\)"),
        (lambda: NamedSharding(TWO, P("data", "data")), "cannot cut along 'data' twice"),
        (lambda: NamedSharding(TWO, PLAIN), r"cannot cut by Mesh and tuple \(a Mesh and a PartitionSpec required\)"),
    ],
    ids=["too few names", "a name twice", "a device twice", "an unknown axis", "an axis twice", "a tuple"],
)
def test_a_layout_that_makes_no_sense_is_refused(make: Any, message: str):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_an_axis_that_does_not_divide_is_named_with_the_size_to_pad_it_to():
    with pytest.raises(ShapeError, match=r"axis 1 of \[4, 7\] into 2 equal parts .*\nhint: pad the axis to 8"):
        NamedSharding(TWO, P(None, "data")).shard_shape((4, 7))


def test_a_spec_longer_than_the_shape_is_refused():
    with pytest.raises(ShapeError, match=r"cannot cut \[4\] as P\(None, 'data'\) says \(2 axes required\)"):
        NamedSharding(TWO, P(None, "data")).shard_shape((4,))


@pytest.mark.parametrize(
    "call",
    [
        lambda: make_mesh((2,), ("data",), devices=["cpu:0"]),
        lambda: rune.device_put(np.ones(2), "cpu:0") + rune.device_put(np.ones(2), "reference:0"),
        lambda: make_mesh((1,), (None,)),
    ],
    ids=["too few devices", "arrays on two devices", "an axis named None"],
)
def test_errors_that_are_value_errors_in_jax_are_value_errors(call: Any):
    with pytest.raises(ValueError, match="cannot"):
        call()
