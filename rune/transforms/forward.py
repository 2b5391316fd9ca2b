"""jvp and linearize: derivatives in the direction of tangents, on trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rune import tree
from rune.core.interpreter import is_differentiable
from rune.errors import TransformError
from rune.transforms.flat import Aux, filled, flatten, tangent_of
from rune.transforms.jvp import jvp_flat
from rune.transforms.linearize import linearize_flat
from rune.transforms.mismatch import mismatch


def jvp(
    function: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> Any:
    """(outputs, tangents of the outputs) at `primals` in the direction `tangents`; then aux.

    Shapes: each tangent as its primal. Types: as its primal; float0 for integers.
    Errors: TransformError when the trees, shapes or dtypes differ.

    >>> import rune, rune.numpy as rnp
    >>> rune.jvp(rnp.sin, (0.0,), (2.0,))[1]
    Array(2., f32*[], cpu:0)
    """
    main = Aux(function) if has_aux else function
    leaves, flat = flatten("jvp", main, primals)
    directions = _directions("jvp", leaves, flat.treedef, tangents)
    outs, found = jvp_flat(flat, leaves, directions)
    made = [filled(o, t) for o, t in zip(outs, found, strict=True)]
    pair = tree.unflatten(flat.out_tree, outs), tree.unflatten(flat.out_tree, made)
    return (*pair, main.kept) if isinstance(main, Aux) else pair


def _directions(name: str, leaves: Sequence[Any], treedef: Any, tangents: Sequence[Any]) -> list:
    """One tangent per leaf, None for that of an integer."""
    given, found = tree.flatten(tuple(tangents))
    if found != treedef:
        how = mismatch(
            treedef, found, "primal{} has no tangent".format,
            "tangent{} belongs to no primal".format, "{} required, not {}",
        )  # fmt: skip
        raise TransformError(f"{name}: cannot match tangents to primals ({how})")
    return [tangent_of(name, p, t) for p, t in zip(leaves, given, strict=True)]


def linearize(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(outputs, the linear map from tangents to tangents) at `primals`; with `has_aux`, also aux.

    Errors: TransformError, when the map is called, for a tangent unlike its primal.

    >>> import rune, rune.numpy as rnp
    >>> rune.linearize(lambda x: x * x, 3.0)[1](1.0)
    Array(6., f32[], cpu:0)
    """
    main = Aux(function) if has_aux else function
    leaves, flat = flatten("linearize", main, primals)
    active = [is_differentiable(x) for x in leaves]
    outs, linear = linearize_flat(flat, leaves, active)
    treedef, out_tree = flat.treedef, flat.out_tree

    def tangent_map(*tangents: Any) -> Any:
        checked = _directions("linearize", leaves, treedef, tangents)
        found = linear([t for t, a in zip(checked, active, strict=True) if a])
        made = [filled(o, t) for o, t in zip(outs, found, strict=True)]
        return tree.unflatten(out_tree, made)

    result = tree.unflatten(out_tree, outs)
    return (result, tangent_map, main.kept) if isinstance(main, Aux) else (result, tangent_map)
