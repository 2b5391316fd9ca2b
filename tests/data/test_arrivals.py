"""Elements on the way to a device: their parts are converted as by `asarray`."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import data
from rune.errors import ArgumentError
from tests.support.close import same

DEVICES = [d.name for d in rune.devices() if not d.name.startswith("null")]
NUMBERS: dict[str, Any] = {
    "32 bits": np.arange(5, dtype=np.float32),
    "64 bits": np.linspace(0, 1, 7),
    "integers of 64 bits": np.arange(3) - 1,
    "the other order of bytes": np.arange(5, dtype=">f4"),
    "the other order, 64 bits": np.arange(5, dtype=">i8"),
    "every second one": np.arange(11, dtype=np.int16)[::2],
    "by columns": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "none": np.zeros((0, 3), np.float32),
    "a scalar of NumPy's": np.float64(0.1),
    "an array of rank 0": np.array(7),
    "a number": 3,
    "a float": 0.1,
    "a complex number": 1 + 2j,
    "a truth value": True,
    "halves": np.arange(3, dtype=np.float16),
    "bfloat16": np.arange(3).astype(ml_dtypes.bfloat16),
    "fp8": np.arange(3).astype(ml_dtypes.float8_e4m3fn),
    "int4": np.arange(-3, 4).astype(ml_dtypes.int4),
    "a masked array that hides nothing": np.ma.masked_array([1.0, 2.0], [False, False]),
}


def arrived(x: Any, device: str) -> Any:
    """The element as it comes."""
    (y,) = data.sequence([x]).prefetch(device)
    return y


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_arrive_as_numpy_has_them_with_32_bits(name: str, device: str):
    x = NUMBERS[name]
    narrow = {"float64": "float32", "int64": "int32", "complex128": "complex64"}
    dtype = np.asarray(x).dtype.newbyteorder("=")
    expected = np.asarray(x).astype(narrow.get(dtype.name, dtype))

    y = arrived(x, device)

    assert (type(y), y.device.name) == (rune.Array, device)
    same(expected, y.numpy())


@pytest.mark.parametrize("device", DEVICES)
def test_a_device_computes_right_results_from_them(device: str):
    double = rune.jit(lambda x: x + x)
    x = np.arange(5, dtype=">i8")

    same(np.arange(5, dtype=np.int32) * 2, double(arrived(x, device)).numpy())


@pytest.mark.parametrize("device", DEVICES)
def test_a_mask_is_never_lost_without_a_word(device: str):
    with pytest.raises(ArgumentError, match="prefetch: cannot take MaskedArray as an array"):
        arrived(np.ma.masked_array([1.0, 2.0], [False, True]), device)


@pytest.mark.parametrize("device", DEVICES)
def test_a_number_too_large_for_32_bits_is_an_error(device: str):
    with pytest.raises(OverflowError, match="cannot hold 1099511627776 in i32"):
        arrived(2**40, device)


@pytest.mark.parametrize("device", DEVICES)
def test_an_array_arrives_unrounded_with_64_bits(device: str):
    with rune.enable_x64():
        assert int(arrived(2**40, device)) == 2**40


@pytest.mark.parametrize("x", [np.array(["a", "b"]), np.array([1, None]), np.datetime64("2020"), "a", b"a", None])
@pytest.mark.parametrize("device", DEVICES)
def test_an_object_without_numbers_is_returned_unchanged(x: Any, device: str):
    assert arrived(x, device) is x


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make", [lambda: rnp.arange(3) * 1.5, lambda: rnp.asarray(2.5), lambda: rune.random.key(3)])
def test_arrays_of_rune_move_with_their_types(make: Any, device: str):
    x = make()

    y = arrived(x, device)

    assert (y.type, y.device.name, y.committed) == (x.type, device, True)
    numbers = rune.random.key_data if rune.dtypes.issubdtype(x.dtype, rune.dtypes.prng_key) else np.asarray
    same(np.asarray(numbers(x)), np.asarray(numbers(y)))


def test_a_type_that_is_weak_stays_weak():
    x: Any = rune.jit(lambda: 2.5)()

    assert x.type.weak
    assert all(arrived(x, device).type.weak for device in DEVICES)


HIDING = np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])


@pytest.mark.parametrize(
    ("name", "made_of"),
    [
        ("arrays", lambda: data.arrays({"x": HIDING})),
        ("batch", lambda: list(data.sequence([HIDING, HIDING]).batch(2))),
        ("batch", lambda: list(data.iterable([HIDING, HIDING]).batch(2))),
    ],
)
def test_a_mask_is_lost_in_no_stage(name: str, made_of: Any):
    with pytest.raises(ArgumentError, match=f"{name}: cannot take MaskedArray as an array"):
        made_of()


def test_an_array_that_hides_nothing_is_batched():
    open_ = np.ma.masked_array([1.0, 2.0], False)

    same(np.array([[1.0, 2.0], [1.0, 2.0]]), next(iter(data.sequence([open_, open_]).batch(2))))
