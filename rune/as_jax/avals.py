"""Abstract values: JAX's name for what rune calls an `ArrayType`. They are the same objects.

>>> from rune.as_jax.avals import ShapedArray
>>> import rune, rune.numpy as rnp
>>> ShapedArray((3,), "float32") is rnp.ones(3).type
True
>>> isinstance(rnp.ones(3).type, ShapedArray)
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rune import dtypes
from rune.core import interpreter
from rune.core.no_sharding import is_unsaid
from rune.core.types import ArrayType, Axes, Layout
from rune.dims import Size
from rune.errors import ArgumentError
from rune.transforms.eval_shape import ShapeDtypeStruct


class _Types(type):
    """The metaclass of classes whose instances are rune's types."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _type(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, ArrayType)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is ArrayType or super().__subclasscheck__(subclass)


class AbstractValue(metaclass=_Types):
    """The type of a value that has not been computed."""


class ShapedArray(AbstractValue):
    """ShapedArray(shape, dtype, weak_type=False) is the type of an array."""


def _type(
    shape: Sequence[Size],
    dtype: object,
    weak_type: bool = False,
    *,
    sharding: Layout | None = None,
    vma: Axes = frozenset(),
    memory_space: object = None,
) -> ArrayType:
    """The type with this shape, dtype, weakness and layout.

    Errors: ArgumentError for a sharding that does not name the axes of a mesh.
    """
    type = ArrayType(tuple(shape), dtypes.as_dtype(dtype), weak_type, vma)
    return type if sharding is None or is_unsaid(sharding) else type.laid_out(sharding)


def type_of(aval: Any) -> ArrayType:
    """The type of an abstract value, a ShapeDtypeStruct or an array."""
    if isinstance(aval, ArrayType):
        return aval.plain
    return aval.array_type if isinstance(aval, ShapeDtypeStruct) else interpreter.type_of(aval)


def mapped_aval(size: Size, axis: int | None, aval: ArrayType) -> ArrayType:
    """The type of one of `size` lanes along `axis`; axis None: the value is not batched."""
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ArgumentError(f"mapped_aval: cannot take {size} lanes along axis {axis} of {aval}")
    position = axis % aval.ndim
    return aval.with_shape((*aval.shape[:position], *aval.shape[position + 1 :]))


def unmapped_aval(size: Size, axis: int | None, aval: ArrayType) -> ArrayType:
    """The type of `size` lanes of this type along a new `axis`; axis None: it is not batched."""
    return aval if axis is None else aval.with_shape((*aval.shape[:axis], size, *aval.shape[axis:]))
