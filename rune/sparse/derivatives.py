"""Derivatives by sparse arguments: by their data, at their positions.

A gradient has the format and the positions of its argument: other positions are not computed. A
Jacobian is a BCOO whose first axes, those of the result, are batch axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

from rune import tree
from rune.array import Array
from rune.sparse.array import BCOO
from rune.sparse.coordinates import Sparse
from rune.sparse.matrices import Matrix
from rune.sparse.rows import BCSR
from rune.transforms.derivatives import grad as gradients
from rune.transforms.derivatives import jacobian as jacobians

Argnums = int | Sequence[int]
Remake = Callable[[Any, Array], Sparse]  # from a sparse array and other numbers


def grad(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **options: bool) -> Callable[..., Any]:
    """rune.grad for arguments that may be sparse.

    argnums, has_aux, options: as rune.grad

    Shapes: those of the arguments, with their positions. Types: those of the arguments.
    Errors: those of rune.grad.

    >>> import rune, rune.numpy as rnp
    >>> m = rune.sparse.BCOO.fromdense(rnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> rune.sparse.grad(lambda m: rnp.sum((m @ rnp.ones(2)) ** 2))(m).data
    Array([4., 6.], f32[2], cpu:0)
    """
    both = value_and_grad(fun, argnums, has_aux, **options)

    @wraps(fun)
    def gradient(*args: object, **kwargs: object) -> Any:
        value, derivative = both(*args, **kwargs)
        return (derivative, value[1]) if has_aux else derivative

    return gradient


def value_and_grad(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **options: bool
) -> Callable[..., Any]:
    """rune.value_and_grad for arguments that may be sparse.

    argnums, has_aux, options: as rune.value_and_grad

    Shapes: those of the arguments, with their positions. Types: those of the arguments.
    Errors: those of rune.grad.

    >>> import rune
    >>> value, slope = rune.sparse.value_and_grad(lambda m: (m * 3.0).sum())(rune.sparse.eye(2))
    >>> value, slope.data
    (Array(6., f32[], cpu:0), Array([3., 3.], f32[2], cpu:0))
    """
    transform = partial(gradients.value_and_grad, has_aux=has_aux, **options)

    @wraps(fun)
    def both(*args: object, **kwargs: object) -> Any:
        value, derivative = _by_numbers(transform, fun, argnums, args, kwargs)
        return value, _with_positions(_with_numbers, derivative, argnums, args)

    return both


def jacfwd(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **options: bool) -> Callable[..., Any]:
    """rune.jacfwd for arguments that may be sparse; a Jacobian by a sparse argument is a BCOO.

    argnums, has_aux, options: as rune.jacfwd

    Shapes: [*result, *argument], a list of elements for each index of the result.
    Types: those of the arguments. Errors: those of rune.jacfwd.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.jacfwd(lambda m: m @ rnp.arange(2.0))(rune.sparse.eye(2))
    BCOO(f32[2,2,2], nse=2, n_batch=1)
    """
    return _jacobian(jacobians.jacfwd, fun, argnums, has_aux, options)


def jacrev(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **options: bool) -> Callable[..., Any]:
    """rune.jacrev for arguments that may be sparse; a Jacobian by a sparse argument is a BCOO.

    argnums, has_aux, options: as rune.jacrev

    Shapes: [*result, *argument], a list of elements for each index of the result.
    Types: those of the arguments. Errors: those of rune.jacrev.

    >>> import rune, rune.numpy as rnp
    >>> rune.sparse.jacrev(lambda m: m @ rnp.arange(2.0))(rune.sparse.eye(2)).data
    Array([[0., 0.],
           [0., 1.]], f32[2,2], cpu:0)
    """
    return _jacobian(jacobians.jacrev, fun, argnums, has_aux, options)


def _jacobian(
    transform: Callable[..., Any], fun: Callable[..., Any], argnums: Argnums, has_aux: bool, options: dict[str, bool]
) -> Callable[..., Any]:
    @wraps(fun)
    def jacobian(*args: object, **kwargs: object) -> Any:
        result = _by_numbers(partial(transform, has_aux=has_aux, **options), fun, argnums, args, kwargs)
        derivative, aux = result if has_aux else (result, None)
        derivative = _with_positions(_jacobian_at, derivative, argnums, args)
        return (derivative, aux) if has_aux else derivative

    return jacobian


def _by_numbers(
    transform: Callable[..., Any],
    fun: Callable[..., Any],
    argnums: Argnums,
    args: Sequence[object],
    kwargs: dict[str, object],
) -> Any:
    """The transformation at arguments in which sparse arrays are replaced by their data."""
    numbers = [tree.map(lambda x: x.data if isinstance(x, Sparse) else x, a, is_leaf=_is_sparse) for a in args]

    def of_numbers(*numbers: object, **kwargs: object) -> object:
        arguments = [
            tree.map(lambda x, n: _with_numbers(x, n) if isinstance(x, Sparse) else n, a, n, is_leaf=_is_sparse)
            for a, n in zip(args, numbers, strict=True)
        ]
        return fun(*arguments, **kwargs)

    return transform(of_numbers, argnums=argnums)(*numbers, **kwargs)


def _with_positions(remake: Remake, derivative: object, argnums: Argnums, args: Sequence[object]) -> object:
    """Derivatives by data as sparse arrays, in the order of the arguments."""
    sparse_arguments = [args[argnums]] if isinstance(argnums, int) else [args[k] for k in argnums]
    places = tree.leaves(sparse_arguments, is_leaf=_is_sparse)
    leaves, structure = tree.flatten(derivative)
    arguments = [places[k % len(places)] for k in range(len(leaves))]
    return tree.unflatten(
        structure, [remake(x, n) if isinstance(x, Sparse) else n for x, n in zip(arguments, leaves, strict=True)]
    )


def _is_sparse(x: object) -> bool:
    return isinstance(x, Sparse)


def _with_numbers(x: Sparse, data: Array) -> Sparse:
    """Other numbers at the positions of `x`: the first leaf of every format is its data."""
    leaves, structure = tree.flatten(x)
    return tree.unflatten(structure, [data, *leaves[1:]])


def _jacobian_at(x: BCOO | BCSR | Matrix, data: Array) -> BCOO:
    """Derivatives [*result, *data of x] as a BCOO [*result, *shape of x]."""
    m = x if isinstance(x, BCOO) else x.to_bcoo()
    count = data.ndim - m.data.ndim
    indices = m.indices.reshape(*(1,) * count, *m.indices.shape)
    return BCOO((data, indices), shape=[*map(int, (*data.shape[:count], *m.shape))])
