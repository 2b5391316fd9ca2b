"""Tangents and cotangents, as users pass and receive them, and as derivatives use them.

A tangent or cotangent has the shape and dtype of its value. An integer or bool has none: users see
float0, an array of no bytes, which is None, the symbolic zero, inside derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rune import dtypes, tree
from rune.array import Array, as_array
from rune.core.interpreter import is_differentiable, type_of
from rune.core.types import ArrayType, same_layout
from rune.core.values import Value
from rune.errors import TransformError
from rune.ops.arithmetic import convert
from rune.ops.family import zeros_of
from rune.ops.promote import opened
from rune.transforms.arguments import key_path
from rune.transforms.tree_difference import mismatch


def tangent_of(name: str, primal: ArrayType, tangent: Any) -> Array | None:
    """A tangent as derivatives use it: None for the float0 of an integer.

    primal:  the type of the value that it belongs to.
    Errors: TransformError if shape or dtype does not fit the primal.
    """
    expected_type = primal.to_tangent()
    tangent = host_as(tangent, expected_type)
    if not is_array(tangent):
        raise no_array(name, "tangent", tangent)
    # The weakness of a tangent does not matter: results get that of their values (`weak_as`).
    actual = type_of(tangent)
    if not same_layout(actual, expected_type):
        raise TransformError(
            f"{name}: cannot use a tangent {actual} for a primal {primal}",
            hint=_FLOAT0 if expected_type.dtype == dtypes.float0 else None,
        )
    return None if expected_type.dtype == dtypes.float0 else tangent


_FLOAT0 = "the tangent of an integer is numpy.zeros(shape, rune.float0)"


def host_as(value: object, expected_type: ArrayType) -> Any:
    """NumPy data as an array: of its own dtype if that is expected, otherwise of the canonical one.

    An object that stands for an array becomes that array, and so does a Python number.
    """
    value = opened(value)
    if not isinstance(value, np.ndarray | np.generic) or value.dtype == dtypes.float0:
        return number_as_array(value)
    # f64 data for an f64 value stays f64, where a default conversion would make it f32.
    is_expected = value.dtype == expected_type.dtype
    return as_array(value, value.dtype if is_expected else dtypes.canonical(value.dtype))


def is_array(value: object) -> bool:
    """Whether the value is an array, traced or not, or a number."""
    return (hasattr(value, "dtype") and hasattr(value, "shape")) or dtypes.scalar_type(value) is not None


def no_array(name: str, role: str, value: object) -> TransformError:
    """The error for a tangent or cotangent that is not an array."""
    return TransformError(f"{name}: cannot use {type(value).__name__} as a {role} (an array required)")


def filled(primal: Value, tangent: Value | None) -> Value:
    """The tangent; for zero an array of zeros, or float0 for values without tangents."""
    type = type_of(primal)
    if tangent is not None:
        return weak_as(type, tangent)
    return zeros(type) if is_differentiable(primal) else float0_zeros(type)


def weak_as(type: ArrayType, tangent: Value) -> Value:
    """The tangent, weak if a value of this type is, as for the derivative of a Python number."""
    # A strong gradient of a Python number would turn a bf16 array into f32 where the two meet
    # (decision 0089).
    return convert(tangent, dtype=type.dtype, weak=True) if type.weak and not type_of(tangent).weak else tangent


def zeros(type: ArrayType) -> Any:
    """Zeros for users: an array, which keeps its dtype where a NumPy constant would not."""
    zero = zeros_of(type)
    # With axes, `zeros_of` has already made an array.
    return zero if type.shape else as_array(zero, type.dtype, type.weak)


def float0_zeros(type: ArrayType) -> np.ndarray:
    """The tangent of an integer."""
    return np.zeros(type.shape, dtypes.float0)


def filled_as(type: ArrayType, ct: Value | None) -> Value:
    """The tangent or cotangent of a value of this type; for zero an array as in `filled`."""
    if type.dtype not in dtypes.INEXACT:
        return float0_zeros(type)
    if ct is None:
        return zeros(type)
    return weak_as(type, ct) if type.weak else ct


def cotangents_of(
    name: str, types: Sequence[ArrayType], treedef: tree.TreeDef, cotangents: object
) -> list[Array | None]:
    """Cotangents as derivatives use them: None for an output that has no derivative.

    Errors: TransformError if the tree differs from that of the outputs, or a shape or dtype:
            "vjp: cannot use a cotangent f32[2] for an output f32[3] (output['y'])".
    """
    leaves, cotangent_tree = tree.flatten(cotangents)
    if cotangent_tree != treedef:
        difference = mismatch(
            treedef,
            cotangent_tree,
            "output{} has no cotangent".format,
            "cotangent{} belongs to no output".format,
            "{} required, not {}",
        )
        raise TransformError(f"{name}: cannot match cotangents to outputs ({difference})")
    return [_cotangent_of(name, t, ct, i, treedef) for i, (t, ct) in enumerate(zip(types, leaves, strict=True))]


def _cotangent_of(name: str, type: ArrayType, ct: Any, number: int, treedef: tree.TreeDef) -> Array | None:
    if type.dtype not in dtypes.INEXACT:
        return None
    ct = host_as(ct, type)
    # The path is spelled out only for errors: it costs a walk through the whole tree.
    if not is_array(ct):
        raise no_array(name, f"cotangent{key_path(number, treedef)}", ct)
    actual = type_of(ct)
    if not same_layout(actual, type):
        raise TransformError(
            f"{name}: cannot use a cotangent {actual} for an output {type} (output{key_path(number, treedef)})"
        )
    # A cotangent that differs between devices cannot be that of a value that is the same on all.
    if not actual.varying <= type.varying:
        raise TransformError(
            f"{name}: cannot use a cotangent {actual} for an output {type} (output{key_path(number, treedef)}), "
            "which all devices have alike",
            hint="take psum of the cotangent, or pvary of the output",
        )
    return ct


def number_as_array(value: object) -> Any:
    """A Python number that has a derivative as a weak array of rank 0; others unchanged.

    Rules compute with primals and tangents as arrays; a Python number would raise for 1 / 0.0, and
    has no dtype.
    """
    if type(value) not in (float, complex):
        return value
    scalar = dtypes.scalar_type(value)
    assert scalar is not None
    return as_array(value, *scalar)
