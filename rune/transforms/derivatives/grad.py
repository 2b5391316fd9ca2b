"""Reverse mode: vjp linearizes a function and transposes the linear map; grad asks it for one row.

The forward pass runs once and keeps exactly the residuals that the transposed map reads. As in
JAX, the transposed map is linear over the complex numbers, without conjugation: the gradient of a
real function of complex arguments is ∂f/∂x − i ∂f/∂y, and descent goes along its conjugate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, Never, TypeVarTuple, overload

from rune import dtypes, tree
from rune.array import Array
from rune.core.interpreter import is_differentiable
from rune.core.values import Value
from rune.transforms.arguments import named, refuse_other, require_callable
from rune.transforms.derivatives.argument_choice import Chosen, one_for, require_inputs
from rune.transforms.derivatives.flat_functions import Aux, flatten
from rune.transforms.derivatives.linear_functions import LinearNode
from rune.transforms.derivatives.linearize import LinearMap, linearize_flat
from rune.transforms.derivatives.signatures import (
    A,
    Gradient,
    GradientAndAux,
    Gradients,
    Loss,
    LossOfTwo,
    P,
    R,
    SecondGradient,
    ValueAndGradient,
    ValueAndGradients,
    W_contra,
)
from rune.transforms.derivatives.tangents import cotangents_of, filled_as
from rune.transforms.derivatives.transpose import backward

Xs = TypeVarTuple("Xs")  # the primals of vjp


@overload
def grad(
    function: Loss[P, object], argnums: Literal[0] = 0, has_aux: Literal[False] = False, holomorphic: bool = False
) -> Gradient[P]: ...
@overload
def grad(
    function: Loss[P, tuple[object, R]], argnums: Literal[0] = 0, *, has_aux: Literal[True], holomorphic: bool = False
) -> GradientAndAux[P, R]: ...
@overload
def grad(
    function: Callable[P, tuple[object, R]],
    argnums: int | Sequence[int],
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Callable[P, tuple[Any, R]]: ...
@overload
def grad(
    function: LossOfTwo[W_contra, P, object],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> SecondGradient[W_contra, P]: ...
@overload
def grad(
    function: LossOfTwo[Never, P, object],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Gradients[P]: ...
@overload
def grad(
    function: Callable[P, object], argnums: Sequence[int], has_aux: Literal[False] = False, holomorphic: bool = False
) -> Callable[P, tuple[Any, ...]]: ...
@overload
def grad(
    function: Callable[P, object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
) -> Callable[P, Any]: ...
def grad(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
) -> Callable[..., Any]:
    """The gradient of a scalar function with respect to `argnums`.

    Options and errors: as value_and_grad.

    >>> import rune, rune.numpy as rnp
    >>> rune.grad(rune.grad(lambda x: x ** 3))(2.0)
    Array(12., f32*[], cpu:0)
    """
    both = value_and_grad(function, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    def gradient(*args: object, **kwargs: object) -> Any:
        value, derivative = both(*args, **kwargs)
        return (derivative, value[1]) if has_aux else derivative

    return named(gradient, function, "grad")


@overload
def value_and_grad(
    function: Loss[P, R], argnums: Literal[0] = 0, has_aux: bool = False, holomorphic: bool = False
) -> ValueAndGradient[P, R]: ...
@overload
def value_and_grad(
    function: LossOfTwo[Never, P, R],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: bool = False,
    holomorphic: bool = False,
) -> ValueAndGradients[P, R]: ...
@overload
def value_and_grad(
    function: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
) -> Callable[P, tuple[R, Any]]: ...
def value_and_grad(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
) -> Callable[..., Any]:
    """A function giving (value, gradient with respect to `argnums`), forward pass run once.

    has_aux:      the function returns (value, aux), and this one ((value, aux), gradient).
    holomorphic:  arguments and value are complex, and the gradient is the complex derivative.
    allow_int:    arguments may have integer leaves; their gradient is float0.
    reduce_axes:  () alone, as in JAX, where it is deprecated: sum with `lax.psum`.
    Errors: TransformError for a non-scalar or integer value, or an integer argument; ArgumentError
            for `reduce_axes`.

    >>> import rune, rune.numpy as rnp
    >>> rune.value_and_grad(lambda x: rnp.sum(x ** 2))(rnp.arange(3.0))
    (Array(5., f32[], cpu:0), Array([0., 2., 4.], f32[3], cpu:0))
    """
    require_callable("grad", function)
    refuse_other("grad", reduce_axes=(tuple(reduce_axes), ()))

    def value_and_gradient(*args: object, **kwargs: object) -> Any:
        main = Aux(function) if has_aux else function
        chosen = Chosen(main, argnums, args, kwargs)
        require_inputs("grad", chosen, holomorphic, allow_int)
        value, pull = vjp(chosen, *chosen.values)
        gradients = pull(one_for(value, holomorphic))
        picked = gradients[0] if isinstance(argnums, int) else gradients
        return ((value, main.aux) if isinstance(main, Aux) else value), picked

    return named(value_and_gradient, function, "value_and_grad")


# --- vjp --------------------------------------------------------------------------------------


@overload
def vjp(function: Gradient[...], *primals: *Xs) -> tuple[Any, VjpFunction[*Xs]]: ...
@overload
def vjp(
    function: Callable[..., R], *primals: *Xs, has_aux: Literal[False] = False, reduce_axes: Sequence[object] = ()
) -> tuple[R, VjpFunction[*Xs]]: ...
@overload
def vjp(
    function: Callable[..., tuple[R, A]], *primals: *Xs, has_aux: Literal[True], reduce_axes: Sequence[object] = ()
) -> tuple[R, VjpFunction[*Xs], A]: ...
def vjp(
    function: Callable[..., object], *primals: object, has_aux: bool = False, reduce_axes: Sequence[object] = ()
) -> tuple[object, ...]:
    """(outputs, the map from their cotangents to those of `primals`); with `has_aux`, also aux.

    The map is a tree of its residuals: a jitted function may return it, or take it.
    reduce_axes: () alone, as in `grad`.
    Types: the cotangent of an integer is float0, in and out.
    Errors: ArgumentError if a result is not an array, and for `reduce_axes`; TransformError, when
            the pullback is called, for a cotangent unlike its output.

    >>> import rune, rune.numpy as rnp
    >>> rune.vjp(lambda x, y: x * y, 2.0, 3.0)[1](1.0)
    (Array(3., f32*[], cpu:0), Array(2., f32*[], cpu:0))
    """
    refuse_other("vjp", reduce_axes=(tuple(reduce_axes), ()))
    main = Aux(function) if has_aux else function
    leaves, flat = flatten("vjp", main, primals)
    outs, linear = linearize_flat(flat, leaves, [is_differentiable(x) for x in leaves])
    pull: VjpFunction[*tuple[Any, ...]] = VjpFunction.of(linear, leaves, outs, flat)
    result = tree.unflatten(flat.out_tree, outs)
    return (result, pull, main.aux) if isinstance(main, Aux) else (result, pull)


class VjpFunction(LinearNode, Generic[*Xs]):
    """The map from cotangents of the outputs to cotangents of the inputs: a tree of residuals.
    Call it any number of times."""

    def __call__(self, cotangents: object) -> tuple[*Xs]:
        """One cotangent tree per argument. Errors: TransformError names the path that differs."""
        form = self.form
        cts = cotangents_of("vjp", form.out_types, form.out_tree, cotangents)
        in_cts = iter(pull_back(self.linear, cts))
        # The linear map has inputs for differentiable leaves alone; integers get float0.
        filled_cts = [filled_as(t, next(in_cts) if t.dtype in dtypes.INEXACT else None) for t in form.types]
        return tree.unflatten(form.treedef, filled_cts)


tree.register_node_class(VjpFunction)


def pull_back(linear: LinearMap, cotangents: Sequence[Value | None]) -> list[Array | None]:
    """Cotangents of the active inputs, None for zero."""
    count = len(linear.residuals)
    # The linear program takes the residuals first, which are known, then the tangents.
    mask = [False] * count + [True] * (len(linear.program.inputs) - count)
    values = [*linear.residuals, *(None for _ in mask[count:])]
    read = [ct for ct, n in zip(cotangents, linear.nonzero, strict=True) if n]
    return backward(linear.program, mask, values, read)
