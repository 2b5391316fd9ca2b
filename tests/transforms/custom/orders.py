"""Orders in which transformations are applied to a function of (x, y): gradients, jit and lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rune


def over_x(function: Any) -> Any:
    """A function of (x, y) on all lanes of x."""
    return rune.vmap(function, in_axes=(0, None))


def total(function: Any) -> Any:
    """The sum of the results of a function."""
    return lambda x, y: function(x, y).sum()


# Each gives the gradient with respect to x.
GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "jit grad": lambda f: rune.jit(rune.grad(f)),
    "grad jit": lambda f: rune.grad(rune.jit(f)),
    "grad jit jit": lambda f: rune.grad(rune.jit(rune.jit(f))),
    "jit grad jit": lambda f: rune.jit(rune.grad(rune.jit(f))),
}
# Each gives the gradients of all lanes of x.
LANES: dict[str, Callable[[Any], Any]] = {
    "vmap grad": lambda f: over_x(rune.grad(f)),
    "vmap grad jit": lambda f: over_x(rune.grad(rune.jit(f))),
    "grad vmap": lambda f: rune.grad(total(over_x(f))),
    "grad vmap jit": lambda f: rune.grad(total(over_x(rune.jit(f)))),
    "grad jit vmap": lambda f: rune.grad(total(rune.jit(over_x(f)))),
    "jit grad vmap": lambda f: rune.jit(rune.grad(total(over_x(f)))),
}
