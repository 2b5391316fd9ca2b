"""`jax._src.interpreters.batching`: jaxoplanet asks for `is_vmappable`; and public names."""

from rune.as_jax.stand_ins import names_of
from rune.transforms.batching.lane_classes import CLASSES


def is_vmappable(x: object) -> bool:
    """Whether the class of a value was declared by `register_vmappable`; an array's is not."""
    return type(x) in CLASSES


__getattr__ = names_of(__name__, "jax.interpreters.batching")
