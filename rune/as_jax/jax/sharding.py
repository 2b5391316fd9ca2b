"""`jax.sharding`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from rune import absent, sharding
from rune.backends import Device
from rune.lax.identities import resharded
from rune.sharding import *
from rune.sharding import AxisType, Mesh, SingleDeviceSharding
from rune.sharding.context import unchecked

__getattr__ = absent.of(__name__)
make_single_device_sharding = SingleDeviceSharding


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: Sequence[AxisType] | None = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """As rune's, but axes without a type are explicit, as in JAX."""
    kinds = (AxisType.Explicit,) * len(axis_shapes) if axis_types is None else axis_types
    return sharding.make_mesh(axis_shapes, axis_names, kinds, devices=devices)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """The arrays in other layouts, on every type of axes."""
    return resharded(xs, out_shardings)


def auto_axes(f: Callable[..., Any] | None = None, /, *, axes: object = None, out_sharding: object = None) -> Any:
    """The function with results in `out_sharding`; layouts inside follow the operands."""
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    def laid_out(*args: Any, out_sharding: object = out_sharding, **kwargs: Any) -> Any:
        with unchecked():
            results = f(*args, **kwargs)
        return resharded(results, out_sharding)

    return laid_out


def explicit_axes(f: Callable[..., Any] | None = None, /, *, axes: object = None, in_sharding: object = None) -> Any:
    """The function with arguments moved to `in_sharding`."""
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f)
    def laid_out(*args: Any, in_sharding: object = in_sharding, **kwargs: Any) -> Any:
        return f(*resharded(args, in_sharding), **kwargs)

    return laid_out
