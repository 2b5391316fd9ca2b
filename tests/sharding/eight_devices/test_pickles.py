"""Pickles of sharded arrays keep the sharding, where the devices are."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rune
from rune.sharding import NamedSharding, P, make_mesh

MESH = make_mesh((4, 2), ("data", "model"))
SPECS = [P(), P("data"), P("model", "data"), P(("data", "model")), P(None, "model")]
HOST = np.arange(64.0, dtype="f").reshape(8, 8)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_an_array_is_restored_with_its_sharding_on_the_devices_it_names(spec: P):
    x = rune.device_put(HOST, NamedSharding(MESH, spec))

    y = pickle.loads(pickle.dumps(x))

    assert (y.sharding, y.committed, y.type) == (x.sharding, True, x.type)
    assert [s.index for s in y.addressable_shards] == [s.index for s in x.addressable_shards]
    np.testing.assert_array_equal(y, HOST)
    np.testing.assert_array_equal(y @ x, HOST @ HOST)


def test_keys_and_weak_types_are_restored_too():
    keys = rune.device_put(rune.random.split(rune.random.key(0), 8), NamedSharding(MESH, P("data")))

    other = pickle.loads(pickle.dumps(keys))

    assert other.sharding == keys.sharding
    np.testing.assert_array_equal(rune.random.key_data(other), rune.random.key_data(keys))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
def test_copies_in_a_tree_keep_the_sharding(duplicate):
    tree = {"x": rune.device_put(HOST, NamedSharding(MESH, P("data")))}

    other = duplicate(tree)["x"]

    assert other.sharding == tree["x"].sharding
    np.testing.assert_array_equal(other, HOST)


@pytest.mark.parametrize("value", [MESH, P("data", None, ("model",)), NamedSharding(MESH, P("data"))], ids=repr)
def test_meshes_specs_and_shardings_are_the_same_after_pickling_and_copying(value):
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) == value


def test_the_error_names_missing_devices_and_what_to_do(tmp_path: Path):
    file = tmp_path / "x.pickle"
    file.write_bytes(pickle.dumps(rune.device_put(HOST, NamedSharding(MESH, P("data")))))
    program = f"import pickle; pickle.loads(open({str(file)!r}, 'rb').read())"
    process = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "RUNE_CPU_DEVICES": "2"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (
        "DeviceError: unpickle: cannot lay out f32[8,8] by P('data') as it was (cannot find 'cpu:2'" in process.stderr
    )
    assert "hint: RUNE_CPU_DEVICES makes devices of the CPU; or pickle np.asarray(x)" in process.stderr
