"""Abstract values: what JAX's rules for types are given and give, over rune's `ArrayType`.

    ShapedArray(shape, dtype, weak_type)    the type of an array; equal if these three are
    aval_of(type), type_of(aval)            there and back

`Shaped` is all that a rule may return for a type: a ShapedArray, a ShapeDtypeStruct, an array.

>>> from rune.as_jax.avals import ShapedArray
>>> ShapedArray((3,), "float32").str_short()
'float32[3]'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from rune import dims, dtypes
from rune.core import interpreter
from rune.core.types import ArrayType, Axes, Shape
from rune.dims import Size
from rune.errors import ArgumentError
from rune.transforms.derivatives import tangents


class AbstractValue:
    """What is known of a value before it is computed; `ShapedArray` is the one kind of it."""

    __slots__ = ()


class ShapedArray(AbstractValue):
    """The type of an array, with JAX's names for what it says.

    Errors: ArgumentError for a sharding: the layout of a value is no part of its type here.
    """

    __slots__ = ("type",)
    type: ArrayType

    def __init__(
        self,
        shape: Sequence[Size],
        dtype: object,
        weak_type: bool = False,
        *,
        sharding: object = None,
        vma: Axes = frozenset(),
    ):
        if sharding is not None:
            raise ArgumentError(f"ShapedArray: cannot take a sharding ({sharding!r}; layouts are no part of types)")
        self.type = ArrayType(tuple(shape), dtypes.as_dtype(dtype), weak_type, vma)

    @property
    def shape(self) -> Shape:
        """Sizes of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> Any:
        """The dtype, as users see it."""
        return self.type.public_dtype

    @property
    def weak_type(self) -> bool:
        """Whether the dtype adapts to others, as that of a Python number does."""
        return self.type.weak

    @property
    def vma(self) -> Axes:
        """The axes of a mesh along which it varies."""
        return self.type.varying

    @property
    def sharding(self) -> None:
        """None: layouts are no part of types."""
        return None

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.type.ndim

    @property
    def size(self) -> Size:
        """Number of elements."""
        return dims.product(self.type.shape)

    def update(self, **changes: Any) -> ShapedArray:
        """The same type but for `shape`, `dtype`, `weak_type`, `vma`."""
        same = {"shape": self.shape, "dtype": self.type.dtype, "weak_type": self.weak_type, "vma": self.vma}
        return ShapedArray(**{**same, **changes})

    def strip_weak_type(self) -> ShapedArray:
        """The strong type."""
        return aval_of(self.type.strong())

    def to_tangent_aval(self) -> ShapedArray:
        """The type of its tangents: float0 where there is no derivative."""
        return aval_of(tangents.tangent_type(self.type))

    to_cotangent_aval = to_ct_aval = at_least_vspace = to_tangent_aval

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """As `float32[3]`, or `f32[3]`."""
        name = dtypes.short(self.type.dtype) if short_dtypes else str(self.dtype)
        return f"{name}[{','.join(map(str, self.shape))}]"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]  # type: ignore[return-value]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapedArray) and self.type is other.type

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __reduce__(self) -> Any:
        return aval_of, (self.type,)

    @classmethod
    def of(cls, type: ArrayType) -> Self:
        """The abstract value of a type of rune's."""
        self = object.__new__(cls)
        self.type = type
        return self


def aval_of(type: ArrayType) -> ShapedArray:
    """The abstract value of a type of rune's."""
    return ShapedArray.of(type)


def type_of(shaped: Any) -> ArrayType:
    """The type that an abstract value, a ShapeDtypeStruct or an array stands for.

    Errors: ArgumentError for anything else.
    """
    if isinstance(shaped, ArrayType):
        return shaped
    known = getattr(shaped, "type", None)
    if isinstance(known, ArrayType):
        return known
    if isinstance(shaped, np.ndarray | np.generic) or dtypes.scalar_type(shaped) is not None:
        return interpreter.type_of(shaped)
    raise ArgumentError(f"aval: cannot take {shaped!r:.60} as an abstract value (a ShapedArray required)")


def mapped_aval(size: Size, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one lane of a batch of `size` lanes along `axis`; None: it has no lanes."""
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ArgumentError(f"mapped_aval: cannot take {size} lanes along axis {axis} of {aval.type}")
    position = axis % aval.ndim
    return aval_of(aval.type.with_shape((*aval.shape[:position], *aval.shape[position + 1 :])))


def unmapped_aval(size: Size, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of `size` lanes of this type, along a new axis at `axis`; None: it has no lanes."""
    if axis is None:
        return aval
    return aval_of(aval.type.with_shape((*aval.shape[:axis], size, *aval.shape[axis:])))
