"""jet: the derivatives of a function along a curve, up to some order.

The curve is a polynomial in t; f along it is a function of t, whose Taylor coefficients are
computed operation by operation (series.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rune import dtypes, tree
from rune.core.interpreter import current, type_of
from rune.core.values import Operand, Value
from rune.errors import ArgumentError
from rune.ops.arithmetic import convert
from rune.ops.family import zeros_like
from rune.ops.promote import opened
from rune.transforms.arguments import array_leaves, require_callable, value_leaves
from rune.transforms.derivatives.series import Series, Taylor, scaled

Terms = Sequence[Any]


def jet(
    fun: Callable[..., object], primals: Sequence[Operand], series: Sequence[Terms], factorial_scaled: bool = True
) -> tuple[Any, Any]:
    """(f(x), derivatives of f along a curve), for a curve through x with given derivatives.

    primals:  the arguments x, arrays
    series:   for each argument the first, second, … derivative of the curve; equally many for all
    factorial_scaled: if False, `series` and the results are Taylor coefficients: derivatives / k!
    The second result has, in place of each array of f's result, the list of its derivatives.

    Shapes: each term like its argument. Types: like its argument; integers are unchanged.
    Errors: ArgumentError if the terms do not match; those of `jvp`.
    Cost: for order k, O(k²) operations for each operation of the function, O(k³) for some
          (series.py).

    >>> import rune, rune.numpy as rnp
    >>> y, (first, second) = rune.jet(rnp.sin, (0.5,), ((1.0, 0.0),))
    >>> [round(float(v), 4) for v in (y, first, second)]
    [0.4794, 0.8776, -0.4794]
    """
    require_callable("jet", fun)
    order = _order(primals, series)
    values = value_leaves("jet", list(primals), tree.structure(list(primals)))
    coefficients = [[_coefficient(term, k, factorial_scaled) for k, term in enumerate(terms, 1)] for terms in series]

    # The interpreter computes with coefficients; users pass and get derivatives, k! times as large.
    interpreter = Taylor(current(), order)
    args = [_curve(interpreter, x, terms) for x, terms in zip(values, coefficients, strict=True)]
    result, rows = interpreter.trace(_run, interpreter, fun, args)
    scales = [float(math.factorial(k)) if factorial_scaled else 1.0 for k in range(1, order + 1)]
    leaves, treedef = tree.flatten(result)
    lists = [[_scaled(x, c, s) for c, s in zip(row, scales, strict=True)] for x, row in zip(leaves, rows, strict=True)]
    return result, tree.unflatten(treedef, lists)


def _run(
    interpreter: Taylor, fun: Callable[..., object], args: Sequence[Value]
) -> tuple[object, list[list[Value | None]]]:
    """The result at the beginning of the curve, and the other coefficients of its arrays."""
    result = fun(*args)
    leaves, treedef = tree.flatten(result)
    values = array_leaves("jet", leaves, treedef)
    rows = [[interpreter.at(x, k) for k in range(1, interpreter.order + 1)] for x in values]
    return tree.unflatten(treedef, [interpreter.first(x) for x in values]), rows


def _curve(interpreter: Taylor, x: Value, coefficients: Terms) -> Value:
    """The series of an argument; integers are unchanged."""
    # An integer cannot vary along a curve, and a curve without terms is a point.
    is_still = type_of(x).dtype not in dtypes.INEXACT or not coefficients
    # A term may be a Python number; all coefficients of a series have the type of the first.
    return x if is_still else Series(interpreter, [x, *(convert(c, dtype=type_of(x).dtype) for c in coefficients)])


def _order(primals: Sequence[Operand], series: Sequence[Terms]) -> int:
    orders = {len(terms) for terms in series}
    if len(primals) != len(series) or len(orders) != 1:
        raise ArgumentError(
            f"jet: cannot take terms of {len(series)} arguments for {len(primals)} (as many terms for each required)"
        )
    for x, terms in zip(primals, series, strict=True):
        # As in JAX, each argument is one array.
        if any(tree.structure(v).num_nodes != 1 or v is None for v in (x, *terms)):
            raise ArgumentError("jet: cannot take trees (arrays required)", hint="rune.flatten_util.ravel_pytree")
        for term in terms:
            if tuple(type_of(term).shape) != tuple(type_of(x).shape):
                raise ArgumentError(f"jet: cannot take the term {type_of(term)} of an argument {type_of(x)}")
    return orders.pop()


def _coefficient(term: Operand, k: int, is_derivative: bool) -> Value:
    return opened(term) * (1.0 / math.factorial(k)) if is_derivative and k > 1 else opened(term)


def _scaled(x: Value, coefficient: Value | None, scale: float) -> Value:
    """A derivative, or zeros; that of an integer is float0."""
    if type_of(x).dtype not in dtypes.INEXACT:
        return np.zeros(type_of(x).shape, dtypes.float0)
    return zeros_like(x) if coefficient is None else scaled(coefficient, scale)
