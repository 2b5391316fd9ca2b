"""Linear matrix equations: Sylvester's and Lyapunov's.

All use the Schur forms of the coefficients, and have the implicit derivative: one more equation
with the same forms. Without a unique solution the result is infinite or NaN.
"""

from __future__ import annotations

from rune import ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.linalg import inv
from rune.numpy.linalg.arguments import computing, square
from rune.ops.linalg.schur import solve_sylvester as solve_by_forms
from rune.ops.matrix_helpers import adjoint, eye, matmul, number
from rune.ops.promote import broadcast_shape, broadcast_to
from rune.scipy.sequences import from_sequences
from rune.typing import ArrayLike, Nested


def _solved(a: Array, b: Array, c: Array) -> Array:
    """A X + X B = C for one dtype, leading axes broadcast."""
    types = [type_of(x) for x in (a, b, c)]
    lead = broadcast_shape("solve_sylvester", *(t.shape[:-2] for t in types))
    spread = (broadcast_to("solve_sylvester", x, (*lead, *t.shape[-2:])) for x, t in zip((a, b, c), types, strict=True))
    return solve_by_forms(*spread)


def solve_sylvester(A: Nested, B: Nested, C: Nested, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """X with A X + X B = C.

    method:  accepted as in JAX, "schur" or "eigen"; tol likewise. The Schur form serves both.

    Shapes: [*B, M, M], [*B, N, N], [*B, M, N] -> [*B, M, N]; leading axes broadcast.
    Types:  the common dtype, complex included; bools and integers become floats.
    Errors: ShapeError if the sizes do not match; ArgumentError for an unknown method. Where A and
            -B share an eigenvalue the result is infinite or NaN.
    Source: Bartels & Stewart 1972, Comm. ACM 15(9).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.solve_sylvester(rnp.eye(2), 2.0 * rnp.eye(2), 6.0 * rnp.eye(2))
    Array([[2., 0.],
           [0., 2.]], f32[2,2], cpu:0)
    """
    if method not in ("schur", "eigen"):
        raise ArgumentError(f"solve_sylvester: cannot use method={method!r} ('schur' or 'eigen' required)")
    (a, b, c), narrow = computing("solve_sylvester", *from_sequences(A, B, C))
    m, n = square("solve_sylvester", a).shape[-1], square("solve_sylvester", b).shape[-1]
    if type_of(c).shape[-2:] != (m, n):
        raise ShapeError(
            f"solve_sylvester: cannot solve {type_of(a)}, {type_of(b)} for {type_of(c)} "
            f"({m} rows and {n} columns required)"
        )
    return narrow(_solved(a, b, c))


def solve_continuous_lyapunov(a: ArrayLike, q: ArrayLike) -> Array:
    """X with a X + X aᴴ = q.

    Shapes: [*B, N, N] both -> [*B, N, N].
    Types:  the common dtype, complex included; bools and integers become floats.
    Errors: ShapeError if the sizes do not match.
    Source: Sylvester's equation with B = aᴴ.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.solve_continuous_lyapunov(rnp.eye(2), 4.0 * rnp.eye(2))
    Array([[2., 0.],
           [0., 2.]], f32[2,2], cpu:0)
    """
    (x, y), narrow = computing("solve_continuous_lyapunov", a, q)
    _same_sizes("solve_continuous_lyapunov", x, y)
    return narrow(_solved(x, adjoint(x), y))


def solve_discrete_lyapunov(a: ArrayLike, q: ArrayLike, method: str | None = None) -> Array:
    """X with a X aᴴ - X + q = 0.

    method:  accepted as in SciPy, "direct" or "bilinear"; the bilinear map serves both.

    Shapes: [*B, N, N] both -> [*B, N, N].
    Types:  the common dtype, complex included; bools and integers become floats.
    Errors: ShapeError if the sizes do not match; ArgumentError for an unknown method.
    Source: the continuous equation of (aᴴ - 1)(aᴴ + 1)⁻¹, for which -1 may be no eigenvalue;
            Gajic & Qureshi 1995, Lyapunov Matrix Equation in System Stability and Control, §5.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import linalg
    >>> linalg.solve_discrete_lyapunov(0.5 * rnp.eye(2), 3.0 * rnp.eye(2))
    Array([[4., 0.],
           [0., 4.]], f32[2,2], cpu:0)
    """
    if method not in (None, "direct", "bilinear"):
        raise ArgumentError(f"solve_discrete_lyapunov: cannot use method={method!r} ('direct' or 'bilinear')")
    (x, y), narrow = computing("solve_discrete_lyapunov", a, q)
    _same_sizes("solve_discrete_lyapunov", x, y)
    identity = eye(type_of(x).shape, type_of(x).dtype)
    upper = adjoint(x)
    inverse = inv(ops.add(upper, identity))
    cayley = matmul(ops.sub(upper, identity), inverse)
    right = matmul(matmul(adjoint(inverse), y), inverse)
    return narrow(_solved(adjoint(cayley), cayley, ops.mul(right, number(-2, right))))


def _same_sizes(name: str, a: Array, q: Array) -> None:
    if square(name, a).shape[-2:] != square(name, q).shape[-2:]:
        raise ShapeError(f"{name}: cannot solve {type_of(a)} for {type_of(q)} (sizes differ)")
