"""Copies of arrays, and results that need no computation, stay valid when the array is donated.

The functions are those that return a new array in jax 0.10.2. The copy may share the memory of the
original, which is then not reused by the donation.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "a dict, copied deeply": lambda x: copy.deepcopy({"x": x})["x"],
    "array": rnp.array,
    "asarray(copy=True)": lambda x: rnp.asarray(x, copy=True),
    "copy": rnp.copy,
    "x.copy": lambda x: x.copy(),
    "astype(copy=True)": lambda x: x.astype(x.dtype, copy=True),
    "x.flatten": lambda x: x.flatten(),
    "ravel": rnp.ravel,
    "x.real": lambda x: x.real,
    "real": rnp.real,
    "conj": rnp.conj,
    "x.conj": lambda x: x.conj(),
    "positive": rnp.positive,
    "+x": lambda x: +x,
    "clip": rnp.clip,
    "roll by 0": lambda x: rnp.roll(x, 0),
    "swapaxes of one axis": lambda x: rnp.swapaxes(x, 0, 0),
    "moveaxis to its place": lambda x: rnp.moveaxis(x, 0, 0),
    "atleast_1d": rnp.atleast_1d,
    "hstack": lambda x: rnp.hstack([x]),
    "broadcast_arrays": lambda x: rnp.broadcast_arrays(x, x)[0],
    "x.view": lambda x: x.view(x.dtype),
    "x.at[...].set": lambda x: rnp.zeros_like(x).at[...].set(x),
    "from_dlpack": rnp.from_dlpack,
    "reference": lambda x: rune.new_ref(x)[...],
    "reference that is written": lambda x: _written(x),
    "frozen reference": lambda x: rune.freeze(rune.new_ref(x)),
    "vectorize": lambda x: rnp.vectorize(lambda element: element, signature="(n)->(n)")(x),
}


def _written(x: Any) -> Any:
    ref = rune.new_ref(rnp.zeros_like(x))
    ref[...] = x
    return ref[...]


SIZES = (8, 1 << 20)  # NumPy's own allocation, and a recycled block
DEVICES = [d.name for d in rune.devices() if d.name.startswith(("cpu", "opencl", "reference"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_outlives_the_donation_of_the_original(name: str, size: int, device: str):
    numbers = np.arange(size, dtype=np.float32)
    x = rune.device_put(numbers * 1, device)
    duplicate = COPIES[name](x)

    successor = rune.jit(lambda x: x + 1, donate_argnums=0)(x)

    assert x.is_deleted()
    np.testing.assert_array_equal(duplicate, numbers)
    np.testing.assert_array_equal(successor, numbers + 1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", SIZES)
def test_an_array_outlives_the_donation_of_its_copy(size: int, device: str):
    numbers = np.arange(size, dtype=np.float32)
    x = rune.device_put(numbers * 1, device)

    successor = rune.jit(lambda x: x.at[0].set(7.0), donate_argnums=0)(x.copy())

    np.testing.assert_array_equal(x, numbers)
    assert float(successor[0]) == 7.0


def test_a_reference_outlives_the_donation_of_what_was_read_from_it():
    ref = rune.new_ref(rnp.arange(3.0))

    rune.jit(lambda x: x + 1, donate_argnums=0)(ref[...])

    np.testing.assert_array_equal(ref[...], [0, 1, 2])


@pytest.mark.parametrize("number", [True, np.True_])
def test_a_reference_to_a_truth_value_takes_a_python_or_numpy_one(number: Any):
    ref = rune.new_ref(rnp.array(False))

    ref[...] = number

    assert ref.dtype == bool
    assert bool(ref[...])


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_])
def test_rounded_integers_outlive_the_donation_of_the_original(dtype: type):
    x = rnp.array(np.array([1, 0, 1], dtype))
    outcomes = [abs(x), rnp.floor(x), rnp.ceil(x), rnp.trunc(x), rnp.nan_to_num(x)]
    outcomes += [round(x), x.round(), rnp.round(x, 2)] if dtype is not np.bool_ else []

    x.delete()

    for outcome in outcomes:
        np.testing.assert_array_equal(outcome, [1, 0, 1])


def test_a_target_network_is_read_after_the_parameters_were_donated():
    parameters = {"w": rnp.arange(3.0) + 1, "b": rnp.zeros(())}
    target = rune.tree.map(lambda x: x.copy(), parameters)
    step = rune.jit(lambda p: rune.tree.map(lambda x: x * 2 + 1, p), donate_argnums=0)

    parameters = step(step(parameters))

    np.testing.assert_array_equal(target["w"], [1, 2, 3])
    np.testing.assert_array_equal(parameters["w"], [7, 11, 15])


def test_a_random_key_is_copied():
    key = rune.random.key(7)
    duplicate = copy.deepcopy(key)

    key.delete()

    assert rune.random.key_data(duplicate).tolist() == [0, 7]
