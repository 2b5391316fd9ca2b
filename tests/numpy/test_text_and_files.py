"""Arrays as text and as files; and functions that write in NumPy and return copies in rune."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune.numpy as rnp
from rune import dtypes
from rune.errors import ArgumentError, DtypeError
from tests.support.arrays import array
from tests.support.close import same

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
STORED = sorted((d for d in dtypes.ANY if d.isbuiltin == 1), key=dtypes.short)

# --- text -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda xp, x: xp.array2string(x, precision=1, separator=";"),
        lambda xp, x: xp.array_str(x, precision=1),
        lambda xp, x: xp.format_float_positional(x[1, 2], precision=3, trim="-"),
        lambda xp, x: xp.format_float_scientific(x[1, 2], precision=2),
        lambda xp, x: xp.binary_repr(-5, 8) + xp.base_repr(37, 5, 2),
    ],
    ids=range(5),
)
def test_printed_text_agrees_with_numpy(call: Callable[[Any, Any], str]):
    assert call(rnp, rnp.asarray(X)) == call(np, X)


def test_an_array_is_shown_with_its_type_and_device():
    assert rnp.array_repr(rnp.array([1.25]), precision=1) == "Array([1.2], f32[1], cpu:0)"


def test_printing_options_hold_for_both_libraries_and_are_put_back():
    before = rnp.get_printoptions()

    with rnp.printoptions(precision=1):
        texts = str(rnp.array([1 / 3])), str(np.array([1 / 3]))

    assert texts == ("[0.3]", "[0.3]")
    assert rnp.get_printoptions() == before == np.get_printoptions()


# --- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", STORED, ids=dtypes.short)
def test_a_saved_array_is_loaded_in_its_dtype(dtype: np.dtype, tmp_path: Path):
    x, path = array(np.ones((2, 3)).astype(dtype)), tmp_path / "x.npy"

    rnp.save(path, x)

    same(x, rnp.load(path))
    same(x, np.load(path))


@pytest.mark.parametrize("save", [rnp.savez, rnp.savez_compressed])
def test_several_arrays_are_saved_by_name(save: Callable[..., None]):
    file = io.BytesIO()

    save(file, rnp.asarray(X), b=rnp.arange(3))
    file.seek(0)
    arrays = rnp.load(file)

    assert sorted(arrays) == ["arr_0", "b"]
    same(X, arrays["arr_0"])


def test_a_dtype_that_a_file_cannot_name_is_refused():
    with pytest.raises(DtypeError, match=r"(?s)save: cannot store bf16.*view\('u16'\)"):
        rnp.save(io.BytesIO(), rnp.ones(2, "bf16"))


def test_nothing_is_unpickled():
    file = io.BytesIO()
    np.save(file, np.array([{}], object), allow_pickle=True)
    file.seek(0)

    with pytest.raises(ArgumentError, match="load: cannot read"):
        rnp.load(file, allow_pickle=True)


def test_text_files_are_read_and_written():
    file = io.StringIO()

    rnp.savetxt(file, rnp.asarray(X), delimiter=",")
    file.seek(0)

    same(X, rnp.loadtxt(file, dtype=np.float32, delimiter=","))


def test_bytes_files_and_iterators_become_arrays(tmp_path: Path):
    path = tmp_path / "x"
    path.write_bytes(X.tobytes())

    same(X.ravel(), rnp.fromfile(path, np.float32))
    same(X.ravel()[1:3], rnp.frombuffer(X.tobytes(), np.float32, count=2, offset=4))
    same(X.ravel(), rnp.fromiter(iter(X.ravel()), np.float32, count=6))
    same(X.ravel(), rnp.fromstring("0,.25,.5,.75,1,1.25", np.float32, sep=","))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rnp.frombuffer(b"abc", np.float32), "frombuffer: cannot read f32"),
        (lambda: rnp.fromiter([1], int, count=3), "fromiter: cannot read 3 numbers"),
        (lambda: rnp.fromstring("1 a", int, sep=" "), "fromstring: cannot read '1 a'"),
        (lambda: rnp.fromstring("1 2", int, sep=""), "fromstring: cannot split"),
    ],
)
def test_text_that_makes_no_numbers_is_refused(call: Callable[[], Any], message: str):
    with pytest.raises(ArgumentError, match=message):
        call()


# --- copies instead of writing ----------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (7, 3), (3, 3, 3), (0, 3), (1, 1)])
@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("values", [5.0, np.array([1.0, 2.0])], ids=["one", "two"])
def test_filling_a_diagonal_gives_what_numpy_writes(shape: tuple, wrap: bool, values: Any):
    x = np.zeros(shape, np.float32)
    result = rnp.fill_diagonal(x, values, wrap=wrap, inplace=False)

    np.fill_diagonal(x, values, wrap=wrap)

    same(x, result)


@pytest.mark.parametrize("values", [[7.0], [7.0, 8.0], [7.0] * 9], ids=len)
def test_placing_gives_what_numpy_writes(values: list[float]):
    x, mask = X.copy(), X > 0.3
    result = rnp.place(x, mask, np.array(values), inplace=False)

    np.place(x, mask, values)

    same(x, result)


@pytest.mark.parametrize("call", [lambda x: rnp.fill_diagonal(x, 0), lambda x: rnp.place(x, x > 0, rnp.ones(1))])
def test_writing_in_place_is_refused_with_the_way_out(call: Callable[[Any], Any]):
    with pytest.raises(ValueError, match=r"(?s)cannot write into an array.*inplace=False"):
        call(rnp.asarray(X))


def test_a_ufunc_updates_a_copy():
    x, at = np.arange(5.0, dtype=np.float32), np.array([1, 1, -1])
    for name in ("add", "multiply", "maximum", "subtract", "logaddexp"):
        expected = x.copy()
        getattr(np, name).at(expected, at, np.float32(2))

        result = getattr(rnp, name).at(rnp.asarray(x), at, 2.0, inplace=False)

        np.testing.assert_allclose(result, expected, rtol=1e-6)
    with pytest.raises(ValueError, match=r"add.at: cannot write into an array"):
        rnp.add.at(rnp.asarray(x), at, 1.0)
