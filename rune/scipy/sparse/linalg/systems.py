"""Linear systems as iterative methods see them: products with vectors, and when to stop.

A right-hand side is a tree, and methods work on one vector of its leaves. The solution has the
derivatives of the solution of a linear system (lax.custom_linear_solve), computed by further solves
with the same method; the iterations are not differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeGuard, TypeVar

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.control import custom_linear_solve
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.flatten_util import Unravel, ravel_pytree
from rune.records import dataclass
from rune.transforms.arguments import value_leaves
from rune.typing import ArrayLike

T = TypeVar("T")
Operator = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Vectors:
    """A system on vectors: A x = b, an approximate inverse M of A, and the initial solution.

    limit: the length of b - A x at which to stop
    most:  the maximal number of iterations
    """

    product: Callable[[Array], Array]
    b: Array
    start: Array
    precondition: Callable[[Array], Array]
    limit: Array
    most: ArrayLike


Method = Callable[[Vectors], Array]


def solved(
    name: str,
    method: Method,
    A: object,
    b: T,
    x0: object,
    tol: ArrayLike,
    atol: ArrayLike,
    maxiter: ArrayLike | None,
    M: object,
    is_symmetric: Callable[[Array], bool],
) -> T:
    """The tree x with A x = b, by this method."""
    rhs = _arrays(name, b)
    guess = tree.map(rnp.zeros_like, rhs) if x0 is None else _arrays(name, x0)
    _require_alike(name, rhs, guess)
    operator, inverse = _operator(name, A), None if M is None else _operator(name, M)
    size = sum(x.size for x in tree.leaves(rhs))

    def solve(product: Operator, right: T) -> T:
        vector, back = ravel_pytree(right)
        start = ravel_pytree(guess)[0].astype(vector.dtype)
        precondition = _same if inverse is None else _on_vectors(name, inverse, back, vector)
        limit = rnp.maximum(tol * length(vector), atol)
        most = 10 * size if maxiter is None else maxiter
        products = _on_vectors(name, product, back, vector)
        return back(method(Vectors(products, vector, start, precondition, limit, most)))

    symmetric = all(map(is_symmetric, tree.leaves(rhs)))
    return custom_linear_solve(operator, rhs, solve, solve, symmetric=symmetric)


def length(x: Array) -> Array:
    """The Euclidean norm of a vector, a real number."""
    return rnp.sqrt(squared_length(x))


def squared_length(x: Array) -> Array:
    """xᴴ x, a real number."""
    return rnp.real(rnp.vdot(x, x))


def _same(v: Array) -> Array:
    return v


def _on_vectors(name: str, operator: Operator, back: Unravel, like: Array) -> Callable[[Array], Array]:
    def product(v: Array) -> Array:
        vector, _ = ravel_pytree(operator(back(v)))
        if vector.shape != like.shape:
            raise ShapeError(f"{name}: cannot solve for {like.type} (the operator gives {vector.type})")
        return vector.astype(like.dtype)

    return product


def _arrays(name: str, values: T) -> T:
    leaves, treedef = tree.flatten(values)
    return tree.unflatten(treedef, [_inexact(rnp.asarray(x)) for x in value_leaves(name, leaves, treedef)])


def _inexact(x: Array) -> Array:
    return x if rnp.issubdtype(x.dtype, rnp.inexact) else x.astype(rnp.result_type(x, 1.0))


def _require_alike(name: str, b: object, x0: object) -> None:
    if tree.structure(b) != tree.structure(x0):
        raise ArgumentError(f"{name}: cannot start at x0 ({tree.structure(x0)}, not {tree.structure(b)} as b)")
    for x, y in zip(tree.leaves(x0), tree.leaves(b), strict=True):
        if x.shape != y.shape:
            raise ShapeError(f"{name}: cannot start at x0 ({x.type} for {y.type} of b)")


class Matrix(Protocol):
    """What a matrix must have: a shape, and products with vectors."""

    @property
    def shape(self) -> Sequence[int]:
        """Rows and columns."""
        ...

    def __matmul__(self, vector: Array, /) -> Array: ...


def _operator(name: str, operator: object) -> Operator:
    """A function, or the products with a square matrix."""
    if callable(operator):
        return operator
    if not _is_matrix(operator):
        raise ArgumentError(
            f"{name}: cannot multiply by {type(operator).__name__} (a square matrix or a function required)"
        )
    shape = tuple(operator.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ShapeError(f"{name}: cannot solve with a matrix of shape {shape} (a square one required)")
    return lambda v: _times(operator, v)


def _is_matrix(operator: object) -> TypeGuard[Matrix]:
    return hasattr(operator, "shape") and hasattr(operator, "__matmul__")


def _times(matrix: Matrix, vector: Array) -> Array:
    product = matrix @ vector
    return product.astype(type_of(vector).dtype)
