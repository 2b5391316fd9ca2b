"""Samplers: compiled functions of a key, parameters, a shape and a dtype.

A sampler computes the same bits wherever it is called, since it always runs as compiled code. Its
`core` is the plain function, for samplers built on others. The key may be left out; one is then
drawn from the current handler (streams.py).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array, as_array
from rune.core.interpreter import type_of
from rune.core.types import Shape
from rune.errors import DtypeError, ShapeError
from rune.numpy.arguments import laid_out
from rune.ops.promote import as_type, broadcast_shape, broadcast_to, operand, unrounded
from rune.random.keys import static_shape
from rune.random.streams import take_key
from rune.sharding.shardings import Sharding
from rune.transforms.compile.jit import jit
from rune.typing import ArrayLike, DTypeLike

ALWAYS_STATIC = ("shape", "dtype")


class Sampler:
    """A sampler of random numbers; calling it draws.

    key:   a key, or None to draw one.
    name:  names a draw without a key, whose numbers then do not depend on other draws.
    out_sharding:  the sharding of the result.
    """

    def __init__(self, function: Callable[..., Any], static: tuple[str, ...] = ()):
        self.core = function
        self._signature = inspect.signature(function)
        self._names = tuple(self._signature.parameters)[1:]
        self._static = (*ALWAYS_STATIC, *static)
        self._functions: dict[Any, Callable[..., Any]] = {}  # by static values and argument names
        functools.update_wrapper(self, function)
        self.__signature__ = _with_name(self._signature)

    def __call__(
        self,
        key: Any = None,
        *args: object,
        name: str | None = None,
        out_sharding: Sharding | None = None,
        **kwargs: object,
    ) -> Array:
        """Draw random numbers; arguments as for the function."""
        draw_key = take_key(self.core.__name__, key, name)
        arguments = {**dict(zip(self._names, args)), **kwargs}
        if len(arguments) < len(args) + len(kwargs) or not arguments.keys() <= set(self._names):
            self._signature.bind(key, *args, **kwargs)  # raises the TypeError of such a call
        static = tuple([(n, self._fixed(n, arguments.pop(n))) for n in self._static if n in arguments])
        names = tuple(arguments)
        function = self._functions.get((static, names))
        if function is None:
            function = self._functions[static, names] = self._specialised(static, names)
        out = function(draw_key, *[_wide(v) if type(v) is int else v for v in arguments.values()])
        return out if out_sharding is None else laid_out(out, out_sharding)

    def _fixed(self, name: str, value: object) -> Any:
        """A static argument as part of a key."""
        if name == "shape" and value is not None:
            return static_shape(self.core.__name__, value)
        return dtypes.as_dtype(value) if name == "dtype" and value is not None else value

    def _specialised(self, static: Any, names: tuple[str, ...]) -> Callable[..., Array]:
        """The compiled function of a key and of the arguments with these names."""

        def specialised(key: ArrayLike, *values: ArrayLike) -> Array:
            return self.core(key, **dict(zip(names, values)), **dict(static))

        specialised.__name__ = self.core.__name__
        return jit(specialised)

    def __repr__(self) -> str:
        return f"rune.random.{self.core.__name__}"


def with_static(*names: str) -> Callable[[Callable[..., Array]], Sampler]:
    """A decorator for samplers with static arguments other than shape and dtype."""
    return lambda function: Sampler(function, names)


def _wide(number: int) -> int | Array:
    """A Python integer unchanged, or with 64 bits where it needs them."""
    if -(1 << 31) <= number < 1 << 31:
        return number
    return as_array(number, dtypes.u64 if number >= 1 << 63 else dtypes.i64)


def _with_name(signature: inspect.Signature) -> inspect.Signature:
    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in ("name", "out_sharding")]
    return signature.replace(parameters=[*signature.parameters.values(), *more])


# --- arguments --------------------------------------------------------------------------------


def floating(name: str, dtype: DTypeLike | None, *params: ArrayLike) -> np.dtype:
    """The requested floating dtype; otherwise the default one, or f64 if a parameter has it.

    Errors: DtypeError for a dtype that is not floating.
    """
    if dtype is None:
        is_wide = dtypes.f64 in {kind_of(name, p) for p in params}
        return dtypes.f64 if is_wide else dtypes.canonical(dtypes.f64)
    kind = dtypes.as_dtype(dtype)
    if kind not in dtypes.FLOATING:
        raise DtypeError(f"{name}: cannot draw {dtypes.short(kind)} (floating dtype required)")
    return kind


def integral(name: str, dtype: DTypeLike | None) -> np.dtype:
    """The requested integer dtype; otherwise the default one.

    Errors: DtypeError for a dtype that is not an integer of 8 bits or more.
    """
    if dtype is None:
        return dtypes.canonical(dtypes.i64)
    kind = dtypes.as_dtype(dtype)
    if kind not in dtypes.INTEGER - {dtypes.i4, dtypes.u4}:
        raise DtypeError(f"{name}: cannot draw {dtypes.short(kind)} (integer dtype required)")
    return kind


def numeric(name: str, dtype: DTypeLike | None, *params: ArrayLike) -> np.dtype:
    """As `floating`, or the requested integer dtype."""
    is_integer = dtype is not None and dtypes.as_dtype(dtype) in dtypes.INTEGER
    return integral(name, dtype) if is_integer else floating(name, dtype, *params)


def kind_of(name: str, value: ArrayLike) -> np.dtype | None:
    """The dtype of an array; None for a Python number."""
    x = operand(name, value)
    return None if dtypes.scalar_type(x) else type_of(x).dtype


def real_kind(name: str, value: ArrayLike) -> np.dtype:
    """The dtype of a floating array; the default one for anything else."""
    kind = kind_of(name, value)
    if kind is None or kind not in dtypes.FLOATING:
        return dtypes.canonical(dtypes.f64)
    return kind


def shape_of(name: str, value: ArrayLike) -> Shape:
    """The shape of an array; () for a Python number."""
    x = operand(name, value)
    return () if dtypes.scalar_type(x) else type_of(x).shape


def joint_shape(name: str, shape: Shape | None, *params: ArrayLike) -> Shape:
    """The requested shape; otherwise that of the parameters broadcast together.

    Errors: ShapeError where the parameters do not broadcast to it.
    """
    return shape_for(name, shape, *(shape_of(name, p) for p in params))


def shape_for(name: str, shape: Shape | None, *shapes: Shape) -> Shape:
    """As `joint_shape`, from the shapes of parameters."""
    together = broadcast_shape(name, *shapes) if shapes else ()
    if shape is None:
        return together
    if broadcast_shape(name, shape, together) != shape:
        raise ShapeError(
            f"{name}: cannot draw shape {shape} (parameters of shape {together})",
            hint="the parameters must broadcast to the shape",
        )
    return shape


def real_arguments(
    name: str, shape: Shape | None, dtype: DTypeLike | None, *params: ArrayLike
) -> tuple[np.dtype, Shape, list[Array]]:
    """The floating dtype and the shape of a result, and the parameters in that dtype.

    Errors: those of `floating`, `joint_shape` and `in_dtype`.
    """
    kind = floating(name, dtype, *params)
    return kind, joint_shape(name, shape, *params), [in_dtype(name, p, kind) for p in params]


def spread(name: str, value: ArrayLike, dtype: np.dtype, shape: Shape) -> Any:
    """A parameter in the dtype and shape of the result; a single number keeps rank 0.

    Errors: DtypeError for a parameter that the dtype cannot hold: a 64-bit one in a half type.
    """
    x = in_dtype(name, value, dtype)
    return broadcast_to(name, x, shape) if type_of(x).shape else x


def in_dtype(name: str, value: ArrayLike, dtype: np.dtype) -> Any:
    """A parameter in a dtype, no longer weak."""
    x = as_type(unrounded(name, value), dtype)
    return ops.convert(x, dtype=dtype) if type_of(x).weak else x
