"""The methods of arrays that are functions of rune.numpy: `x.sort()` is `rune.numpy.sort(x)`.

Arrays and their operators stand below that room, so `rune` attaches these methods from above, to
concrete and traced arrays alike. The room itself is loaded by the first call of one of them: a
script that needs none of its functions does not pay for importing it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rune import dtypes, locks
from rune.errors import ArgumentError
from rune.ops import conventions as c
from rune.ops.operators import Operators

if TYPE_CHECKING:
    from rune.array import Array
    from rune.backends import Device
    from rune.sharding.shardings import Sharding
    from rune.typing import ArrayLike, DTypeLike

API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")

# The functions whose first argument is the array, with the first line of the method's help.
FUNCTIONS = {
    "all": "Whether every element is nonzero.",
    "any": "Whether some element is nonzero.",
    "argmax": "Position of the first maximum.",
    "argmin": "Position of the first minimum.",
    "argpartition": "Positions that would partition the array.",
    "argsort": "Positions that would sort the array.",
    "choose": "Elements of several choices, by number.",
    "clip": "The elements kept within bounds.",
    "cumprod": "Running product.",
    "cumsum": "Running sum.",
    "diagonal": "The diagonal of two axes.",
    "dot": "Matrix product.",
    "max": "The largest element over axes.",
    "mean": "Arithmetic mean over axes.",
    "min": "The smallest element over axes.",
    "nonzero": "Positions of nonzero elements.",
    "prod": "Product over axes.",
    "ptp": "Maximum minus minimum over axes.",
    "repeat": "Each element repeated.",
    "round": "The elements to so many decimals, halves to even.",
    "searchsorted": "Where values belong in the sorted array.",
    "sort": "A sorted copy.",
    "squeeze": "Axes of size 1 removed.",
    "std": "Square root of the variance.",
    "sum": "Sum over axes.",
    "swapaxes": "Two axes exchanged.",
    "take": "Elements or slices at positions.",
    "trace": "The sum of a diagonal.",
    "var": "Mean squared distance from the mean.",
}


@functools.cache
def _namespace() -> ModuleType:
    return locks.load("rune.numpy")


def _method(name: str, doc: str) -> Callable[..., Any]:
    def method(self: Array, *args: object, **kwargs: object) -> Array:
        return getattr(_namespace(), name)(self, *args, **kwargs)

    method.__name__, method.__qualname__ = name, f"Operators.{name}"
    method.__doc__ = f"{doc} Arguments as of `rune.numpy.{name}`, but the first."
    return method


def __array_namespace__(self: Array, *, api_version: str | None = None) -> Any:
    """rune.numpy as the array API standard has it: what its functions make can be assigned to.

    Errors: ArgumentError for a version that is not one of the standard's up to 2025.12.
    """
    if api_version is not None and api_version not in API_VERSIONS:
        raise ArgumentError(
            f"array: cannot give the namespace of version {api_version!r} (one of {', '.join(API_VERSIONS)})"
        )
    return _namespace().mutable_boxes.NAMESPACE


def compress(self: Array, condition: ArrayLike, axis: int | None = None, **kwargs: object) -> Array:
    """The slices where a vector of conditions holds, as `rune.numpy.compress` takes them."""
    return _namespace().compress(condition, self, axis=axis, **kwargs)


def astype(self: Array, dtype: DTypeLike | None, copy: bool = False, device: str | Device | None = None) -> Array:
    """The elements converted to `dtype` (on a device); float to integer saturates."""
    if device is not None:
        return _namespace().astype(self, dtype, copy=copy, device=device)
    return c.astype(self, dtypes.as_dtype(float if dtype is None else dtype))


def reshape(
    self: Array, *shape: object, order: str = "C", copy: bool | None = None, out_sharding: Sharding | None = None
) -> Array:
    """Another shape, one size may be -1; `order` "F" reads and writes columns first."""
    sizes = shape[0] if len(shape) == 1 else shape
    return _namespace().reshape(self, sizes, order, copy=copy, out_sharding=out_sharding)


def ravel(self: Array, order: str = "C", *, out_sharding: Sharding | None = None) -> Array:
    """One axis."""
    return reshape(self, -1, order=order, out_sharding=out_sharding)


def to_device(self: Array, device: str | Device | None, /, *, stream: object = None) -> Array:
    """A traced value on a device, as an equation of the program; itself for None."""
    if stream is not None:
        raise ArgumentError(f"to_device: cannot use stream={stream!r} (a device has one order of work)")
    return self if device is None else _namespace().asarray(self, device=device)


def byteswap(self: Array) -> Array:
    """The elements with their bytes in reverse. Errors: DtypeError for complex numbers and keys."""
    if self.dtype.itemsize == 1:
        return self
    lax, rnp = locks.load("rune.lax"), _namespace()
    swapped = rnp.flip(lax.bitcast_convert_type(self, rnp.uint8), -1)
    return lax.bitcast_convert_type(swapped, self.dtype)


def attach() -> None:
    """Give the methods to `Operators`, which declares them for type checkers."""
    methods = {name: _method(name, doc) for name, doc in FUNCTIONS.items()}
    for method in (__array_namespace__, astype, byteswap, compress, ravel, reshape, to_device):
        method.__qualname__ = f"Operators.{method.__name__}"
        methods[method.__name__] = method
    for name, method in {**methods, "flatten": ravel}.items():
        setattr(Operators, name, method)
