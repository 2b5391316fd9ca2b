"""`jax._src.state.types`: the type of a reference (Flax nnx)."""


class AbstractRef:
    """The class of types of references. A reference of rune has the type of the array it holds."""
