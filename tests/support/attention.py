"""Attention in f64 by NumPy, with every mask, and its gradients by the formulas: the oracle.

Scores are masked as rune.nn does it: by a large negative number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import rune
from rune import nn
from rune import numpy as rnp
from rune.nn.attention import MASKED


@dataclass(frozen=True)
class Case:
    """Sizes: batches, queries, keys, heads of queries, heads of keys, size of a head."""

    b: int
    t: int
    s: int
    n: int
    k: int
    h: int

    def __str__(self) -> str:
        return f"{self.b}x{self.t}x{self.s}x{self.n}x{self.k}x{self.h}"

    def arrays(self, dtype: Any = np.float32) -> list[np.ndarray]:
        """Queries, keys and values."""
        rng = np.random.default_rng(self.t + self.s)
        shapes = (self.b, self.t, self.n, self.h), (self.b, self.s, self.k, self.h), (self.b, self.s, self.k, self.h)
        return [rng.normal(size=shape).astype(dtype) for shape in shapes]

    def cotangent(self) -> np.ndarray:
        """A cotangent of the result."""
        return np.random.default_rng(7).normal(size=(self.b, self.t, self.n, self.h)).astype(np.float32)

    def causal(self) -> np.ndarray:
        """The keys that each query attends to: those up to its own position."""
        return np.arange(self.s)[None] <= np.arange(self.t)[:, None]

    def window(self, before: int, after: int) -> np.ndarray:
        """The keys that each query attends to: some before and after its own position."""
        distance = np.arange(self.t)[:, None] - np.arange(self.s)[None]
        return (distance <= before) & (-distance <= after)

    def shares(self, q: np.ndarray, k: np.ndarray, mask: np.ndarray | None, bias: Any) -> np.ndarray:
        """The softmax of the scores, [B, N, T, S]."""
        scores = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(self.h) + bias
        scores = scores if mask is None else np.where(mask, scores, MASKED)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        return p / p.sum(-1, keepdims=True)

    def wide(self, arrays: Any = None) -> list[np.ndarray]:
        """The arrays in f64, with a head of keys for each head of queries."""
        q, k, v = (np.asarray(x).astype(np.float64) for x in arrays or self.arrays())
        return [q, *(np.repeat(x, self.n // self.k, 2) for x in (k, v))]

    def values(self, mask: np.ndarray | None, bias: Any = 0.0, arrays: Any = None) -> np.ndarray:
        """The result."""
        q, k, v = self.wide(arrays)
        with np.errstate(invalid="ignore"):
            return np.einsum("bnts,bsnh->btnh", self.shares(q, k, mask, bias), v)

    def gradients(
        self, mask: np.ndarray | None, bias: Any = 0.0, cotangent: np.ndarray | None = None, arrays: Any = None
    ) -> list[np.ndarray]:
        """The gradients of the result times the cotangent, or another one."""
        (q, k, v), w = self.wide(arrays), self.cotangent().astype(np.float64) if cotangent is None else cotangent
        p = self.shares(q, k, mask, bias)
        dp = np.einsum("btnh,bsnh->bnts", w, v)
        ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / np.sqrt(self.h)
        ds = ds if mask is None else np.where(mask, ds, 0.0)
        dk, dv = np.einsum("bnts,btnh->bsnh", ds, q), np.einsum("bnts,btnh->bsnh", p, w)
        shape = (self.b, self.s, self.k, self.n // self.k, self.h)
        return [np.einsum("bnts,bsnh->btnh", ds, k), *(x.reshape(shape).sum(3) for x in (dk, dv))]


def attention(**options: Any) -> Callable[..., Any]:
    """Attention of queries, keys and values: a new function, not compiled yet."""
    return lambda q, k, v: nn.dot_product_attention(q, k, v, **options)


def rounded(q: Any, k: Any, v: Any) -> Any:
    """Causal attention as networks of halves write it: scores and weights are rounded."""
    t, s, h = q.shape[1], k.shape[1], q.shape[3]
    scores = rnp.einsum("btnh,bsnh->bnts", q, k).astype("f32") * h**-0.5
    scores = rnp.where(rnp.arange(s)[None] <= rnp.arange(t)[:, None], scores, -1e30)
    return rnp.einsum("bnts,bsnh->btnh", nn.softmax(scores).astype(v.dtype), v)


def slopes_in_a_direction(q: Any, k: Any, v: Any, w: Any) -> Any:
    """The gradients of that attention times a cotangent."""
    return rune.vjp(rounded, q, k, v)[1](w)


def gradient(**options: Any) -> Callable[..., Any]:
    """The gradients of attention times a cotangent."""
    function = attention(**options)
    return rune.grad(lambda q, k, v, w: rnp.sum(function(q, k, v) * w), (0, 1, 2))


def gradient_of_squares(**options: Any) -> Callable[..., Any]:
    """The gradients of the sum of the squares of attention: the cotangent is twice the result."""
    function = attention(**options)
    return rune.grad(lambda q, k, v: rnp.sum(function(q, k, v) ** 2), (0, 1, 2))
