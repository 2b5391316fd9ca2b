"""New sparse arrays: zeros, ones on a diagonal, random numbers; and trees made dense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import tree
from rune.errors import ArgumentError
from rune.random import normal
from rune.sparse.array import BCOO
from rune.sparse.coordinates import Sparse
from rune.sparse.matrices import COO, CSC, CSR
from rune.sparse.rows import BCSR
from rune.typing import ArrayLike, DTypeLike


def todense(arr: object) -> Any:
    """A tree with its sparse arrays converted to dense ones.

    Shapes: unchanged. Types: unchanged.
    Errors: none.

    >>> import rune
    >>> rune.sparse.todense({"a": rune.sparse.eye(1)})
    {'a': Array([[1.]], f32[1,1], cpu:0)}
    """
    is_sparse = lambda x: isinstance(x, Sparse)  # noqa: E731
    return tree.map(lambda x: x.todense() if is_sparse(x) else x, arr, is_leaf=is_sparse)


def empty(
    shape: Sequence[int], dtype: DTypeLike | None = None, index_dtype: DTypeLike = np.int32, sparse_format: str = "bcoo"
) -> Sparse:
    """A sparse array of zeros, without elements.

    sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc"; all but "bcoo" for matrices only
    Shapes: shape. Types: dtype, default float32.
    Errors: ArgumentError for another format.

    >>> import rune
    >>> rune.sparse.empty((2, 3))
    BCOO(f32[2,3], nse=0)
    """
    make = _format("empty", sparse_format)
    return make(BCOO((rnp.zeros(0, dtype or float), rnp.zeros((0, len(shape)), index_dtype)), shape=shape))


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = np.int32,
    sparse_format: str = "bcoo",
) -> Sparse:
    """A matrix with ones on the diagonal k.

    sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc"
    Shapes: [N, M], M default N. Types: dtype, default float32.
    Errors: ArgumentError for another format.

    >>> import rune
    >>> rune.sparse.eye(2, 3, k=1).indices.tolist()
    [[0, 1], [1, 2]]
    >>> rune.sparse.eye(2, sparse_format="csr")
    CSR(f32[2,2], nse=2)
    """
    make = _format("eye", sparse_format)
    width = N if M is None else M
    rows = rnp.arange(max(-k, 0), max(min(N, width - k), max(-k, 0)))
    indices = rnp.stack([rows, rows + k], -1).astype(index_dtype)
    args = (rnp.ones(len(rows), dtype or float), indices)
    return make(BCOO(args, shape=(N, width), indices_sorted=True, unique_indices=True))


def _by_columns(m: BCOO) -> CSC:
    transpose = BCSR.from_bcoo(m.T)
    return CSC((transpose.data, transpose.indices, transpose.indptr), shape=m.shape)


def _by_rows(m: BCOO) -> CSR:
    rows = BCSR.from_bcoo(m)
    return CSR((rows.data, rows.indices, rows.indptr), shape=m.shape)


_FORMATS: dict[str, Callable[[BCOO], Sparse]] = {
    "bcoo": lambda m: m,
    "bcsr": BCSR.from_bcoo,
    "coo": lambda m: COO((m.data, m.indices[:, 0], m.indices[:, 1]), shape=m.shape, rows_sorted=True),
    "csr": _by_rows,
    "csc": _by_columns,
}


def _format(name: str, sparse_format: str) -> Callable[[BCOO], Sparse]:
    if sparse_format not in _FORMATS:
        raise ArgumentError(f"{name}: cannot use sparse_format={sparse_format!r} ({', '.join(_FORMATS)})")
    return _FORMATS[sparse_format]


def random_bcoo(key: ArrayLike, shape: Sequence[int], *, nse: float = 0.2, dtype: DTypeLike = np.float32) -> BCOO:
    """Normal numbers at random positions, without repetition.

    nse:  their number, or their share of the size
    Shapes: shape. Types: dtype.
    Errors: those of rune.random.

    >>> import rune
    >>> rune.sparse.random_bcoo(rune.random.key(0), (4, 5), nse=0.3)
    BCOO(f32[4,5], nse=6)
    """
    count = int(nse * prod(shape)) if nse < 1 else int(nse)
    order = rnp.argsort(normal(key, (prod(shape),)))[:count]
    indices = rnp.stack(rnp.unravel_index(rnp.sort(order), tuple(shape)), -1)
    return BCOO((normal(key, (count,), dtype), indices), shape=shape, indices_sorted=True, unique_indices=True)
