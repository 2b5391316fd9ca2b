"""x[index] and x.at[index]: random indices of every kind, against NumPy's reading and ufunc.at.

An index is drawn entry by entry: integers, slices with any step, an ellipsis, new axes, index
arrays that broadcast, masks. Positions out of bounds follow the mode; the oracle is NumPy with the
positions clipped, wrapped or left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import near, same

SEEDS = range(40)
UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}


def drawn_shape(rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(int(d) for d in rng.integers(1, 5, rng.integers(1, 4)))


def drawn_index(rng: np.random.Generator, shape: tuple[int, ...], *, masks: bool = True) -> Any:
    """An index into an array of a shape, at most one entry an axis."""
    batch = [(), (3,), (2, 1), (2, 3)][rng.integers(0, 4)]
    entries: list[Any] = []
    axes = list(shape[: rng.integers(0, len(shape) + 1)])
    while axes:
        size = axes.pop(0)
        kind = rng.integers(0, 7)
        if kind == 0:
            entries.append(int(rng.integers(-size, size)))
        elif kind in (1, 2):
            entries.append(drawn_slice(rng, size))
        elif kind in (3, 4):
            entries.append(rng.integers(-size, size, batch))
        elif kind == 5 and masks and not batch:
            entries.append(rng.integers(0, 2, size).astype(bool))
        elif masks and not batch and axes and not any(isinstance(e, np.ndarray) for e in entries):
            entries.append(rng.integers(0, 2, (size, axes.pop(0))).astype(bool))
        else:
            entries.append(slice(None))
    for extra in (None, Ellipsis):
        if rng.integers(0, 3) == 0:
            # After an index for every axis an ellipsis covers none.
            entries.insert(int(rng.integers(0, len(entries) + 1)) if extra is None else len(entries), extra)
    return tuple(entries)


def drawn_slice(rng: np.random.Generator, size: int) -> slice:
    ends = [None if rng.integers(0, 3) == 0 else int(rng.integers(-size - 2, size + 3)) for _ in range(2)]
    step = int(rng.choice([-3, -2, -1, 1, 1, 2, 3]))
    return slice(ends[0], ends[1], step)


def ours(index: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index with arrays of rune; masks stay, since they are constants."""
    return tuple(rnp.asarray(e) if isinstance(e, np.ndarray) and e.dtype != bool else e for e in index)


def drawn(seed: int, *, masks: bool = True) -> tuple[np.random.Generator, np.ndarray, Any]:
    """A random generator, an array and an index that NumPy can use."""
    rng = np.random.default_rng(seed)
    while True:
        shape = drawn_shape(rng)
        x = rng.uniform(0.5, 2.0, shape).astype(np.float32)
        index = drawn_index(rng, shape, masks=masks)
        try:
            x[index]
        except IndexError:  # masks of different counts: an error in both, tested elsewhere
            continue
        return rng, x, index


@pytest.mark.parametrize("seed", SEEDS)
def test_reading_by_any_index_agrees_with_numpy(seed: int):
    for k in range(10):
        _, x, index = drawn(1000 * seed + k)

        same(x[index], rnp.asarray(x)[ours(index)])
        same(x[index], rnp.asarray(x).at[index].get(mode="promise_in_bounds"))


@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize("seed", SEEDS[:10])
def test_an_update_by_any_index_agrees_with_numpys_ufunc_at(seed: int, name: str):
    for k in range(4):
        rng, x, index = drawn(1000 * seed + k)
        values = rng.uniform(0.5, 2.0, x[index].shape).astype(np.float32)
        expected = x.copy()
        UFUNCS[name].at(expected, index, values)

        result = getattr(rnp.asarray(x).at[ours(index)], name)(values)

        near(expected, result, relative=1e-5, why="powers and quotients are multiplied first")


@pytest.mark.parametrize("seed", SEEDS)
def test_setting_by_any_index_agrees_with_numpys_assignment(seed: int):
    for k in range(5):
        rng, x, index = drawn(1000 * seed + k)
        number = np.float32(rng.uniform(3, 4))
        expected = x.copy()
        expected[index] = number

        same(expected, rnp.asarray(x).at[ours(index)].set(number))


@pytest.mark.parametrize("seed", SEEDS[:12])
def test_a_compiled_update_equals_the_eager_one_for_any_index(seed: int):
    rng, x, index = drawn(seed, masks=False)
    values = rng.uniform(0.5, 2.0, x[index].shape).astype(np.float32)
    places = [k for k, e in enumerate(index) if isinstance(e, np.ndarray)]

    def update(x: Any, values: Any, *arrays: Any) -> Any:
        arrays_at = dict(zip(places, arrays, strict=True))
        at = tuple(arrays_at.get(k, e) for k, e in enumerate(index))
        return x[at], x.at[at].add(values), x.at[at].max(values)

    args = (rnp.asarray(x), rnp.asarray(values), *(rnp.asarray(index[k]) for k in places))
    near(update(*args), rune.jit(update)(*args), relative=1e-6, why="other order of sums")


# --- modes ------------------------------------------------------------------------------------

MODES = ("clip", "wrap", "drop", "fill", "promise_in_bounds", None)


def positions_by_mode(at: np.ndarray, size: int, mode: str | None) -> np.ndarray:
    """The positions that a mode names; -1 for none."""
    if mode == "wrap":
        return at % size
    inside = np.where(at < 0, at + size, at)
    if mode == "clip":
        return np.clip(inside, 0, size - 1)
    return np.where((inside >= 0) & (inside < size), inside, -1)


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("promise", ["", "indices_are_sorted", "unique_indices"])
@pytest.mark.parametrize("name", ["set", *UFUNCS, "apply"])
def test_positions_out_of_bounds_are_written_according_to_the_mode(name: str, mode: str | None, promise: str):
    rng = np.random.default_rng(len(name))
    x = rng.uniform(0.5, 2.0, 6).astype(np.float32)
    at = np.array([-9, -2, 1, 2, 11] if promise else [-9, -2, 1, 1, 8, 14])
    places = positions_by_mode(at, 6, mode)
    values = rng.uniform(0.5, 2.0, len(at)).astype(np.float32)
    expected = x.copy()
    for place, number in zip(places, values, strict=True):
        if place >= 0:
            expected[place] = written(name, expected[place], number)

    update = getattr(rnp.asarray(x).at[at], name)
    how = {promise: True} if promise else {}
    operands = (lambda v: v * v,) if name == "apply" else (values,)

    near(expected, update(*operands, mode=mode, **how), relative=1e-5, why="products first")


def written(name: str, old: Any, number: Any) -> Any:
    """An element after one update."""
    if name == "set":
        return number
    return old * old if name == "apply" else UFUNCS[name](old, number)


@pytest.mark.parametrize("mode", MODES[:-1])
def test_positions_out_of_bounds_are_read_according_to_the_mode(mode: str):
    x, at = np.arange(6.0, dtype=np.float32), np.array([-9, -2, 1, 8, 14])
    places = positions_by_mode(at, 6, mode)
    read = np.where(places >= 0, x[places], np.float32(np.nan))
    if mode == "promise_in_bounds":
        read = x[positions_by_mode(at, 6, "clip")]

    same(read, rnp.asarray(x).at[at].get(mode=mode))
    same(read, rune.jit(lambda x, i: x.at[i].get(mode=mode))(rnp.asarray(x), at))
