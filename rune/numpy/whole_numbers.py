"""Divisors and multiples of integers, and bits packed into bytes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np

from rune import config, dtypes, ops
from rune.array import Array, as_array
from rune.backends.cpu.meanings import bits
from rune.control import while_loop
from rune.core.interpreter import is_evaluating, type_of
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError, DtypeError
from rune.numpy.arguments import along, static_int, value
from rune.numpy.composites import LARGE, is_large
from rune.numpy.operands import operands_alone
from rune.ops import conventions as c
from rune.ops import statistics as st
from rune.ops.promote import broadcast_together, constant, promoted
from rune.transforms.compile.jit import Jitted, jit
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike

LONG = 1 << 14  # elements from which NumPy is as fast as a specialised function
_ORDERS = ("big", "little")
_WEIGHTS = (128, 64, 32, 16, 8, 4, 2, 1)


def _magnitudes(name: str, x1: ArrayLike, x2: ArrayLike) -> list[Any]:
    """The magnitudes of two arrays of integers, in one dtype and one shape."""
    numbers = promoted(name, value(name, x1), value(name, x2))
    if type_of(numbers[0]).dtype not in dtypes.INTEGER:
        raise DtypeError(f"{name}: cannot take {type_of(numbers[0])} (integer dtype required)")
    shape = type_of(numbers[0]).shape or type_of(numbers[1]).shape
    spread = [x if type_of(x).shape == shape else ops.broadcast(x, shape=shape, axes=()) for x in numbers]
    return [c.absolute(x) for x in spread]


@tiered
@operands_alone
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor, by Euclid's algorithm; gcd(0, n) is |n|.

    Shapes: broadcast together. Types: integers, promoted together.
    Errors: DtypeError if an argument is not an integer.
    Source: Knuth, The Art of Computer Programming 2, 4.5.2, algorithm A.

    >>> import rune.numpy as rnp
    >>> rnp.gcd(rnp.array([12, -18]), 8)
    Array([4, 2], i32[2], cpu:0)
    """
    return _gcd(*_magnitudes("gcd", x1, x2))


