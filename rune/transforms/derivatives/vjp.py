"""Reverse mode: vjp linearizes a function and transposes the linear map.

The forward pass runs once and saves only the residuals that the transposed map reads. As in
JAX, the transposed map is linear over the complex numbers, without conjugation: the gradient of a
real function of complex arguments is ∂f/∂x − i ∂f/∂y, and descent goes along its conjugate.
`grad` pulls back one cotangent, 1, which needs no checks (grad.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypeVarTuple, overload

import numpy as np

from rune import dtypes, tree
from rune.array import Array
from rune.core.interpreter import is_differentiable
from rune.core.lists import pick, scatter
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.transforms.arguments import refuse_other
from rune.transforms.derivatives.flat_functions import Aux, flatten
from rune.transforms.derivatives.linear_functions import LinearNode
from rune.transforms.derivatives.linearize import LinearMap, linearize_flat
from rune.transforms.derivatives.signatures import A, Gradient, R
from rune.transforms.derivatives.tangents import cotangents_of, filled_as
from rune.transforms.derivatives.transpose import backward
from rune.transforms.sharding.explicit.stage import of_primals

Xs = TypeVarTuple("Xs")  # the primals


_Host: TypeAlias = complex | np.generic | np.ndarray  # whose cotangents are arrays


@overload
def vjp(
    fun: Callable[..., R], *primals: _Host, has_aux: Literal[False] = False, reduce_axes: Sequence[object] = ()
) -> tuple[R, VjpFunction[*tuple[Array, ...]]]: ...
@overload
def vjp(fun: Gradient[...], *primals: *Xs) -> tuple[Any, VjpFunction[*Xs]]: ...
@overload
def vjp(
    fun: Callable[..., R], *primals: *Xs, has_aux: Literal[False] = False, reduce_axes: Sequence[object] = ()
) -> tuple[R, VjpFunction[*Xs]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, A]], *primals: *Xs, has_aux: Literal[True], reduce_axes: Sequence[object] = ()
) -> tuple[R, VjpFunction[*Xs], A]: ...
def vjp(
    fun: Callable[..., object], *primals: object, has_aux: bool = False, reduce_axes: Sequence[object] = ()
) -> tuple[object, ...]:
    """(outputs, the map from their cotangents to those of `primals`); with `has_aux`, also aux.

    The map is a tree of its residuals: a jitted function may return it, or take it.
    reduce_axes: only (), as in `grad`.
    Types: the cotangent of an integer is float0, in and out.
    Errors: ArgumentError if a result is not an array, and for `reduce_axes`; TransformError, when
            the pullback is called, for a cotangent unlike its output.

    >>> import rune, rune.numpy as rnp
    >>> rune.vjp(lambda x, y: x * y, 2.0, 3.0)[1](1.0)
    (Array(3., f32*[], cpu:0), Array(2., f32*[], cpu:0))
    """
    refuse_other("vjp", reduce_axes=(tuple(reduce_axes), ()))
    main = Aux(fun) if has_aux else fun
    leaves, flat = flatten("vjp", main, primals)
    outs, linear = linearize_flat(of_primals(flat), leaves, [is_differentiable(x) for x in leaves])
    pull: VjpFunction[*tuple[Any, ...]] = VjpFunction.of(linear, leaves, outs, flat)
    result = flat.out_tree.unflatten(outs)
    return (result, pull, main.aux) if isinstance(main, Aux) else (result, pull)


class VjpFunction(LinearNode, Generic[*Xs]):
    """The map from cotangents of the outputs to those of the inputs: a tree of residuals.

    It may be called any number of times.
    """

    def __call__(self, cotangents: object) -> tuple[*Xs]:
        """One cotangent tree per argument. Errors: TransformError, naming the path that differs."""
        structure = self.structure
        cts = cotangents_of("vjp", structure.out_types, structure.out_tree, cotangents)
        return structure.treedef.unflatten(pull_back(self.linear, cts, structure.types))

    def _ends(self) -> tuple[Sequence[ArrayType], Sequence[ArrayType]]:
        return self.structure.out_types, self.structure.types


tree.register_node_class(VjpFunction)


def pull_back(linear: LinearMap, cotangents: Sequence[Value | None], types: Sequence[ArrayType]) -> list[Value]:
    """Cotangents of primals of these types, for those of all outputs (None: zero)."""
    # The linear program takes the residuals first, which are known, then the tangents.
    known = dict(zip(linear.program.inputs, linear.residuals, strict=False))
    in_cts = backward(linear.program, known, pick(cotangents, linear.nonzero))
    # It has tangents only for differentiable leaves; integers get float0.
    return list(map(filled_as, types, scatter(in_cts, (t.dtype in dtypes.INEXACT for t in types))))
