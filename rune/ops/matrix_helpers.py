"""What algorithms on matrices share: products, adjoints, triangles, windows at moving positions.

Matrices are the last two axes, after any number of leading batch axes, which all operands of one
algorithm share. No size changes from step to step: an algorithm keeps its arrays whole, and masks
the elements that do not take part (`rows`, `columns`, `keep`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal, literal_like, type_of
from rune.core.primitive import Primitive, Rule
from rune.core.types import ArrayType, Shape
from rune.core.values import Operand, V, Value
from rune.dims import Size
from rune.errors import DtypeError, ShapeError
from rune.ops.arithmetic import add, cast, eq, ge, gt, is_finite, le, logical_and, mul, ne, select
from rune.ops.complex_numbers import conj, imag, real
from rune.ops.contraction import dot_general
from rune.ops.creation import iota
from rune.ops.family import Batched, broadcast, fit, reduce_sum, reshape, same_dtype, size_value, stretch, types_text
from rune.ops.index_dims import IndexDims
from rune.ops.indexing import gather
from rune.ops.movement import concatenate, pad, slice_, spread_batches, transpose
from rune.ops.reduction import reduce_min
from rune.ops.repeat import repeat
from rune.ops.windows import dynamic_slice, dynamic_update_slice

if TYPE_CHECKING:
    from rune.array import Array

LAPACK = frozenset({dtypes.f32, dtypes.f64, dtypes.c64, dtypes.c128})

# --- types ------------------------------------------------------------------------------------


def require_matrices(name: str, *types: ArrayType) -> np.dtype:
    """The dtype that matrices with equal batch axes share.

    Errors: DtypeError unless it is f32, f64, c64 or c128; ShapeError for a rank below 2, or batch
            axes that differ.
    """
    dtype = same_dtype(name, *types)
    if dtype not in LAPACK:
        raise DtypeError(
            f"{name}: cannot take {types_text(types)} (f32, f64, c64 or c128 required)",
            hint="rune.numpy.linalg converts; primitives take the four dtypes of LAPACK",
        )
    if any(t.ndim < 2 for t in types) or any(t.shape[:-2] != types[0].shape[:-2] for t in types):
        raise ShapeError(f"{name}: cannot take {types_text(types)} (matrices with equal batch axes required)")
    return dtype


def require_square(name: str, a: ArrayType) -> Size:
    """The size of square matrices. Errors: ShapeError."""
    if a.ndim < 2:
        raise ShapeError(f"{name}: cannot take {a} (square matrices required: rank {a.ndim})")
    if a.shape[-2] != a.shape[-1]:
        raise ShapeError(
            f"{name}: cannot take {a} (square matrices required: {a.shape[-2]} rows, {a.shape[-1]} columns)"
        )
    return a.shape[-1]


def is_static(shape: Sequence[Size]) -> bool:
    """Whether no size is symbolic."""
    return all(isinstance(d, int) for d in shape)


def batch_leading(primitive: Callable[[], Primitive]) -> Rule:
    """The batch rule of an operation on the last axes: one more leading axis."""

    def batch(batched: Batched, size: Size, *args: Value, **params: object) -> tuple[Any, Any]:
        out = primitive()(*spread_batches(batched, size, args), **params)
        return (out, [True] * len(out)) if primitive().multiple_results else (out, True)

    return batch


# --- numbers ----------------------------------------------------------------------------------


def real_part(x: V) -> V:
    """The real part; a real value unchanged."""
    return real(x) if type_of(x).dtype in dtypes.COMPLEX else x


def conjugate(x: V) -> V:
    """The complex conjugate; a real value unchanged."""
    return conj(x) if type_of(x).dtype in dtypes.COMPLEX else x


def as_dtype_of(x: Value, like: Value) -> Array:
    """A real value as a number of the dtype of `like`."""
    return cast(x, type_of(like).dtype)


def number(value: Value, like: Operand) -> np.ndarray:
    """A rank-0 constant of the dtype of `like`."""
    return literal_like(value, like)


def nan_like(x: Value) -> np.ndarray:
    """Not a number; for complex dtypes, in both parts."""
    dtype = type_of(x).dtype
    return np.asarray(complex(np.nan, np.nan) if dtype in dtypes.COMPLEX else np.nan).astype(dtype)


def first_not_finite(x: Value) -> Array:
    """The row where numbers stop being finite in each column; N if all are. [*B, N, K] -> i32[*B,
    1, K]
    """
    *lead, n, count = type_of(x).shape
    if type_of(x).dtype in dtypes.COMPLEX:
        is_usual = logical_and(is_finite(real(x)), is_finite(imag(x)))
    else:
        is_usual = is_finite(x)
    places = select(is_usual, size_value(n, dtypes.i32), rows(type_of(x).shape))
    return reshape(reduce_min(places, axes=(len(lead),)), shape=(*lead, 1, count))


# --- products ---------------------------------------------------------------------------------


def matmul(a: Value, b: Value) -> Array:
    """Matrix product. Shapes: [*B, M, K], [*B, K, N] -> [*B, M, N]."""
    n = type_of(a).ndim - 2
    lead = tuple(range(n))
    return dot_general(a, b, dimension_numbers=(((n + 1,), (n,)), (lead, lead)))


def swapped(a: Value) -> Array:
    """The transposed matrices."""
    n = type_of(a).ndim
    return transpose(a, permutation=(*range(n - 2), n - 1, n - 2))


def adjoint(a: Value) -> Array:
    """The conjugate transposed matrices."""
    return conjugate(swapped(a))


def scaled_columns(a: Value, d: Value) -> Array:
    """A diag(d). Shapes: [*B, M, N], [*B, N] -> [*B, M, N]."""
    n = type_of(a).ndim
    return mul(a, broadcast(d, shape=type_of(a).shape, axes=(*range(n - 2), n - 1)))


def scaled_rows(d: Value, a: Value) -> Array:
    """diag(d) A. Shapes: [*B, M], [*B, M, N] -> [*B, M, N]."""
    return mul(stretch(d, type_of(a).shape), a)


# --- patterns ---------------------------------------------------------------------------------


def rows(shape: Shape) -> Array:
    """The row number of every element of matrices, i32."""
    return iota(shape=shape, axis=len(shape) - 2, dtype=dtypes.i32)


def columns(shape: Shape) -> Array:
    """The column number of every element of matrices, i32."""
    return iota(shape=shape, axis=len(shape) - 1, dtype=dtypes.i32)


def keep(mask: Value, x: Operand) -> Array:
    """`x` where the mask holds, zero elsewhere."""
    return select(mask, x, number(0, x))


def lower_triangle(a: Value, k: int = 0) -> Array:
    """Zeros above diagonal k."""
    row, column = _band(type_of(a).shape, k)
    return keep(ge(row, column), a)


def upper_triangle(a: Value, k: int = 0) -> Array:
    """Zeros below diagonal k."""
    row, column = _band(type_of(a).shape, k)
    return keep(le(row, column), a)


def _band(shape: Shape, k: int) -> tuple[Array, Array]:
    row = rows(shape)
    return (row if k == 0 else add(row, np.int32(k))), columns(shape)


def eye(shape: Shape, dtype: np.dtype) -> Array:
    """Ones on the diagonal of matrices of this shape."""
    return cast(eq(rows(shape), columns(shape)), dtype)


def with_unit_diagonal(a: Value) -> Array:
    """The matrices with ones on the diagonal."""
    shape = type_of(a).shape
    return select(eq(rows(shape), columns(shape)), number(1, a), a)


def diagonal(a: Operand) -> Array:
    """The diagonal. Shapes: [*B, M, N] -> [*B, min(M, N)]."""
    *lead, m, n = type_of(a).shape
    count = smaller(m, n)
    on = keep(eq(rows((*lead, m, n)), columns((*lead, m, n))), a)
    return reduce_sum(on, axes=(len(lead) + (1 if count is m else 0),))


def from_diagonal(d: Value) -> Array:
    """Diagonal matrices. Shapes: [*B, N] -> [*B, N, N]."""
    *lead, n = type_of(d).shape
    shape = (*lead, n, n)
    return keep(eq(rows(shape), columns(shape)), broadcast(d, shape=shape, axes=(*range(len(lead)), len(lead) + 1)))


def hermitian(a: Value, lower: bool = True) -> Array:
    """The Hermitian matrices with this triangle of `a`; imaginary parts on the diagonal are
    dropped.
    """
    triangle = lower_triangle(a, -1) if lower else upper_triangle(a, 1)
    on = from_diagonal(as_dtype_of(real_part(diagonal(a)), a))
    return add(add(triangle, adjoint(triangle)), on)


def off_diagonal(a: Value) -> Array:
    """The matrices with zeros on the diagonal."""
    shape = type_of(a).shape
    return keep(ne(rows(shape), columns(shape)), a)


# --- windows ----------------------------------------------------------------------------------


def corner(a: V, m: Size, n: Size) -> V:
    """The first m rows and n columns."""
    *lead, p, q = type_of(a).shape
    if (p, q) == (m, n):
        return a
    first = (0,) * (len(lead) + 2)
    return slice_(a, start=first, limit=(*lead, m, n), stride=(1,) * (len(lead) + 2))


def window(a: Value, axis: int, start: Value, size: Size) -> Array:
    """`size` elements of one axis from `start`, which is a value."""
    shape = type_of(a).shape
    axis %= len(shape)
    sizes = tuple(size if i == axis else d for i, d in enumerate(shape))
    return dynamic_slice(a, *_starts(len(shape), axis, start), sizes=sizes)


def put(a: Value, axis: int, start: Value, update: Value) -> Array:
    """`a` with a window of one axis replaced."""
    ndim = type_of(a).ndim
    return dynamic_update_slice(a, update, *_starts(ndim, axis % ndim, start))


def _starts(ndim: int, axis: int, start: Value) -> list[Value]:
    return [start if i == axis else np.zeros((), np.int32) for i in range(ndim)]


def grown(a: V, m: Size, n: Size) -> V:
    """The matrices padded by zeros to m rows and n columns, below and on the right."""
    *lead, p, q = type_of(a).shape
    if (p, q) == (m, n):
        return a
    no_padding = (0,) * (len(lead) + 2)
    return pad(a, number(0, a), low=no_padding, high=(*no_padding[2:], m - p, n - q), interior=no_padding)


def grown_by_identity(a: V, n: Size) -> V:
    """Square matrices padded to size n, with ones on the new part of the diagonal."""
    shape = type_of(a).shape
    size = shape[-1]
    if size == n:
        return a
    matrix = grown(a, n, n)
    row, column = rows(type_of(matrix).shape), columns(type_of(matrix).shape)
    new = gt(row, literal(size - 1, dtypes.i32))
    return select(new, cast(eq(row, column), type_of(a).dtype), matrix)


def permuted_rows(a: Value, order: Value) -> Array:
    """Row order[i] of `a` as row i. Shapes: [*B, M, N], i32[*B, K] -> [*B, K, N]."""
    *lead, _, n = type_of(a).shape
    first, batch = len(lead), tuple(range(len(lead)))
    dims = IndexDims((first + 1,), (first,), (first,), batch, batch)
    indices = reshape(order, shape=(*type_of(order).shape, 1))
    sizes = (*(1 for _ in lead), 1, n)
    return gather(a, indices, number(0, a), dims=dims, slice_sizes=sizes, mode="promise_in_bounds")


def full(value: Value, shape: Shape) -> Array:
    """A rank-0 value at every place."""
    return broadcast(value, shape=shape, axes=())


def zeros(like: Value) -> Array:
    """Zeros of the shape and dtype of `like`."""
    return full(number(0, like), type_of(like).shape)


def steps(count: Size, body: Callable[..., Sequence[Value]], *carry: Value) -> list[Any]:
    """`repeat`, except that for a count of 0 the body is not traced: it may index what does not
    exist.
    """
    return list(carry) if count == 0 else repeat(count, body, *carry)


def smaller(m: Size, n: Size) -> Size:
    """The smaller of two sizes."""
    return m if m == n or m < n else n


def next_multiple(n: Any, block: Any) -> Any:
    """The least multiple of `block` that is not below n."""
    return -(-n // block) * block


# --- elements ---------------------------------------------------------------------------------


def elements(a: Value) -> list[list[Array]]:
    """Small matrices element by element, each an array over the lanes [*B]."""
    *lead, m, n = type_of(a).shape
    return [[_element(a, tuple(lead), i, j) for j in range(n)] for i in range(m)]


def _element(a: Value, lead: Shape, i: int, j: int) -> Array:
    low, high = (*(0 for _ in lead), i, j), (*lead, i + 1, j + 1)
    return reshape(slice_(a, start=low, limit=high, stride=(1,) * len(low)), shape=lead)


def from_elements(entries: Sequence[Sequence[Value]], lead: Shape) -> Array:
    """The matrices of these elements; rank-0 elements are shared by all lanes."""
    n = len(lead)
    matrix_rows = [
        concatenate(*(reshape(fit(x, lead), shape=(*lead, 1, 1)) for x in row), axis=n + 1) for row in entries
    ]
    return concatenate(*matrix_rows, axis=n)
