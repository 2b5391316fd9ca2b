"""Value and Operand: the operands and results of primitives, and arguments of array functions.

Results of primitives are arrays or tracers. Operands of rules may be typed constants as well, and
numbers of Python, whose type is weak. `rune.ops.promote` makes values of operands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from rune.core.types import ArrayType
from rune.dims import Dim


class Typed(Protocol):
    """An array or a tracer: a value that knows its type."""

    @property
    def type(self) -> ArrayType:
        """Shape, dtype and weakness."""
        ...


@runtime_checkable
class SupportsArray(Protocol):
    """An object that stands for an array, as `Quantized` does; `__jax_array__` works, too."""

    def __rune_array__(self) -> Any:
        """The array that it stands for."""
        ...


class HasDtype(Protocol):
    """A NumPy or rune class that stands for its dtype, such as `rune.numpy.float32`."""

    @property
    def dtype(self) -> np.dtype:
        """The dtype itself."""
        ...


Value: TypeAlias = Typed | np.ndarray | np.generic | bool | int | float | complex
Operand: TypeAlias = Value | SupportsArray | Dim
Values: TypeAlias = Sequence[Value | None]  # None: unknown, or a cotangent of zero
Params: TypeAlias = Mapping[str, Any]  # of an equation, by name
V = TypeVar("V", bound=Operand)  # of functions that may return their argument
# A NumPy dtype, its name, or a class: np.dtype("f4"), "float32", rune.numpy.float32, float.
DTypeLike: TypeAlias = np.dtype | str | type[Any] | HasDtype
