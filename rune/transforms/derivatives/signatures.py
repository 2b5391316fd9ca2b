"""Types of `grad` and `value_and_grad` for checkers: a gradient has its argument's type.

One signature each, not overloads, so that it passes unchanged through `jit` and `vmap`. They
therefore say that the gradient of a Python number is a number, although it is an Array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from rune.array import Array

P = ParamSpec("P")  # the parameters after the first
X = TypeVar("X")  # the argument: an array, or a tree of them
Y = TypeVar("Y")  # the second one
W_contra = TypeVar("W_contra", contravariant=True)  # the first, where it has no gradient
R = TypeVar("R")
A = TypeVar("A")  # the aux that a function returns
R_co = TypeVar("R_co", covariant=True)

Loss: TypeAlias = Callable[Concatenate[Any, P], R]
LossOfTwo: TypeAlias = Callable[Concatenate[W_contra, Any, P], R]


class Gradient(Protocol[P]):
    """The gradient of a function with respect to its first argument."""

    __wrapped__: Callable[..., object]  # the differentiated function; a plain function has none

    def __call__(self, x: X, /, *args: P.args, **kwargs: P.kwargs) -> X: ...


class SecondGradient(Protocol[W_contra, P]):
    """The gradient of a function with respect to its second argument."""

    def __call__(self, w: W_contra, y: Y, /, *args: P.args, **kwargs: P.kwargs) -> Y: ...


class Gradients(Protocol[P]):
    """The gradients of a function with respect to its first two arguments."""

    def __call__(self, x: X, y: Y, /, *args: P.args, **kwargs: P.kwargs) -> tuple[X, Y]: ...


class GradientAndAux(Protocol[P, R_co]):
    """The gradient with respect to the first argument, and aux."""

    def __call__(self, x: X, /, *args: P.args, **kwargs: P.kwargs) -> tuple[X, R_co]: ...


class Jacobian(Protocol[P]):
    """The Jacobian of an array with respect to the first argument: an array if that is an array."""

    @overload
    def __call__(self, x: Array, /, *args: P.args, **kwargs: P.kwargs) -> Array: ...
    @overload
    def __call__(self, x: object, /, *args: P.args, **kwargs: P.kwargs) -> Any: ...


class ValueAndGradient(Protocol[P, R_co]):
    """The value of a function, and its gradient with respect to the first argument."""

    def __call__(self, x: X, /, *args: P.args, **kwargs: P.kwargs) -> tuple[R_co, X]: ...


class ValueAndGradients(Protocol[P, R_co]):
    """The value of a function, and its gradients with respect to the first two arguments."""

    def __call__(self, x: X, y: Y, /, *args: P.args, **kwargs: P.kwargs) -> tuple[R_co, tuple[X, Y]]: ...
