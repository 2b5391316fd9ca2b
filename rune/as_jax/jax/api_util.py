"""`jax.api_util`: functions of flat arguments (Flax, NumPyro, Haiku, Distrax)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple

from jax.extend import linear_util

from rune import absent, tree
from rune.tree.treedef import TreeDef


class DebugInfo(NamedTuple):
    """Which function is traced, and by what; it only stands in messages."""

    traced_for: str
    func_src_info: str


def debug_info(traced_for: str, fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> DebugInfo:
    """What is known of a function before it is traced."""
    return DebugInfo(traced_for, getattr(fun, "__qualname__", repr(fun)))


def safe_map(f: Callable[..., Any], *args: Iterable[Any]) -> list[Any]:
    """`f` of the elements of equally long iterables. Errors: ValueError for other lengths."""
    return [f(*elements) for elements in zip(*args, strict=True)]


@linear_util.transformation_with_aux
def flatten_fun(in_tree: TreeDef, *flat: Any) -> Generator[Any, Any, Any]:
    """The function from leaves of (args, kwargs) to leaves of its result, and their structure."""
    args, kwargs = tree.unflatten(in_tree, flat)
    yield tree.flatten((yield args, kwargs))


@linear_util.transformation_with_aux
def flatten_fun_nokwargs(in_tree: TreeDef, *flat: Any) -> Generator[Any, Any, Any]:
    """The function from leaves of args to leaves of its result, and their structure."""
    yield tree.flatten((yield tree.unflatten(in_tree, flat), {}))


__getattr__ = absent.of(__name__)
