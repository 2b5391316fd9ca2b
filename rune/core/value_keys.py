"""Keys of Python values, equal only for the same value: memos and caches of programs compare them.

Python's own equality is wider: 1 == 1.0 == True and 0.0 == -0.0, with equal hashes, also within
tuples; but a function of 1 and one of 1.0 have results of different dtypes. Values of other classes
are as equal as their class says.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np


def value_key(value: object) -> Hashable:
    """A key of a hashable value: its type and value, of floats the bits, of containers the keys.

    >>> value_key((1, 0.0)) == value_key((1.0, 0.0)), value_key(0.0) == value_key(-0.0)
    (False, False)
    """
    kind = type(value)
    # By bits: they have the sign of a zero, and a NaN equals itself.
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if isinstance(value, float):
        return kind, value.hex()
    if isinstance(value, complex):
        return kind, value.real.hex(), value.imag.hex()
    if isinstance(value, tuple | frozenset):
        keys = map(value_key, value)
        return kind, frozenset(keys) if isinstance(value, frozenset) else tuple(keys)
    return kind, value


class Parameters(tuple[tuple[str, object], ...]):
    """Names and values of a primitive's parameters, compared by the keys of the values."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parameters) and value_key(tuple(self)) == value_key(tuple(other))

    def __hash__(self) -> int:
        return hash(value_key(tuple(self)))
