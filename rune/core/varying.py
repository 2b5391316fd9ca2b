"""Variation: the axes of a mesh along which values in the body of a shard_map differ.

A result varies along every axis along which an operand does, unless its primitive has a rule:

    vary(axes, params) -> (params, result axes)     one set of axes for each operand and result; the
                                        programs among the parameters typed for such operands

Type rules do not handle it. It decides which cotangents are summed over devices: the cotangent of a
value that is the same on all devices is the sum of their shares (derivatives/transpose.py).
Source: https://docs.jax.dev/en/latest/notebooks/shard_map.html, "vma types"
"""

from __future__ import annotations

from collections.abc import Sequence

from rune.core.axes import is_typed, names_of
from rune.core.primitive import Primitive
from rune.core.types import NONE, ArrayType, Axes
from rune.core.values import Params

Variation = tuple[Params, Sequence[Axes]]


def typed_equation(
    primitive: Primitive, types: Sequence[ArrayType], params: Params
) -> tuple[Params, tuple[ArrayType, ...]]:
    """The parameters of an equation on operands of these types, and the types of its results."""
    axes = [t.varying for t in types]
    results: Sequence[Axes] | None = None
    if primitive.vary is not None:
        params, results = primitive.vary(axes, params)
    out = primitive.type_rule(*(t.along(NONE) for t in types), **params)
    out_types = out if primitive.multiple_results else (out,)
    if results is None:
        results = (NONE.union(*axes),) * len(out_types)
    return params, tuple(t.along(a) for t, a in zip(out_types, results, strict=True))


def united(axes: Sequence[Axes], params: Params) -> Variation:
    """The rule of a collective with the same result on all devices of its axis, without groups."""
    if "groups" in params:
        return spread(axes, params)
    return params, (NONE.union(*axes) - {params["axis_name"]},)


def spread(axes: Sequence[Axes], params: Params) -> Variation:
    """The rule of a collective whose result differs between the devices of its axis."""
    return params, (NONE.union(*axes, filter(is_typed, names_of(params["axis_name"]))),)
