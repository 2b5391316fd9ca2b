"""Tree functions as flat ones, and what every derivative asks of tangents and cotangents.

A tangent or cotangent has the shape and dtype of its value. Integers and bools have none: what
stands there is float0, an array of no bytes, and inside it is None, the symbolic zero.

A Python number that enters a derivative becomes a weak array of rank 0: rules compute with primals
and tangents as arrays do, where a Python number would raise for 1 / 0.0 and has no dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rune import dtypes, tree
from rune.array import as_array
from rune.core.interpreter import current, is_differentiable, type_of
from rune.core.types import ArrayType
from rune.errors import TransformError
from rune.ops.family import zeros_of
from rune.ops.promote import opened
from rune.transforms.arguments import (
    array_leaves,
    key_path,
    require_callable,
    unshared,
    value_leaves,
)
from rune.transforms.derivatives.jvp import Jvp
from rune.transforms.tree_difference import mismatch


class Flat:
    """A tree function as a flat one; remembers the tree of its last result."""

    def __init__(self, name: str, function: Callable[..., Any], treedef: Any):
        self.name, self.function, self.treedef = name, function, treedef
        self.out_tree: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        """Flat results of flat arguments."""
        outs, self.out_tree = tree.flatten(self.function(*tree.unflatten(self.treedef, leaves)))
        return array_leaves(self.name, outs, self.out_tree)


def flatten(name: str, function: Callable[..., Any], args: Sequence[Any]) -> tuple[list, Flat]:
    """The leaves of the arguments, and the function of such leaves."""
    require_callable(name, function)
    leaves, treedef = tree.flatten(tuple(args))
    values = [number_as_array(x) for x in array_leaves(name, leaves, treedef)]
    return values, Flat(name, function, treedef)


def number_as_array(value: Any) -> Any:
    """A Python number that has a derivative as a weak array of rank 0; anything else as it is."""
    if type(value) not in (float, complex):
        return value
    scalar = dtypes.scalar_type(value)
    assert scalar is not None
    return as_array(value, *scalar)


class Aux:
    """Splits (value, aux): differentiates the value, and keeps aux as plain values."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.aux: Any = None  # the second part of the last result, without tangents

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value alone."""
        result = self.function(*args, **kwargs)
        if not isinstance(result, tuple) or len(result) != 2:
            raise TransformError("has_aux: cannot split the result (a pair (value, aux) required)")
        interpreter = current()
        assert isinstance(interpreter, Jvp)
        value, aux = result
        self.aux = tree.map(lambda x: unshared(interpreter.split(opened(x))[0]), aux)
        return value


# --- tangents and cotangents ------------------------------------------------------------------


def tangent_type(type: ArrayType) -> ArrayType:
    """The type of a tangent: strong, and float0 for what has no derivative."""
    return ArrayType(type.shape, type.dtype if type.dtype in dtypes.INEXACT else dtypes.float0)


def is_layout(actual: ArrayType, expected: ArrayType) -> bool:
    """Whether shape and dtype are those expected; weakness is left aside."""
    return actual.shape == expected.shape and actual.dtype == expected.dtype


def tangent_of(name: str, primal: ArrayType, tangent: Any) -> Any:
    """A tangent as it travels inside: None for the float0 of an integer.

    primal:  the type of the value that it belongs to.
    Errors: TransformError when shape or dtype is not that of a tangent of it.
    """
    expected = tangent_type(primal)
    tangent = host_as(tangent, expected)
    require_array(name, "tangent", tangent)
    actual = type_of(tangent)
    if not is_layout(actual, expected):
        raise TransformError(
            f"{name}: cannot use a tangent {actual} for a primal {primal}",
            hint=_FLOAT0 if expected.dtype == dtypes.float0 else None,
        )
    return None if expected.dtype == dtypes.float0 else tangent


_FLOAT0 = "the tangent of an integer is numpy.zeros(shape, rune.float0)"


def host_as(value: Any, expected: ArrayType) -> Any:
    """NumPy data as an array, of its dtype where that is the one expected, else of the canonical.

    What stands for an array is that array, and a Python number becomes one.
    """
    value = opened(value)
    if not isinstance(value, np.ndarray | np.generic) or value.dtype == dtypes.float0:
        return number_as_array(value)
    is_expected = value.dtype == expected.dtype
    return as_array(value, value.dtype if is_expected else dtypes.canonical(value.dtype))


def require_array(name: str, what: str, value: Any) -> None:
    """Errors: TransformError for what is neither an array nor a number."""
    is_array = hasattr(value, "dtype") and hasattr(value, "shape")
    if not (is_array or dtypes.scalar_type(value) is not None):
        kind = type(value).__name__
        raise TransformError(f"{name}: cannot use {kind} as a {what} (an array required)")


def filled(primal: Any, tangent: Any) -> Any:
    """The tangent, or what stands for zero: zeros, or float0 for values without tangents."""
    if tangent is not None:
        return tangent
    type = type_of(primal)
    return zeros(type) if is_differentiable(primal) else float0_zeros(type)


def zeros(type: ArrayType) -> Any:
    """Zeros as users are given them: an array, which keeps its dtype where a constant would not."""
    zero = zeros_of(type)
    return zero if type.shape else as_array(zero, type.dtype, type.weak)


def float0_zeros(type: ArrayType) -> np.ndarray:
    """The tangent of an integer."""
    return np.zeros(type.shape, dtypes.float0)


def filled_as(type: ArrayType, ct: Any) -> Any:
    """The tangent or cotangent of a value of this type, or what stands for zero."""
    if type.dtype not in dtypes.INEXACT:
        return float0_zeros(type)
    return zeros(type) if ct is None else ct


def cotangents_of(
    name: str, types: Sequence[ArrayType], treedef: Any, cotangents: Any
) -> list[Any]:
    """Cotangents as they travel inside: None where a value is no number to differentiate.

    Errors: TransformError when the tree differs from that of the outputs, or a shape or dtype:
            "vjp: cannot use a cotangent f32[2] for an output f32[3] (output['y'])".
    """
    leaves, cotangent_tree = tree.flatten(cotangents)
    if cotangent_tree != treedef:
        how = mismatch(
            treedef, cotangent_tree, "output{} has no cotangent".format,
            "cotangent{} belongs to no output".format, "{} required, not {}",
        )  # fmt: skip
        raise TransformError(f"{name}: cannot match cotangents to outputs ({how})")
    return [
        _cotangent_of(name, t, ct, i, treedef)
        for i, (t, ct) in enumerate(zip(types, leaves, strict=True))
    ]


def _cotangent_of(name: str, type: ArrayType, ct: Any, number: int, treedef: Any) -> Any:
    if type.dtype not in dtypes.INEXACT:
        return None
    ct = host_as(ct, type)
    require_array(name, f"cotangent{key_path(number, treedef)}", ct)
    actual = type_of(ct)
    if not is_layout(actual, type):
        raise TransformError(
            f"{name}: cannot use a cotangent {actual} for an output {type} "
            f"(output{key_path(number, treedef)})"
        )
    return ct


# --- which arguments --------------------------------------------------------------------------


class Chosen:
    """A function of the arguments that `argnums` chooses, the others being what they are."""

    def __init__(
        self, function: Callable[..., Any], argnums: int | Sequence[int],
        args: Sequence[Any], kwargs: Mapping[str, Any],
    ):  # fmt: skip
        self.function, self.args, self.kwargs = function, args, kwargs
        self.numbers = _argument_numbers(argnums, len(args))
        self.values = tuple(args[i] for i in self.numbers)

    def __call__(self, *values: Any) -> Any:
        """The result for other values of the chosen arguments."""
        full = list(self.args)
        for i, value in zip(self.numbers, values, strict=True):
            full[i] = value
        return self.function(*full, **self.kwargs)

    def require(self, name: str, allowed: frozenset[np.dtype], kind: str) -> None:
        """Raise TransformError, with the path, unless every leaf has an allowed dtype."""
        for number, argument in zip(self.numbers, self.values, strict=True):
            leaves, treedef = tree.flatten(argument)
            for i, leaf in enumerate(value_leaves(name, leaves, treedef)):
                if type_of(leaf).dtype not in allowed:
                    raise _undifferentiable(name, number, key_path(i, treedef), leaf, kind)


def _argument_numbers(argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    numbers = tuple(argnums) if isinstance(argnums, Iterable) else (argnums,)
    for number in numbers:
        if not hasattr(number, "__index__"):
            raise TransformError(
                f"grad: cannot differentiate argument {number!r} (argnums must be integers)"
            )
        if not -count <= number < count:
            raise TransformError(
                f"grad: cannot differentiate argument {number} (positional arguments: {count})"
            )
    return tuple(n % count for n in numbers)


def _undifferentiable(name: str, number: int, path: str, leaf: Any, kind: str) -> TransformError:
    hints = {
        "floating": "convert it with .astype('float32'), or choose argnums",
        "real floating": "use rune.jvp, or holomorphic=True for a holomorphic function",
    }
    return TransformError(
        f"{name}: cannot differentiate with respect to argument {number}{path} of type "
        f"{type_of(leaf)} ({kind} dtype required)",
        hint=hints.get(kind),
    )
