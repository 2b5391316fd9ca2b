"""The methods of arrays that are functions of rune.numpy, with their arguments: `x.sort(axis=0)`.

This module is in a layer below rune.numpy, so each method imports it when called, and a script that
uses none of them does not pay for the import. Editors and `help` show the signatures and docstrings
here; a test compares them with those of the functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rune import locks

if TYPE_CHECKING:
    from rune.array import Array
    from rune.dims import Size
    from rune.sharding.shardings import Sharding
    from rune.typing import ArrayLike, Axis, DTypeLike


# The module rune.numpy.
namespace = locks.late_module("rune.numpy")


class ArrayFunctions:
    """The methods, by name. Each calls the function of rune.numpy with this array."""

    __slots__ = ()

    def all(
        self, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
    ) -> Array:
        """Whether every element is nonzero. As `rune.numpy.all`."""
        return namespace().all(self, axis, out, keepdims, where=where)

    def any(
        self, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
    ) -> Array:
        """Whether some element is nonzero. As `rune.numpy.any`."""
        return namespace().any(self, axis, out, keepdims, where=where)

    def argmax(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        """Position of the first maximum. As `rune.numpy.argmax`."""
        return namespace().argmax(self, axis, out, keepdims)

    def argmin(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        """Position of the first minimum. As `rune.numpy.argmin`."""
        return namespace().argmin(self, axis, out, keepdims)

    def argpartition(self, kth: ArrayLike, axis: int | None = -1) -> Array:
        """Positions that would partition the array. As `rune.numpy.argpartition`."""
        return namespace().argpartition(self, kth, axis)

    def argsort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
        dtype: DTypeLike | None = None,
    ) -> Array:
        """Positions that would sort the array. As `rune.numpy.argsort`."""
        return namespace().argsort(
            self, axis, kind=kind, order=order, stable=stable, descending=descending, dtype=dtype
        )

    def choose(self, choices: object, out: None = None, mode: str = "clip") -> Array:
        """Elements of several choices, by number. As `rune.numpy.choose`."""
        return namespace().choose(self, choices, out, mode)

    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
        """The elements kept within bounds. As `rune.numpy.clip`."""
        return namespace().clip(self, min, max)

    def cumprod(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Running product. As `rune.numpy.cumprod`."""
        return namespace().cumprod(self, axis, dtype, out)

    def cumsum(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Running sum. As `rune.numpy.cumsum`."""
        return namespace().cumsum(self, axis, dtype, out)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """The diagonal of two axes. As `rune.numpy.diagonal`."""
        return namespace().diagonal(self, offset, axis1, axis2)

    def dot(
        self,
        b: ArrayLike,
        *,
        precision: object = None,
        preferred_element_type: DTypeLike | None = None,
        out_sharding: Sharding | None = None,
    ) -> Array:
        """Matrix product. As `rune.numpy.dot`."""
        return namespace().dot(
            self, b, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
        )

    def max(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The largest element over axes. As `rune.numpy.max`."""
        return namespace().max(self, axis, out, keepdims, initial, where)

    def mean(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        """Arithmetic mean over axes. As `rune.numpy.mean`."""
        return namespace().mean(self, axis, dtype, out, keepdims, where=where)

    def min(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The smallest element over axes. As `rune.numpy.min`."""
        return namespace().min(self, axis, out, keepdims, initial, where)

    def nonzero(self, *, size: Size | None = None, fill_value: object = None) -> tuple[Array, ...]:
        """Positions of nonzero elements. As `rune.numpy.nonzero`."""
        return namespace().nonzero(self, size=size, fill_value=fill_value)

    def prod(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """Product over axes. As `rune.numpy.prod`."""
        return namespace().prod(self, axis, dtype, out, keepdims, initial, where, promote_integers)

    def ptp(self, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
        """Maximum minus minimum over axes. As `rune.numpy.ptp`."""
        return namespace().ptp(self, axis, out, keepdims)

    def repeat(
        self,
        repeats: ArrayLike,
        axis: int | None = None,
        *,
        total_repeat_length: int | None = None,
        out_sharding: Sharding | None = None,
    ) -> Array:
        """Each element repeated. As `rune.numpy.repeat`."""
        return namespace().repeat(
            self, repeats, axis, total_repeat_length=total_repeat_length, out_sharding=out_sharding
        )

    def round(self, decimals: int = 0, out: None = None) -> Array:
        """The elements to so many decimals, halves to even. As `rune.numpy.round`."""
        return namespace().round(self, decimals, out)

    def searchsorted(
        self, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
    ) -> Array:
        """Where values belong in the sorted array. As `rune.numpy.searchsorted`."""
        return namespace().searchsorted(self, v, side, sorter, method=method)

    def sort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array:
        """A sorted copy. As `rune.numpy.sort`."""
        return namespace().sort(self, axis, kind=kind, order=order, stable=stable, descending=descending)

    def squeeze(self, axis: Axis = None) -> Array:
        """Axes of size 1 removed. As `rune.numpy.squeeze`."""
        return namespace().squeeze(self, axis)

    def std(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: float | None = None,
    ) -> Array:
        """Square root of the variance. As `rune.numpy.std`."""
        return namespace().std(self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)

    def sum(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """Sum over axes. As `rune.numpy.sum`."""
        return namespace().sum(self, axis, dtype, out, keepdims, initial, where, promote_integers)

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """Two axes exchanged. As `rune.numpy.swapaxes`."""
        return namespace().swapaxes(self, axis1, axis2)

    def take(
        self,
        indices: ArrayLike,
        axis: int | None = None,
        out: None = None,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: ArrayLike | None = None,
    ) -> Array:
        """Elements or slices at positions. As `rune.numpy.take`."""
        return namespace().take(self, indices, axis, out, mode, unique_indices, indices_are_sorted, fill_value)

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """The sum of a diagonal. As `rune.numpy.trace`."""
        return namespace().trace(self, offset, axis1, axis2, dtype, out)

    def var(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: float | None = None,
    ) -> Array:
        """Mean squared distance from the mean. As `rune.numpy.var`."""
        return namespace().var(self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
