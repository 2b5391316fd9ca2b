"""grad and value_and_grad: reverse mode for functions with one scalar result.

Of a real function of complex arguments the gradient is ∂f/∂x − i ∂f/∂y, as in JAX: descent goes
along its conjugate. With `holomorphic`, of a complex result, it is the complex derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rune import dtypes, tree
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.errors import TransformError
from rune.transforms.arguments import named, require_callable
from rune.transforms.derivatives.flat_functions import Aux, Chosen
from rune.transforms.derivatives.vjp import vjp


def value_and_grad(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function giving (value, gradient with respect to `argnums`), forward pass run once.

    has_aux:      the function returns (value, aux), and this one ((value, aux), gradient).
    holomorphic:  arguments and value are complex, and the gradient is the complex derivative.
    allow_int:    integer leaves may stand among the arguments; their gradient is float0.
    Errors: TransformError for a non-scalar or integer value, or an integer argument.

    >>> import rune, rune.numpy as rnp
    >>> rune.value_and_grad(lambda x: rnp.sum(x ** 2))(rnp.arange(3.0))
    (Array(5., f32[], cpu:0), Array([0., 2., 4.], f32[3], cpu:0))
    """
    require_callable("grad", function)

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        main = Aux(function) if has_aux else function
        chosen = Chosen(main, argnums, args, kwargs)
        require_inputs("grad", chosen, holomorphic, allow_int)
        value, pull = vjp(chosen, *chosen.values)
        gradients = pull(_one_for(value, holomorphic))
        picked = gradients[0] if isinstance(argnums, int) else gradients
        return ((value, main.aux) if isinstance(main, Aux) else value), picked

    return named(value_and_gradient, function, "value_and_grad")


def require_inputs(name: str, chosen: Chosen, holomorphic: bool, allow_int: bool) -> None:
    """Raise TransformError for an argument that reverse mode is not asked to differentiate."""
    if holomorphic:
        chosen.require(name, dtypes.COMPLEX, "complex")
    elif not allow_int:
        chosen.require(name, dtypes.INEXACT, "floating")


def _one_for(value: Any, holomorphic: bool) -> Any:
    leaves = tree.leaves(value)
    if len(leaves) != 1 or leaves[0] is not value:
        raise TransformError(
            f"grad: cannot differentiate a result of {len(leaves)} arrays (one scalar required)",
            hint="return the loss alone, or use has_aux=True",
        )
    value_type = type_of(value)
    if value_type.shape:
        raise TransformError(
            f"grad: cannot differentiate a result {value_type} (scalar required)",
            hint="reduce it with rune.numpy.sum or mean, or use rune.jacrev",
        )
    require_result("grad", value_type, holomorphic)
    return Array(np.ones((), value_type.dtype), ArrayType((), value_type.dtype))


def require_result(name: str, result_type: ArrayType, holomorphic: bool) -> None:
    """Raise TransformError for a result that reverse mode is not asked to differentiate."""
    allowed, kind = _RESULTS[holomorphic]
    if result_type.dtype not in allowed:
        raise TransformError(
            f"{name}: cannot differentiate a result {result_type} ({kind} required)",
            hint="for a holomorphic function pass holomorphic=True, else use rune.vjp"
            if result_type.dtype in dtypes.COMPLEX
            else None,
        )


_RESULTS = {False: (dtypes.FLOATING, "real floating"), True: (dtypes.COMPLEX, "complex")}


def grad(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The gradient of a scalar function with respect to `argnums`.

    Options and errors: as value_and_grad.

    >>> import rune, rune.numpy as rnp
    >>> rune.grad(rune.grad(lambda x: x ** 3))(2.0)
    Array(12., f32[], cpu:0)
    """
    both = value_and_grad(function, argnums, has_aux, holomorphic, allow_int)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, derivative = both(*args, **kwargs)
        return (derivative, value[1]) if has_aux else derivative

    return named(gradient, function, "grad")
