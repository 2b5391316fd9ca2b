"""Checkpoints of sharded arrays: they load onto another mesh, and one cut short changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
from rune import numpy as rnp
from rune import random
from rune.distributed import checkpoints, load_checkpoint, save_checkpoint
from rune.errors import ArgumentError, DistributedError
from rune.sharding import NamedSharding, P, make_mesh

X = np.sin(np.arange(8 * 12.0, dtype="f")).reshape(8, 12)
FOUR_BY_TWO, EIGHT = make_mesh((4, 2), ("a", "b")), make_mesh((8,), ("a",))


def sharded(spec: P, mesh: Any = FOUR_BY_TWO) -> Any:
    return rune.device_put(X, NamedSharding(mesh, spec))


@pytest.mark.parametrize("old_spec", [P(), P("a"), P("b", "a"), P(("a", "b")), P(None, "b")])
@pytest.mark.parametrize("new_spec", [P(), P("a"), P(("b", "a"), None), P("b", "a")])
def test_a_checkpoint_loads_onto_any_sharding(tmp_path: Path, old_spec: P, new_spec: P):
    save_checkpoint(tmp_path, {"x": sharded(old_spec)})
    target = NamedSharding(FOUR_BY_TWO, new_spec)

    x: Any = load_checkpoint(tmp_path, {"x": rune.ShapeDtypeStruct(X.shape, "f4")}, target)["x"]

    np.testing.assert_array_equal(x, X)
    assert x.sharding == target


def test_a_checkpoint_loads_onto_another_mesh_and_onto_one_device(tmp_path: Path):
    save_checkpoint(tmp_path, sharded(P("a", "b")))

    on_eight = load_checkpoint(tmp_path, sharded(P("a"), EIGHT))
    on_one: Any = load_checkpoint(tmp_path, X, "cpu:3")

    assert on_eight.sharding == NamedSharding(EIGHT, P("a"))
    assert on_one.device.name == "cpu:3"
    np.testing.assert_array_equal(on_eight, X)
    np.testing.assert_array_equal(on_one, X)


def test_each_block_is_written_once(tmp_path: Path):
    save_checkpoint(tmp_path, {"cut": sharded(P("a")), "copies": sharded(P())})
    (version,) = (f for f in tmp_path.iterdir() if f.is_dir())

    assert sorted(f.name for f in version.iterdir()) == ["0.0.0", "1.0.0", "1.0.1", "1.0.2", "1.0.3", "index"]
    assert sum(f.stat().st_size for f in version.iterdir() if f.name != "index") == 2 * X.nbytes


def test_every_dtype_is_restored(tmp_path: Path):
    values = {
        "bf16": rnp.asarray(X, "bfloat16"),
        "f8": rnp.asarray(X, "float8_e4m3fn"),
        "c64": rnp.asarray(X + 1j),
        "bool": rnp.asarray(X > 0),
        "i8": rnp.asarray(X * 100).astype("int8"),
        "f64": rnp.asarray(X, "float64"),
        "key": random.split(random.key(3), 4),
        "number": rnp.float32(np.nan),
        "empty": rnp.zeros((0, 3)),
        "tuple": (rnp.arange(3), [rnp.arange(2)]),
    }
    save_checkpoint(tmp_path, values)
    copies = load_checkpoint(tmp_path, values)

    for copy, original in zip(rune.tree.leaves(copies), rune.tree.leaves(values), strict=True):
        assert copy.dtype == original.dtype
        assert copy.numpy().tobytes() == original.numpy().tobytes()


def test_sixty_four_bits_stay_sixty_four_on_a_mesh(tmp_path: Path):
    x = rune.device_put(rnp.asarray(X.astype("f8") / 3, "float64"), NamedSharding(EIGHT, P("a")))
    save_checkpoint(tmp_path, x)

    copy = load_checkpoint(tmp_path, x)

    assert copy.dtype == "float64"
    np.testing.assert_array_equal(copy, x)


class Cut(Exception):
    """The end of a process, in the middle of something."""


def test_a_checkpoint_that_is_cut_short_at_any_write_leaves_the_old_one(tmp_path: Path, monkeypatch: Any):
    save_checkpoint(tmp_path, {"x": sharded(P("a"))})
    values = [rune.device_put(X * 0 + n, NamedSharding(FOUR_BY_TWO, P("a"))) for n in range(20)]
    count = 0
    for count, value in enumerate(values):
        steps = iter(range(count))

        def counted(function: Any, steps: Any = steps) -> Any:
            def run(*args: Any, **kwargs: Any) -> Any:
                if next(steps, None) is None:
                    raise Cut
                return function(*args, **kwargs)

            return run

        with monkeypatch.context() as patch:
            patch.setattr(checkpoints.os, "fsync", counted(checkpoints.os.fsync))
            patch.setattr(checkpoints.os, "replace", counted(checkpoints.os.replace))
            try:
                save_checkpoint(tmp_path, {"x": value})
            except Cut:
                np.testing.assert_array_equal(load_checkpoint(tmp_path, {"x": X})["x"], X)
            else:
                break

    assert count == 7  # four blocks, the index, the name, and the rename
    np.testing.assert_array_equal(load_checkpoint(tmp_path, {"x": X})["x"], X * 0 + count)
    assert len([f for f in tmp_path.iterdir() if f.is_dir()]) == 1


def test_a_damaged_file_is_an_error_not_a_number(tmp_path: Path):
    save_checkpoint(tmp_path, {"x": sharded(P("a"))})
    (file,) = tmp_path.glob("*/0.0.2")
    for damage in (b"", file.read_bytes()[:-1], file.read_bytes()[:-1] + b"\7"):
        file.write_bytes(damage)
        with pytest.raises(DistributedError, match=r"cannot read \['x'\] \(.*0\.2 is damaged\)"):
            load_checkpoint(tmp_path, {"x": X})
    file.unlink()
    with pytest.raises(DistributedError, match="is damaged"):
        load_checkpoint(tmp_path, {"x": X})


@pytest.mark.parametrize(
    ("like", "reason"),
    [
        ({"x": X[:4]}, r"cannot read \['x'\] as f32\[4,12\] \(the checkpoint has f32\[8,12\]\)"),
        ({"x": X.astype("i4")}, r"as i32\[8,12\]"),
        ({"x": X, "y": X}, r"cannot read \['y'\] as f32\[8,12\] \(the checkpoint has nothing\)"),
        ({}, r"cannot read \['x'\] as nothing"),
    ],
)
def test_a_checkpoint_of_other_arrays_is_refused(tmp_path: Path, like: Any, reason: str):
    save_checkpoint(tmp_path, {"x": X})

    with pytest.raises(DistributedError, match=reason):
        load_checkpoint(tmp_path, like)


def test_a_leaf_that_is_not_an_array_is_not_saved(tmp_path: Path):
    with pytest.raises(ArgumentError, match="save_checkpoint"):
        save_checkpoint(tmp_path, {"x": object()})


@pytest.mark.parametrize(
    "error", [OSError("no room"), KeyboardInterrupt(), SystemExit(3)], ids=lambda e: type(e).__name__
)
def test_an_error_that_ends_a_save_is_reported_to_the_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
):
    messages: list[bytes] = []
    converse = checkpoints.converse

    def listening(verb: str, topic: str, message: bytes) -> Any:
        messages.append(message)
        return converse(verb, topic, message)

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(checkpoints, "converse", listening)
    monkeypatch.setattr(checkpoints, "_write", fail)

    with pytest.raises(type(error)):
        save_checkpoint(tmp_path, sharded(P("a")))
    assert type(error).__name__.encode() in messages[-1]
