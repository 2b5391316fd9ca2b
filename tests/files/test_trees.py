"""rune.tree.save and load: the loaded values, their names, and their devices."""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.errors import ArgumentError, FileError
from rune.sharding import NamedSharding, P, make_mesh
from tests.support.close import same

SUFFIXES = ("safetensors", "npz")
NUMBERS = [d for d in dtypes.SHORT if d in dtypes.ANY]


class Point(NamedTuple):
    x: Any
    y: Any


@rune.tree_util.register_dataclass
@dataclass
class Layer:
    weight: Any
    bias: Any


@pytest.fixture(params=SUFFIXES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"tree.{request.param}"


def saved(path: Path, tree: Any, **options: Any) -> Any:
    """The tree that comes back."""
    rune.tree.save(path, tree)
    return rune.tree.load(path, **options)


# --- loaded values ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5), (2, 0, 3), (1, 3, 1)], ids=str)
def test_every_dtype_and_shape_is_restored_bit_for_bit(path: Path, dtype: np.dtype, shape: tuple[int, ...]):
    integers = np.random.default_rng(0).integers(-9, 9, shape)
    with np.errstate(all="ignore"):
        array = rnp.asarray(integers.astype(dtype), dtype=dtype)

    copy = saved(path, [array])[0]

    assert copy.type is array.type
    same(array, copy)


def test_nan_infinity_and_denormal_values_are_restored_bit_for_bit(path: Path):
    bits = np.arange(1 << 16, dtype=np.uint16)  # every NaN, infinity and denormal number
    halves = [rnp.asarray(bits.view(d), dtype=d) for d in (np.float16, ml_dtypes.bfloat16)]

    copy = saved(path, halves)

    assert [np.asarray(x).tobytes() for x in copy] == [np.asarray(x).tobytes() for x in halves]


@pytest.mark.parametrize("impl", ["threefry2x32", "philox4x32"])
def test_keys_are_restored_with_their_generator(path: Path, impl: str):
    keys = rune.random.split(rune.random.key(2**40, impl=impl), (2, 3))

    copy = saved(path, keys)

    assert copy.type is keys.type
    same(rune.random.key_data(keys), rune.random.key_data(copy))


def test_python_numbers_are_restored_as_such(path: Path):
    tree = {"flag": True, "step": -(2**63), "rate": 0.1, "phase": 1 - 2j}

    assert saved(path, tree) == tree
    assert {name: type(x) for name, x in saved(path, tree).items()} == {n: type(x) for n, x in tree.items()}


def test_dicts_lists_tuples_and_nones_come_back_as_they_were(path: Path):
    tree = {"a": [1, (2, None, {}), []], "b": {3: 4, 10: ((),)}, "": 5}

    assert saved(path, tree) == tree


def test_a_single_array_is_restored(path: Path):
    same(rnp.arange(3), saved(path, rnp.arange(3)))


def test_a_tree_deeper_than_pythons_stack_is_restored(path: Path):
    tree: Any = 7
    for _ in range(3000):
        tree = [tree]

    copy, depth = saved(path, tree), 0
    while isinstance(copy, list):
        copy, depth = copy[0], depth + 1
    assert (copy, depth) == (7, 3000)


def test_arrays_of_numpy_come_back_in_their_dtype(path: Path):
    tree = [np.arange(3.0), np.arange(3, dtype=">i4"), np.arange(12).reshape(3, 4)[::2, ::-1], np.float32(2)]

    copy = saved(path, tree)

    assert [x.dtype for x in copy] == ["float64", "int32", "int64", "float32"]
    assert all((np.asarray(x) == y).all() for x, y in zip(copy, tree, strict=True))


def test_weak_types_are_restored_as_weak(path: Path):
    assert [x.type.weak for x in saved(path, [rnp.asarray(1.0), rnp.float32(1.0)])] == [True, False]


def test_zeros_of_integer_tangents_are_returned(path: Path):
    zeros = np.zeros((2, 3), dtypes.float0)

    assert saved(path, [zeros])[0].type.dtype == dtypes.float0


def test_metadata_are_restored(path: Path):
    rune.tree.save(path, [1], metadata={"by": "me", "é": "\n"})

    assert dict(rune.files.open(path).metadata) == {"by": "me", "é": "\n"}


# --- names and errors ---------------------------------------------------------------------------


def test_leaves_are_named_by_the_keys_that_lead_to_them(path: Path):
    rune.tree.save(path, {"layers": [Layer(1, 2)], "p": Point(3, None)})

    assert sorted(rune.files.open(path)) == ["layers.0.bias", "layers.0.weight", "p.x"]


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"a": {"b": "text"}}, r"the leaf \['a'\]\['b'\] \(str\)"),
        ({"a": np.array(["text"])}, r"the leaf \['a'\] \(ndarray of <U4\)"),
        ([np.array([None])], r"the leaf \[0\] \(ndarray of object\)"),
        ([2**63], r"the leaf \[0\] \(9223372036854775808, of more than 64 bits\)"),
        ({"a.b": 1, "a": {"b": 2}}, r"\['a'\]\['b'\] and \['a.b'\] apart \(both are named a.b\)"),
        ({"__metadata__": 1}, r"the leaf \['__metadata__'\]"),
        ({"\0": 1}, r"name the leaf"),
        ({"\ud800": 1}, r"name the leaf"),
    ],
)
def test_a_leaf_that_cannot_be_saved_is_named(path: Path, tree: Any, words: str):
    with pytest.raises(ArgumentError, match=words):
        rune.tree.save(path, tree)

    assert not path.exists()


