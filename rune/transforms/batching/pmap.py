"""pmap: one compiled program over the lanes of its arguments, which communicate by axis name.

On one device it means jit(vmap(f, axis_name=...)): the lanes are an axis, and collectives are
operations along it. Nothing in its meaning depends on how many devices there are, so there may be
more lanes than devices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rune.core.axes import Name
from rune.transforms.arguments import named
from rune.transforms.batching.vmap import vmap
from rune.transforms.compile.jit import jit
from rune.transforms.compile.static_arguments import Names, as_set

R = TypeVar("R")


class _Unnamed:
    """The name of an axis that no collective can mention."""

    def __repr__(self) -> str:
        return "an unnamed axis"


def pmap(
    function: Callable[..., R],
    axis_name: Name | None = None,
    *,
    in_axes: object = 0,
    out_axes: object = 0,
    axis_size: int | None = None,
    static_broadcasted_argnums: Names = None,
    donate_argnums: Names = None,
) -> Callable[..., R]:
    """`function` on every lane of its arguments, compiled as one program.

    axis_name:  what collectives call the lanes.
    in_axes, out_axes, axis_size:  as in `vmap`; None for a static argument.
    static_broadcasted_argnums, donate_argnums:  as static_argnums and donate_argnums of `jit`.
    Errors:     those of `vmap` and `jit`.

    >>> import rune, rune.numpy as rnp
    >>> def step(w, x, y):
    ...     gradient = rune.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
    ...     return w - 0.1 * rune.lax.pmean(gradient, "devices")
    >>> parallel = rune.pmap(step, "devices", in_axes=(None, 0, 0), out_axes=None)
    >>> parallel(rnp.zeros(2), rnp.ones((4, 8, 2)), rnp.ones((4, 8)))
    Array([0.2, 0.2], f32[2], cpu:0)
    """
    static = as_set(static_broadcasted_argnums, None)
    name = _Unnamed() if axis_name is None else axis_name

    def lanes(*args: object, **kwargs: object) -> R:
        # Positions, because `one` puts the values back in their places.
        dynamic = [i for i in range(len(args)) if i not in static]

        # Static arguments go around vmap, which would take them for arrays.
        def one(*values: object, **keywords: object) -> R:
            full_args = list(args)
            for i, value in zip(dynamic, values, strict=True):
                full_args[i] = value
            return function(*full_args, **keywords)

        axes = tuple(in_axes[i] for i in dynamic) if isinstance(in_axes, tuple | list) else in_axes
        over = vmap(one, axes, out_axes, name, axis_size)
        return over(*(args[i] for i in dynamic), **kwargs)

    named(lanes, function, "pmap")
    return jit(lanes, static_argnums=static_broadcasted_argnums, donate_argnums=donate_argnums)
