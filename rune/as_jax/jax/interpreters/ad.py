"""`jax.interpreters.ad`: derivative rules of users' primitives."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from rune import absent
from rune import jvp as jvp
from rune import linearize as linearize
from rune.as_jax.primitive import Primitive
from rune.as_jax.rules import primitive_jvps, primitive_transposes
from rune.as_jax.zeros import (
    UndefinedPrimal,
    Zero,
    instantiate_zeros,
    is_undefined_primal,
    tangent_zero,
    zeros_like_aval,
)
from rune.core.interpreter import type_of
from rune.errors import MissingRule
from rune.ops import add as add_jaxvals
from rune.ops import add as add_jaxvals_p
from rune.transforms.derivatives.jvp import JvpTracer as JVPTracer

Rule = Callable[..., Any]


def defjvp(primitive: Primitive, *rules: Rule | None) -> None:
    """Set one rule(tangent, *primals, **params) for each argument; None if its derivative is 0."""
    defjvp2(primitive, *(rule and _without_output(rule) for rule in rules))


def defjvp2(primitive: Primitive, *rules: Rule | None) -> None:
    """Set one rule(tangent, output, *primals, **params) for each argument."""

    def jvp_rule(primals: tuple, tangents: tuple, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        pairs = ((rule, t) for rule, t in zip(rules, tangents, strict=True) if rule and type(t) is not Zero)
        terms = [rule(t, out, *primals, **params) for rule, t in pairs]
        return out, reduce(add_tangents, terms, Zero.from_primal_value(out))

    primitive_jvps[primitive] = jvp_rule


def _without_output(rule: Rule) -> Rule:
    return lambda tangent, output, *primals, **params: rule(tangent, *primals, **params)


def deflinear(primitive: Primitive, transpose: Rule) -> None:
    """Declare it linear in all arguments: transpose(cotangent, **params) -> cotangents."""
    deflinear2(primitive, lambda ct, *inputs, **params: transpose(ct, **params))


def deflinear2(primitive: Primitive, transpose: Rule) -> None:
    """The same with transpose(cotangent, *inputs, **params) -> cotangents."""

    def jvp_rule(primals: tuple, tangents: tuple, **params: Any) -> tuple[Any, Any]:
        tangent_values = map(instantiate_zeros, tangents)
        return primitive.bind(*primals, **params), primitive.bind(*tangent_values, **params)

    primitive_jvps[primitive] = jvp_rule
    primitive_transposes[primitive] = transpose


def defbilinear(primitive: Primitive, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Declare it linear in each of two arguments: rule(cotangent, x, y, **params) -> cotangent."""

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        if is_undefined_primal(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    defjvp(
        primitive,
        lambda t, x, y, **params: primitive.bind(t, y, **params),
        lambda t, x, y, **params: primitive.bind(x, t, **params),
    )
    primitive_transposes[primitive] = transpose


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, either of which may be a Zero."""
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_jaxvals(x, y)


def get_primitive_transpose(primitive: Primitive) -> Rule:
    """The transpose rule of a primitive. Errors: MissingRule if it has none."""
    try:
        return primitive_transposes[primitive]
    except KeyError:
        raise MissingRule(f"transpose: cannot transpose {primitive} (it has no transpose rule)") from None


def p2tz(primal: Any) -> Zero:
    """The zero tangent of a value."""
    return tangent_zero(type_of(primal))


__getattr__ = absent.of(__name__)
