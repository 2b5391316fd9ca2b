"""Transforms in rune's own operations, for every executor: what `fft` becomes on a device.

Everything reduces to one forward transform of pairs (real, imaginary) along one axis. The inverse
is the same with the parts exchanged before and after; several axes are transformed one after
another; a real transform of even length is a complex one of half the length, of neighbours taken as
parts.

Source: the real transform, Sorensen, Jones, Heideman & Burrus 1987, "Real-valued fast Fourier
transform algorithms", IEEE Trans. ASSP 35(6), §II.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal, literal_like, type_of
from rune.core.lower import ByRoutine, Routine
from rune.core.primitive import Direct
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.dims import Size, product
from rune.ops import arithmetic as a
from rune.ops import complex_numbers as c
from rune.ops import pairs
from rune.ops.creation import iota
from rune.ops.family import reshape, size_value, zeros_like
from rune.ops.fourier.along import cut, join, reverse, shape_of, split_axis, spread, times
from rune.ops.fourier.in_memory import call_in_memory, is_in_memory, is_odd_routine, type_in_memory
from rune.ops.fourier.kinds import Axes, transform_type
from rune.ops.fourier.lines import is_routine, reciprocal, transform_lines
from rune.ops.fourier.roots import indices, unit_roots
from rune.ops.movement import concatenate, part
from rune.ops.movement import reverse as mirrored
from rune.ops.pairs import Pair
from rune.ops.repeat import repeat
from rune.ops.windows import dynamic_slice

if TYPE_CHECKING:
    from rune.array import Array


def expand(x: Value, *, kind: str, axes: Axes, odd: bool) -> Array:
    """The transform `kind` of x along `axes`."""
    return fft_of_axes(x, kind=kind, axes=axes, odd=odd)


def _by_parts(x: Value, *, kind: str, axes: Axes, odd: bool) -> Array:
    """The transform by stages of kernels."""
    *others, last = axes
    if kind in ("fft", "ifft"):
        return _complex(x, kind, axes)
    if kind == "rfft":
        return c.complex(*_forward(_of_real(x, last), tuple(others)))
    spectrum = _scaled(_inverse(_parts(x), tuple(others)), tuple(others))
    return _to_real(spectrum, last, odd)


def _complex(x: Value, kind: str, axes: Axes) -> Array:
    """The transform of complex numbers by their parts."""
    if kind == "fft":
        return c.complex(*_forward(_parts(x), axes))
    return c.complex(*_scaled(_inverse(_parts(x), axes), axes))


def _parts(x: Value) -> Pair:
    return c.real(x), c.imag(x)


def _swapped(x: Pair) -> Pair:
    return x[1], x[0]


def _forward(x: Pair, axes: Sequence[int]) -> Pair:
    """The transform along each of `axes`."""
    for axis in reversed(axes):
        x = _transform(x, axis)
    return x


def _inverse(x: Pair, axes: Sequence[int]) -> Pair:
    """The inverse transform, without the division by the number of elements."""
    return _swapped(_forward(_swapped(x), axes))


def _scaled(x: Pair, axes: Sequence[int]) -> Pair:
    return pairs.times(x, reciprocal(x[0], product(shape_of(x)[axis] for axis in axes)))


def _transform(x: Pair, axis: int) -> Pair:
    """The transform along one axis."""
    n = shape_of(x)[axis]
    if not isinstance(n, int):
        return _by_summation(x, axis)
    return transform_lines(x, axis)


def _by_summation(x: Pair, axis: int) -> Pair:
    """By the definition, for a length known only at run time: n steps over n elements."""
    shape, dtype = shape_of(x), type_of(x[0]).dtype
    n = shape[axis]
    count = size_value(n, dtypes.i32)
    k = iota(shape=(n,), axis=0, dtype=dtypes.i32)
    sizes = tuple(1 if d == axis else size for d, size in enumerate(shape))
    others = tuple(d for d in range(len(shape)) if d != axis)

    def step(j: Value, turns: Value, *sums: Value) -> list[Value]:
        starts = [j if d == axis else np.int32(0) for d in range(len(shape))]
        row = (dynamic_slice(v, *starts, sizes=sizes) for v in x)
        real, imag = (reshape(v, shape=tuple(shape[d] for d in others)) for v in row)
        terms = times(spread((real, imag), others, shape), unit_roots(turns, count, dtype), axis)
        # turns = jk mod n, increased by k for the next j: products would not fit in 32 bits.
        after = a.add(turns, k)
        after = a.select(a.lt(after, count), after, a.sub(after, count))
        return [after, *map(a.add, sums, terms)]

    _, *sums = repeat(n, step, zeros_like(k), *map(zeros_like, x))
    return sums[0], sums[1]


# --- real transforms ----------------------------------------------------------------------------


def _of_real(x: Value, axis: int) -> Pair:
    """Frequencies 0 to n//2 of real numbers."""
    n = type_of(x).shape[axis]
    if not isinstance(n, int) or n % 2:
        return _of_real_whole(x, axis=axis)
    real, imag = line_rfft(x, axis=axis)
    return real, imag


