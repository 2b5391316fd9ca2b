"""`jax._src.tree_util`: the classes that are nodes of trees (Flax nnx asks for one at a time)."""

from rune import tree


class Registry:
    """Which classes are nodes."""

    def __contains__(self, cls: type) -> bool:
        return tree.is_tree_node(cls)


_registry = Registry()
