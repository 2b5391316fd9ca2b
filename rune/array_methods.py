"""The methods of arrays that need rune.numpy: `x.sort()` is `rune.numpy.sort(x)`.

Arrays and their operators are in a layer below rune.numpy, so `rune` attaches these methods to
concrete and traced arrays when it is imported: those that only call a function of rune.numpy
(array_functions.py), and those that do more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rune import config, dtypes, locks
from rune.array import Array
from rune.array_at import at
from rune.array_functions import ArrayFunctions, namespace
from rune.errors import ArgumentError
from rune.ops import conventions as c
from rune.ops.operators import Operators
from rune.transforms import eager_views
from rune.transforms.eval_shape import typeof

if TYPE_CHECKING:
    from rune.backends import Device
    from rune.sharding.shardings import Sharding
    from rune.typing import ArrayLike, DTypeLike

API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def __array_namespace__(self: Array, *, api_version: str | None = None) -> Any:
    """rune.numpy as the array API standard requires it: arrays it makes support item assignment.

    `rune.configure(array_namespace=...)` names another module, as `rune.as_jax` does.
    Errors: ArgumentError for a version that is not one of the standard's up to 2025.12.
    """
    if api_version is not None and api_version not in API_VERSIONS:
        raise ArgumentError(
            f"array: cannot give the namespace of version {api_version!r} (one of {', '.join(API_VERSIONS)})"
        )
    name = config.current().array_namespace
    return locks.load(name) if name else namespace().mutable_boxes.NAMESPACE


def compress(
    self: Array,
    condition: ArrayLike,
    axis: int | None = None,
    out: None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """The slices where a vector of conditions holds, as `rune.numpy.compress` takes them."""
    return namespace().compress(condition, self, axis, out, size=size, fill_value=fill_value)


def astype(self: Array, dtype: DTypeLike | None, copy: bool = False, device: str | Device | None = None) -> Array:
    """The elements converted to `dtype` (on a device); float to integer saturates."""
    if device is not None:
        return namespace().astype(self, dtype, copy=copy, device=device)
    out = c.converted(self, dtypes.as_dtype(float if dtype is None else dtype))
    return c.distinct(out, self) if copy else out


def reshape(
    self: Array, *shape: object, order: str = "C", copy: bool | None = None, out_sharding: Sharding | None = None
) -> Array:
    """The elements in another shape, with one size of -1 inferred; order "F" is column-major."""
    sizes = shape[0] if len(shape) == 1 else shape
    if type(self) is Array and order == "C" and copy is None and out_sharding is None:
        view = eager_views.reshaped(self, sizes)
        if view is not None:
            return view
    return namespace().reshape(self, sizes, order, copy=copy, out_sharding=out_sharding)


def ravel(self: Array, order: str = "C", *, out_sharding: Sharding | None = None) -> Array:
    """The elements along one axis."""
    return reshape(self, -1, order=order, out_sharding=out_sharding)


def to_device(self: Array, device: str | Device | None, *, stream: object = None) -> Array:
    """Move a traced value to a device by an equation of the program; itself for None."""
    if stream is not None:
        raise ArgumentError(f"to_device: cannot use stream={stream!r} (a device has one order of work)")
    return self if device is None else namespace().asarray(self, device=device)


def byteswap(self: Array) -> Array:
    """The elements with their bytes in reverse, those of both parts of complex numbers.

    Errors: DtypeError for keys.
    """
    if self.dtype.itemsize == 1:
        return self
    lax, rnp = locks.load("rune.lax"), namespace()
    if rnp.iscomplexobj(self):
        return lax.complex(byteswap(rnp.real(self)), byteswap(rnp.imag(self)))
    octets = rnp.flip(lax.bitcast_convert_type(self, rnp.uint8), -1)
    return lax.bitcast_convert_type(octets, self.dtype)


def attach() -> None:
    """Give the methods to `Operators`, which declares them for type checkers."""
    methods = {name: method for name, method in vars(ArrayFunctions).items() if not name.startswith("_")}
    for method in (__array_namespace__, astype, byteswap, compress, ravel, reshape, to_device):
        methods[method.__name__] = method
    for name, method in {**methods, "flatten": ravel}.items():
        method.__qualname__ = f"Operators.{method.__name__}"
        setattr(Operators, name, method)
    getattr(at, "__set_name__")(Operators, "at")  # noqa: B009  # errors name it; type checkers do not know it
    setattr(Operators, "aval", property(typeof))  # noqa: B010  # it also says how Explicit axes split it
    setattr(Operators, "at", at)  # noqa: B010  # a property, which type checkers let nobody assign
