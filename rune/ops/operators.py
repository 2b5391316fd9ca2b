"""The operators and methods that concrete arrays and tracers share, as a mixin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from rune import dtypes
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import DTypeLike, Operand
from rune.dims import Dim
from rune.errors import ArgumentError
from rune.ops import conventions as c
from rune.ops import statistics as st
from rune.ops.arithmetic import (
    add,
    eq,
    ge,
    gt,
    le,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    mul,
    ne,
    neg,
    shl,
    shr,
    sub,
)
from rune.ops.at import At
from rune.ops.promote import apply
from rune.ops.reinterpret import view
from rune.ops.subscript import read

if TYPE_CHECKING:
    from rune.array import Array
    from rune.backends import Device

# Attributes of arrays and traced values for the package itself, not part of their public surface.
INTERNAL = frozenset(
    """
    buffer buffer_on copied_to frame interpreter is_sole_owner known make_dense place primal rank0 start_numpy tangent
    underlying value variable
    """.split()
)
_Binary: TypeAlias = "Callable[[Any, Any], Array]"


def _forward(primitive: Primitive) -> _Binary:
    def method(self: Any, other: Any) -> Any:
        if isinstance(other, Operators) and other.type is self.type and self.type.dtype is not dtypes.bool_:
            return primitive(self, other)
        return apply(primitive, self, other) if _is_operand(self, other) else NotImplemented

    return method


def _comparison(primitive: Primitive) -> Callable[..., Array]:
    def method(self: Operators, other: Operand) -> Array:
        if self.type.dtype.kind != "c":
            if isinstance(other, Operators) and other.type is self.type:
                return primitive(self, other)
            if other.__class__ is float or other.__class__ is int:
                return apply(primitive, self, other)
        return c.ordered(primitive, self, other) if _is_operand(self, other) else NotImplemented

    return method


def _reflected(function: Callable[[Any, Any], Any]) -> _Binary:
    def method(self: Any, other: Any) -> Any:
        return function(other, self) if _is_operand(self, other) else NotImplemented

    return method


def _checked(function: Callable[[Any, Any], Any]) -> _Binary:
    def method(self: Any, other: Any) -> Any:
        return function(self, other) if _is_operand(self, other) else NotImplemented

    return method


def _is_operand(of: Any, value: object) -> bool:
    if isinstance(value, _OPERANDS):
        return True
    if isinstance(value, list | tuple):
        raise ArgumentError(
            f"operator: cannot combine {of.type} with a {type(value).__name__} of {len(value)}",
            hint="convert it with rune.numpy.array(...)",
        )
    return hasattr(type(value), "__jax_array__")  # an object with __jax_array__ answers by its own operator


def _divmod(x: Any, y: Any) -> tuple[Any, Any]:
    return c.floor_divide(x, y), c.remainder(x, y)


def _pair(primitive: Primitive) -> Callable[[Any, Any], Any]:
    return lambda a, b: apply(primitive, a, b)


class Operators:
    """Arithmetic, comparison, indexing and methods of arrays and traced values. Subclasses have a
    `type`.

    >>> import rune, rune.numpy as rnp
    >>> isinstance(rnp.ones(2), rnp.ndarray), rune.jit(lambda x: isinstance(x, rnp.ndarray))(1.0)
    (True, Array(True, bool[], cpu:0))
    """

    __slots__ = ()
    __array_priority__ = 1000  # NumPy arrays on the left defer to us
    type: ArrayType

    def __dir__(self) -> list[str]:
        """The public names, which Tab shows, and those of Python's protocols."""
        return [n for n in object.__dir__(self) if n not in INTERNAL and (n[0] != "_" or n[:2] == "__")]

    if TYPE_CHECKING:  # functions of rune.numpy, which `rune.array_methods` attaches from above
        all: Callable[..., Self]
        any: Callable[..., Self]
        argmax: Callable[..., Self]
        argmin: Callable[..., Self]
        argpartition: Callable[..., Self]
        argsort: Callable[..., Self]
        choose: Callable[..., Self]
        clip: Callable[..., Self]
        compress: Callable[..., Self]
        cumprod: Callable[..., Self]
        cumsum: Callable[..., Self]
        diagonal: Callable[..., Self]
        dot: Callable[..., Self]
        max: Callable[..., Self]
        mean: Callable[..., Self]
        min: Callable[..., Self]
        nonzero: Callable[..., tuple[Self, ...]]
        prod: Callable[..., Self]
        ptp: Callable[..., Self]
        repeat: Callable[..., Self]
        round: Callable[..., Self]
        searchsorted: Callable[..., Self]
        sort: Callable[..., Self]
        squeeze: Callable[..., Self]
        std: Callable[..., Self]
        sum: Callable[..., Self]
        swapaxes: Callable[..., Self]
        take: Callable[..., Self]
        trace: Callable[..., Self]
        var: Callable[..., Self]

        def __eq__(self, other: object) -> Self: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Self: ...  # type: ignore[override]
        def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
        def astype(self, dtype: DTypeLike | None, copy: bool = False, device: str | Device | None = None) -> Self: ...
        def flatten(self, order: str = "C") -> Self: ...
        def ravel(self, order: str = "C") -> Self: ...
        def reshape(self, *shape: object, order: str = "C") -> Self: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes. A symbolic size is a Dim, which supports integer arithmetic."""
        return self.type.shape  # type: ignore[return-value]

    @property
    def dtype(self) -> Any:
        """Element type: a NumPy dtype, or the KeyDtype of keys."""
        return self.type.public_dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.type.shape)

    @property
    def size(self) -> Any:
        """Number of elements."""
        return c.size_of(self)

    @property
    def nbytes(self) -> Any:
        """Bytes of all elements."""
        return self.size * self.type.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.type.dtype.itemsize

    @property
    def aval(self) -> ArrayType:
        """The type, under JAX's name."""
        return self.type

    @property
    def weak_type(self) -> bool:
        """True if the dtype adapts to that of other operands."""
        return self.type.weak

    @property
    def T(self) -> Self:
        """All axes reversed."""
        return c.transpose(self)

    @property
    def mT(self) -> Self:
        """The last two axes swapped."""
        return c.matrix_transpose(self)

    @property
    def real(self) -> Self:
        """The real part."""
        return c.distinct(c.real(self), self)

    @property
    def imag(self) -> Self:
        """The imaginary part; zeros of a real array."""
        return c.imag(self)

    @property
    def at(self) -> At[Self]:
        """`x.at[index].set(v)`, .add(v), .multiply(v), …: updated copies."""
        return At(self)

    __add__ = _forward(add)
    __radd__ = _reflected(_pair(add))
    __sub__ = _forward(sub)
    __rsub__ = _reflected(_pair(sub))
    __mul__ = _forward(mul)
    __rmul__ = _reflected(_pair(mul))
    __truediv__ = _checked(c.true_divide)
    __rtruediv__ = _reflected(c.true_divide)
    __floordiv__ = _checked(c.floor_divide)
    __rfloordiv__ = _reflected(c.floor_divide)
    __mod__ = _checked(c.remainder)
    __rmod__ = _reflected(c.remainder)
    __pow__ = _checked(c.power)
    __rpow__ = _reflected(c.power)
    __matmul__ = _checked(c.matmul)
    __rmatmul__ = _reflected(c.matmul)
    __and__ = _forward(logical_and)
    __rand__ = _reflected(_pair(logical_and))
    __or__ = _forward(logical_or)
    __ror__ = _reflected(_pair(logical_or))
    __xor__ = _forward(logical_xor)
    __rxor__ = _reflected(_pair(logical_xor))
    __lshift__ = _forward(shl)
    __rlshift__ = _reflected(_pair(shl))
    __rshift__ = _forward(shr)
    __rrshift__ = _reflected(_pair(shr))
    __lt__ = _comparison(lt)
    __le__ = _comparison(le)
    __gt__ = _comparison(gt)
    __ge__ = _comparison(ge)
    __eq__ = _forward(eq)  # type: ignore[assignment]
    __ne__ = _forward(ne)  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def __divmod__(self, other: Any) -> tuple[Self, Self]:
        return _divmod(self, other) if _is_operand(self, other) else NotImplemented

    def __rdivmod__(self, other: Any) -> tuple[Self, Self]:
        return _divmod(other, self) if _is_operand(self, other) else NotImplemented

    def __neg__(self) -> Self:
        return neg(self)

    def __pos__(self) -> Self:
        return self.copy()

    def __abs__(self) -> Self:
        return c.distinct(c.absolute(self), self)

    def __invert__(self) -> Self:
        return logical_not(self)

    def __len__(self) -> int:
        if not self.type.shape:
            raise ArgumentError(f"len: cannot take the length of {self.type} (rank 0)")
        return self.type.shape[0]  # type: ignore[return-value]

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: object) -> Self:
        return read(self, index)

    def __setitem__(self, index: object, value: object) -> None:
        raise ArgumentError(
            f"array: cannot assign to an element of {self.type} (arrays are immutable)",
            hint="use y = x.at[index].set(value)",
        )

    def view(self, dtype: DTypeLike | None = None, type: None = None) -> Self:
        """The same bits read as another dtype; the last axis grows or shrinks with its width.

        Errors: ArgumentError for any `type`, since there is one class of arrays.
        """
        if type is not None:
            raise ArgumentError(f"view: cannot read {self.type} as type={type!r} (there is one class of arrays)")
        return self.copy() if dtype is None else c.distinct(view(self, dtypes.as_dtype(dtype)), self)

    def transpose(self, *axes: Any) -> Self:
        """The axes permuted; reversed without arguments."""
        if len(axes) == 1 and not isinstance(axes[0], int):
            axes = tuple(axes[0]) if axes[0] is not None else ()
        return c.transpose(self, axes or None)

    def conj(self) -> Self:
        """The complex conjugate."""
        return c.distinct(c.conj(self), self)

    conjugate = conj

    def copy(self) -> Self:
        """A traced value itself; of an array, another one, which outlives its donation."""
        return self

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: object) -> Self:
        return self.copy()

    def __contains__(self, element: object) -> bool:
        return bool(st.any(self == element))

    def __round__(self, ndigits: int | None = None) -> Self:
        value = c.distinct(c.round(self, ndigits or 0), self)
        return value.astype(int) if ndigits is None else value  # As in Python: integers if ndigits is absent


# A tuple, since a union would be built at each call.
_OPERANDS = (Operators, np.ndarray, np.generic, bool, int, float, complex, Dim)
