"""Words of 32 bits that compare as elements do, beside positions: word << 32 | position.

A key of 64 bits is two words, and a complex one those of its parts. They are sorted from the last
to the first, stably: the words of the next are read in the order of the one before.
The order is that of ops/sorting/order.py, whose words these are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rune import dtypes
from rune.ops.complex_numbers import PART
from rune.ops.scalars import NIBBLES
from rune.records import dataclass

KEYS = dtypes.ANY - set(NIBBLES)  # the dtypes of keys
WORD = 32


@dataclass(frozen=True, slots=True)
class Key:
    """A word of each element of a row.

    dtype:       of real numbers
    step:        how many of them an element has
    part:        the one that the word is made of
    is_low:      whether it is the lower half of 64 bits
    is_downward: whether it is that of `top_k`: complements, in total order
    is_next:     whether positions are there already, and words are read in their order
    """

    dtype: np.dtype
    step: int = 1
    part: int = 0
    is_low: bool = False
    is_downward: bool = False
    is_next: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The key in words, which are the same in every process."""
        return dtypes.short(self.dtype), *map(str, (self.step, self.part, self.is_low, self.is_downward, self.is_next))


def key_of(words: Sequence[str]) -> Key:
    """The key with these words."""
    dtype, step, part, *flags = words
    return Key(dtypes.FROM_SHORT[dtype], int(step), int(part), *(flag == "True" for flag in flags))


def keys_of(dtype: np.dtype, is_downward: bool) -> list[Key]:
    """The words of a key's dtype, most significant first."""
    real = PART.get(dtype, dtype)
    step = 2 if dtype in dtypes.COMPLEX else 1
    halves = (False, True) if real.itemsize == 8 else (False,)
    return [Key(real, step, part, is_low, is_downward) for part in range(step) for is_low in halves]