def _of_real_whole(x: Value, *, axis: int) -> Pair:
    """The same, cut from all n frequencies."""
    spectrum = _transform((x, zeros_like(x)), axis)
    return cut(spectrum, axis, 0, type_of(x).shape[axis] // 2 + 1)


def _of_real_halves(x: Value, *, axis: int) -> Pair:
    """The same by a transform of half the length, for an even length."""
    n = type_of(x).shape[axis]
    half = n // 2
    pair = split_axis((x, x), axis, (half, 2))
    z = _transform(_neighbours(pair, axis), axis)
    z = join([z, cut(z, axis, 0, 1)], axis)
    even, odd = _sum_and_difference(z, axis)
    # The transforms of the elements at even and at odd positions, the latter times i.
    rotation = times(pairs.over_i(odd), _half_turn(n, axis, odd), axis)
    return pairs.times(pairs.add(even, rotation), literal(0.5, type_of(x).dtype))


def _neighbours(x: Pair, axis: int) -> Pair:
    """[h, 2] -> the elements at even positions, and those at odd ones."""
    sizes = shape_of(x)
    parts = [split_axis(cut(x, axis + 1, k, k + 1), axis, (sizes[axis],), 2)[0] for k in (0, 1)]
    return parts[0], parts[1]


def _sum_and_difference(z: Pair, axis: int) -> tuple[Pair, Pair]:
    """z[k] ± conj(z[h-k]) for k from 0 to h."""
    other = pairs.conj(reverse(z, axis))
    return pairs.add(z, other), pairs.sub(z, other)


def _half_turn(n: Size, axis: int, x: Pair) -> Pair:
    """exp(-2πi k/n) along an axis of x."""
    assert isinstance(n, int)
    size = shape_of(x)[axis]
    return unit_roots(indices(size, n), n, type_of(x[0]).dtype)


def _to_real(x: Pair, axis: int, odd: bool) -> Array:
    """The real numbers whose frequencies from 0 on are x."""
    n = 2 * (shape_of(x)[axis] - 1) + int(odd)
    if not isinstance(n, int) or odd:
        return _to_real_whole(x, axis, n)
    return line_irfft(*x, axis=axis)


def _to_real_halves(real: Value, imag: Value, *, axis: int) -> Array:
    """The same by a transform of half the length, for an even length."""
    x = real, _without_ends(imag, axis)
    half = shape_of(x)[axis] - 1
    n = 2 * half
    even, odds = _sum_and_difference(x, axis)
    odds = times(pairs.times_i(odds), pairs.conj(_half_turn(n, axis, x)), axis)
    z = cut(pairs.add(even, odds), axis, 0, half)
    neighbours = pairs.times(_inverse(z, (axis,)), reciprocal(z[0], n))
    places = split_axis(neighbours, axis, (half, 1))
    both = concatenate(*places, axis=axis + 1)
    shape = shape_of(x)
    return reshape(both, shape=(*shape[:axis], n, *shape[axis + 1 :]))


def _without_ends(x: Value, axis: int) -> Array:
    """x with zero imaginary parts at both ends, as the transform of real numbers has them."""
    shape = type_of(x).shape
    k = iota(shape=shape, axis=axis, dtype=dtypes.i32)
    last = size_value(shape[axis] - 1, dtypes.i32)
    is_end = a.logical_or(a.eq(k, literal_like(0, k)), a.eq(k, last))
    return a.select(is_end, literal(0, type_of(x).dtype), x)


def _to_real_whole(x: Pair, axis: int, n: Size) -> Array:
    """The same by all n frequencies: those from 1 on are repeated, conjugated, from the other
    end.
    """
    size = shape_of(x)[axis]
    conjugates = pairs.conj(reverse(cut(x, axis, 1, n - size + 1), axis))
    signal = _inverse(join([x, conjugates], axis), (axis,))[0]
    return a.mul(signal, reciprocal(x[0], n))


def _half_type(x: ArrayType, *, axis: int) -> tuple[ArrayType, ArrayType]:
    shape = tuple(d // 2 + 1 if k == axis else d for k, d in enumerate(x.shape))
    half = ArrayType(shape, x.dtype)
    return half, half


def _whole_type(real: ArrayType, imag: ArrayType, *, axis: int) -> ArrayType:
    shape = tuple(2 * (d - 1) if k == axis else d for k, d in enumerate(real.shape))
    return ArrayType(shape, real.dtype)


def _is_routine_of_real(x: ArrayType, *, axis: int) -> bool:
    return is_routine(x, x, axis=axis)


def _is_routine_to_real(real: ArrayType, imag: ArrayType, *, axis: int) -> bool:
    return _is_routine_of_real(_whole_type(real, imag, axis=axis), axis=axis)


# A routine transforms all n numbers sooner than kernels combine two halves. Both lengths are even.
line_rfft = Direct(
    "line_rfft",
    "fourier",
    _half_type,
    multiple_results=True,
    run=_of_real_halves,
    lower=ByRoutine("line_fft", _is_routine_of_real, _of_real_whole),
    expand=_of_real_halves,
)
line_irfft = Direct(
    "line_irfft",
    "fourier",
    _whole_type,
    run=_to_real_halves,
    lower=ByRoutine(
        "line_fft",
        _is_routine_to_real,
        lambda real, imag, *, axis: _to_real_whole((real, imag), axis, 2 * (type_of(real).shape[axis] - 1)),
    ),
    expand=_to_real_halves,
)


# --- numbers as they lie in memory --------------------------------------------------------------


def _by_axes(x: Value, *, kind: str, axes: Axes, odd: bool) -> Value:
    """The transform by one call for each axis, real ones when there are most numbers to halve."""
    *others, last = axes
    match kind:
        case "rfft":
            return _along(_from_reals(x, last), "fft", others)
        case "irfft":
            return _to_reals(_along(x, "ifft", others), last, odd)
        case _:
            return _along(x, kind, axes)


def _along(x: Value, kind: str, axes: Axes | list[int]) -> Value:
    for axis in reversed(axes):
        x = fft_in_memory(x, kind=kind, axis=axis, odd=False, parts=1)
    return x


def _from_reals(x: Value, axis: int) -> Value:
    n = type_of(x).shape[axis]
    if n % 2 == 0 or _is_odd_routine(type_of(x).shape, axis, n):
        return fft_in_memory(x, kind="rfft", axis=axis, odd=False, parts=1)
    return part(_along(c.complex(x, zeros_like(x)), "fft", (axis,)), axis, 0, n // 2 + 1)


def _to_reals(x: Value, axis: int, odd: bool) -> Value:
    shape = type_of(x).shape
    if not odd or _is_odd_routine(shape, axis, 2 * shape[axis] - 1):
        return fft_in_memory(x, kind="irfft", axis=axis, odd=odd, parts=1)
    others = c.conj(mirrored(part(x, axis, 1, shape[axis]), axes=(axis,)))
    return c.real(_along(concatenate(x, others, axis=axis), "ifft", (axis,)))


def _is_odd_routine(shape: Shape, axis: int, n: Size) -> bool:
    return axis == len(shape) - 1 and is_odd_routine(product(shape[:-1]), n)


def _run_in_memory(x: Value, *, kind: str, axis: int, odd: bool, parts: int) -> Array:
    assert parts == 1, "only routines take numbers by parts"
    return _by_parts(x, kind=kind, axes=(axis,), odd=odd)


fft_in_memory = Direct(
    "fft_in_memory",
    "fourier",
    type_in_memory,
    run=_run_in_memory,
    lower=Routine("line_fft", call_in_memory, lambda x, **_: True),
    expand=_run_in_memory,
)
fft_of_axes = Direct(
    "fft_of_axes",
    "fourier",
    transform_type,
    run=_by_parts,
    lower=ByRoutine("line_fft", is_in_memory, _by_axes),
    expand=_by_parts,
)
