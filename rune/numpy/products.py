"""Products of vectors, matrices and tensors. Every one is one dot_general, or a multiplication.

Floats are multiplied at full precision and half types accumulate in f32, which satisfies any value
of `precision=`. `preferred_element_type` is the dtype of the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.dims import product as size_product
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import rank, resolved, static_int, together, value
from rune.numpy.operands import operands_alone
from rune.numpy.shapes import moveaxis
from rune.ops import conventions as c
from rune.ops.promote import apply
from rune.sharding.shardings import Sharding
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, DTypeLike


def _pair(name: str, a: ArrayLike, b: ArrayLike, dtype: DTypeLike | None) -> list[Array]:
    """Two arrays of one dtype: `dtype`, that of the products, if it is given."""
    operands = together(name, a, b)
    if dtype is None:
        return operands
    return [c.astype(x, dtypes.as_dtype(dtype)) for x in operands]


@tiered
@operands_alone
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Matrix product; leading axes broadcast, rank 1 is a vector.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: [*B, M, K] @ [*B, K, N] -> [*B, M, N]. Types: promoted together.
    Errors: ShapeError names both shapes and the axes that conflict.

    >>> import rune.numpy as rnp
    >>> rnp.matmul(rnp.eye(2), rnp.array([1.0, 2.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    if out_sharding is not None:
        return resolved(matmul, out_sharding, a, b, preferred_element_type=preferred_element_type)
    return c.matmul(*_pair("matmul", a, b, preferred_element_type))


@tiered
@operands_alone
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Sum of products over the last axis of `a` and the second-to-last axis of `b`.

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: [*A, K] · [*B, K, N] -> [*A, *B, N]; a rank-0 operand multiplies.
    Types:  promoted together.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.dot(rnp.array([1, 2]), rnp.array([3, 4]))
    Array(11, i32[], cpu:0)
    """
    if out_sharding is not None:
        return resolved(dot, out_sharding, a, b, preferred_element_type=preferred_element_type)
    return c.dot(*_pair("dot", a, b, preferred_element_type))


