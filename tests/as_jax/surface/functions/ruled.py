"""Functions with custom derivatives, by their names in expressions.

Their rules differ from their true derivatives, so that an answer shows whether the rule was called,
and with which arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def ruled(jax: Any) -> dict[str, Callable[..., Any]]:
    """The functions, written in the names of the imported jax."""
    return {"clipped": _clipped(jax), "quiet": _quiet(jax), **_scaled(jax), "silent": _silent(jax)}


def _clipped(jax: Any) -> Callable[..., Any]:
    """(x, bound): a tangent passes, doubled, where |x| < bound, which has no derivative."""

    def rule(bound: float, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
        (x,), (dx,) = primals, tangents
        return clip(x, bound), jax.numpy.where(abs(x) < bound, 2 * dx, 0)

    clip = jax.custom_jvp(lambda x, bound: jax.numpy.clip(x, -bound, bound), nondiff_argnums=(1,))
    clip.defjvp(rule)
    return clip


def _quiet(jax: Any) -> Callable[..., Any]:
    """(x, y): x * y; the tangent is 3 dx, and 5 dy if y has one."""
    zero = jax.custom_derivatives.SymbolicZero

    def rule(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
        like = primals[0] * primals[1]
        terms = [k * d for k, d in zip((3, 5), tangents, strict=True) if type(d) is not zero]
        return like, sum(terms, jax.numpy.zeros_like(like))

    quiet = jax.custom_jvp(lambda x, y: x * y)
    quiet.defjvp(rule, symbolic_zeros=True)
    return quiet


def _scaled(jax: Any) -> dict[str, Callable[..., Any]]:
    """(factor, x, v): factor x v, of v without a cotangent; and one of a dictionary."""
    scale = jax.custom_vjp(lambda factor, x, v: factor * x * v, nondiff_argnums=(0,))
    scale.defvjp(lambda factor, x, v: (factor * x * v, v), lambda factor, v, ct: (2 * factor * ct * v, None))
    scaled_tree = jax.custom_vjp(lambda d: (d["l"] * d["o"], d["o"]))
    scaled_tree.defvjp(
        lambda d: ((d["l"] * d["o"], d["o"]), d), lambda d, cts: ({"l": 7 * cts[0], "o": cts[1] + d["l"].sum()},)
    )
    return {"scaled": scale, "scaled_tree": scaled_tree}


def _silent(jax: Any) -> Callable[..., Any]:
    """(x, y): products and sums; the rule sees what is perturbed, and zero cotangents."""
    zero = jax.custom_derivatives.SymbolicZero

    def forward(x: Any, y: Any) -> tuple[Any, Any]:
        return (x.value * y.value, x.value + y.value), (x.value, 3.0 if x.perturbed else 0.0, y.perturbed)

    def backward(residuals: Any, cts: Any) -> tuple[Any, Any]:
        x, factor, y_is_perturbed = residuals
        known = [ct for ct in cts if type(ct) is not zero]
        dy = known[0].sum(0) * jax.numpy.where(y_is_perturbed, 1.0, 0.0)
        return factor * len(known) * known[-1] + 0 * x, dy

    silent = jax.custom_vjp(lambda x, y: (x * y, x + y))
    silent.defvjp(forward, backward, symbolic_zeros=True)
    return silent
