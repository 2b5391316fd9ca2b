"""Integers on every executor: operations on the edges of every dtype, against Python's integers.

The edges are operations that languages define differently or not at all: division by 0, the least
integer over -1, shifts by the width and by negative amounts, negative powers, the magnitude of the
least integer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, lax
from rune.backends import Device
from tests.support.sampling import each_value, in_turn, without

DTYPES = sorted(dtypes.INTEGER - {dtypes.i4, dtypes.u4}, key=dtypes.short)
DEVICES = [d for d in rune.devices() if d.target.backend != "null"]


def quotient(a: int, b: int, bits: int) -> int:
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int, bits: int) -> int:
    return a - quotient(a, b, bits) * b


def shifted_left(a: int, b: int, bits: int) -> int:
    return a << b if 0 <= b < bits else 0


def shifted_right(a: int, b: int, bits: int) -> int:
    return a >> (b if 0 <= b < bits else bits)


def power(a: int, b: int, bits: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << bits)
    return a ** (b % 2) if a in (1, -1) else 0


BINARY: dict[str, Callable[[int, int, int], int]] = {
    "div": quotient,
    "rem": remainder,
    "pow": power,
    "shift_left": shifted_left,
    "shift_right": shifted_right,
    "max": lambda a, b, bits: max(a, b),
    "min": lambda a, b, bits: min(a, b),
}
UNARY: dict[str, Callable[[int, int], int]] = {
    "abs": lambda a, bits: abs(a),
    "sign": lambda a, bits: (a > 0) - (a < 0),
    "population_count": lambda a, bits: (a % (1 << bits)).bit_count(),
    "clz": lambda a, bits: bits - (a % (1 << bits)).bit_length(),
}


def edges(dtype: np.dtype) -> list[int]:
    info, bits = np.iinfo(dtype), 8 * dtype.itemsize
    low, high = int(info.min), int(info.max)
    near = {-3, -2, -1, 0, 1, 2, 3, 7, bits - 1, bits, bits + 1}
    return sorted({x for x in near | {low, low + 1, high - 1, high, high // 3} if low <= x <= high})


def operation(name: str, dtype: np.dtype) -> Callable[..., rune.Array]:
    if name == "shift_right":
        name += "_arithmetic" if dtype in dtypes.SIGNED else "_logical"
    return getattr(lax, name)


def wrapped(numbers: list[int], dtype: np.dtype) -> list[int]:
    """The low bits of Python's integers, read as the dtype."""
    bits = 8 * dtype.itemsize
    words = np.array([n % (1 << bits) for n in numbers], f"u{dtype.itemsize}")
    return words.view(dtype).tolist()


def label(x: Device | np.dtype) -> str:
    return x.name if isinstance(x, Device) else dtypes.short(x)


@pytest.fixture(autouse=True)
def wide_integers():
    with rune.enable_x64():
        yield


def crossed(test: Any) -> Any:
    """Every dtype on some executor, and every executor with some dtypes."""
    is_missing = without(lambda device, dtype: dtype not in device.target.program_dtypes)
    by_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=label)
    by_device = pytest.mark.parametrize("device", DEVICES, ids=label)
    return each_value()(in_turn("dtype")(is_missing(by_device(by_dtype(test)))))


@crossed
def test_operations_on_two_integers_mean_the_same_on_every_executor(device: Device, dtype: np.dtype):
    pairs = list(itertools.product(edges(dtype), repeat=2))
    a, b = (np.array(side, dtype) for side in zip(*pairs, strict=True))

    results = rune.jit(lambda a, b: {n: operation(n, dtype)(a, b) for n in BINARY}, device=device)(a, b)

    for name, meaning in BINARY.items():
        expected = wrapped([meaning(x, y, 8 * dtype.itemsize) for x, y in pairs], dtype)
        assert np.asarray(results[name]).tolist() == expected, name


@crossed
def test_operations_on_one_integer_mean_the_same_on_every_executor(device: Device, dtype: np.dtype):
    numbers = edges(dtype)
    a = np.array(numbers, dtype)

    results = rune.jit(lambda a: {n: operation(n, dtype)(a) for n in UNARY}, device=device)(a)

    for name, meaning in UNARY.items():
        expected = wrapped([meaning(x, 8 * dtype.itemsize) for x in numbers], dtype)
        assert np.asarray(results[name]).tolist() == expected, name


@crossed
def test_constants_are_special_as_operands_are(device: Device, dtype: np.dtype):
    numbers, constants = edges(dtype), [c for c in edges(dtype) if abs(c) < 70]
    names = ["div", "rem", "shift_left", "shift_right"]
    a = np.array(numbers, dtype)

    def by_constants(a: rune.Array) -> dict[str, list[rune.Array]]:
        return {n: [operation(n, dtype)(a, np.full(a.shape, c, dtype)) for c in constants] for n in names}

    results = rune.jit(by_constants, device=device)(rune.numpy.asarray(a))

    for name in names:
        for c, actual in zip(constants, results[name], strict=True):
            expected = [BINARY[name](x, c, 8 * dtype.itemsize) for x in numbers]
            assert np.asarray(actual).tolist() == wrapped(expected, dtype), (name, c)


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_one_kernel_holds_many_powers_of_signed_and_of_unsigned_numbers(device: Device):
    x = np.array([-(2**31), -5, -2, -1, 0, 1, 2, 3, 7, 46_341, 2**31 - 1], np.int32)
    masks = range(-12, 0)  # exponents of both signs; more of each than a kernel writes out

    def powers(x: rune.Array) -> list[rune.Array]:
        return [lax.pow(x, x & np.array(mask, np.int32).astype(x.dtype)) for mask in masks]

    of_integers, of_words = rune.jit(
        lambda x: (powers(x), powers(lax.bitcast_convert_type(x, "uint32"))), device=device
    )(x)

    for mask, actual in zip(masks, of_integers, strict=True):
        assert np.asarray(actual).tolist() == wrapped([power(v, v & mask, 32) for v in x.tolist()], np.dtype("int32"))
    words = x.view(np.uint32).tolist()
    for mask, actual in zip(masks, of_words, strict=True):
        assert np.asarray(actual).tolist() == [power(v, v & mask % 2**32, 32) for v in words]
