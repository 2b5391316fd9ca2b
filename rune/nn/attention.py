"""Attention: softmax(Q Kᵀ scale + bias) V for every head, under the name and arguments of jax.nn.

Scores are f32 at least, and their softmax is f32, even for f64, as in JAX. All kinds of masks are
combined into one bool array, computed from index comparisons where it is used. A masked score is a
large negative number, so that a row that is masked everywhere attends uniformly instead of becoming
NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.dims import Size
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.nn.normalisation import logsumexp, softmax
from rune.typing import ArrayLike

# The score of a masked key: finite, so that a row without keys has a mean instead of NaN, and far
# enough from the end of f32 that its difference from the largest score is finite, too.
MASKED = -0.7 * float(np.finfo(np.float32).max)


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """For every query, the mean of the values, weighted by the softmax of query-key products.

    Shapes: query [B, T, N, H] or [T, N, H], key and value [B, S, K, H] or [S, K, H] -> as query.
            N is a multiple of K: each group of N / K heads shares a key and a value head.
    Types:  floating, that of `query`.
    bias, mask: broadcast to [B, N, T, S]; a mask is True where a key takes part.
    scale:  factor of the products, by default 1 / √H.   is_causal: masks keys after the query.
    query_seq_lengths, key_value_seq_lengths: i32[B], the valid lengths; results beyond are 0.
    local_window_size: the number of keys to the left and to the right that a query sees.
    return_residual: also returns log Σ exp of the scores, [B, T, N], constant in derivatives.
    Errors: ShapeError, DtypeError or ArgumentError for arguments that are inconsistent.
    Source: Vaswani et al. 2017, arXiv:1706.03762; groups, Ainslie et al. 2023, arXiv:2305.13245.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> q = rnp.ones((2, 1, 4))
    >>> nn.dot_product_attention(q, q, rnp.arange(8.0).reshape(2, 1, 4), is_causal=True)[0, 0]
    Array([0., 1., 2., 3.], f32[4], cpu:0)
    """
    if implementation not in (None, "xla"):
        raise ArgumentError(f"dot_product_attention: cannot use implementation {implementation!r} (there is one)")
    shape = rnp.shape(query)
    q, k, v = (_with_batch(x) for x in (query, key, value))
    _check(q, k, v)
    b, t, n, h = q.shape
    heads, s = k.shape[2], k.shape[1]
    grouped_query = rnp.reshape(q, (b, t, heads, n // heads, h))
    wide = rnp.promote_types(q.dtype, rnp.float32)
    scores = rnp.einsum("btkgh,bskh->bkgts", grouped_query.astype(wide), k.astype(wide))
    scores = scores * (_default_scale(h) if scale is None else scale)
    if bias is not None:
        scores = (scores + _grouped(bias, heads, n)).astype(wide)
    visible = _visibility(mask, heads, n, t, s, is_causal, local_window_size)
    visible = _both(visible, _lengths(query_seq_lengths, key_value_seq_lengths, t, s))
    if visible is not None:
        scores = rnp.where(visible, scores, MASKED)
    scores = scores.astype(rnp.float32)
    weights = softmax(scores, -1).astype(k.dtype)
    out = rnp.reshape(rnp.einsum("bkgts,bskh->btkgh", weights, v), (b, t, n, h))
    if query_seq_lengths is not None:
        alive = rnp.arange(t)[None, :] < rnp.asarray(query_seq_lengths)[:, None]
        out = out * alive[:, :, None, None].astype(out.dtype)
    out = rnp.reshape(out, shape)
    return (out, _residual(scores, k.dtype, shape[:-1])) if return_residual else out


def _default_scale(h: int) -> float:
    """1 / √H; heads without elements have products of 0, whatever their factor."""
    return 1.0 if h == 0 else 1 / math.sqrt(h)


def _residual(scores: Array, dtype: np.dtype, shape: tuple[Size, ...]) -> Array:
    """log Σ exp of the scores [B, K, G, T, S], constant in derivatives."""
    sums = rnp.moveaxis(logsumexp(scores, -1), 3, 1).astype(dtype)
    return ops.stop_gradient(rnp.reshape(sums, shape))


def _with_batch(x: ArrayLike) -> Array:
    x = rnp.asarray(x)
    if x.ndim not in (3, 4):
        raise ShapeError(f"dot_product_attention: cannot attend with {x.type} ([B, T, N, H] or [T, N, H])")
    return x if x.ndim == 4 else x[None]


def _check(q: Array, k: Array, v: Array) -> None:
    types = f"query {q.type}, key {k.type}, value {v.type}"
    if k.shape != v.shape or q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3]:
        raise ShapeError(
            f"dot_product_attention: cannot attend ({types}; keys and values of one shape, and "
            "the batch and head sizes of the queries required)"
        )
    if q.shape[2] % k.shape[2] != 0:
        raise ShapeError(
            f"dot_product_attention: cannot attend ({types}; the number of query heads, {q.shape[2]}, must be a "
            f"multiple of that of keys and values, {k.shape[2]})"
        )
    if not rnp.issubdtype(q.dtype, rnp.floating):
        raise DtypeError(f"dot_product_attention: cannot attend ({types}; floats required)")
    if q.dtype != k.dtype or k.dtype != v.dtype:
        raise DtypeError(f"dot_product_attention: cannot attend ({types}; dtypes differ)")


def _grouped(x: object, heads: Size, n: Size) -> Array:
    """[B, N, T, S] as [B, K, G, T, S]; an axis of 1 stays so."""
    x = rnp.asarray(x)
    x = rnp.reshape(x, (*(1,) * (4 - x.ndim), *x.shape))
    if x.shape[1] not in (1, n):
        raise ShapeError(f"dot_product_attention: cannot use {x.type} for {n} heads")
    groups = (1, 1) if x.shape[1] == 1 else (heads, n // heads)
    return rnp.reshape(x, (x.shape[0], *groups, *x.shape[2:]))


def _visibility(
    mask: ArrayLike | None, heads: Size, n: Size, t: Size, s: Size, is_causal: bool, window: int | Sequence[int] | None
) -> Any:
    visible = None
    if mask is not None:
        visible = _grouped(mask, heads, n)
        if visible.dtype != rnp.bool_:
            raise DtypeError(
                f"dot_product_attention: cannot mask by {visible.type} (bool required)",
                hint="values to add to the scores go into bias",
            )
    queries, keys = rnp.arange(t)[:, None], rnp.arange(s)[None, :]
    if is_causal:
        visible = _both(visible, keys <= queries)
    if window is not None:
        before, after = (window, window) if isinstance(window, int) else window
        if before < 0 or after < 0:
            raise ArgumentError(f"dot_product_attention: cannot see a window of {window} keys (0 or more required)")
        visible = _both(visible, (queries <= keys + before) & (queries >= keys - after))
    return visible


def _lengths(queries: ArrayLike | None, keys: ArrayLike | None, t: Size, s: Size) -> ArrayLike | None:
    """bool [B, 1, 1, T, S]: both the query and the key exist."""
    exists = None
    if queries is not None:
        exists = (rnp.arange(t) < rnp.asarray(queries)[:, None])[:, None, None, :, None]
    if keys is not None:
        has_key = (rnp.arange(s) < rnp.asarray(keys)[:, None])[:, None, None, None, :]
        exists = _both(exists, has_key)
    return exists


def _both(a: ArrayLike | None, b: ArrayLike | None) -> ArrayLike | None:
    return b if a is None else a if b is None else rnp.logical_and(a, b)
