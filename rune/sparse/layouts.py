"""Sparse arrays with other numbers of batch and dense axes."""

from __future__ import annotations

import warnings

import rune.numpy as rnp
from rune.errors import ArgumentError
from rune.sparse.coordinates import S, chosen, is_inside, listed, require_sparse


class SparseEfficiencyError(ArgumentError):
    """An operation would lengthen the lists of a sparse array, which must be requested explicitly.

    Shapes: none.
    Errors: none; this class is the error.

    >>> import rune
    >>> rune.sparse.bcoo_update_layout(rune.sparse.eye(2), n_batch=1, on_inefficient=None)
    BCOO(f32[2,2], nse=2, n_batch=1)
    """


class SparseEfficiencyWarning(UserWarning):
    """The lists of a sparse array become longer; `on_inefficient="warn"` requests this warning.

        Shapes: none.
    Errors: none; this class is a warning.

    >>> import rune
    >>> issubclass(rune.sparse.SparseEfficiencyWarning, UserWarning)
    True
    """


def bcoo_update_layout(
    mat: S, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> S:
    """The same array with another number of batch and dense axes.

    on_inefficient: what to do if more such axes make the lists longer: "error", "warn" or None
    Shapes: unchanged. Types: unchanged.
    Errors: ArgumentError for more of them (on_inefficient), and for more than there are axes.

    >>> import rune, rune.numpy as rnp
    >>> m = rune.sparse.bcoo_fromdense(rnp.ones((2, 3)), n_batch=1)
    >>> rune.sparse.bcoo_update_layout(m, n_batch=0)
    BCOO(f32[2,3], nse=6)
    """
    require_sparse("bcoo_update_layout", mat)
    batch = mat.n_batch if n_batch is None else n_batch
    dense = mat.n_dense if n_dense is None else n_dense
    if min(batch, dense) < 0 or batch + dense > mat.ndim:
        raise ArgumentError(f"bcoo_update_layout: cannot make {batch} batch and {dense} dense axes of {mat!r}")
    if on_inefficient not in ("error", "warn", None):
        raise ArgumentError(f"bcoo_update_layout: cannot use on_inefficient={on_inefficient!r} ('error', 'warn', None)")
    is_longer = batch > mat.n_batch or dense > mat.n_dense
    if is_longer and on_inefficient:
        message = (
            f"bcoo_update_layout: cannot lay out {mat!r} with n_batch={batch}, n_dense={dense} without longer lists"
        )
        if on_inefficient == "error":
            raise SparseEfficiencyError(message, hint="on_inefficient=None allows longer lists")
        warnings.warn(
            message.replace("cannot lay", "lays").replace(" without", " by"), SparseEfficiencyWarning, stacklevel=2
        )
    m = listed(mat, min(batch, mat.n_batch), min(dense, mat.n_dense))
    for _ in range(dense - m.n_dense):
        m = _densified(m)
    for _ in range(batch - m.n_batch):
        m = _batched(m)
    return m


def _densified(m: S) -> S:
    """The last sparse axis as a dense one: each element at its position in a row of zeros."""
    axis = m.ndim - m.n_dense - 1
    column = m.indices[..., -1]
    is_here = rnp.arange(m.shape[axis]) == column[..., None]
    data = rnp.expand_dims(m.data, m.n_batch + 1)
    spread_out = rnp.where(is_here.reshape(*is_here.shape, *(1,) * m.n_dense), data, rnp.zeros((), data.dtype))
    return m.remade((spread_out, m.indices[..., :-1]), shape=m.shape)


def _batched(m: S) -> S:
    """The first sparse axis as a batch axis: each index has the whole list, with all elements of
    other indices out of bounds.
    """
    size, sizes = m.shape[m.n_batch], m.shape[m.n_batch + 1 : m.ndim - m.n_dense]
    numbers = rnp.arange(size).reshape(size, 1)
    is_here = (m.indices[..., None, :, 0] == numbers) & is_inside(m)[..., None, :]
    repeat = lambda x: rnp.repeat(rnp.expand_dims(x, m.n_batch), size, m.n_batch)  # noqa: E731
    data, indices = repeat(m.data), repeat(m.indices[..., 1:])
    result = m.remade((data, indices), shape=m.shape)
    return chosen(result, is_here, [indices[..., k] for k in range(len(sizes))], sizes, data, m.shape)
