"""Functions whose arguments and results are laid out by shardings: in_shardings of jit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from rune import tree
from rune.core.values import Value
from rune.sharding import NamedSharding
from rune.transforms.compile.placement import destinations, put_each, shortest
from rune.transforms.compile.static_arguments import Marked
from rune.transforms.sharding.constraint import argument_layout, sharding_constraint

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
            laid_out_args[n] = put_each("jit", f"argument[{n}]", args[n], leaf_places, _as_argument)
        results = function(*laid_out_args, **kwargs)
        result_places = destinations("jit", "out_shardings", out_shardings, results)
        return put_each("jit", "result", results, result_places, _as_written)

    return on_devices


def _as_argument(value: Value, sharding: NamedSharding) -> Value:
    """An argument laid out by a sharding, which must not be committed to another layout."""
    return argument_layout(value, sharding=shortest(value, sharding))


def _as_written(value: Value, sharding: NamedSharding) -> Value:
    """A result laid out by a sharding, with a spec of the same words."""
    return sharding_constraint(value, sharding=sharding)
