"""`jax.api_util`: functions of flat arguments (Flax, NumPyro, Haiku, Distrax, jaxoplanet)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any

from jax._src.util import canonicalize_axis, safe_map
from jax.extend import linear_util

from rune import absent, tree
from rune.as_jax.jaxprs import DebugInfo
from rune.tree.treedef import TreeDef


def debug_info(traced_for: str, fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> DebugInfo:
    """The description of a function before it is traced."""
    return DebugInfo(traced_for, getattr(fun, "__qualname__", repr(fun)))


def argnums_partial(
    f: linear_util.WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[object],
    require_static_args_hashable: bool = True,
) -> tuple[linear_util.WrappedFun, tuple[object, ...]]:
    """The function of the numbered arguments alone, and these arguments.

    The function keeps the other arguments as constants.
    Errors: ValueError for a number out of bounds, and, if `require_static_args_hashable`, for a
            constant without a hash.
    """
    numbers = [dyn_argnums] if isinstance(dyn_argnums, int) else dyn_argnums
    dynamic = [canonicalize_axis(number, len(args)) for number in numbers]
    constants = {i: x for i, x in enumerate(args) if i not in dynamic}
    for number, value in constants.items():
        if require_static_args_hashable and not isinstance(value, Hashable):
            raise ValueError(f"argnums_partial: cannot hold argument {number} ({type(value).__name__} has no hash)")
    return _with_constants(f, tuple(dynamic), tuple(constants.items())), tuple(args[i] for i in dynamic)


@linear_util.transformation2
def _with_constants(
    f: Callable[..., object],
    dynamic: tuple[int, ...],
    constants: tuple[tuple[int, object], ...],
    *args: object,
    **kwargs: object,
) -> object:
    values = {**dict(constants), **dict(zip(dynamic, args, strict=True))}
    return f(*(values[i] for i in sorted(values)), **kwargs)


@linear_util.transformation_with_aux
def flatten_fun(in_tree: TreeDef, *flat: Any) -> Generator[Any, Any, Any]:
    """The function from leaves of (args, kwargs) to leaves of its result, and their structure."""
    args, kwargs = tree.unflatten(in_tree, flat)
    yield tree.flatten((yield args, kwargs))


@linear_util.transformation_with_aux
def flatten_fun_nokwargs(in_tree: TreeDef, *flat: Any) -> Generator[Any, Any, Any]:
    """The function from leaves of args to leaves of its result, and their structure."""
    yield tree.flatten((yield tree.unflatten(in_tree, flat), {}))


def flatten_axes(
    name: str, treedef: TreeDef, axis_tree: object, *, kws: bool = False, tupled_args: bool = False
) -> list[object]:
    """The axis of each leaf of a tree, None among them; an axis may stand for all leaves below it.

    kws, tupled_args: JAX's, for its messages
    Errors: ValueError unless the axes are a prefix of the tree.
    """
    axes, prefix = tree.flatten(axis_tree, is_leaf=lambda axis: axis is None)
    result: list[object] = []
    pending = [(prefix, treedef)]
    while pending:
        node, part = pending.pop()
        if node.kind is None:
            result += [axes.pop()] * part.num_leaves
        elif node.kind is part.kind and len(node.parts) == len(part.parts):
            pending += zip(node.parts, part.parts)  # the last is walked first, as the axes are
        else:
            raise ValueError(f"{name}: cannot use {axis_tree!r} as axes of {treedef} (a prefix of it required)")
    return result[::-1]


__getattr__ = absent.of(__name__)
