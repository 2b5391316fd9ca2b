"""rune.sparse: arrays that hold their nonzero elements alone, as numbers beside their positions.

A BCOO of shape [*batch, *sparse, *dense] has data [*batch, N, *dense] and indices [*batch, N, K],
K being the number of sparse axes: a list of elements for each index of the batch. An element whose
position lies outside of the array is none: lists of a batch are filled up so. Elements of one
position add up. A BCOO is a tree of two arrays, so all transformations take it.

Products gather the rows of the other operand that elements meet, and add up where they belong:
work and memory grow with the number of elements, not with the shape.
"""

import typing as _typing

from rune.absent import of as _absent
from rune.sparse.array import BCOO, bcoo_fromdense, empty, eye, random_bcoo, todense
from rune.sparse.forms import (
    bcoo_extract,
    bcoo_reduce_sum,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
)
from rune.sparse.products import bcoo_dot_general, bcoo_multiply_dense, bcoo_multiply_sparse

__all__ = [
    "BCOO",
    "bcoo_dot_general",
    "bcoo_extract",
    "bcoo_fromdense",
    "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
    "bcoo_reduce_sum",
    "bcoo_sort_indices",
    "bcoo_sum_duplicates",
    "bcoo_todense",
    "bcoo_transpose",
    "empty",
    "eye",
    "random_bcoo",
    "todense",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
