"""JAX's functions that tell a compiler something about a part of a program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rune
from rune.array import Array
from rune.as_jax.devices import default_backend
from rune.backends import platform_name
from rune.errors import ArgumentError


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """The function, with its operations in a scope of this name.

    JAX keeps such a call in one piece for compilers that know the name; rune's do not.

    >>> import rune.as_jax, jax
    >>> float(jax.lax.composite(lambda x, *, by: x * by, "my.scale")(2.0, by=3.0))
    6.0
    """

    @functools.wraps(decomposition)
    def called(*args: Any, **attributes: Any) -> Any:
        with rune.named_scope(name):
            return decomposition(*args, **attributes)

    return called


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """Call the function for the platform of the committed arguments, or of the default device.

    Errors: ArgumentError if the platform has no function and there is no default.

    >>> import rune.as_jax, jax
    >>> float(jax.lax.platform_dependent(2.0, cpu=lambda x: x + 1.0, default=lambda x: x))
    3.0
    """
    platforms = [x.platform() for x in rune.tree.leaves(args) if isinstance(x, Array) and x.committed]
    platform = next(iter(platforms), default_backend())
    functions = {platform_name(n): function for n, function in per_platform.items()}
    function = functions.get(platform_name(platform), default)
    if function is None:
        raise ArgumentError(
            f"platform_dependent: cannot run on {platform} (functions for {', '.join(per_platform)}, and no default)"
        )
    return function(*args)


def copy_to_host_async(x: Any) -> Any:
    """Begin to copy the arrays of the tree to the host; returns the tree."""
    for leaf in rune.tree.leaves(x):
        if isinstance(leaf, Array):
            leaf.start_numpy()
    return x


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the report of `rune.doctor`, or return it as a string."""
    text = str(rune.doctor())
    return text if return_string else print(text)


def smap(f: Callable[..., Any] | None = None, /, *, in_axes: Any = None, out_axes: Any = None, axis_name: str) -> Any:
    """`shard_map` over one mesh axis; in_axes and out_axes number the array axes that it splits."""
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)

    def spec(axis: int | None) -> Any:
        return rune.P() if axis is None else rune.P(*(None,) * axis, axis_name)

    specs = [rune.tree.map(spec, axes, is_leaf=lambda a: a is None) for axes in (in_axes, out_axes)]
    return rune.shard_map(f, in_specs=specs[0], out_specs=specs[1], axis_names={axis_name})
