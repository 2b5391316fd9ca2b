"""Checkpoint policies: which values of the forward pass a checkpoint saves for the backward pass.

A policy decides for each operation of the forward pass, from its primitive, operand types and
parameters, whether its results may be saved; all others are recomputed.

Any function policy(primitive, *types, **params) -> bool is a policy. It is not called for loops and
branches, but for the operations inside them. The names are those of jax.checkpoint_policies. The
policies in this file are values: policies with equal fields have the same text and the same key in
every cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.errors import TransformError
from rune.listing import names as _names
from rune.ops import dot_general
from rune.records import dataclass
from rune.transforms.arguments import function_name

Saves = Callable[..., bool]


# --- kinds of policies --------------------------------------------------------------------------


def _is_plain_dot(primitive: Primitive, params: Mapping[str, Any]) -> bool:
    # The second pair of dimension numbers are the batch axes.
    return primitive is dot_general and not any(params["dimension_numbers"][1])


_SIMPLE: Mapping[str, Callable[[Primitive, Mapping[str, Any]], bool]] = {
    "everything": lambda primitive, params: True,
    "nothing": lambda primitive, params: False,
    "dots": lambda primitive, params: primitive is dot_general,
    "plain dots": _is_plain_dot,
}


@dataclass(frozen=True, slots=True)
class Simple:
    """A policy named by what it saves: everything, nothing, dots, or unbatched dots.

    Errors: none.

    >>> import rune, rune.numpy as rnp
    >>> keeps = rune.checkpoint_policies.dots_saveable
    >>> float(rune.grad(rune.checkpoint(lambda x: rnp.sin(x) @ x, policy=keeps))(rnp.ones(1))[0])
    1.3817732334136963
    """

    choice: str

    def __call__(self, primitive: Primitive, *types: ArrayType, **params: object) -> bool:
        """Whether the results of this operation may be saved."""
        return _SIMPLE[self.choice](primitive, params)


_BY_NAME: Mapping[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "only": lambda name, names: name in names,
    # "any but" saves only values that have a name; "all except" also saves values without a name.
    "any but": lambda name, names: name is not None and name not in names,
    "all except": lambda name, names: name not in names,
}


@dataclass(frozen=True, slots=True)
class ByName:
    """A policy that selects values by their names from `checkpoint_name`."""

    which: str
    names: tuple[str, ...]

    def __call__(self, primitive: Primitive, *types: ArrayType, **params: Any) -> bool:
        """Whether the results of this operation may be saved."""
        name = params["name"] if primitive is name_primitive else None
        return _BY_NAME[self.which](name, self.names)


@dataclass(frozen=True, slots=True)
class Either:
    """A policy that saves the values that either of two policies saves."""

    first: Policy
    second: Policy

    def __call__(self, primitive: Primitive, *types: ArrayType, **params: object) -> bool:
        """Whether the results of this operation may be saved."""
        return any(p(primitive, *types, **params) for p in (self.first, self.second))


class UserPolicy:
    """A user's function as a policy; programs print its name."""

    __slots__ = ("saves",)

    def __init__(self, saves: Saves):
        self.saves = saves

    def __call__(self, primitive: Primitive, *types: ArrayType, **params: object) -> bool:
        """Whether the results of this operation may be saved."""
        return bool(self.saves(primitive, *types, **params))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UserPolicy) and other.saves == self.saves

    def __hash__(self) -> int:
        return hash(self.saves)

    def __repr__(self) -> str:
        return f"<{function_name(self.saves)}>"


Policy = Simple | ByName | Either | UserPolicy


def as_policy(policy: Saves | None) -> Policy:
    """A policy as the parameter of a checkpoint; None saves nothing."""
    if policy is None:
        return nothing_saveable
    if not callable(policy):
        raise TransformError(f"checkpoint: cannot use {policy!r} as a policy (not callable)")
    return policy if isinstance(policy, Policy) else UserPolicy(policy)


# --- jax.checkpoint_policies --------------------------------------------------------------------

everything_saveable = Simple("everything")
nothing_saveable = Simple("nothing")
dots_saveable = checkpoint_dots = Simple("dots")
dots_with_no_batch_dims_saveable = checkpoint_dots_with_no_batch_dims = Simple("plain dots")


