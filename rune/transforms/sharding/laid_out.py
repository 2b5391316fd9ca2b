"""Functions whose arguments and results are laid out as shardings say: in_shardings of jit."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import TypeVar

from rune.transforms.arguments import require_callable
from rune.transforms.compile.placement import device_put

R = TypeVar("R")


def laid_out(
    function: Callable[..., R], in_shardings: object, out_shardings: object, static: Collection[int | str]
) -> Callable[..., R]:
    """The function, with positional arguments and results on the devices that these name.

    in_shardings:  a tree prefix of the positional arguments that are not static; None leaves an
                   argument where it is
    out_shardings: a tree prefix of the results
    """
    require_callable("jit", function)
    if in_shardings is None and out_shardings is None:
        return function
    prefix = tuple(in_shardings) if isinstance(in_shardings, list) else in_shardings

    @functools.wraps(function)
    def on_devices(*args: object, **kwargs: object) -> R:
        dynamic = [n for n in range(len(args)) if n not in static]
        values = iter(device_put(tuple(args[n] for n in dynamic), prefix))
        placed = [next(values) if n in dynamic else arg for n, arg in enumerate(args)]
        return device_put(function(*placed, **kwargs), out_shardings)

    return on_devices
