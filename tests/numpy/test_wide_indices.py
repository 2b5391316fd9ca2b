"""Positions of any integer dtype mean the same as Python's integers, in every mode."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax, nn
from tests.support.close import same

SIZE = 7
X = np.arange(10, 10 + SIZE, dtype=np.float32)
HARD = {
    "uint64": (0, 6, 7, 2**31, 2**32 + 1, 2**63 - 1, 2**63, 2**63 + 3, 2**64 - 2, 2**64 - 1),
    "int64": (0, -1, -7, -8, 7, 2**31 + 3, -(2**31) - 2, 2**32 + 1, 2**63 - 1, -(2**63)),
    "uint32": (0, 6, 7, 2**31 - 1, 2**31, 2**32 - 1),
    "int8": (0, 6, 7, 127, -1, -7, -8, -128),
    "uint8": (0, 6, 7, 128, 255),
}
WAYS = {
    "eagerly": lambda f: f,
    "compiled": rune.jit,
    "by the reference": functools.partial(rune.jit, device="reference"),  # which checks every index
}
MODES = ("wrap", "clip", "fill")


def place(position: int, mode: str, counts_back: bool = True) -> int | None:
    """The element that a position refers to, None out of bounds."""
    if mode == "wrap":
        return position % SIZE
    position += SIZE if counts_back and position < 0 else 0
    if mode == "clip":
        return min(max(position, 0), SIZE - 1)
    return position if 0 <= position < SIZE else None


def read(dtype: str, mode: str, counts_back: bool = True) -> np.ndarray:
    places = [place(p, mode, counts_back) for p in HARD[dtype]]
    return np.array([np.nan if p is None else X[p] for p in places], np.float32)


def written(dtype: str, mode: str) -> np.ndarray:
    out = np.array(X)
    out[[p for p in (place(p, mode) for p in HARD[dtype]) if p is not None]] = 1
    return out


def positions(dtype: str) -> Any:
    return rnp.asarray(np.array(HARD[dtype], dtype), dtype=dtype)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", HARD)
def test_wide_positions_are_read_where_integers_say(dtype: str, mode: str, way: str):
    def reads(x: Any, i: Any) -> Any:
        return x.at[i].get(mode=mode), rnp.take(x, i, mode=mode)

    of_index, elements = WAYS[way](reads)(rnp.asarray(X), positions(dtype))

    same(read(dtype, mode), np.asarray(of_index))
    # np.take's "clip" does not count negative positions from the end.
    same(read(dtype, mode, mode != "clip"), np.asarray(elements))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", HARD)
def test_wide_positions_are_written_where_integers_say(dtype: str, mode: str, way: str):
    def writes(x: Any, i: Any) -> Any:
        return x.at[i].set(1.0, mode=mode)

    same(written(dtype, mode), np.asarray(WAYS[way](writes)(rnp.asarray(X), positions(dtype))))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["uint64", "int64"])
def test_wide_positions_of_numpy_are_not_narrowed_before_their_axis_is_known(dtype: str, mode: str):
    x, i = rnp.asarray(X), np.array(HARD[dtype], dtype)

    same(read(dtype, mode), np.asarray(x.at[i].get(mode=mode)))
    same(read(dtype, mode, mode != "clip"), np.asarray(rnp.take(x, i, mode=mode)))
    same(written(dtype, mode), np.asarray(x.at[i].set(1.0, mode=mode)))
    same(read(dtype, mode), np.asarray(rnp.take_along_axis(x, i, 0, mode=mode)))
    if mode != "clip":
        put = rnp.put(x, i, 1.0, mode=mode, inplace=False)
        same(written(dtype, mode), np.asarray(put))


def start(position: int, window: int) -> int:
    position += SIZE if position < 0 else 0
    return min(max(position, 0), SIZE - window)


@pytest.mark.parametrize("lanes", [lambda f: f, lambda f: _of_lanes(f)], ids=["plain", "vmap"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", HARD)
def test_windows_start_where_integers_say(dtype: str, way: str, lanes: Callable):
    def window(x: Any, i: Any) -> Any:
        return lax.dynamic_slice(x, (i,), (3,))

    function = WAYS[way](lanes(window))
    for position in HARD[dtype]:
        at = start(position, 3)
        elements = function(rnp.asarray(X), rnp.asarray(np.array(position, dtype), dtype=dtype))
        same(X[at : at + 3], np.asarray(elements))


def _of_lanes(f: Callable) -> Callable:
    many = rune.vmap(f, in_axes=(None, 0))
    return lambda x, i: many(x, i[None])[0]


@pytest.mark.parametrize("way", WAYS)
def test_labels_out_of_range_are_not_counted(way: str):
    labels = positions("uint64")
    reference = np.zeros(SIZE, np.int32)
    for label in HARD["uint64"]:
        reference[label : label + 1] += 1

    counts = WAYS[way](lambda i: rnp.bincount(i, length=SIZE))(labels)
    hot = WAYS[way](lambda i: nn.one_hot(i, SIZE, dtype="int32").sum(0))(labels)

    same(reference, np.asarray(counts))
    same(reference, np.asarray(hot))


def test_small_integers_are_positions_along_axes_longer_than_their_dtype():
    i = rnp.asarray(np.array([100, -1], np.int8))

    rows, columns = rnp.unravel_index(i, (10, 30))

    assert (rows.tolist(), columns.tolist()) == ([3, 9], [10, 29])
    assert rnp.ravel_multi_index((i[:1], i[:1]), (200, 200)).tolist() == [20100]
    assert lax.dynamic_slice(rnp.arange(300), (i[1],), (1,)).tolist() == [299]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_positions_along_axes_have_the_dtype_of_flat_positions(dtype: str, order: Literal["C", "F"]):
    i = np.array([0, 3, 5, 4])

    positions = rnp.unravel_index(rnp.asarray(i).astype(dtype), (2, 3), order)

    assert [p.dtype for p in positions] == [np.dtype(dtype)] * 2
    np.testing.assert_array_equal([p.tolist() for p in positions], np.unravel_index(i, (2, 3), order))


@pytest.mark.parametrize(("size", "dtype"), [(127, "int8"), (128, "int32"), (255, "int32")])
def test_positions_beyond_the_dtype_of_flat_positions_are_wider(size: int, dtype: str):
    rows, columns = rnp.unravel_index(rnp.array([-1], "int8"), (size, 2))

    assert (rows.dtype, rows.tolist(), columns.tolist()) == (dtype, [size - 1], [1])


# --- narrow positions in long axes ----------------------------------------------------------------

LONG = np.arange(300.0, dtype=np.float32)
NARROW: dict[str, Any] = {
    "delete": lambda xp, x, i: xp.delete(x, i),
    "insert": lambda xp, x, i: xp.insert(x, i, 7.0),
    "take": lambda xp, x, i: xp.take(x, i),
    "getitem": lambda xp, x, i: x[i],
    "take_along_axis": lambda xp, x, i: xp.take_along_axis(x, i, 0),
    "ravel_multi_index": lambda xp, x, i: xp.ravel_multi_index((i, i), (300, 400), mode="wrap"),
    "bincount": lambda xp, x, i: xp.bincount(xp.abs(i.astype(np.int32)), minlength=300),
}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
@pytest.mark.parametrize("name", NARROW)
def test_positions_whose_dtype_does_not_hold_the_size_of_the_axis_select_as_numpys(name: str, dtype: type):
    positions = np.array([5, 127, -1], np.int64).astype(dtype)
    positions = np.where(positions > 299, 299, positions).astype(dtype)  # 65535 is out of bounds

    result = NARROW[name](rnp, rnp.asarray(LONG), rnp.asarray(positions))

    assert [*np.asarray(result)] == [*NARROW[name](np, LONG, positions.astype(np.int64))]
