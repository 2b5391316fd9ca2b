"""NumPy arrays as they come from files: other byte orders, unaligned data, fields, views."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.scipy import signal
from tests.support.arrays import array
from tests.support.close import same

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def _not_aligned() -> np.ndarray:
    memory = bytearray(b"\0" + X.tobytes() + b"\0" * 3)
    return np.ndarray(X.shape, np.float32, buffer=memory, offset=1)


def _field() -> np.ndarray:
    records = np.zeros(3, dtype=[("kind", "u1"), ("row", "f4", 4)])
    records["row"] = X
    return records["row"]


HOSTS: dict[str, Callable[[], np.ndarray]] = {
    "the other byte order": lambda: X.astype(">f4"),
    "memory that is not aligned": _not_aligned,
    "a field of records": _field,
    "a view in columns": lambda: np.asfortranarray(X),
    "a view backwards": lambda: X[::-1, ::-1].copy()[::-1, ::-1],
    "a row read again and again": lambda: np.broadcast_to(X[0], (3, 4)),
}
WAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "asarray": rnp.asarray,
    "an operand": lambda x: x + rnp.zeros((3, 4)),
    "an argument of jit": lambda x: rune.jit(lambda v: v + 0)(x),
    "an argument of jit with others": lambda x: rune.jit(lambda v, w: v + w)(x, rnp.zeros(4)),
    "an argument of vmap": lambda x: rune.vmap(lambda v: v + 0)(x),
    "a constant": lambda x: rune.jit(lambda v: v + x)(rnp.zeros(4)),
    "device_put": rune.device_put,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("host", HOSTS)
def test_a_numpy_array_of_any_layout_is_read(host: str, way: str):
    values = HOSTS[host]()

    same(np.array(values, np.float32), WAYS[way](values))


def test_indices_may_come_in_the_other_byte_order():
    same(X[[2, 0]], rnp.asarray(X)[np.array([2, 0], ">i4")])


def test_an_array_without_numbers_is_refused_in_either_byte_order():
    with pytest.raises(TypeError, match="array: cannot hold ndarray"):
        rnp.asarray(np.array(["2026-11-21"], ">M8[D]"))


@pytest.mark.parametrize("way", WAYS)
def test_a_masked_array_that_would_lose_its_mask_is_refused(way: str):
    with pytest.raises(TypeError, match="cannot take MaskedArray as an array"):
        WAYS[way](np.ma.masked_array(X, X > 3))


@pytest.mark.parametrize("mask", [np.ma.nomask, np.zeros(X.shape, bool)], ids=["none", "all False"])
@pytest.mark.parametrize("way", WAYS)
def test_a_masked_array_that_hides_nothing_is_its_data(way: str, mask: Any):
    same(np.asarray(WAYS[way](X)), WAYS[way](np.ma.masked_array(X, mask)))


def test_the_method_compress_takes_the_condition_first():
    same(X[[True, False, True]], rnp.asarray(X).compress(np.array([True, False, True]), axis=0))


@pytest.mark.parametrize("index", [(1, 2), (7,), (-1,), (-1, 0)])
def test_item_takes_an_index_of_the_axes_or_flat(index: tuple[int, ...]):
    assert rnp.asarray(X).item(*index) == X.item(*index)


def test_item_of_several_elements_needs_an_index():
    with pytest.raises(ValueError, match=r"item: cannot make a scalar of f32\[3,4\]"):
        rnp.asarray(X).item()


def test_whole_numbers_between_two_are_not_lost_to_rounding():
    same(np.arange(23), rnp.linspace(0, 22, 23, dtype="int64"))


# Each reads overlapping windows or rows of its argument, most as views.
WINDOWED: dict[str, Callable[[Any], Any]] = {
    "stft": lambda x: signal.stft(x, nperseg=10)[2],
    "welch": lambda x: signal.welch(x, nperseg=10)[1],
    "convolve": lambda x: rnp.convolve(x, x[:3]),
    "reduce_window": lambda x: lax.reduce_window(x, x[0] * 0, lax.max, (3,), (2,), "VALID"),
    "sort": rnp.sort,
    "cumsum": rnp.cumsum,
    "flip": lambda x: x[::-2],
}


@pytest.mark.parametrize("name", WINDOWED)
@pytest.mark.parametrize("size", [33, 100, 257])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float16, np.float32, np.float64, np.complex64, np.complex128])
def test_unpickled_data_whose_dtype_is_a_copy_give_the_results_of_others(dtype: type, size: int, name: str):
    data = np.random.default_rng(0).integers(0, 2, size).astype(dtype)
    copied = pickle.loads(pickle.dumps(data))
    assert copied.dtype.isbuiltin == 0, "NumPy's own, but another object"

    # The copy comes first: types of one shape are compared, and the first one's dtype stays.
    result, expected = (WINDOWED[name](array(x)) for x in (copied, data))

    same(np.asarray(expected), np.asarray(result))
