"""fft: discrete Fourier transforms along any axes, of any length.

    fft, ifft    complex -> complex   y[k] = sum_j x[j] exp(∓2πi jk/n); the inverse divided by n
    rfft         real -> complex      frequencies 0 to n//2 of the last axis
    irfft        complex -> real      its inverse; the length is 2(m - 1), and one more if `odd`

`axes` are in NumPy's order: the last one is halved by a real transform. On the CPU, NumPy computes
short transforms, and those outside compiled programs; all others, and everything on devices, are
the kernels of expansion.py.

Every kind is linear, and its own derivative. The matrix of a complex transform is symmetric, so
it is its own transpose. The real transform and its inverse are each other's transpose up to
weights: every frequency but 0 and n/2 stands for two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal, type_of
from rune.core.lower import Library
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Operand, Value
from rune.dims import Size, product
from rune.ops.arithmetic import add, div, eq, logical_or, mul, select, zero_like
from rune.ops.complex_numbers import PART, WHOLE, complex, conj, imag, real
from rune.ops.creation import iota
from rune.ops.family import Batched, size_value
from rune.ops.fourier.expansion import expand
from rune.ops.fourier.in_memory import is_in_memory
from rune.ops.fourier.kinds import result_dtype, transform_type
from rune.ops.fourier.lines import is_routine
from rune.ops.movement import pad

if TYPE_CHECKING:
    from rune.array import Array

Axes = tuple[int, ...]
GENERATED_FROM = 1 << 16  # elements from which generated kernels repay their compilation


def _reference(x: np.ndarray, *, kind: str, axes: Axes, odd: bool) -> np.ndarray:
    sizes = [x.shape[axis] for axis in axes]
    if kind == "irfft":
        sizes[-1] = 2 * (sizes[-1] - 1) + odd
    if len(axes) == 1:
        result = _NUMPY[kind](x, sizes[0], axes[0])
    else:
        result = _NUMPY_OF_AXES[kind](x, s=sizes, axes=axes)
    return result.astype(result_dtype(kind, x.dtype), copy=False)


_NUMPY: dict[str, Any] = {"fft": np.fft.fft, "ifft": np.fft.ifft, "rfft": np.fft.rfft, "irfft": np.fft.irfft}
_NUMPY_OF_AXES: dict[str, Callable[..., np.ndarray]] = {kind: getattr(np.fft, f"{kind}n") for kind in _NUMPY}


def _pays(x: ArrayType, *, kind: str, axes: Axes, odd: bool) -> bool:
    """Whether NumPy computes the transform: few elements that no routine takes, or an unknown
    number.

    Kernels are three to eight times as fast from about 2**14 elements on, but take most of a second
    to compile; a routine needs no compilation, and is twice as fast as NumPy at any size.
    """
    longest = _longest(x, kind, axes, odd)
    if longest.is_symbolic:
        return True
    sizes = [d for d in longest.shape if isinstance(d, int)]
    return math.prod(sizes) < GENERATED_FROM and not is_by_routine(x, kind=kind, axes=axes, odd=odd)


def _longest(x: ArrayType, kind: str, axes: Axes, odd: bool) -> ArrayType:
    return x if kind == "rfft" else transform_type(x, kind=kind, axes=axes, odd=odd)


def is_by_routine(x: ArrayType, *, kind: str, axes: Axes, odd: bool) -> bool:
    """Whether routines of the device compute every transform of x along one axis."""
    if is_in_memory(x, kind=kind, axes=axes, odd=odd):
        return True
    longest = _longest(x, kind, axes, odd)
    parts = ArrayType(longest.shape, PART.get(longest.dtype, longest.dtype))
    return all(longest.shape[axis] == 1 or is_routine(parts, parts, axis=axis) for axis in axes)


def empty_transform(x: Operand, kind: str, axes: Sequence[int], lengths: Sequence[Size]) -> Array:
    """The transform of no numbers, or one that gives none (irfft of one): an empty array.

    lengths: those of the transform, along `axes`; one of them is 0.
    """
    x_type = type_of(x)
    sizes = dict(zip(axes, lengths, strict=True))
    if kind == "rfft":
        sizes[axes[-1]] = lengths[-1] // 2 + 1
        x = complex(x, zero_like(x))
    elif kind == "irfft":
        x = real(x)
    nothing = (0,) * x_type.ndim
    high = tuple(sizes.get(axis, d) - d for axis, d in enumerate(x_type.shape))
    return pad(x, literal(0, type_of(x).dtype), low=nothing, high=high, interior=nothing)


# --- derivatives --------------------------------------------------------------------------------


def _transpose(ct: Value, linear: Batched, x: ArrayType, **params: Any) -> list[Array]:
    rule = {"rfft": _transpose_real, "irfft": _transpose_inverse_real}.get(params["kind"])
    return [fft(ct, **params) if rule is None else rule(ct, x, params["axes"])]


def _transpose_real(ct: Value, x: ArrayType, axes: Axes) -> Array:
    """The transpose of rfft: the inverse of the conjugate, with each frequency that stands for two
    halved.
    """
    *_, last = axes
    n = x.shape[last]
    parity = n % 2
    if not isinstance(parity, int):
        return _transpose_real_whole(ct, axes, n)
    inverse = fft(weighted(conj(ct), last, n, 0.5), kind="irfft", axes=axes, odd=parity == 1)
    return mul(inverse, size_value(product(x.shape[axis] for axis in axes), x.dtype))


def _transpose_real_whole(ct: Value, axes: Axes, n: Size) -> Array:
    """The same where the parity of n is unknown: the transform with n - n//2 - 1 zeros appended."""
    shape = type_of(ct).shape
    zeros = (0,) * len(shape)
    high = tuple(n - d if k == axes[-1] else 0 for k, d in enumerate(shape))
    frequencies = pad(ct, literal(0, type_of(ct).dtype), low=zeros, high=high, interior=zeros)
    return real(fft(frequencies, kind="fft", axes=axes, odd=False))


