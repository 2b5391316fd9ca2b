"""Products of matrices and vectors under the names of NumPy's linalg, and powers of matrices.

They differ from the functions of the same name in `rune.numpy` in that matrices are always the last
two axes, and operands are not flattened first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rune.array import Array
from rune.core.interpreter import type_of
from rune.dims import product
from rune.errors import ArgumentError, ShapeError
from rune.numpy import matrices as in_numpy
from rune.numpy import products as all_products
from rune.numpy.arguments import rank, static_int, value, values
from rune.numpy.linalg.arguments import square
from rune.numpy.linalg.solves import inv
from rune.ops import conventions as c
from rune.ops.matrix_helpers import eye, is_static
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, DTypeLike

matmul = all_products.matmul
tensordot = all_products.tensordot
vecdot = all_products.vecdot


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The last two axes exchanged.

    Shapes: [*B, M, N] -> [*B, N, M]. Types: that of `x`.
    Errors: ShapeError for a rank below 2.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.matrix_transpose(rnp.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    return c.matrix_transpose(value("matrix_transpose", x))


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonal of the last two axes; `offset` counts to the right.

    Shapes: x [*B, M, N] -> [*B, K]. Types: that of `x`.
    Errors: ArgumentError if an argument is not an array; ShapeError for rank 0.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.diagonal(rnp.arange(4).reshape(2, 2))
    Array([0, 3], i32[2], cpu:0)
    """
    return in_numpy.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sum of the diagonal of the last two axes.

    Shapes: x [*B, M, N] -> [*B]. Types: as `sum`.
    Errors: ArgumentError if an argument is not an array; DtypeError for an unknown dtype;
            ShapeError for rank 0.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.trace(rnp.ones((5, 3, 3))).shape
    (5,)
    """
    return in_numpy.trace(x, offset, -2, -1, dtype)


@tiered
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Products of all pairs.

    Shapes: [M], [N] -> [M, N]. Types: promoted together.
    Errors: ShapeError for other ranks.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.outer(rnp.array([1, 2]), rnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], i32[2,2], cpu:0)
    """
    p, q = value("outer", x1), value("outer", x2)
    if rank(p) != 1 or rank(q) != 1:
        raise ShapeError(f"outer: cannot multiply {type_of(p)} and {type_of(q)} (rank 1 required)")
    return all_products.outer(p, q)


@tiered
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors with 3 components along `axis`.

    Shapes: broadcast together, 3 along `axis`. Types: promoted together.
    Errors: ShapeError for any other number of components.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.cross(rnp.array([1, 0, 0]), rnp.array([0, 1, 0]))
    Array([0, 0, 1], i32[3], cpu:0)
    """
    for x in (type_of(value("cross", v)) for v in (x1, x2)):
        if x.shape[c.normalised_axis("cross", axis, x)] != 3:
            raise ShapeError(f"cross: cannot multiply {x} along axis {axis} (size 3 required)")
    return all_products.cross(x1, x2, axis=axis)


@tiered
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Square matrices multiplied n times; a negative n means powers of the inverse.

    Shapes: [*B, N, N] -> [*B, N, N].
    Types:  that of `a`; of a negative n, bools and integers become floats.
    Errors: ShapeError for matrices that are not square; ArgumentError if n is not an integer.
    Cost:   about log2 n products, up to twice as many.
    Source: repeated squaring, Knuth, TAOCP 2, §4.6.3.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.matrix_power(rnp.array([[1.0, 1.0], [0.0, 1.0]]), 5)
    Array([[1., 5.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    x, power = value("matrix_power", a), static_int("matrix_power", "a power", n)
    x_type = square("matrix_power", x)
    if power == 0:
        return eye(x_type.shape, x_type.dtype)
    square_, power = (inv(x), -power) if power < 0 else (x, power)
    while power % 2 == 0:
        square_, power = c.matmul(square_, square_), power // 2
    out = square_
    while power := power // 2:
        square_ = c.matmul(square_, square_)
        out = c.matmul(out, square_) if power % 2 else out
    return c.distinct(out, a)


def multi_dot(arrays: Sequence[ArrayLike], *, precision: object = None) -> Array:
    """The product of several matrices, in the order that needs the fewest multiplications.

    The first and the last may be vectors.
    Shapes: [M, K], [K, L], …, [P, N] -> [M, N]; a vector at an end has no such axis.
    Types:  promoted together.
    Errors: ArgumentError for fewer than two; ShapeError where sizes or ranks do not match.
    Source: Cormen et al., Introduction to Algorithms 3e, §15.2.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.multi_dot([rnp.ones((2, 3)), rnp.ones((3, 4)), rnp.ones(4)])
    Array([12., 12.], f32[2], cpu:0)
    """
    xs = values("multi_dot", arrays)
    if len(xs) < 2:
        raise ArgumentError(f"multi_dot: cannot multiply {len(xs)} array (at least 2 required)")
    first, last = rank(xs[0]) == 1, rank(xs[-1]) == 1
    xs[0] = c.expand_dims(xs[0], 0) if first else xs[0]
    xs[-1] = c.expand_dims(xs[-1], 1) if last else xs[-1]
    if any(rank(x) != 2 for x in xs):
        ranks = ", ".join(str(type_of(x)) for x in xs)
        raise ShapeError(f"multi_dot: cannot multiply {ranks} (matrices required)")
    out = _in_best_order(xs)
    ends = tuple(axis for axis, is_vector in ((0, first), (1, last)) if is_vector)
    return c.squeeze(out, ends) if ends else out


def _in_best_order(xs: Sequence[ArrayLike]) -> Array:
    """Fill the table of the cheapest way to multiply each run of matrices, short runs first."""
    sizes = [*(type_of(x).shape[0] for x in xs), type_of(xs[-1]).shape[1]]
    count = len(xs)
    cost: dict[tuple[int, int], Any] = {(i, i): 0 for i in range(count)}
    products = {(i, i): x for i, x in enumerate(xs)}
    cut: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = [cost[i, k] + cost[k + 1, j] + product((sizes[i], sizes[k + 1], sizes[j + 1])) for k in range(i, j)]
            best = min(range(len(costs)), key=costs.__getitem__) if is_static(costs) else 0
            cost[i, j], cut[i, j] = costs[best], i + best
    return _multiplied(products, cut, count - 1)


def _multiplied(products: dict[tuple[int, int], Any], cut: dict[tuple[int, int], int], last: int) -> Array:
    """The product of the whole run, its parts first."""
    waiting = [(0, last)]
    while waiting:
        i, j = waiting[-1]
        k = cut.get((i, j), i)
        missing = [run for run in ((i, k), (k + 1, j)) if i != j and run not in products]
        if missing:
            waiting += missing
            continue
        if (i, j) not in products:
            products[i, j] = c.matmul(products[i, k], products[k + 1, j])
        waiting.pop()
    return products[0, last]
