"""`jax._src.tree_util`: which classes are nodes (Flax nnx asks), and public names (Orbax)."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from jax.tree_util import *

from rune import absent, tree
from rune.tree.registry import kinds

__getattr__ = absent.of(__name__)


class NodeClass(NamedTuple):
    """How a node of a class comes apart and together."""

    to_iter: Callable[[object], tuple[Iterable[object], object]]  # node -> children, data
    from_iter: Callable[[object, Iterable[object]], object]  # data, children -> node


class NodeClasses:
    """Which classes are nodes, and how they come apart (jaxlie)."""

    def __contains__(self, cls: type) -> bool:
        return tree.is_tree_node(cls)

    def __getitem__(self, cls: type) -> NodeClass:
        kind = kinds[cls]
        if kind is None:
            raise KeyError(cls)
        return NodeClass(kind.split, lambda data, children: kind.join(data, tuple(children)))


_registry = NodeClasses()