def _gcd(x: Array, y: Array) -> Array:
    def unfinished(pair: tuple[Array, Array]) -> Array:
        return st.any(ops.ne(pair[1], constant(0, pair[1])))

    def step(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        large, small = pair
        zero, one = constant(0, small), constant(1, small)
        is_divisor = ops.eq(small, zero)
        remainder = ops.rem(large, ops.select(is_divisor, one, small))
        return ops.select(is_divisor, large, small), ops.select(is_divisor, zero, remainder)

    # The least integer is its own magnitude, and negative: so are the remainders of it.
    return c.absolute(while_loop(unfinished, step, (x, y))[0])


@tiered
@operands_alone
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple; 0 where one of the numbers is 0.

    Shapes: broadcast together. Types: integers, promoted together.
    Errors: DtypeError if an argument is not an integer.

    >>> import rune.numpy as rnp
    >>> rnp.lcm(rnp.array([4, 0]), 6)
    Array([12,  0], i32[2], cpu:0)
    """
    x, y = _magnitudes("lcm", x1, x2)
    divisor = _gcd(x, y)
    safe = ops.select(ops.eq(divisor, constant(0, divisor)), constant(1, divisor), divisor)
    return ops.mul(ops.div(x, safe), y)


# --- bits -------------------------------------------------------------------------------------


def _is_long(a: ArrayLike) -> TypeGuard[Array]:
    """Whether NumPy computes with an array: it needs one instruction for a vector of bits."""
    return type(a) is Array and is_evaluating() and is_large((a,), least=LONG)


def _is_last(axis: int | None, x: Array) -> bool:
    return axis is None or (type(axis) is int and axis in (-1, len(x.type.shape) - 1))


def _packed_at_once(x: Array, axis: int | None, bitorder: str) -> Array:
    buffer = x.buffer if axis is not None else x.buffer.reshape(-1)
    if buffer.size < LARGE or not bits().is_one_row(buffer):
        return _by_numpy(np.packbits, x, axis, bitorder)
    result = bits().pack(buffer, bitorder)
    return Array(result, ArrayType(result.shape, dtypes.u8), x.place)


def _by_numpy(function: Callable[..., np.ndarray], x: Array, axis: int | None, bitorder: str) -> Array:
    result = function(x.buffer, axis, bitorder=bitorder)
    return Array(result, ArrayType(result.shape, dtypes.u8), x.place)


def _order(name: str, bitorder: str) -> tuple[int, ...]:
    if bitorder not in _ORDERS:
        raise ArgumentError(f"{name}: cannot use bitorder={bitorder!r} ('big' or 'little')")
    return _WEIGHTS if bitorder == "big" else _WEIGHTS[::-1]


_TRUTHS = dtypes.INTEGER | {dtypes.bool_}


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Eight truths along an axis as one u8; the last byte is filled up with zeros.

    Shapes: [*A, N, *B] -> [*A, ceil(N / 8), *B]; flattened first for axis None.
    Types:  bools and integers -> u8.
    Errors: DtypeError unless the dtype is bool or an integer.

    >>> import rune.numpy as rnp
    >>> rnp.packbits(rnp.array([1, 0, 1]))
    Array([160], u8[1], cpu:0)
    """
    if _is_long(a) and a.type.dtype in _TRUTHS and _is_last(axis, a) and bitorder in _ORDERS:
        return _packed_at_once(a, axis, bitorder)
    return _packbits(a, axis, bitorder)


@tiered
def _packbits(a: ArrayLike, axis: int | None, bitorder: str) -> Array:
    weights = _order("packbits", bitorder)
    x = value("packbits", a)
    if type_of(x).dtype not in _TRUTHS:
        raise DtypeError(f"packbits: cannot pack {type_of(x)} (bool or integer dtype required)")
    if axis is None and type_of(x).ndim != 1:
        x = c.reshape(x, -1)
    at = 0 if axis is None else c.normalised_axis("packbits", axis, type_of(x))
    if not is_evaluating() or not is_large((x,)):
        return _packed(x, at, weights)
    with config.setting(symbolic="auto"):  # after a second size, nothing is compiled again
        return _compiled(at, weights)(x)


def _packed(x: Value, axis: int, weights: tuple[int, ...]) -> Array:
    size, zeros = type_of(x).shape[axis], (0,) * type_of(x).ndim
    truth = c.astype(c.astype(x, dtypes.bool_), dtypes.u8)
    high = (*zeros[:axis], -size % 8, *zeros[axis + 1 :])
    full, count = ops.pad(truth, constant(0, truth), low=zeros, high=high, interior=zeros), (size + 7) // 8
    if axis < len(zeros) - 1:
        return _weighted(full, axis, count, weights)
    # By halves: vectors of four neighbours are summed several times as fast as those of eight.
    halves = _weighted(full, axis, count * 2, tuple(w for w in weights if w < 16))
    return _weighted(halves, axis, count, tuple(w for w in weights if w in (1, 16)))


@functools.cache
def _compiled(axis: int, weights: tuple[int, ...]) -> Jitted[[Value], Array]:
    """Pack an axis other than the last, whose elements are far apart in memory, by one kernel."""

    def packbits(x: Value) -> Array:
        return _packed(x, axis, weights)

    return jit(packbits)


def _weighted(x: Array, axis: int, count: Size, weights: tuple[int, ...]) -> Array:
    """Weighted sums of groups of neighbours along an axis, one neighbour for each weight."""
    shape, row = type_of(x).shape, _row(weights)
    groups = ops.reshape(x, shape=(*shape[:axis], count, len(weights), *shape[axis + 1 :]))
    column = c.reshape(row, (len(weights), *(1,) * (len(shape) - axis - 1)))
    return st.sum(ops.mul(*broadcast_together("packbits", [groups, column])), axis + 1, dtypes.u8)


def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The eight bits of each u8 along an axis, as 0 and 1; `count` of them, or all but -count.

    Shapes: [*A, N, *B] -> [*A, 8 N, *B]; flattened first for axis None. Types: u8.
    Errors: DtypeError unless the dtype is u8.

    >>> import rune.numpy as rnp
    >>> rnp.unpackbits(rnp.array([160], "uint8"), count=3)
    Array([1, 0, 1], u8[3], cpu:0)
    """
    if _is_long(a) and a.type.dtype == dtypes.u8 and count is None and _is_last(axis, a) and bitorder in _ORDERS:
        return _by_numpy(np.unpackbits, a, axis, bitorder)
    return _unpackbits(a, axis, count, bitorder)


@tiered
def _unpackbits(a: ArrayLike, axis: int | None, count: int | None, bitorder: str) -> Array:
    weights = _order("unpackbits", bitorder)
    x = value("unpackbits", a)
    if type_of(x).dtype != dtypes.u8:
        raise DtypeError(f"unpackbits: cannot unpack {type_of(x)} (u8 required)")
    x, last = _axis_last("unpackbits", x, axis)
    *lead, size = type_of(x).shape
    set_bits = ops.logical_and(*broadcast_together("unpackbits", [c.expand_dims(x, -1), _row(weights)]))
    truths = ops.cast(ops.ne(set_bits, constant(0, set_bits)), dtypes.u8)
    flat = ops.reshape(truths, shape=(*lead, 8 * size))
    if count is not None:
        flat = _counted(flat, static_int("unpackbits", "a count", count))
    return c.swapaxes(flat, last, -1)


def _counted(x: Array, count: int) -> Array:
    """The first `count` elements of the last axis, padded with zeros; or all but -count."""
    size = type_of(x).shape[-1]
    bit_count = count if count >= 0 else size + count
    if bit_count < 0:
        raise ArgumentError(f"unpackbits: cannot leave out {-count} of {size} bits")
    zeros = (0,) * (type_of(x).ndim - 1)
    return ops.pad(x, constant(0, x), low=(*zeros, 0), high=(*zeros, bit_count - size), interior=(*zeros, 0))


def _row(weights: tuple[int, ...]) -> Array:
    return as_array(np.array(weights, np.uint8))


def _axis_last(name: str, x: ArrayLike, axis: int | None) -> tuple[Array, int]:
    """The array with an axis exchanged for the last one, and where that axis was."""
    x, at = along(name, x, axis)
    return c.swapaxes(x, at, -1), at


__all__ = ["gcd", "lcm", "packbits", "unpackbits"]