def test_a_deleted_leaf_is_named(path: Path):
    array = rnp.ones(3)
    array.delete()

    with pytest.raises(ArgumentError, match=r"the leaf \['w'\] \(f32\[3\] was donated or deleted\)"):
        rune.tree.save(path, {"w": array})


def test_a_traced_leaf_is_named(path: Path):
    with pytest.raises(ArgumentError, match=r"the leaf \['w'\] \(.* has no value yet\)"):
        rune.jit(lambda x: rune.tree.save(path, {"w": x}))(1.0)


def test_an_error_names_the_missing_folder_and_not_a_temporary_file(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '[^']*/nowhere'$"):
        rune.tree.save(tmp_path / "nowhere" / "x.npz", [1])


def test_another_suffix_is_refused(tmp_path: Path):
    with pytest.raises(ArgumentError, match=r"the suffix of .*x.pt \(one of .safetensors, .npz\)"):
        rune.tree.save(tmp_path / "x.pt", [1])


@pytest.mark.parametrize(
    ("suffix", "words"), [("pt", "safetensors.torch"), ("h5", "h5py"), ("pkl", "runs code"), ("npy", "numpy.load")]
)
@pytest.mark.parametrize("use", [rune.tree.load, lambda path: rune.tree.save(path, [1])])
def test_errors_about_other_libraries_files_explain_how_to_convert_them(
    suffix: str, words: str, use: Any, tmp_path: Path
):
    with pytest.raises(ArgumentError) as error:
        use(tmp_path / f"x.{suffix}")

    assert words in (error.value.hint or "")


@pytest.mark.parametrize(
    ("like", "words"),
    [
        ({"w": rnp.zeros((2, 3)), "step": 0}, r"the leaf w as f32\[2,3\] \(.* has f32\[3,2\]\)"),
        ({"w": rnp.zeros((3, 2), "int32"), "step": 0}, r"the leaf w as i32\[3,2\]"),
        ({"w": rnp.zeros((3, 2)), "step": 0.0}, r"the leaf step as a number f64 \(.* has a number i64\)"),
        ({"w": rnp.zeros((3, 2)), "step": rnp.int32(0)}, r"the leaf step as i32\[\]"),
        ({"w": rnp.zeros((3, 2)), "steps": 0}, r"find the leaf steps in .* \(step, w\)"),
        ({"w": rnp.zeros((3, 2))}, r"it has more: step\)"),
        ({"w": "text", "step": 0}, r"the leaf \['w'\] as str"),
    ],
)
def test_a_leaf_that_the_file_has_otherwise_is_named(path: Path, like: Any, words: str):
    rune.tree.save(path, {"w": rnp.ones((3, 2)), "step": 3})

    with pytest.raises(ArgumentError, match=words):
        rune.tree.load(path, like)


def test_classes_are_restored_with_a_tree_as_like(path: Path):
    tree = {"p": Point(rnp.ones(2), 1.5), "l": Layer(rnp.zeros(3), None), "o": OrderedDict(z=1, a=2)}

    copy = saved(path, tree, like=tree)

    assert rune.tree.structure(copy) == rune.tree.structure(tree)
    same(tree["p"].x, copy["p"].x)


def test_classes_without_such_a_tree_are_an_error_that_names_them(path: Path):
    with pytest.raises(ArgumentError, match=r"cannot make a node Layer (?s:.)*give like="):
        saved(path, Layer(1, 2))


def test_a_struct_is_enough_to_load_an_array(path: Path):
    like = [rune.ShapeDtypeStruct((3,), "float32"), rune.ShapeDtypeStruct((), rune.random.key(0).dtype)]

    copy = saved(path, [rnp.ones(3), rune.random.key(5)], like=like)

    same(rune.random.key_data(rune.random.key(5)), rune.random.key_data(copy[1]))


# --- where it goes ------------------------------------------------------------------------------


def test_loaded_arrays_are_views_of_the_file(path: Path):
    copy = saved(path, [rnp.ones((50, 3)), rnp.ones(5, "bfloat16"), rune.random.key(0)])

    assert not any(x.numpy().flags.owndata or x.numpy().flags.writeable for x in copy)
    assert [x.committed for x in copy] == [False] * 3


def test_a_loaded_array_outlives_its_file(path: Path):
    copy = saved(path, [rnp.arange(1000)])[0]
    path.unlink()

    assert int(rnp.sum(copy)) == 499_500


def test_donating_a_loaded_array_does_not_change_the_file(path: Path):
    copy = saved(path, [rnp.ones(1000)])
    before = path.read_bytes()

    double = rune.jit(lambda x: x * 2, donate_argnums=0)(copy[0])

    assert float(double[7]) == 2
    assert path.read_bytes() == before


