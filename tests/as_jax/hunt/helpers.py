"""Functions that the programs of a hunt may call, in JAX's public names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from tests.as_jax.random_programs.dialect import NAMES as SHARED

WAVES = (0.7, 1.3, 0.4)


def invertible(x: Any) -> Any:
    """A well-conditioned square matrix, made from the elements of any square matrix."""
    n = min(*x.shape[-2:], 6)
    return jnp.tanh(x[..., :n, :n]) + (n + 1) * jnp.eye(n, dtype=x.dtype)


def positive(x: Any) -> Any:
    """A symmetric positive-definite matrix whose eigenvalues are well separated."""
    a = invertible(x)
    return a @ a.swapaxes(-1, -2) + jnp.diag(jnp.arange(a.shape[-1]) * 9.0).astype(a.dtype)


def floating(tree: Any) -> list[Any]:
    """The leaves that have derivatives."""
    return [y for y in jax.tree.leaves(tree) if jnp.issubdtype(jnp.asarray(y).dtype, jnp.floating)]


def total(tree: Any) -> Any:
    """A weighted sum of all leaves that have derivatives; no two weights are equal."""
    terms = [jnp.sum(jnp.sin(WAVES[k % 3] * y.astype(float) + 0.1)) for k, y in enumerate(floating(tree))]
    return sum(terms, start=jnp.zeros((), float))


def scalar(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose only result is the `total` of its results."""
    return lambda *args: total(function(*args))


def smooth(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with those results that have derivatives."""
    return lambda *args: floating(function(*args))


def flat(tree: Any) -> Any:
    """All leaves as one vector of floats, with both parts of complex ones."""
    leaves = map(jnp.asarray, jax.tree.leaves(tree))
    parts = [p for y in leaves for p in ((y.real, y.imag) if jnp.iscomplexobj(y) else (y,))]
    return jnp.concatenate([jnp.ravel(p).astype(float) for p in parts])


def onto(carry: Any, tree: Any) -> Any:
    """The carry plus a number computed from the tree; its shape and dtype are unchanged."""
    move = sum((jnp.tanh(jnp.mean(y.astype(float))) for y in floating(tree) if y.size), start=jnp.zeros((), float))
    return (carry * 0.5 + move).astype(carry.dtype)


def leaf(tree: Any, number: int) -> Any:
    """One of the leaves as an array."""
    leaves = jax.tree.leaves(tree)
    return jnp.asarray(leaves[number % len(leaves)])


def carried(carry: Any, value: Any) -> Any:
    """The value as the next carry: with its shape and dtype, and between -9 and 9."""
    return _fitted(carry, value, lambda y: jnp.clip(y, 0 if y.dtype.kind == "u" else -9, 9))


def turned(carry: Any, value: Any) -> Any:
    """The same for carries that have derivatives."""
    return _fitted(carry, value, lambda y: 0.5 * carry + jnp.tanh(y))


def _fitted(carry: Any, value: Any, bounded: Callable[[Any], Any]) -> Any:
    c, y = jnp.asarray(carry), jnp.real(jnp.asarray(value))
    y = y if y.shape == c.shape else jnp.broadcast_to(jnp.sum(y), c.shape)
    return (y if y.dtype == bool else bounded(y)).astype(c.dtype)


def with_own_jvp(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a custom derivative, three times as large as its own."""
    operation = jax.custom_jvp(function)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        y, t = jax.jvp(function, primals, tangents)
        return y, jax.tree.map(lambda a: a * 3, t)

    operation.defjvp(rule)
    return operation


def with_own_vjp(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a custom derivative, the negative of its own."""
    operation = jax.custom_vjp(function)

    def backward(args: Sequence[Any], cotangent: Any) -> Any:
        return jax.tree.map(lambda a: -a, jax.vjp(function, *args)[1](cotangent))

    operation.defvjp(lambda *args: (function(*args), args), backward)
    return operation


NAMES: Mapping[str, Any] = {
    **SHARED,
    "M": invertible,
    "S": positive,
    "total": total,
    "scalar": scalar,
    "smooth": smooth,
    "flat": flat,
    "leaf": leaf,
    "carried": carried,
    "turned": turned,
    "onto": onto,
    "with_own_jvp": with_own_jvp,
    "with_own_vjp": with_own_vjp,
}
