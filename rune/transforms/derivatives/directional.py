"""jvp and linearize: derivatives in the direction of tangents, on trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, overload

from rune import tree
from rune.array import Array
from rune.core.interpreter import is_differentiable, type_of
from rune.core.lists import nonzeros
from rune.core.types import ArrayType
from rune.errors import TransformError
from rune.transforms.derivatives.flat_functions import Aux, flatten
from rune.transforms.derivatives.jvp import jvp_flat
from rune.transforms.derivatives.linear_functions import LinearNode
from rune.transforms.derivatives.linearize import linearize_flat
from rune.transforms.derivatives.signatures import A, Gradient, R
from rune.transforms.derivatives.tangents import filled, filled_as, tangent_of
from rune.transforms.tree_difference import mismatch


@overload
def jvp(fun: Gradient[...], primals: Sequence[object], tangents: Sequence[object]) -> tuple[Any, Any]: ...
@overload
def jvp(
    fun: Callable[..., R], primals: Sequence[object], tangents: Sequence[object], has_aux: Literal[False] = False
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, A]], primals: Sequence[object], tangents: Sequence[object], has_aux: Literal[True]
) -> tuple[R, R, A]: ...
def jvp(
    fun: Callable[..., object], primals: Sequence[object], tangents: Sequence[object], has_aux: bool = False
) -> tuple[object, ...]:
    """(outputs, tangents of the outputs) at `primals` in the direction `tangents`; then aux.

    Shapes: each tangent like its primal. Types: like its primal; float0 for integers.
    Errors: TransformError when the trees, shapes or dtypes differ.

    >>> import rune, rune.numpy as rnp
    >>> rune.jvp(rnp.sin, (0.0,), (2.0,))[1]
    Array(2., f32*[], cpu:0)
    """
    main = Aux(fun) if has_aux else fun
    leaves, flat = flatten("jvp", main, primals)
    directions = _directions("jvp", [*map(type_of, leaves)], flat.treedef, tangents)
    outs, out_tangents = jvp_flat(flat, leaves, directions)
    # Rules use None for zero; users get arrays of zeros, or float0.
    full_tangents = [filled(o, t) for o, t in zip(outs, out_tangents, strict=True)]
    pair = tree.unflatten(flat.out_tree, outs), tree.unflatten(flat.out_tree, full_tangents)
    return (*pair, main.aux) if isinstance(main, Aux) else pair


def _directions(
    name: str, types: Sequence[ArrayType], treedef: tree.TreeDef, tangents: Sequence[object]
) -> list[Array | None]:
    """One tangent per leaf of these types, None for an integer leaf."""
    leaves, tangent_tree = tree.flatten(tuple(tangents))
    if tangent_tree != treedef:
        difference = mismatch(
            treedef,
            tangent_tree,
            "primal{} has no tangent".format,
            "tangent{} belongs to no primal".format,
            "{} required, not {}",
        )
        raise TransformError(f"{name}: cannot match tangents to primals ({difference})")
    # The trees are equal, so the leaves are in the same order.
    return [tangent_of(name, p, t) for p, t in zip(types, leaves, strict=True)]


class LinearFunction(LinearNode, Generic[R]):
    """The map from tangents of the inputs to tangents of the outputs: a tree of residuals."""

    def __call__(self, *tangents: object) -> R:
        """Tangents of the outputs. Errors: TransformError names the path that differs."""
        structure = self.structure
        in_tangents = _directions("linearize", structure.types, structure.treedef, tangents)
        # The linear program has no inputs for integers, whose tangents are None.
        out_tangents = self.linear(nonzeros(in_tangents))
        outputs = [filled_as(o, t) for o, t in zip(structure.out_types, out_tangents, strict=True)]
        return tree.unflatten(structure.out_tree, outputs)


tree.register_node_class(LinearFunction)


@overload
def linearize(fun: Gradient[...], *primals: object) -> tuple[Any, LinearFunction[Any]]: ...
@overload
def linearize(
    fun: Callable[..., R], *primals: object, has_aux: Literal[False] = False
) -> tuple[R, LinearFunction[R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, A]], *primals: object, has_aux: Literal[True]
) -> tuple[R, LinearFunction[R], A]: ...
def linearize(fun: Callable[..., object], *primals: object, has_aux: bool = False) -> Any:
    """(outputs, the linear map from tangents to tangents) at `primals`; with `has_aux`, also aux.

    The map is a tree of its residuals: a jitted function may return it, or take it.
    Errors: TransformError, when the map is called, for a tangent unlike its primal.

    >>> import rune, rune.numpy as rnp
    >>> rune.linearize(lambda x: x * x, 3.0)[1](1.0)
    Array(6., f32*[], cpu:0)
    """
    main = Aux(fun) if has_aux else fun
    leaves, flat = flatten("linearize", main, primals)
    # Integers have no tangents, so the linear program has no inputs for them.
    active = [is_differentiable(x) for x in leaves]
    outs, linear = linearize_flat(flat, leaves, active)
    tangent_map = LinearFunction.of(linear, leaves, outs, flat)
    result = tree.unflatten(flat.out_tree, outs)
    return (result, tangent_map, main.aux) if isinstance(main, Aux) else (result, tangent_map)
