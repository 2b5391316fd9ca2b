"""Factorisations by name: cholesky and qr. Spectral ones are in spectra.py."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from rune import ops
from rune.array import Array
from rune.errors import ArgumentError
from rune.numpy.linalg.arguments import computing, matrices, square, symmetrised
from rune.ops.matrix_helpers import adjoint, swapped
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Array
    R: Array


@tiered
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with L Lᴴ = a; with `upper`, the upper triangular U with Uᴴ U = a.

    symmetrize_input:  whether a stands for (a + aᴴ) / 2; otherwise its lower triangle is read, with
                       `upper` too.

    Shapes: [*B, N, N] -> [*B, N, N]; the other triangle is exactly 0.
    Types:  f32, f64, c64, c128 unchanged; half types through f32; integers become f32.
    Errors: ShapeError for matrices that are not square. A matrix that is not positive definite
            gives NaN, without affecting other matrices of the stack.
    Source: Golub & Van Loan 4e, §4.2; derivative: Murray 2016, arXiv:1602.07527.

    >>> import rune.numpy as rnp
    >>> rnp.linalg.cholesky(rnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], f32[2,2], cpu:0)
    """
    (x,), narrow = computing("cholesky", a)
    square("cholesky", x)
    if symmetrize_input:
        x = symmetrised(x)
    lower = ops.linalg.cholesky(x)
    return narrow(adjoint(lower) if upper else lower)


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: ArrayLike, mode: Literal["raw"]) -> tuple[Array, Array]: ...
@overload
def qr(a: ArrayLike, mode: str = "reduced") -> Any: ...
@tiered
def qr(a: ArrayLike, mode: str = "reduced") -> Array | tuple[Array, Array]:
    """Q with orthonormal columns and R upper triangular: a = Q R.

    mode:   "reduced": Q [*B, M, K], R [*B, K, N] with K = min(M, N); "complete": Q [*B, M, M],
            R [*B, M, N]; "r": R alone, reduced; "raw": the reflections transposed, and their taus.

    Shapes: a [*B, M, N] -> as `mode` says.
    Types:  f32, f64, c64, c128 unchanged; half types through f32; integers become f32.
    Errors: ArgumentError for an unknown mode; ShapeError for a rank below 2.
    The diagonal of R may have either sign. The derivative needs the first K columns to be
    independent; "raw" has none.
    Source: Golub & Van Loan 4e, §5.2; derivative: Walter & Lehmann 2010, arXiv:1009.6112.

    >>> import rune.numpy as rnp
    >>> a = rnp.array([[3.0, 1.0], [4.0, 2.0]])
    >>> q, r = rnp.linalg.qr(a)
    >>> bool(rnp.allclose(q @ r, a, atol=1e-5)), r.shape
    (True, (2, 2))
    """
    (x,), narrow = computing("qr", a)
    matrices("qr", x)
    if mode == "raw":
        reflectors, taus = ops.linalg.geqrf(x)
        return narrow((swapped(reflectors), taus))
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr: cannot use mode {mode!r} (one of 'reduced', 'complete', 'r', 'raw' required)")
    q, r = ops.linalg.qr(x, full_matrices=mode == "complete")
    return narrow(r if mode == "r" else QRResult(q, r))
