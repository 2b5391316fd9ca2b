"""The type of a reference, which JAX distinguishes from the type of the array that it holds.

>>> import rune, rune.numpy as rnp
>>> from rune.as_jax.reference_types import typeof
>>> typeof(rune.new_ref(rnp.ones(3))), typeof(rnp.ones(3))
(Ref{f32[3]}, f32[3])
"""

from __future__ import annotations

import numpy as np

import rune
from rune.core.types import ArrayType, Shape
from rune.records import dataclass
from rune.transforms.references import Ref


@dataclass(frozen=True)
class AbstractRef:
    """The type of a reference to an array of type `inner_aval`."""

    inner_aval: ArrayType

    @property
    def shape(self) -> Shape:
        """The shape of the array."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the array."""
        return self.inner_aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes of the array."""
        return self.inner_aval.ndim

    @property
    def weak_type(self) -> bool:
        """Whether the array is weakly typed: its dtype yields to those of other operands."""
        return self.inner_aval.weak_type

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval}}}"


def typeof(x: object) -> ArrayType | AbstractRef:
    """The type of a reference; for anything else, the result of `rune.typeof`.

    Errors: ArgumentError if x is not an array, a number or a reference.
    """
    return AbstractRef(x.type) if isinstance(x, Ref) else rune.typeof(x)
