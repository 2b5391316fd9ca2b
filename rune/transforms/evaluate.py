"""Eager evaluation: the outermost interpreter.

On the CPU a primitive runs its NumPy meaning at once, with no compilation. On another device an
operation becomes a one-equation program, compiled once. Importing this module installs it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rune import config, dtypes
from rune.array import Array, on, put
from rune.backends import Device
from rune.backends.cpu_memory import out_of_memory
from rune.core.interpreter import Interpreter, Tracer, escaped, install_outermost, type_of, use
from rune.core.primitive import Primitive
from rune.core.staging import stage
from rune.core.types import ArrayType
from rune.errors import DeviceError, MissingRule, NaNError
from rune.transforms.compile import run_program


class Evaluate(Interpreter):
    """Computes at once. Values are Arrays, NumPy arrays and Python scalars."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """The result as an Array, or a list of them."""
        if primitive.run is not None:
            with use(self):
                return primitive.run(*args, **params)
        if primitive.reference is None:
            raise MissingRule(f"evaluate: cannot run {primitive} (it has no meaning in NumPy)")
        data, types, device = _operands(primitive.name, args)
        type = result_type(primitive, types, params)
        if device is not None:
            return _run_on(device, primitive, args, types, params)
        try:
            with np.errstate(all="ignore"):
                out = primitive.reference(*data, **params)
        except MemoryError as error:
            sizes = [d for d in type.shape if isinstance(d, int)]
            raise out_of_memory(math.prod(sizes) * type.dtype.itemsize) from error
        made = Array(np.asarray(out), type)
        return _nan_checked(primitive, made) if config.current().check_nans else made


def _operands(name: str, args: Sequence[Any]) -> tuple[list[Any], tuple, Device | None]:
    """Host data and types of the arguments; the device, if they are not on the CPU."""
    data, types, placed = [], [], False
    for arg in args:
        kind = type(arg)
        if kind is Array and arg.device is None:
            data.append(arg.buffer)
            types.append(arg.type)
            placed = True
        elif kind is np.ndarray:
            data.append(arg)
            types.append(ArrayType(arg.shape, arg.dtype))
        else:
            break
    else:
        if placed or config.current().device is None:
            return data, tuple(types), None
    for arg in args:
        if isinstance(arg, Tracer):
            raise escaped(arg)
    device = common_device(name, args)
    found = tuple([type_of(a) for a in args])
    return ([] if device else [_host(a) for a in args]), found, device


def _host(value: Any) -> np.ndarray:
    if type(value) is Array:
        return value.buffer
    scalar = dtypes.scalar_type(value)
    return np.asarray(value) if scalar is None else np.asarray(value, scalar[0])


@functools.lru_cache(maxsize=16384)
def _result_type(primitive: Primitive, types: tuple, params: tuple) -> ArrayType:
    return primitive.type_rule(*types, **dict(params))


def result_type(primitive: Primitive, types: tuple, params: Mapping[str, Any]) -> ArrayType:
    """The type rule's answer, remembered: eager programs apply the same few again and again."""
    return _result_type(primitive, types, tuple(params.items()))


def common_device(name: str, args: Sequence[Any]) -> Device | None:
    """The one device of all arrays, None for the CPU; rank-0 CPU values go anywhere.

    Without arrays, as where one is made of a number, it is the configured device.

    Errors: DeviceError names the devices.
    """
    placed = {a.device for a in args if type(a) is Array and (a.type.shape or a.device)}
    if len(placed) > 1:
        names = " and ".join(sorted(d.name if d else "cpu:0" for d in placed))
        raise DeviceError(
            f"{name}: cannot combine arrays on {names}", hint="move one with rune.device_put"
        )
    if placed:
        return placed.pop()
    default = config.current().device
    constant = not any(type(a) is Array for a in args)
    return on(default) if default and constant else None


def _nan_checked(primitive: Primitive, made: Array) -> Array:
    data = made.numpy()
    if data.dtype in dtypes.INEXACT and np.isnan(data).any():
        where = np.argwhere(np.isnan(data))[0].tolist()
        raise NaNError(f"{primitive}: found NaN in its result {made.type} (first at {where})")
    return made


def _run_on(
    device: Device, primitive: Primitive, args: Sequence[Any], types: tuple, params: Any
) -> Array:
    program = _one_operation(primitive, types, tuple(sorted(params.items())))
    arrays = [a if type(a) is Array else put(_host(a), t, None) for a, t in zip(args, types)]
    return run_program(program, arrays, device)[0]


@functools.lru_cache(maxsize=4096)
def _one_operation(primitive: Primitive, types: tuple, params: tuple) -> Any:
    return stage(lambda *xs: [primitive(*xs, **dict(params))], types, primitive.name).program


EVALUATE = Evaluate(None)
install_outermost(EVALUATE)
