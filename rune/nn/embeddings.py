"""Embedding: rows of a table by index."""

from __future__ import annotations

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.errors import ArgumentError, DtypeError
from rune.typing import ArrayLike


def embedding(ids: ArrayLike, table: ArrayLike, padding_idx: int | None = None) -> Array:
    """The rows of `table` with the indices `ids`; an id out of range gives NaN.

    Shapes: ids int[*I], table [V, D] -> [*I, D].
    Types:  that of `table`.
    padding_idx: the row of this number gets no gradient.
    Errors: DtypeError for ids that are not integers, ArgumentError for a padding_idx out of range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.embedding(rnp.array([1, 1]), rnp.array([[1.0], [2.0]]))
    Array([[2.],
           [2.]], f32[2,1], cpu:0)
    """
    ids, table = rnp.asarray(ids), rnp.asarray(table)
    if not rnp.issubdtype(ids.dtype, rnp.integer):
        raise DtypeError(f"embedding: cannot look up {ids.type} (integer dtype required)")
    rows = rnp.take(table, ids, 0)
    if padding_idx is None:
        return rows
    count = table.shape[0]
    if not isinstance(padding_idx, int) or not -count <= padding_idx < count:
        raise ArgumentError(f"embedding: cannot use {padding_idx=} (a row of {table.type} required)")
    row = padding_idx % count
    ids = ids.astype("i32") if ids.dtype.itemsize < 4 else ids
    is_padding = ids == row
    if rnp.issubdtype(ids.dtype, rnp.signedinteger):
        is_padding = is_padding | (ids == row - count)  # counted from the end
    return rnp.where(is_padding[..., None], ops.stop_gradient(rows), rows)
