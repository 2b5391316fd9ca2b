"""Moving arrays between devices and the host, explicitly."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune import tree
from rune.array import Array, as_array, on, put
from rune.core.interpreter import Tracer
from rune.errors import ArgumentError


def device_put(values: Any, device: str = "cpu") -> Any:
    """A tree with every array on `device`; arrays that are there already are not copied.

    Errors: DeviceError for an unknown device; ArgumentError inside a transformation.

    >>> import rune, rune.numpy as rnp
    >>> rune.device_put(rnp.ones(2), "cpu")
    Array([1., 1.], f32[2], cpu:0)
    """
    target = on(device)

    def move(value: Any) -> Array:
        if isinstance(value, Tracer):
            raise ArgumentError(
                "device_put: cannot move a traced value", hint="use jit(device=...) instead"
            )
        array = value if isinstance(value, Array) else as_array(value)
        return array if array.device is target else put(array.numpy(), array.type, target)

    return tree.map(move, values)


def device_get(values: Any) -> Any:
    """A tree with every array as a NumPy array."""
    return tree.map(np.asarray, values)


def block_until_ready(values: Any) -> Any:
    """Wait until every array of the tree is computed; returns the tree."""
    for leaf in tree.leaves(values):
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return values
