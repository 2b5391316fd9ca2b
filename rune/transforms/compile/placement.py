"""Where arrays are, where an operation on them runs, and moving them explicitly.

An operation runs on the one device that its committed operands are on, and commits its results to
it. Without committed operands it runs on the default device (`rune.configure(device=...)`, else
the CPU), and its results stay free. Free operands follow; committed ones never move by themselves.
The same function decides for eager operations and for compiled programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from rune import dtypes, tree
from rune.array import Array, Place, as_array, committed_to, default_place, on, put
from rune.backends import Device, device_of
from rune.core.interpreter import Tracer
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.core.values import Operand, Value
from rune.errors import DeviceError
from rune.ops.promote import opened
from rune.transforms.compile.transfer import has_moves, to_device

X = TypeVar("X")


def placement(name: str, args: Sequence[Operand]) -> Place:
    """Where `name` runs on these arguments, and where its results are.

    Errors: DeviceError names the devices if committed arguments are on several.
    """
    # Tracers and host data are committed to no device.
    committed = [a for a in args if type(a) is Array and a.committed]
    if not committed:
        return default_place()
    first = committed[0]
    if any(a.place.device is not first.place.device for a in committed):
        raise _several_devices(name, committed)
    return first.place


def place_of_call(name: str, program: Program, args: Sequence[Value]) -> Place:
    """Where a program runs on these arguments; one that moves values starts at the default device.

    Errors: DeviceError for arguments that are committed to different devices, which only a
    program that moves values may take.
    """
    return default_place() if has_moves(program) else placement(name, args)


def _several_devices(name: str, committed: Sequence[Array]) -> DeviceError:
    types: dict[str, ArrayType] = {}
    for array in committed:
        types.setdefault(array.device.name, array.type)
    shown = ", ".join(f"{type} on {device}" for device, type in types.items())
    return DeviceError(
        f"{name}: cannot combine arrays on different devices ({shown})",
        hint="each is committed to its device; move one with rune.device_put, or jit(device=...)",
    )


def device_put(values: object, device: str | Device | None = None) -> Any:
    """A tree with every array on `device` and committed to it; arrays there are not copied.

    Without a device, arrays stay as they are, and host data becomes arrays on the default device,
    committed to none. In a jitted function the value moves at this point of the program, which
    then runs in parts, each on its device; `rune.explain` shows them and the copies between them.

    Errors: DeviceError for an unknown device, and for a move inside a loop or branch.

    >>> import rune, rune.numpy as rnp
    >>> rune.device_put(rnp.ones(2), "cpu").committed
    True
    """
    return tree.map(_as_array if device is None else _putter(device), tree.map(opened, values))


def _as_array(value: Value) -> Any:
    return value if isinstance(value, Tracer) else _array(value)


def _array(value: Value) -> Array:
    if type(value) is Array:
        return value
    scalar = dtypes.scalar_type(value)
    return as_array(value) if scalar is None else as_array(value, *scalar)


def _putter(device: str | Device) -> Callable[[Value], object]:
    target = device_of(device)
    place = committed_to(on(target))

    def put_there(value: Value) -> Array:
        if isinstance(value, Tracer):
            return to_device(value, device=target.name)
        array = _array(value)
        if array.place.device is not place.device:
            return put(array.numpy(), array.type, place)
        # Already there, so the same memory becomes committed.
        return array if array.committed else Array(array.buffer, array.type, place)

    return put_there


def device_get(values: object) -> Any:
    """A tree with every array as a NumPy array; all copies start before the first is awaited.

    Keys, which are not numbers to NumPy, stay rune arrays, in the host's memory.
    Errors: none of its own; leaves that are not arrays become NumPy data.

    >>> import rune, rune.numpy as rnp
    >>> rune.device_get([rnp.arange(3)])
    [array([0, 1, 2], dtype=int32)]
    """
    begun = tree.map(_start_numpy, values)
    return tree.map(lambda finish: finish(), begun)


def _start_numpy(value: object) -> Callable[[], object]:
    if type(value) is not Array:
        return lambda: np.asarray(value)
    contents = value.start_numpy()
    return (lambda: Array(contents(), value.type)) if value.type.dtype in dtypes.KEYS else contents


def block_until_ready(values: X) -> X:
    """Wait until every array of the tree is computed; returns the tree.

    Errors: those of the pending work: DeviceError, OutOfMemory, NaNError.

    >>> import rune, rune.numpy as rnp
    >>> rune.block_until_ready({"x": rnp.ones(2) + 1})
    {'x': Array([2., 2.], f32[2], cpu:0)}
    """
    for leaf in map(opened, tree.leaves(values)):
        if type(leaf) is Array:
            leaf.block_until_ready()
    return values
