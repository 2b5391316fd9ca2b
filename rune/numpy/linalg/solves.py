"""Linear systems: solve, inv, and their tensor forms.

`solve` and `inv` use an LU factorisation, which is never differentiated: their derivative is
implicit, one more solve with the same factors. A singular matrix gives infinities or NaN;
nothing is raised, so that a program behaves the same under jit.
"""

from __future__ import annotations

import math
from typing import Any

from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import rank, static_int, value
from rune.numpy.linalg.arguments import computing, matrices, same_batch, square
from rune.numpy.shapes import moveaxis
from rune.ops import conventions as c
from rune.ops.linalg.direct import solve as solve_matrices
from rune.ops.matrix_helpers import eye
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike


@tiered
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """x with a x = b.

    Shapes: a [*B, N, N]; b [N] -> [*B, N], b [*B, N, K] -> [*B, N, K]; leading axes broadcast.
    Types:  f32, f64, c64, c128 unchanged; half types through f32; integers become f32.
    Errors: ShapeError unless `a` is square and `b` has N rows. A singular `a` gives
            infinities or NaN.
    Source: LU with partial pivoting, Golub & Van Loan 4e, §3.4; derivative: Giles 2008, §2.2.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.solve(rnp.array([[2.0, 0.0], [1.0, 4.0]]), rnp.array([2.0, 9.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    (x, y), narrow = computing("solve", a, b)
    x_type = square("solve", x)
    is_vector = rank(y) == 1
    y = c.expand_dims(y, -1) if is_vector else y
    matrices("solve", y)
    if type_of(y).shape[-2] != x_type.shape[-1]:
        raise ShapeError(
            f"solve: cannot solve {x_type} for {type_of(value('solve', b))} "
            f"({x_type.shape[-1]} unknowns, {type_of(y).shape[-2]} rows)"
        )
    out = solve_matrices(*same_batch("solve", x, y))
    return narrow(c.squeeze(out, -1) if is_vector else out)


@tiered
def inv(a: ArrayLike) -> Array:
    """The inverse of square matrices.

    Shapes: [*B, N, N] -> [*B, N, N].
    Types:  f32, f64, c64, c128 unchanged; half types through f32; integers become f32.
    Errors: ShapeError for matrices that are not square. A singular matrix gives infinities or NaN.
    Source: LU with partial pivoting, Golub & Van Loan 4e, §3.4.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.inv(rnp.array([[2.0, 0.0], [1.0, 4.0]]))
    Array([[ 0.5  ,  0.   ],
           [-0.125,  0.25 ]], f32[2,2], cpu:0)
    """
    (x,), narrow = computing("inv", a)
    x_type = square("inv", x)
    return narrow(solve_matrices(x, eye(x_type.shape, x_type.dtype)))


# --- tensors ----------------------------------------------------------------------------------


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of `a` as a map from its last axes to its first `ind` axes.

    Shapes: [*P, *Q] -> [*Q, *P] with `ind` axes P; P and Q have equally many elements.
    Types:  bools and integers become floats.
    Errors: ArgumentError for ind < 1; ShapeError where the two sides differ in size.
    Source: one `solve` of the reshaped system.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.tensorinv(rnp.eye(4).reshape(2, 2, 4)).shape
    (4, 2, 2)
    """
    x = value("tensorinv", a)
    shape, count = type_of(x).shape, static_int("tensorinv", "a number of axes", ind)
    if count < 1:
        raise ArgumentError(f"tensorinv: cannot split off {count} axes (at least 1 required)")
    rows, columns = math.prod(shape[:count]), math.prod(shape[count:])
    if rows != columns:
        raise ShapeError(
            f"tensorinv: cannot invert {type_of(x)} ({rows} elements in the first {count} axes, "
            f"{columns} in the others)"
        )
    flat = inv(c.reshape(x, (rows, columns)))
    return c.reshape(flat, (*shape[count:], *shape[:count]))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Any = None) -> Array:
    """x with tensordot(a, x, x.ndim) = b. The axes `axes` of `a` are moved to the end first.

    Shapes: a [*B, *Q], b [*B] -> [*Q]; B and Q have equally many elements.
    Types:  bools and integers become floats.
    Errors: ShapeError where the two sides differ in size.
    Source: one `solve` of the reshaped system.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.tensorsolve(rnp.eye(4).reshape(2, 2, 4), rnp.ones((2, 2)))
    Array([1., 1., 1., 1.], f32[4], cpu:0)
    """
    x, y = value("tensorsolve", a), value("tensorsolve", b)
    if axes is not None:
        moved_axes = c.normalised_axes("tensorsolve", tuple(axes), type_of(x))
        x = moveaxis(x, moved_axes, tuple(range(rank(x) - len(moved_axes), rank(x))))
    unknowns = type_of(x).shape[rank(y) :]
    count, rows = math.prod(unknowns), math.prod(type_of(x).shape[: rank(y)])
    if count != rows:
        raise ShapeError(
            f"tensorsolve: cannot solve {type_of(x)} for {type_of(y)} ({count} unknowns, {rows} equations)"
        )
    solution = solve(c.reshape(x, (rows, count)), c.reshape(y, (-1,)))
    return c.reshape(solution, unknowns)
