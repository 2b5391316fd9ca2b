"""Sources: arrays in memory, mapped files, sequences, iterables, folders; and progress bars."""

from __future__ import annotations

import io
import mmap
import pickle
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import data
from rune.errors import ArgumentError, RuneError, ShapeError
from tests.support.close import same

X, N = np.arange(21.0).reshape(7, 3), np.arange(7)


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_an_npy_are_mapped(tmp_path: Path, order: Any):
    np.save(tmp_path / "x.npy", np.asarray(X, order=order))

    source = data.file(tmp_path / "x.npy")

    same(np.concatenate(list(source.batch(2))), X)
    assert isinstance(_base(source.stage.arrays), np.memmap)  # type: ignore[attr-defined]


def _base(array: np.ndarray) -> object:
    """The base of the array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array if isinstance(array, np.memmap) else array.base


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_rows_of_an_npz_are_dicts(tmp_path: Path, write: Any):
    write(tmp_path / "x.npz", x=X, n=N)

    batches = list(data.file(tmp_path / "x.npz").shuffle(0).batch(3))

    order = np.concatenate([b["n"] for b in batches])
    same(np.concatenate([b["x"] for b in batches]), X[order])


def test_rows_of_safetensors_are_dicts_of_every_dtype(tmp_path: Path):
    rune.tree.save(tmp_path / "x.safetensors", {"x": rnp.asarray(X, "bf16"), "n": rnp.asarray(N)})

    batches = list(data.file(tmp_path / "x.safetensors").batch(3).prefetch("cpu"))

    assert {b["x"].type.dtype for b in batches} == {np.dtype(ml_dtypes.bfloat16)}
    same(np.concatenate([b["n"].numpy() for b in batches]), N.astype(np.int32))
    same(np.concatenate([b["x"].numpy() for b in batches]).astype(np.float32), X.astype(np.float32))


def test_arrays_of_an_npz_that_is_not_compressed_are_mapped(tmp_path: Path):
    np.savez(tmp_path / "x.npz", x=X)

    rows = data.file(tmp_path / "x.npz").stage.arrays  # type: ignore[attr-defined]

    assert isinstance(_base(rows["x"]), memoryview | mmap.mmap | np.memmap)


def test_a_pipeline_of_a_file_is_sent_by_its_path(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.zeros((1000, 100)))

    message = pickle.dumps(data.file(tmp_path / "x.npy"))

    assert len(message) < 500
    assert len(pickle.loads(message)) == 1000


def test_an_empty_array_can_be_read(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.zeros((0, 3)))

    assert list(data.file(tmp_path / "x.npy").batch(2)) == []


@pytest.mark.parametrize("name", ["x.txt", "x"])
def test_a_file_of_another_kind_is_refused(name: str):
    with pytest.raises(RuneError, match="cannot"):
        data.file(name)


def test_a_missing_file_raises_an_os_error():
    with pytest.raises(FileNotFoundError):
        data.file("/nowhere/x.npy")


def test_arrays_of_no_rows_are_refused(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.float32(3))

    with pytest.raises(ShapeError, match="file: cannot read rows"):
        data.file(tmp_path / "x.npy")


def test_rows_of_arrays_are_views_not_copies():
    source = data.arrays(X)

    assert np.shares_memory(source[2], X)
    with pytest.raises(ValueError, match="read-only"):
        source[2][:] = 0


def test_arrays_of_rune_are_rows_as_well():
    same(next(iter(data.arrays(rnp.arange(4.0)).batch(4))), np.arange(4, dtype=np.float32))


def test_a_folder_gives_its_files_sorted(tmp_path: Path):
    for name in ("b/2.txt", "a/1.txt", "a/0.txt", "a/0.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)

    texts = data.folder(tmp_path, "**/*.txt").map(Path.read_text, workers=2)

    assert list(texts) == ["a/0.txt", "a/1.txt", "b/2.txt"]


def test_a_path_that_is_not_a_folder_is_refused(tmp_path: Path):
    with pytest.raises(ArgumentError, match="it is not a folder"):
        data.folder(tmp_path / "none")


def test_an_iterator_can_be_used_once():
    stream = data.iterable(iter(range(3)))

    assert list(stream) == [0, 1, 2]
    assert list(stream) == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_shows_where_a_restored_run_began(monkeypatch: pytest.MonkeyPatch):
    pipeline = data.sequence(range(8))
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    elements = list(data.progress(pipeline.restore({**iter(pipeline).state(), "element": 6}), "epoch 1"))

    assert elements == [6, 7]
    assert "epoch 1" in terminal.getvalue()
    assert "8/8" in terminal.getvalue()


def test_a_bar_counts_the_element_at_which_a_loop_is_left(monkeypatch: pytest.MonkeyPatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    for element in data.progress(data.sequence(range(8)).repeat()):
        if element == 2:
            break

    assert terminal.getvalue().split("\r")[-1].startswith("3it")


def test_a_bar_shows_numbers_after_it(monkeypatch: pytest.MonkeyPatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    for element in (bar := data.progress(range(2))):
        bar.set_postfix(loss=rnp.asarray(0.5) + element, step=element)

    assert "loss=1.5, step=1" in terminal.getvalue()


def test_a_bar_without_tqdm_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)

    with pytest.raises(ArgumentError, match="pip install tqdm"):
        data.progress([1, 2])


# --- displays ---------------------------------------------------------------------------------


def test_a_pipeline_prints_as_the_calls_that_made_it_without_its_data(tmp_path: Path):
    np.savez(tmp_path / "x.npz", x=X, n=N)
    rows = data.file(tmp_path / "x.npz").shuffle(0).map(rnp.sin, workers=2).batch(3, "drop").prefetch("cpu")

    assert repr(rows) == (
        "Pipeline(2 elements: file('x.npz', n i64[], x f64[3]).shuffle().map(sin, workers=2)"
        ".batch(3, 'drop').prefetch(cpu, depth=2))"
    )


def test_a_stream_and_an_endless_pipeline_print_what_they_are():
    stream = data.iterable(iter("ab")).shuffle(0, buffer=2).enumerate()

    assert repr(stream) == "Pipeline(a stream: iterable(str_ascii_iterator).shuffle(buffer=2).enumerate())"
    assert repr(data.sequence("ab").shard(1, 2).repeat()) == "Pipeline(endless: sequence(str).shard(1, 2).repeat())"


def test_a_row_of_many_leaves_prints_a_few():
    wide = data.arrays([X] * 9)

    assert repr(wide).count("f64[3]") == 6
    assert repr(wide).endswith("5 f64[3], ...))")


def test_a_run_prints_where_it_is():
    run = iter(data.sequence("abc"))
    next(run)

    assert repr(run) == "Iterator(before element 1 of 3 elements: sequence(str))"
