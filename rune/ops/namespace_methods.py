"""Methods of arrays that are functions of rune.numpy: `x.sort()` is `rune.numpy.sort(x)`.

Arrays stand below that room, which `import rune` does not load: the first method does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rune.errors import ArgumentError

API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def namespace() -> ModuleType:
    """rune.numpy, which the package loads when it is first asked for."""
    return sys.modules["rune"].numpy


def _method(name: str, doc: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(namespace(), name)(self, *args, **kwargs)

    method.__name__, method.__qualname__ = name, f"NamespaceMethods.{name}"
    method.__doc__ = f"{doc} Arguments as of `rune.numpy.{name}`, but the first."
    return method


class NamespaceMethods:
    """The methods that call rune.numpy, and the array API standard's name for it."""

    __slots__ = ()

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """rune.numpy as the array API standard has it: what its functions make can be assigned to.

        Errors: ArgumentError for a version that is not one of the standard's up to 2025.12.
        """
        if api_version is not None and api_version not in API_VERSIONS:
            raise ArgumentError(
                f"array: cannot give the namespace of version {api_version!r} "
                f"(one of {', '.join(API_VERSIONS)})"
            )
        return namespace().mutable_boxes.NAMESPACE

    all = _method("all", "Whether every element is nonzero.")
    any = _method("any", "Whether some element is nonzero.")
    argmax = _method("argmax", "Position of the first maximum.")
    argmin = _method("argmin", "Position of the first minimum.")
    argpartition = _method("argpartition", "Positions that would partition the array.")
    argsort = _method("argsort", "Positions that would sort the array.")
    choose = _method("choose", "Elements of several choices, by number.")
    clip = _method("clip", "The elements kept within bounds.")

    def compress(self, condition: Any, axis: int | None = None, **kwargs: Any) -> Any:
        """The slices where a vector of conditions holds, as `rune.numpy.compress` takes them."""
        return namespace().compress(condition, self, axis=axis, **kwargs)

    cumprod = _method("cumprod", "Running product.")
    cumsum = _method("cumsum", "Running sum.")
    diagonal = _method("diagonal", "The diagonal of two axes.")
    max = _method("max", "The largest element over axes.")
    mean = _method("mean", "Arithmetic mean over axes.")
    min = _method("min", "The smallest element over axes.")
    nonzero = _method("nonzero", "Positions of nonzero elements.")
    prod = _method("prod", "Product over axes.")
    ptp = _method("ptp", "Maximum minus minimum over axes.")
    repeat = _method("repeat", "Each element repeated.")
    round = _method("round", "The elements to so many decimals, halves to even.")
    searchsorted = _method("searchsorted", "Where values belong in the sorted array.")
    sort = _method("sort", "A sorted copy.")
    squeeze = _method("squeeze", "Axes of size 1 removed.")
    std = _method("std", "Square root of the variance.")
    sum = _method("sum", "Sum over axes.")
    swapaxes = _method("swapaxes", "Two axes exchanged.")
    take = _method("take", "Elements or slices at positions.")
    trace = _method("trace", "The sum of a diagonal.")
    var = _method("var", "Mean squared distance from the mean.")
