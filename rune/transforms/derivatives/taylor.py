"""jet: derivatives of a function along a curve, of all orders up to one.

The curve is a polynomial in t; f along it is a function of t, and forward mode differentiates that
once more for each order. Every operation with a forward derivative has all of them so, and no rules
of its own are needed. Cost: the work doubles with each order.
Source: Griewank & Walther, Evaluating Derivatives, 2nd edition, chapter 13.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from rune import dtypes, tree
from rune.core.interpreter import type_of
from rune.core.values import Operand, Value
from rune.errors import ArgumentError
from rune.ops.promote import opened
from rune.transforms.arguments import require_callable, value_leaves
from rune.transforms.derivatives.directional import jvp

Terms = Sequence[Any]


def jet(
    fun: Callable[..., object], primals: Sequence[Operand], series: Sequence[Terms], factorial_scaled: bool = True
) -> tuple[Any, Any]:
    """(f(x), derivatives of f along a curve), for a curve through x of which derivatives are given.

    primals:  the arguments x, arrays
    series:   for each argument the first, second, … derivative of the curve; as many for all
    factorial_scaled: False: coefficients of Taylor's series instead, derivatives over k!
    The second result has for each array of f's result the list of its derivatives.

    Shapes: each term as its argument. Types: as its argument; integers stay as they are.
    Errors: ArgumentError if the terms are not alike; those of `jvp`.

    >>> import rune, rune.numpy as rnp
    >>> y, (first, second) = rune.jet(rnp.sin, (0.5,), ((1.0, 0.0),))
    >>> [round(float(v), 4) for v in (y, first, second)]
    [0.4794, 0.8776, -0.4794]
    """
    require_callable("jet", fun)
    order = _order(primals, series)
    values = value_leaves("jet", list(primals), tree.structure(list(primals)))
    coefficients = [[_coefficient(term, k, factorial_scaled) for k, term in enumerate(terms, 1)] for terms in series]

    def along(t: Value) -> object:
        return fun(*(_point(x, terms, t) for x, terms in zip(values, coefficients, strict=True)))

    def derivatives(k: int) -> Callable[[Value], tuple[Any, ...]]:
        if k == 0:
            return lambda t: (along(t),)
        below = derivatives(k - 1)

        def one_more(t: Value) -> tuple[Any, ...]:
            known, slopes = jvp(below, (t,), (1.0,))
            return (*known, slopes[-1])

        return one_more

    result, *higher = derivatives(order)(0.0)
    scales = [1.0 if factorial_scaled else 1.0 / math.factorial(k) for k in range(1, order + 1)]
    leaves, treedef = tree.flatten(result)
    rows = [tree.leaves(d) for d in higher]
    lists = [[_scaled(rows[k][n], s) for k, s in enumerate(scales)] for n in range(len(leaves))]
    return result, tree.unflatten(treedef, lists)


def _order(primals: Sequence[Operand], series: Sequence[Terms]) -> int:
    orders = {len(terms) for terms in series}
    if len(primals) != len(series) or len(orders) != 1:
        raise ArgumentError(
            f"jet: cannot take terms of {len(series)} arguments for {len(primals)} (as many terms for each required)"
        )
    for x, terms in zip(primals, series, strict=True):
        if any(tree.structure(v).num_nodes != 1 or v is None for v in (x, *terms)):
            raise ArgumentError("jet: cannot take trees (arrays required)", hint="rune.flatten_util.ravel_pytree")
        for term in terms:
            if tuple(type_of(term).shape) != tuple(type_of(x).shape):
                raise ArgumentError(f"jet: cannot take the term {type_of(term)} of an argument {type_of(x)}")
    return orders.pop()


def _coefficient(term: Operand, k: int, is_derivative: bool) -> Value:
    return opened(term) * (1.0 / math.factorial(k)) if is_derivative and k > 1 else opened(term)


def _point(x: Value, coefficients: Terms, t: Value) -> Value:
    """x + c1 t + c2 t² + …; integers stay."""
    if type_of(x).dtype not in dtypes.INEXACT:
        return x
    total: Any = 0.0
    for c in reversed(coefficients):
        total = (total + c) * t
    return x + total


def _scaled(derivative: Any, scale: float) -> Value:
    return derivative if scale == 1.0 or type_of(derivative).dtype not in dtypes.INEXACT else derivative * scale
