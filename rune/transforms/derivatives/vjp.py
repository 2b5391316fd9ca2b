"""vjp: reverse mode on trees, linearize followed by transpose.

The forward pass runs once and keeps exactly the residuals that the transposed map reads.
Cotangents follow JAX's conventions: the transposed map is linear over the complex numbers, without
conjugation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rune import dtypes, tree
from rune.core.interpreter import is_differentiable
from rune.transforms.derivatives.flat_functions import Aux, cotangents_of, filled_as, flatten
from rune.transforms.derivatives.linear_functions import LinearNode
from rune.transforms.derivatives.linearize import LinearMap, linearize_flat
from rune.transforms.derivatives.transpose import backward


def pull_back(linear: LinearMap, cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of the active inputs, None for zero."""
    count = len(linear.residuals)
    mask = [False] * count + [True] * (len(linear.program.inputs) - count)
    values = [*linear.residuals, *(None for _ in mask[count:])]
    read = [ct for ct, n in zip(cotangents, linear.nonzero, strict=True) if n]
    return backward(linear.program, mask, values, read)


class VjpFunction(LinearNode):
    """The map from cotangents of the outputs to cotangents of the inputs: a tree of residuals.
    Call it any number of times."""

    def __call__(self, cotangents: Any) -> tuple[Any, ...]:
        """One cotangent tree per argument. Errors: TransformError names the path that differs."""
        form = self.form
        cts = cotangents_of("vjp", form.out_types, form.out_tree, cotangents)
        in_cts = iter(pull_back(self.linear, cts))
        filled_cts = [
            filled_as(t, next(in_cts) if t.dtype in dtypes.INEXACT else None) for t in form.types
        ]
        return tree.unflatten(form.treedef, filled_cts)


tree.register_node_class(VjpFunction)


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(outputs, the map from their cotangents to those of `primals`); with `has_aux`, also aux.

    The map is a tree whose leaves are its residuals: it may leave a jitted function, and enter one.
    Types: the cotangent of an integer is float0, in and out.
    Errors: ArgumentError for results that are no arrays; TransformError, when the pullback is
            called, for a cotangent unlike its output.

    >>> import rune, rune.numpy as rnp
    >>> rune.vjp(lambda x, y: x * y, 2.0, 3.0)[1](1.0)
    (Array(3., f32[], cpu:0), Array(2., f32[], cpu:0))
    """
    main = Aux(function) if has_aux else function
    leaves, flat = flatten("vjp", main, primals)
    outs, linear = linearize_flat(flat, leaves, [is_differentiable(x) for x in leaves])
    pull = VjpFunction.of(linear, leaves, outs, flat)
    result = tree.unflatten(flat.out_tree, outs)
    return (result, pull, main.aux) if isinstance(main, Aux) else (result, pull)
