"""`jax._src.tree_util`: which classes are nodes (Flax nnx asks), and public names (Orbax)."""

from jax.tree_util import *

from rune import absent, tree

__getattr__ = absent.of(__name__)


class NodeClasses:
    """Which classes are nodes."""

    def __contains__(self, cls: type) -> bool:
        return tree.is_tree_node(cls)


_registry = NodeClasses()
