"""Random vectors and matrices made with linear algebra: correlated normals, uniform rotations.

The normal numbers are JAX's; results of factorisations agree with JAX's up to rounding.
"""

from __future__ import annotations

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.types import Shape
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import shape_of as checked_shape
from rune.numpy.arguments import static_int
from rune.ops.complex_numbers import PART
from rune.random.keys import single_key
from rune.random.normals import normal, standard_normal
from rune.random.sampler import floating, in_dtype, shape_for, with_static
from rune.typing import ArrayLike, DTypeLike

METHODS = ("cholesky", "eigh", "svd")


@with_static("method")
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
) -> Array:
    """Normal vectors with a mean and a covariance: mean + F z, with F Fᵀ = cov.

    method:  how F is computed: "cholesky", which needs a positive definite cov and is fastest;
             "eigh" or "svd", which accept a singular one.

    Shapes: mean [*A, N], cov [*B, N, N] -> [*shape, N]; `shape` is A and B broadcast by default.
    Types:  floating, that of mean and cov by default.
    Errors: ShapeError where sizes do not match; ArgumentError for another method. A cov that is not
            positive definite gives NaN with "cholesky".
    Source: Devroye 1986, §XI.2.

    >>> import rune, rune.numpy as rnp
    >>> rune.random.multivariate_normal(rune.random.key(0), rnp.zeros(2), rnp.eye(2)).shape
    (2,)
    """
    name = "multivariate_normal"
    kind = floating(name, dtype, mean, cov)
    centre, spread = in_dtype(name, mean, kind), in_dtype(name, cov, kind)
    of_mean, of_cov = type_of(centre), type_of(spread)
    if not of_mean.shape or of_cov.shape[-2:] != (of_mean.shape[-1],) * 2:
        raise ShapeError(
            f"{name}: cannot draw with a mean {of_mean} and a covariance {of_cov} "
            "(mean [N] and covariance [N, N] required)"
        )
    lead = shape_for(name, shape, of_mean.shape[:-1], of_cov.shape[:-2])
    normal = standard_normal(single_key(name, key), (*lead, of_mean.shape[-1]), kind)
    return rnp.add(centre, rnp.matvec(_root(spread, method), normal))


def _root(cov: Array, method: str) -> Array:
    """F with F Fᵀ = cov."""
    if method == "cholesky":
        return rnp.linalg.cholesky(cov)
    if method == "eigh":
        values, vectors = ops.linalg.eigh(cov, lower=True, vectors=True)
    elif method == "svd":
        vectors, values, _ = ops.linalg.svd(cov, full_matrices=False, vectors=True)
    else:
        raise ArgumentError(f"multivariate_normal: cannot use method {method!r} (one of {METHODS} required)")
    return vectors * rnp.expand_dims(rnp.sqrt(values), -2)


@with_static("n", "m")
def orthogonal(
    key: ArrayLike, n: int, shape: Shape = (), dtype: DTypeLike | None = None, m: int | None = None
) -> Array:
    """Matrices drawn uniformly from the orthogonal group, or with orthonormal rows or columns.

    Those of complex dtype are drawn from the unitary group.

    n, m:   rows and columns; m is n by default.

    Shapes: -> [*shape, n, m].
    Types:  floating, f32 by default; or complex.
    Errors: ArgumentError if n or m is not an integer; ShapeError for a negative one.
    Source: QR of normal matrices with signs fixed, Mezzadri 2007, arXiv:math-ph/0609050.

    >>> import rune, rune.numpy as rnp
    >>> q = rune.random.orthogonal(rune.random.key(0), 3)
    >>> bool(rnp.allclose(q @ q.T, rnp.eye(3), atol=1e-6))
    True
    """
    rows = static_int("orthogonal", "a number of rows", n)
    columns = rows if m is None else static_int("orthogonal", "a number of columns", m)
    tall = checked_shape("orthogonal", (*shape, max(rows, columns), min(rows, columns)))
    kind = dtype if dtype in PART else floating("orthogonal", dtype)
    q, r = rnp.linalg.qr(normal.core(single_key("orthogonal", key), tall, kind))
    signs = ops.sign(rnp.linalg.diagonal(r))
    matrix = q * rnp.expand_dims(signs, -2)
    return rnp.linalg.matrix_transpose(matrix) if rows < columns else matrix
