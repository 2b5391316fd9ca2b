"""Functions whose arguments and results are laid out by shardings: in_shardings of jit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from rune import tree
from rune.transforms.compile.placement import destinations, put_each
from rune.transforms.compile.static_arguments import Marked

R = TypeVar("R")


def laid_out(
    function: Callable[..., R], in_shardings: object, out_shardings: object, marks: Marked
) -> Callable[..., R]:
    """The function, with positional arguments and results laid out by these shardings.

    in_shardings:  a tree prefix of the positional arguments that are not static; None leaves an
                   argument where it is
    out_shardings: a tree prefix of the results
    """
    if in_shardings is None and out_shardings is None:
        return function
    # Arguments are a tuple, and a prefix must have the same containers.
    prefix = tuple(in_shardings) if isinstance(in_shardings, list) else in_shardings

    @functools.wraps(function)
    def on_devices(*args: object, **kwargs: object) -> R:
        is_static = marks.static_test(len(args))
        # As in JAX, the prefix has no entries for static arguments.
        dynamic = [n for n in range(len(args)) if not is_static(n)]
        places = iter(destinations("jit", "in_shardings", prefix, tuple(args[n] for n in dynamic)))
        laid_out_args = list(args)
        for n in dynamic:
            leaf_places = [next(places) for _ in tree.leaves(args[n])]
            laid_out_args[n] = put_each("jit", f"argument[{n}]", args[n], leaf_places)
        results = function(*laid_out_args, **kwargs)
        return put_each("jit", "result", results, destinations("jit", "out_shardings", out_shardings, results))

    return on_devices
