"""Sharded arrays in files: written block by block, and read by each device alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
from rune import numpy as rnp
from rune.sharding import NamedSharding, P, make_mesh
from tests.support.close import same

X = np.arange(8 * 12).reshape(8, 12) % 7
MESH = make_mesh((4, 2), ("a", "b"))


def sharded(spec: P, dtype: str) -> Any:
    return rune.device_put(rnp.asarray(X, dtype=dtype), NamedSharding(MESH, spec))


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int4", "complex128"])
@pytest.mark.parametrize(
    ("old_spec", "new_spec"), [(P(), P("a")), (P("b", "a"), P(("a", "b"))), (P(None, "b"), P("b", "a"))]
)
def test_an_array_is_restored_onto_any_sharding(tmp_path: Path, suffix: str, dtype: str, old_spec: P, new_spec: P):
    path, target = tmp_path / f"x.{suffix}", NamedSharding(MESH, new_spec)
    rune.tree.save(path, {"before": np.ones(3), "x": sharded(old_spec, dtype), "z": np.zeros(2)})
    rune.files.open(path).check()

    tree = rune.tree.load(path, device={"before": None, "x": target, "z": None})

    assert tree["x"].sharding == target
    same(rnp.asarray(X, dtype=dtype), np.asarray(tree["x"]))
    same(np.ones(3), tree["before"])


def test_the_like_tree_determines_the_sharding_of_a_loaded_array(tmp_path: Path):
    like, path = sharded(P("a", "b"), "float32"), tmp_path / "x.safetensors"
    rune.tree.save(path, rnp.asarray(X, dtype="float32"))

    assert rune.tree.load(path, like=like).sharding == like.sharding
    struct = rune.ShapeDtypeStruct(X.shape, "float32", sharding=like.sharding)
    assert rune.tree.load(path, like=struct).sharding == like.sharding


def test_keys_are_cut_as_well(tmp_path: Path):
    keys, cut = rune.random.split(rune.random.key(0), 8), NamedSharding(MESH, P("a"))
    rune.tree.save(tmp_path / "x.npz", rune.device_put(keys, cut))

    copy = rune.tree.load(tmp_path / "x.npz", device=cut)

    same(rune.random.key_data(keys), np.asarray(rune.random.key_data(copy)))


def test_an_array_that_cannot_be_cut_is_named(tmp_path: Path):
    rune.tree.save(tmp_path / "x.npz", {"w": rnp.ones(7)})

    with pytest.raises(rune.errors.ShapeError, match="load: cannot place w"):
        rune.tree.load(tmp_path / "x.npz", device=NamedSharding(MESH, P("a")))


def test_a_resumed_run_keeps_the_sharding_of_its_arrays(tmp_path: Path):
    state = {"w": sharded(P("a"), "float32"), "step": 0}
    with rune.checkpoints.Manager(tmp_path) as manager:
        manager.save(3, state)

    step, restart = rune.checkpoints.Manager(tmp_path).resume(state)

    assert (step, restart["w"].sharding) == (3, state["w"].sharding)
    same(np.asarray(state["w"]), np.asarray(restart["w"]))
