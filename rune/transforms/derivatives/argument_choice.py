"""The arguments that a derivative is taken with respect to, and the dtypes that it accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rune import dtypes, tree
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import TransformError
from rune.transforms.arguments import key_path, value_leaves


class Chosen:
    """A function of the arguments that `argnums` selects, with the others fixed."""

    def __init__(
        self,
        function: Callable[..., object],
        argnums: int | Sequence[int],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.numbers = _argument_numbers(argnums, len(args))
        self.values = tuple(args[i] for i in self.numbers)

    def __call__(self, *values: object) -> Any:
        """The result for other values of the selected arguments."""
        full_args = list(self.args)
        for i, value in zip(self.numbers, values, strict=True):
            full_args[i] = value
        return self.function(*full_args, **self.kwargs)

    def require(self, name: str, allowed_dtypes: frozenset[np.dtype], kind: str) -> None:
        """Raise TransformError, with the path, unless every leaf has an allowed dtype."""
        for number, argument in zip(self.numbers, self.values, strict=True):
            leaves, treedef = tree.flatten(argument)
            for i, leaf in enumerate(value_leaves(name, leaves, treedef)):
                if type_of(leaf).dtype not in allowed_dtypes:
                    raise _undifferentiable(name, number, key_path(i, treedef), leaf, kind)


def _argument_numbers(argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    numbers = tuple(argnums) if isinstance(argnums, Iterable) else (argnums,)
    for number in numbers:
        if not hasattr(number, "__index__"):
            raise TransformError(f"grad: cannot differentiate argument {number!r} (argnums must be integers)")
        if not -count <= number < count:
            raise TransformError(f"grad: cannot differentiate argument {number} (positional arguments: {count})")
    # A negative number counts from the last argument.
    return tuple(n % count for n in numbers)


def _undifferentiable(name: str, number: int, path: str, leaf: Value, kind: str) -> TransformError:
    hints = {
        "floating": "convert it with .astype('float32'), or choose argnums",
        "real floating": "use rune.jvp, or holomorphic=True for a holomorphic function",
    }
    return TransformError(
        f"{name}: cannot differentiate with respect to argument {number}{path} of type "
        f"{type_of(leaf)} ({kind} dtype required)",
        hint=hints.get(kind),
    )


# --- what reverse mode accepts ----------------------------------------------------------------


def require_inputs(name: str, choice: Chosen, holomorphic: bool, allow_int: bool) -> None:
    """Raise TransformError for an argument that reverse mode cannot differentiate."""
    if holomorphic:
        choice.require(name, dtypes.COMPLEX, "complex")
    elif not allow_int:
        choice.require(name, dtypes.INEXACT, "floating")


def require_result(name: str, result_type: ArrayType, holomorphic: bool) -> None:
    """Raise TransformError for a result that reverse mode cannot differentiate."""
    allowed_dtypes, kind = _RESULTS[holomorphic]
    if result_type.dtype not in allowed_dtypes:
        raise TransformError(
            f"{name}: cannot differentiate a result {result_type} ({kind} required)",
            hint="for a holomorphic function pass holomorphic=True, otherwise use rune.vjp"
            if result_type.dtype in dtypes.COMPLEX
            else None,
        )


_RESULTS = {False: (dtypes.FLOATING, "real floating"), True: (dtypes.COMPLEX, "complex")}


def one_for(value: object, holomorphic: bool) -> Array:
    """The cotangent 1 of a scalar. Errors: TransformError if the value is anything else."""
    leaves, _ = tree.flatten(value)
    # A tree of one array is refused as well: the gradient is defined for a bare scalar.
    if len(leaves) != 1 or leaves[0] is not value:
        raise TransformError(
            f"grad: cannot differentiate a result of {len(leaves)} arrays (one scalar required)",
            hint="return only the loss, or use has_aux=True",
        )
    value_type = type_of(value)
    if value_type.shape:
        raise TransformError(
            f"grad: cannot differentiate a result {value_type} (scalar required)",
            hint="reduce it with rune.numpy.sum or mean, or use rune.jacrev",
        )
    require_result("grad", value_type, holomorphic)
    # The cotangent has the type of a tangent: weak if the value is.
    return Array(np.ones((), value_type.dtype), value_type.to_tangent())
