"""Checkpoint policies: which values of the forward pass a checkpoint keeps for the backward pass.

A policy is asked for each operation of the forward pass, by primitive, operand types and
parameters, whether its results may be kept; all others are computed again. Any function
policy(primitive, *types, **params) -> bool is one. The names are those of jax.checkpoint_policies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.errors import TransformError
from rune.ops import dot_general

Saves = Callable[..., bool]


class Policy:
    """A policy with a name, under which it stands in programs."""

    __slots__ = ("name", "saves")

    def __init__(self, name: str, saves: Saves):
        self.name, self.saves = name, saves

    def __call__(self, primitive: Primitive, *types: ArrayType, **params: Any) -> bool:
        """Whether the results of this operation may be kept."""
        return bool(self.saves(primitive, *types, **params))

    def __repr__(self) -> str:
        return self.name


def as_policy(given: Saves | None) -> Policy:
    """A policy as checkpoint keeps it; None keeps nothing."""
    if given is None:
        return nothing_saveable
    if not callable(given):
        raise TransformError(f"checkpoint: cannot use {given!r} as a policy (not callable)")
    name = getattr(given, "__name__", type(given).__name__)
    return given if isinstance(given, Policy) else Policy(name, given)


def _is_dot(primitive: Primitive, *_: ArrayType, **__: Any) -> bool:
    return primitive is dot_general


def _is_plain_dot(primitive: Primitive, *_: ArrayType, **params: Any) -> bool:
    return primitive is dot_general and not any(params["dimension_numbers"][1])


everything_saveable = Policy("everything_saveable", lambda *_, **__: True)
nothing_saveable = Policy("nothing_saveable", lambda *_, **__: False)
dots_saveable = checkpoint_dots = Policy("dots_saveable", _is_dot)
dots_with_no_batch_dims_saveable = checkpoint_dots_with_no_batch_dims = Policy(
    "dots_with_no_batch_dims_saveable", _is_plain_dot
)


def _name(primitive: Primitive, params: dict[str, Any]) -> str | None:
    """The name that checkpoint_name gave."""
    return params["name"] if primitive is name_primitive else None


def save_only_these_names(*names: str) -> Policy:
    """Keep the values that `checkpoint_name` gave one of these names, and no others."""
    return Policy(
        f"save_only_these_names{names}", lambda p, *_, **params: _name(p, params) in set(names)
    )


def save_any_names_but_these(*names: str) -> Policy:
    """Keep the values that `checkpoint_name` gave any other name, and no others."""
    kept = {*names, None}
    return Policy(
        f"save_any_names_but_these{names}", lambda p, *_, **params: _name(p, params) not in kept
    )


def save_anything_except_these_names(*names: str) -> Policy:
    """Keep every value but those that `checkpoint_name` gave one of these names."""
    return Policy(
        f"save_anything_except_these_names{names}",
        lambda p, *_, **params: _name(p, params) not in set(names),
    )


def save_from_both_policies(first: Saves, second: Saves) -> Policy:
    """Keep what one or the other policy keeps."""
    a, b = as_policy(first), as_policy(second)

    def either(primitive: Primitive, *types: ArrayType, **params: Any) -> bool:
        return a(primitive, *types, **params) or b(primitive, *types, **params)

    return Policy(f"save_from_both_policies({a}, {b})", either)


def _refuse_offload(*_: Any, **__: Any) -> NoReturn:
    raise TransformError(
        "checkpoint: cannot offload residuals to the memory of the host (not supported)",
        hint="keep them with save_only_these_names, or recompute them",
    )


def offload_dot_with_no_batch_dims(*args: Any, **options: Any) -> NoReturn:
    """Refused: residuals stay on their device."""
    _refuse_offload(*args, **options)


def save_and_offload_only_these_names(*args: Any, **options: Any) -> NoReturn:
    """Refused: residuals stay on their device."""
    _refuse_offload(*args, **options)


# --- names --------------------------------------------------------------------------------------

name_primitive = Primitive(
    "name", "identity", lambda x, *, name: x, lambda x, *, name: x,
    jvp=(lambda dx, x, y, *, name: dx,), transpose=lambda ct, linear, x, *, name: [ct],
    batch=lambda batched, size, x, *, name: (name_primitive(x, name=name), True),
    expand=lambda x, *, name: x,
)  # fmt: skip

__all__ = [
    "checkpoint_dots", "checkpoint_dots_with_no_batch_dims",
    "dots_saveable", "dots_with_no_batch_dims_saveable", "everything_saveable",
    "nothing_saveable", "offload_dot_with_no_batch_dims",
    "save_and_offload_only_these_names", "save_any_names_but_these",
    "save_anything_except_these_names", "save_from_both_policies", "save_only_these_names",
]  # fmt: skip