@tiered
def vdot(
    a: ArrayLike, b: ArrayLike, *, precision: object = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """Inner product of the flattened arrays, with the first one conjugated.

    Shapes: two of N elements -> []. Types: promoted together.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.vdot(rnp.ones((2, 2)), rnp.ones((2, 2)))
    Array(4., f32[], cpu:0)
    """
    x, y = _pair("vdot", a, b, preferred_element_type)
    return c.dot(c.reshape(c.conj(x), -1), c.reshape(y, -1))


@tiered
@operands_alone
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Inner products along one axis, with the first array conjugated and the other axes broadcast.

    Shapes: [*A, K, *B], broadcast together -> [*A, *B]. Types: promoted together.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match;
            AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.vecdot(rnp.ones((2, 3)), rnp.arange(3.0))
    Array([3., 3.], f32[2], cpu:0)
    """
    x, y = _pair("vecdot", x1, x2, preferred_element_type)
    x, y = moveaxis(c.conj(x), axis, -1), moveaxis(y, axis, -1)
    out = c.matmul(c.expand_dims(x, -2), c.expand_dims(y, -1))
    return c.squeeze(out, (-2, -1))


@tiered
@operands_alone
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Matrix times vector. Shapes: [*B, M, N], [*B, N] -> [*B, M].

    Types:  promoted together.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.matvec(rnp.eye(2), rnp.array([1.0, 2.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    return c.squeeze(c.matmul(value("matvec", x1), c.expand_dims(value("matvec", x2), -1)), -1)


@tiered
@operands_alone
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Vector, conjugated, times matrix. Shapes: [*B, M], [*B, M, N] -> [*B, N].

    Types:  promoted together.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match;
            AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.vecmat(rnp.array([1.0, 2.0]), rnp.eye(2))
    Array([1., 2.], f32[2], cpu:0)
    """
    x1 = value("vecmat", x1)
    return c.squeeze(c.matmul(c.expand_dims(c.conj(x1), -2), value("vecmat", x2)), -2)


@tiered
def inner(
    a: ArrayLike, b: ArrayLike, *, precision: object = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """Sum of products over both last axes. Shapes: [*A, K], [*B, K] -> [*A, *B].

    Types:  promoted together.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.inner(rnp.ones((2, 3)), rnp.ones((4, 3))).shape
    (2, 4)
    """
    x, y = _pair("inner", a, b, preferred_element_type)
    if not rank(x) or not rank(y):
        return apply(ops.mul, x, y)
    return _contract("inner", x, y, (rank(x) - 1,), (rank(y) - 1,))


def _contract(name: str, x: ArrayLike, y: ArrayLike, of_x: tuple, of_y: tuple) -> Array:
    for i, j in zip(of_x, of_y, strict=True):
        if type_of(x).shape[i] != type_of(y).shape[j]:
            raise ShapeError(
                f"{name}: cannot contract {type_of(x)} with {type_of(y)} "
                f"(axis {i}: {type_of(x).shape[i]} against axis {j}: {type_of(y).shape[j]})"
            )
    return c.contract(x, y, ((of_x, of_y), ((), ())))


@tiered
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Products of all pairs from the flattened arrays. Shapes: [M], [N] -> [M, N].

    Types:  promoted together.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.outer(rnp.array([1, 2]), rnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], i32[2,2], cpu:0)
    """
    if out is not None:
        raise ArgumentError("outer: cannot use out= (arrays are immutable)")
    x, y = _pair("outer", a, b, None)
    return apply(ops.mul, c.reshape(x, (-1, 1)), c.reshape(y, (1, -1)))


@tiered
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: object = 2,
    *,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Sum of products over chosen axes.

    axes:   an integer n (the last n of `a` with the first n of `b`), or a pair of axis lists.
    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: the remaining axes of `a`, then those of `b`.
    Types:  promoted together.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune.numpy as rnp
    >>> rnp.tensordot(rnp.ones((2, 3)), rnp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    if out_sharding is not None:
        return resolved(tensordot, out_sharding, a, b, axes, preferred_element_type=preferred_element_type)
    x, y = _pair("tensordot", a, b, preferred_element_type)
    of_x, of_y = _tensordot_axes(axes, type_of(x), type_of(y))
    if len(of_x) != len(of_y):
        raise ArgumentError(f"tensordot: cannot pair axes {of_x} with {of_y} (counts differ)")
    return _contract("tensordot", x, y, of_x, of_y)


def _tensordot_axes(axes: object, x: ArrayType, y: ArrayType) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, Sequence):
        first, second = axes
        return (c.normalised_axes("tensordot", first, x), c.normalised_axes("tensordot", second, y))
    count = static_int("tensordot", "a number of axes", axes)
    if not 0 <= count <= min(x.ndim, y.ndim):
        raise ArgumentError(f"tensordot: cannot contract {count} axes of {x} and {y}")
    return tuple(range(x.ndim - count, x.ndim)), tuple(range(count))


@tiered
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Kronecker product: every element of `a` times all of `b`.

    Shapes: [M, N, …], [P, Q, …] -> [M P, N Q, …]; the lower rank gets axes of size 1 in front.
    Types:  promoted together.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.kron(rnp.array([1, 10]), rnp.array([1, 2]))
    Array([ 1,  2, 10, 20], i32[4], cpu:0)
    """
    x, y = _pair("kron", a, b, None)
    ndim = max(rank(x), rank(y))
    p, q = ((1,) * (ndim - rank(v)) + type_of(v).shape for v in (x, y))
    spread_x = tuple(size for d in p for size in (d, 1))
    spread_y = tuple(size for d in q for size in (1, d))
    both = apply(ops.mul, c.reshape(x, spread_x), c.reshape(y, spread_y))
    return c.reshape(both, tuple(size_product(pair) for pair in zip(p, q, strict=True)))


@tiered
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """Cross product of vectors with 3 components, or with 2, whose third is 0.

    The product of two vectors with 2 components is only its third component.
    Shapes: broadcast together, [*B, 3] -> [*B, 3]; two of [*B, 2] -> [*B].
    Types:  promoted together.
    Errors: ShapeError for any other number of components.

    >>> import rune.numpy as rnp
    >>> rnp.cross(rnp.array([1, 0, 0]), rnp.array([0, 1, 0]))
    Array([0, 0, 1], i32[3], cpu:0)
    """
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    x, y = _pair("cross", a, b, None)
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    sizes = [type_of(v).shape[-1] for v in (x, y)]
    if any(size not in (2, 3) for size in sizes):
        raise ShapeError(f"cross: cannot multiply {type_of(x)} and {type_of(y)} (2 or 3 components required)")
    p, q = ([v[..., i] for i in range(size)] for v, size in zip((x, y), sizes, strict=True))
    third = p[0] * q[1] - p[1] * q[0]
    match sizes:
        case [2, 2]:
            return third
        case [2, 3]:  # products with a missing component are left out: with an infinity they would be NaN
            parts = [p[1] * q[2], -(p[0] * q[2]), third]
        case [3, 2]:
            parts = [-(p[2] * q[1]), p[2] * q[0], third]
        case _:
            parts = [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], third]
    components = ops.concatenate(*(c.expand_dims(v, -1) for v in parts), axis=rank(third))
    return moveaxis(components, -1, axisc)
