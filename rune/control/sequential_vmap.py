"""sequential_vmap: a function that computes its lanes one after another under vmap."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rune import tree
from rune.control.scan.scan import map as map_rows
from rune.core.lists import merge, omit, pick
from rune.transforms.custom.vmap import custom_vmap


def sequential_vmap(f: Callable[..., object]) -> custom_vmap:
    """`f` with a rule for vmap: a loop that runs it on one lane after another.

    This saves memory where all lanes at once would need too much.

    Errors: those of the function.

    >>> import rune, rune.numpy as rnp
    >>> rune.vmap(rune.sequential_vmap(lambda x: x * x))(rnp.arange(3.0))
    Array([0., 1., 4.], f32[3], cpu:0)
    """
    custom = custom_vmap(f)

    def rule(axis_size: int, in_batched: Sequence[object], *args: object) -> tuple[object, object]:
        leaves, treedef = tree.flatten(args)
        has_lanes = tree.leaves(in_batched)

        # Only arguments with lanes are rows of the loop; the others are the same in every step.
        def one(lane: Sequence[object]) -> object:
            return custom(*tree.unflatten(treedef, merge(has_lanes, lane, omit(leaves, has_lanes))))

        # The loop calls the function with its rule, so an enclosing vmap is sequential, too.
        result = map_rows(one, pick(leaves, has_lanes))
        return result, tree.map(lambda _: True, result)

    custom.def_vmap(rule)
    return custom
