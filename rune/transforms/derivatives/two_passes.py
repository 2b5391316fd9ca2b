"""fwd_and_bwd: the forward and the backward pass as two functions, each compiled once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from rune.errors import ArgumentError
from rune.transforms.compile.jit import jit
from rune.transforms.derivatives.vjp import vjp

Forward = Callable[..., tuple]
Backward = Callable[..., Any]


def fwd_and_bwd(
    fun: Callable[..., object], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Forward, Backward]:
    """Functions forward(*args) -> (outputs, residuals) and backward(residuals, cotangents).

    argnums: the arguments whose cotangents backward returns, as a tuple; for a number as a single
             tree
    has_aux: whether the function returns (outputs, aux); forward then returns aux as well
    jitted:  whether both functions are compiled
    Errors:  those of `vjp`; ArgumentError if `argnums` has a number beyond the arguments.

    >>> import rune, rune.numpy as rnp
    >>> forward, backward = rune.fwd_and_bwd(lambda x, y: x * rnp.sin(y), argnums=(0, 1))
    >>> z, residuals = forward(2.0, 0.0)
    >>> backward(residuals, rnp.ones_like(z))
    (Array(0., f32*[], cpu:0), Array(2., f32*[], cpu:0))
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(map(operator.index, argnums))

    def forward(*args: object, **kwargs: object) -> tuple:
        places = [_place(n, args) for n in numbers]

        def of_active(*active: object) -> object:
            inputs = list(args)
            for place, value in zip(places, active, strict=True):
                inputs[place] = value
            return fun(*inputs, **kwargs)

        options: dict[str, Any] = {"has_aux": has_aux}
        return vjp(of_active, *(args[p] for p in places), **options)

    # The pullback is a tree of its residuals, so a jitted function can return it and take it.
    def backward(residuals: Callable[[object], tuple], cotangents: object) -> object:
        results = residuals(cotangents)
        return results[0] if isinstance(argnums, int) else results

    return (jit(forward), jit(backward)) if jitted else (forward, backward)


def _place(number: int, args: Sequence[object]) -> int:
    if not -len(args) <= number < len(args):
        raise ArgumentError(f"fwd_and_bwd: cannot differentiate argument {number} (of {len(args)})")
    return number % len(args)