def save_only_these_names(*names: str) -> Policy:
    """Save only values that `checkpoint_name` gave one of these names.

    Errors: none.

    >>> import rune, rune.numpy as rnp
    >>> def f(x):
    ...     return rune.checkpoint_name(rnp.sin(x), "a") * rnp.cos(x)
    >>> policy = rune.checkpoint_policies.save_only_these_names("a")
    >>> float(rune.grad(rune.checkpoint(f, policy=policy))(0.0))
    1.0
    """
    return ByName("only", names)


def save_any_names_but_these(*names: str) -> Policy:
    """Save only values that `checkpoint_name` gave a name other than these.

    Errors: none.

    >>> import rune, rune.numpy as rnp
    >>> def f(x):
    ...     return rune.checkpoint_name(rnp.sin(x), "a") * rnp.cos(x)
    >>> policy = rune.checkpoint_policies.save_any_names_but_these("b")
    >>> float(rune.grad(rune.checkpoint(f, policy=policy))(0.0))
    1.0
    """
    return ByName("any but", names)


def save_anything_except_these_names(*names: str) -> Policy:
    """Save every value except those that `checkpoint_name` gave one of these names.

    Errors: none.

    >>> import rune, rune.numpy as rnp
    >>> def f(x):
    ...     return rune.checkpoint_name(rnp.sin(x), "a") * rnp.cos(x)
    >>> policy = rune.checkpoint_policies.save_anything_except_these_names("a")
    >>> float(rune.grad(rune.checkpoint(f, policy=policy))(0.0))
    1.0
    """
    return ByName("all except", names)


def save_from_both_policies(first: Saves, second: Saves) -> Policy:
    """Save the values that either policy saves.

    Errors: TransformError if an argument is not a policy.

    >>> import rune, rune.numpy as rnp
    >>> named = rune.checkpoint_policies.save_only_these_names("a")
    >>> policy = rune.checkpoint_policies.save_from_both_policies(
    ...     named, rune.checkpoint_policies.dots_saveable
    ... )
    >>> float(rune.grad(rune.checkpoint(rnp.sin, policy=policy))(0.0))
    1.0
    """
    return Either(as_policy(first), as_policy(second))


def _refuse_offload(*_: object, **__: object) -> NoReturn:
    raise TransformError(
        "checkpoint: cannot offload residuals to host memory (not supported)",
        hint="keep them with save_only_these_names, or recompute them",
    )


def offload_dot_with_no_batch_dims(*args: object, **options: object) -> NoReturn:
    """Refused: residuals stay on their device.

    Errors: TransformError, always.

    >>> import rune
    >>> rune.checkpoint_policies.offload_dot_with_no_batch_dims()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.TransformError: checkpoint: cannot offload residuals ...
    """
    _refuse_offload(*args, **options)


def save_and_offload_only_these_names(*args: object, **options: object) -> NoReturn:
    """Refused: residuals stay on their device.

    Errors: TransformError, always.

    >>> import rune
    >>> rune.checkpoint_policies.save_and_offload_only_these_names()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.TransformError: checkpoint: cannot offload residuals ...
    """
    _refuse_offload(*args, **options)


# --- names --------------------------------------------------------------------------------------

name_primitive = Primitive(
    "name",
    "identity",
    lambda x, *, name: x,
    lambda x, *, name: x,
    jvp=(lambda dx, x, y, *, name: dx,),
    transpose=lambda ct, linear, x, *, name: [ct],
    batch=lambda batched, size, x, *, name: (name_primitive(x, name=name), True),
    # Names matter only to policies, so they leave nothing in compiled code.
    expand=lambda x, *, name: x,
)

__all__ = ["checkpoint_dots", "checkpoint_dots_with_no_batch_dims", "dots_saveable"]
__all__ += ["dots_with_no_batch_dims_saveable", "everything_saveable", "nothing_saveable"]
__all__ += ["offload_dot_with_no_batch_dims", "save_and_offload_only_these_names", "save_any_names_but_these"]
__all__ += ["save_anything_except_these_names", "save_from_both_policies", "save_only_these_names"]

# This module is `rune.checkpoint_policies`: its users see the policies, not the imports.
__dir__ = _names(globals())
