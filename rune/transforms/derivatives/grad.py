"""grad and value_and_grad: `vjp` applied to the cotangent 1.

Most of this file is their signatures: for one argument or several, with or without aux.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Never, overload

from rune.core.interpreter import is_differentiable, type_of
from rune.transforms.arguments import named, refuse_other, require_callable
from rune.transforms.derivatives.argument_choice import Chosen, one_for, require_inputs
from rune.transforms.derivatives.flat_functions import Aux, flatten
from rune.transforms.derivatives.linearize import linearize_flat
from rune.transforms.derivatives.signatures import (
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
from rune.transforms.derivatives.vjp import pull_back
from rune.transforms.sharding.explicit.stage import of_primals


# Checkers take the first overload that fits, so the more special come first.
@overload
def grad(
    fun: Loss[P, object], argnums: Literal[0] = 0, has_aux: Literal[False] = False, holomorphic: bool = False
) -> Gradient[P]: ...
@overload
def grad(
    fun: Loss[P, tuple[object, R]], argnums: Literal[0] = 0, *, has_aux: Literal[True], holomorphic: bool = False
) -> GradientAndAux[P, R]: ...
@overload
def grad(
    fun: Loss[P, tuple[object, R]], argnums: Literal[0], has_aux: Literal[True], holomorphic: bool = False
) -> GradientAndAux[P, R]: ...
@overload
def grad(
    fun: Callable[P, tuple[object, R]], argnums: int | Sequence[int], has_aux: Literal[True], holomorphic: bool = False
) -> Callable[P, tuple[Any, R]]: ...
@overload
def grad(
    fun: LossOfTwo[W_contra, P, object], argnums: Literal[1], has_aux: Literal[False] = False, holomorphic: bool = False
) -> SecondGradient[W_contra, P]: ...
@overload
def grad(
    fun: LossOfTwo[Never, P, object],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Gradients[P]: ...
@overload
def grad(
    fun: Callable[P, object], argnums: Sequence[int], has_aux: Literal[False] = False, holomorphic: bool = False
) -> Callable[P, tuple[Any, ...]]: ...
@overload
def grad(
    fun: Callable[P, object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
) -> Callable[P, Any]: ...
def grad(
    fun: Callable[..., Any],
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
    value_and_gradient_of = _value_and_gradient(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    def gradient(*args: object, **kwargs: object) -> Any:
        value, derivative = value_and_gradient_of(*args, **kwargs)
        return (derivative, value[1]) if has_aux else derivative

    return named(gradient, fun, "grad")


@overload
def value_and_grad(
    fun: Loss[P, R], argnums: Literal[0] = 0, has_aux: bool = False, holomorphic: bool = False
) -> ValueAndGradient[P, R]: ...
@overload
def value_and_grad(
    fun: LossOfTwo[Never, P, R],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: bool = False,
    holomorphic: bool = False,
) -> ValueAndGradients[P, R]: ...
@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
) -> Callable[P, tuple[R, Any]]: ...
def value_and_grad(
    fun: Callable[..., Any],
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
    reduce_axes:  only (), as in JAX, where it is deprecated: sum with `lax.psum`.
    Errors: TransformError for a non-scalar or integer value, or an integer argument; ArgumentError
            for `reduce_axes`.

    >>> import rune, rune.numpy as rnp
    >>> rune.value_and_grad(lambda x: rnp.sum(x ** 2))(rnp.arange(3.0))
    (Array(5., f32[], cpu:0), Array([0., 2., 4.], f32[3], cpu:0))
    """
    value_and_gradient_of = _value_and_gradient(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)
    return named(value_and_gradient_of, fun, "value_and_grad")


def _value_and_gradient(
    fun: Callable[..., object],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    reduce_axes: Sequence[object],
) -> Callable[..., tuple[Any, Any]]:
    require_callable("grad", fun)
    refuse_other("grad", reduce_axes=(tuple(reduce_axes), ()))

    def value_and_gradient(*args: object, **kwargs: object) -> tuple[Any, Any]:
        main = Aux(fun) if has_aux else fun
        choice = Chosen(main, argnums, args, kwargs)
        require_inputs("grad", choice, holomorphic, allow_int)
        # As vjp does, without its checks of the cotangent, which is known to be 1.
        leaves, flat = flatten("vjp", choice, choice.values)
        outs, linear = linearize_flat(of_primals(flat), leaves, [is_differentiable(x) for x in leaves])
        value = flat.out_tree.unflatten(outs)
        cts = pull_back(linear, [one_for(value, holomorphic)], [type_of(x) for x in leaves])
        gradients = flat.treedef.unflatten(cts)
        gradient = gradients[0] if isinstance(argnums, int) else gradients
        return ((value, main.aux) if isinstance(main, Aux) else value), gradient

    return value_and_gradient