def test_a_file_larger_than_memory_is_read_only_where_it_is_needed(tmp_path: Path):
    path, count = tmp_path / "large.safetensors", 1 << 38  # a tebibyte, a page of which is on the disk
    header = b'{"x": {"dtype": "F32", "shape": [%d], "data_offsets": [0, %d]}}' % (count, 4 * count)
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + 4 * count)
        file.seek(-4, os.SEEK_END)
        file.write(np.float32(7).tobytes())

    x = rune.tree.load(path)["x"]

    same(np.array([0, 7], np.float32), np.asarray(x[-2:]))


@pytest.mark.parametrize("device", [d.name for d in rune.devices() if d.target.backend != "null"])
def test_an_array_is_moved_straight_to_a_device(path: Path, device: str):
    tree = {"w": rnp.arange(15.0).reshape(3, 5), "key": rune.random.key(1)}

    copy = saved(path, tree, device=device)

    assert {x.device.name for x in copy.values()} == {device}
    assert copy["w"].committed
    same(tree["w"], copy["w"])


def test_an_array_is_loaded_onto_the_device_of_its_counterpart(path: Path):
    like = {"w": rune.device_put(rnp.zeros(3), "reference"), "b": rnp.zeros(2)}

    copy = saved(path, {"w": rnp.ones(3), "b": rnp.ones(2)}, like=like)

    assert [x.committed for x in (copy["w"], copy["b"])] == [True, False]
    assert copy["w"].device.name == like["w"].device.name


def test_devices_are_given_by_a_prefix_of_the_tree(path: Path):
    copy = saved(path, [{"a": rnp.ones(2)}, rnp.ones(2)], device=["reference", None])

    assert [x.committed for x in (copy[0]["a"], copy[1])] == [True, False]


# --- all or nothing -----------------------------------------------------------------------------


def test_a_failed_save_does_not_change_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch):
    rune.tree.save(path, [1])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        rune.tree.save(path, [rnp.ones(1000)])

    assert rune.tree.load(path) == [1]
    assert [*path.parent.iterdir()] == [path]


def test_a_link_leads_to_the_new_file(path: Path):
    link = path.with_name(f"link{path.suffix}")
    link.symlink_to(path)

    rune.tree.save(link, [1])
    path.chmod(0o640)
    rune.tree.save(link, [2])

    assert link.is_symlink()
    assert (rune.tree.load(path), path.stat().st_mode & 0o777) == ([2], 0o640)


def test_a_missing_file_is_reported_as_missing(path: Path):
    with pytest.raises(FileNotFoundError):
        rune.tree.load(path)


def test_an_error_names_the_line_of_the_user(path: Path):
    path.write_bytes(b"nothing")

    with pytest.raises(FileError, match=r"test_trees\.py"):
        rune.tree.load(path)


def test_an_array_that_cannot_be_cut_is_named(tmp_path: Path):
    path = tmp_path / "x.safetensors"
    mesh = make_mesh((1,), ("data",))
    with pytest.raises(TypeError, match="load: cannot place w"):
        saved(path, {"w": rnp.ones(3)}, device=NamedSharding(mesh, P("data", None)))


def test_a_part_of_a_tree_is_loaded_by_its_name(tmp_path: Path):
    path = tmp_path / "tree.safetensors"
    rune.tree.save(path, {"a": [{"w": rnp.ones(3), "n": 2}, (rnp.zeros(2), None)], "a.1": rnp.ones(1)})

    assert rune.tree.load(path, part="a.0.n") == 2
    assert rune.tree.structure(rune.tree.load(path, part="a.1")) == rune.tree.structure((0, None))
    assert rune.tree.load(path, {"w": rnp.zeros(3), "n": 0}, part="a.0")["n"] == 2
    assert float(rune.tree.load(path, rnp.zeros(2), part="a.1.0")[0]) == 0.0


@pytest.mark.parametrize("part", ["", "a", "layers.2", "layers.0.w.x", "layers.", "layer"])
def test_a_part_missing_from_a_file_is_an_error_that_names_it(tmp_path: Path, part: str):
    path = tmp_path / "tree.safetensors"
    rune.tree.save(path, {"layers": [{"w": rnp.ones(3)}, rnp.ones(2)]})

    with pytest.raises(ArgumentError, match=r"cannot find the (part|leaf)"):
        rune.tree.load(path, part=part)
    with pytest.raises(ArgumentError, match=r"cannot find the (part|leaf)"):
        rune.tree.load(path, [rnp.ones(3)], part=part)


def test_part_of_a_file_without_a_tree_is_a_dict_keyed_by_the_remaining_names(tmp_path: Path):
    np.savez(tmp_path / "state.npz", **{"layers.0.w": np.ones(3, "f"), "layers.0.b": np.ones(1, "f"), "x": np.ones(2)})

    assert sorted(rune.tree.load(tmp_path / "state.npz", part="layers.0")) == ["b", "w"]
    assert rune.tree.load(tmp_path / "state.npz", part="x").shape == (2,)
