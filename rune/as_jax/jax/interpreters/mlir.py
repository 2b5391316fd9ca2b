"""`jax.interpreters.mlir`: lowerings of users' primitives.

A lowering is a function of values: `lower_fun(f)` is f. A lowering may also call such functions, or
`emit_python_callback`. One that builds MLIR fails, because rune has no MLIR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from rune import absent, pure_callback
from rune.as_jax.primitive import LoweringContext as LoweringRuleContext
from rune.as_jax.primitive import Primitive
from rune.as_jax.rules import lowerings
from rune.core.types import ArrayType
from rune.errors import MissingRule
from rune.transforms.callback import io_callback
from rune.transforms.eval_shape import ShapeDtypeStruct

Lowering = Callable[..., Any]


def lower_fun(function: Callable[..., Any], multiple_results: bool = True) -> Lowering:
    """The lowering to `function`, written with jax.numpy and other primitives."""

    def lowering(context: LoweringRuleContext, *values: Any, **params: Any) -> list[Any]:
        out = function(*values, **params)
        return list(out) if multiple_results else [out]

    return lowering


def register_lowering(
    primitive: Primitive, rule: Lowering, platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> Lowering:
    """Set the lowering of a primitive, for all devices.

    A lowering for one platform is not used, because rune's are for all devices: a primitive that
    has no other raises MissingRule when it is compiled.
    """
    if platform is None:
        lowerings[primitive] = rule
    else:
        lowerings.setdefault(primitive, _for_one_platform(primitive, platform))
    return rule


def _for_one_platform(primitive: Primitive, platform: str) -> Lowering:
    def lowering(*values: object, **params: object) -> NoReturn:
        raise MissingRule(
            f"jit: cannot compile {primitive} (its lowering is for {platform!r} alone, rune's are for all devices)",
            hint="call mlir.register_lowering without a platform",
        )

    return lowering


def emit_python_callback(
    context: LoweringRuleContext,
    callback: Callable[..., Sequence[Any]],
    token: object,
    operands: Sequence[Any],
    operand_avals: Sequence[ArrayType],
    result_avals: Sequence[ArrayType],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: object = None,
) -> tuple[list[Any], object, None]:
    """(results, token, None) of a Python function, called when the compiled program runs."""
    structs = tuple(ShapeDtypeStruct(a.shape, a.dtype) for a in result_avals)
    call = io_callback if has_side_effect else pure_callback
    return list(call(lambda *values: tuple(callback(*values)), structs, *operands)), token, None


__getattr__ = absent.of(__name__)
