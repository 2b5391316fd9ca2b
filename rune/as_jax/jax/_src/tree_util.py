"""`jax._src.tree_util`: the registry of node classes (Flax nnx), and public names (Orbax)."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from jax.tree_util import *

from rune import absent, tree
from rune.tree.registry import kinds

__getattr__ = absent.of(__name__)


class NodeClass(NamedTuple):
    """How to split a node of a class, and how to join it again."""

    to_iter: Callable[[object], tuple[Iterable[object], object]]  # node -> children, data
    from_iter: Callable[[object, Iterable[object]], object]  # data, children -> node


class NodeClasses:
    """The registry: which classes are nodes, and how to split them (jaxlie)."""

    def __contains__(self, cls: type) -> bool:
        return tree.is_tree_node(cls)

    def __getitem__(self, cls: type) -> NodeClass:
        kind = kinds[cls]
        if kind is None:
            raise KeyError(cls)
        return NodeClass(kind.split, lambda data, children: kind.join(data, tuple(children)))


_registry = NodeClasses()
