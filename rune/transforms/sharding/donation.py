"""Donation on a mesh: the blocks to which the results of a call may be written.

An array lends the blocks of all its devices, or none. Replicas in host memory may share one block,
and a block may be a view of the array that was laid out; neither is lent, since others read it.
Results of a call have their own blocks, so a loop of steps lends from the second step on.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np

from rune.array import Array
from rune.backends.shared.protocol import Buffer
from rune.core.values import Value
from rune.sharding.memory import Blocks, Spread


def lendable(args: Sequence[Value], donations: Sequence[int]) -> tuple[int, ...]:
    """The donated arguments that are passed once, and whose blocks have no other reader."""
    uses = Counter(map(id, args))
    return tuple(n for n in donations if uses[id(args[n])] == 1 and _may_lend(args[n]))


def _may_lend(value: Value) -> bool:
    if type(value) is not Array or not isinstance(value.place.device, Spread):
        return False
    return value.is_sole_owner and _are_unshared(value.buffer.buffers)


def _are_unshared(buffers: Sequence[Buffer | None]) -> bool:
    """Whether nothing but their array refers to these blocks, and none is a view."""
    return _references(buffers) <= _REFERENCES_OF_ONE and not any(map(_is_view, buffers))


def _references(buffers: Sequence[Buffer | None]) -> int:
    """The number of references to the block of this process that has the most."""
    return max(sys.getrefcount(b) for b in buffers if b is not None)


def _is_view(buffer: Buffer | None) -> bool:
    return type(buffer) is np.ndarray and type(buffer.base) is np.ndarray


# The interpreter itself adds references, a different number in each release: so it is counted.
_REFERENCES_OF_ONE = _references(Blocks((object(),), ()).buffers)