def _transpose_inverse_real(ct: Value, x: ArrayType, axes: Axes) -> Array:
    """The transpose of irfft: the conjugate of the transform, frequencies that stand for two
    doubled.
    """
    ct_type = type_of(ct)
    spectrum = conj(fft(ct, kind="rfft", axes=axes, odd=False))
    pairs = weighted(spectrum, axes[-1], ct_type.shape[axes[-1]], 2)
    total = size_value(product(ct_type.shape[axis] for axis in axes), ct_type.dtype)
    return _scaled(pairs, div(literal(1, ct_type.dtype), total))


def weighted(x: Operand, axis: int, n: Size, weight: float) -> Array:
    """x, half of the frequencies of n numbers, times `weight` except at 0 and n/2."""
    dtype = PART[type_of(x).dtype]
    k = iota(shape=type_of(x).shape, axis=axis, dtype=dtypes.i32)
    is_last = eq(add(k, k), size_value(n, dtypes.i32))
    is_end = logical_or(eq(k, literal(0, dtypes.i32)), is_last)
    return _scaled(x, select(is_end, literal(1, dtype), literal(weight, dtype)))


def _scaled(x: Operand, factor: Value) -> Array:
    return complex(mul(real(x), factor), mul(imag(x), factor))


def _batch(batched: Batched, size: Size, x: Value, *, kind: str, axes: Axes, odd: bool) -> tuple[Array, bool]:
    return fft(x, kind=kind, axes=tuple(axis + 1 for axis in axes), odd=odd), True


def _other_axes(x: ArrayType, *, axes: Axes, **_: object) -> Axes:
    return tuple(axis for axis in range(x.ndim) if axis not in axes)


fft: Primitive = Primitive(
    "fft",
    "fourier",
    transform_type,
    _reference,
    jvp=(lambda dx, x, y, **params: fft(dx, **params),),
    transpose=_transpose,
    batch=_batch,
    lower=Library(_other_axes, _pays),
    expand=expand,
)

PRIMITIVES = (fft,)
