"""Fourier transforms of many elements, which eager calls compile once for each size.

This applies only to those that the routines of eager calls do not compute, or not as fast, and only
where a library routine of the device does: kernels would take most of a second to compile.
"""

from __future__ import annotations

import functools

from rune import config, dtypes, ops
from rune.array import CPU, Array
from rune.backends.cpu.meanings import is_transformed_by_routines
from rune.core.interpreter import is_evaluating, type_of
from rune.core.types import ArrayType
from rune.numpy.composites import LARGE, is_large
from rune.ops.conventions import normalised_axes
from rune.ops.fourier import is_by_routine
from rune.transforms.compile.jit import Jitted, jit
from rune.transforms.compile.tiers import is_watched
from rune.transforms.eager import Operation, computed, operation_on
from rune.typing import ArrayLike

# Elements from which compiled code of two cores takes less time than the routines of eager calls on
# one; those of real arrays, which it computes as complex ones, it never does.
ON_ONE_CORE = 1 << 22


def transformed(x: ArrayLike, kind: str, axes: tuple[int, ...], odd: bool) -> Array:
    """`ops.fft`, compiled if an eager call has enough elements to make up for compiling."""
    if is_evaluating() and is_large((x,)) and is_compiled(type_of(x), kind, axes, odd):
        return _compiled(kind, axes, odd)(x)
    return ops.fft(x, kind=kind, axes=axes, odd=odd)


def is_compiled(x: ArrayType, kind: str, axes: tuple[int, ...], odd: bool) -> bool:
    """Whether eager transforms of such an array are compiled."""
    if not isinstance(x.size, int) or x.size < LARGE or not is_by_routine(x, kind=kind, axes=axes, odd=odd):
        return False
    is_left = x.size < ON_ONE_CORE or kind in ("rfft", "irfft")
    return not (is_left and is_transformed_by_routines(x, kind, axes, odd))


def plain_transform(name: str, kind: str, a: ArrayLike, axes: object) -> Array | None:
    """The eager transform of a CPU array as it is, without anything else to do; else None."""
    if type(a) is not Array or a.place is not CPU or not isinstance(axes, tuple) or not is_evaluating():
        return None
    operation = _plain_operation(config.current(), name, kind, a.type, axes)
    return None if operation is None else Array(computed(operation, (a.buffer,)), operation.results[0], CPU)


@functools.lru_cache(maxsize=1024)
def _plain_operation(settings: config.Config, name: str, kind: str, x: ArrayType, axes: tuple) -> Operation | None:
    """The operation, looked up once for all calls of a kind."""
    is_number = x.dtype in ((dtypes.f32, dtypes.f64) if kind == "rfft" else dtypes.COMPLEX)
    if not is_number or x.is_symbolic or 0 in x.shape or not axes or is_watched(settings):
        return None
    numbers = normalised_axes(name, axes, x)
    if (kind == "irfft" and x.shape[numbers[-1]] == 1) or is_compiled(x, kind, numbers, False):
        return None
    return operation_on(ops.fft, (x,), (("kind", kind), ("axes", numbers), ("odd", False)))


@functools.cache
def _compiled(kind: str, axes: tuple[int, ...], odd: bool) -> Jitted[[ArrayLike], Array]:
    def transform(x: ArrayLike) -> Array:
        return ops.fft(x, kind=kind, axes=axes, odd=odd)

    return jit(transform)
