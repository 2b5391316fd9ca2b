"""Cotangents in rules that run in the body of a shard_map: shares of devices, and their sums.

There the cotangent of a value that is the same on all devices is the same on all of them, too: the
sum of the shares that the devices compute (core/varying.py). Elsewhere both functions return their
argument.
"""

from __future__ import annotations

from typing import TypeVar

from rune import tree
from rune.core.interpreter import type_of
from rune.core.types import NONE
from rune.ops.collectives import cotangent, varying

T = TypeVar("T")


def each_own(values: T) -> T:
    """A tree of values, all varying along every axis along which any of them does."""
    axes = NONE.union(*(type_of(x).varying for x in tree.leaves(values)))
    return tree.map(lambda x: varying(x, axes), values)


def summed(shares: T, primals: object) -> T:
    """The cotangents of a tree of primals, from each device's share of them."""
    return tree.map(lambda ct, primal: cotangent(ct, type_of(primal).varying), shares, primals)
