"""Calls of jax.nn that rune.nn also understands: attention with all its arguments, the
newer elementwise functions, orthogonal initializers.

make_jax_vectors.py stores what jax 0.10.2 answers; test_against_jax.py compares.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

Q, K = (2, 5, 6, 4), (2, 7, 3, 4)  # six query heads share three heads of keys
Call = tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]


def draw(name: str, shapes: tuple[tuple[int, ...], ...]) -> list[np.ndarray]:
    """The operands of a call."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return [rng.uniform(-2, 2, shape).astype(np.float32) for shape in shapes]


def _attend(**options: Any) -> Call:
    return (lambda nn, q, k, v: nn.dot_product_attention(q, k, v, **options)), (Q, K, K)


def _mask(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(size=shape) < 0.7


LENGTHS = {"query_seq_lengths": np.array([3, 5], np.int32), "key_value_seq_lengths": np.array([6, 2], np.int32)}
ATTENTION: dict[str, Call] = {
    "groups": _attend(),
    "causal": _attend(is_causal=True),
    "scale": _attend(scale=0.7),
    "mask": _attend(mask=_mask(2, 6, 5, 7)),
    "shared mask": _attend(mask=_mask(1, 1, 5, 7)),
    "window": _attend(local_window_size=(2, 1)),
    "one window": _attend(local_window_size=1, is_causal=True),
    "lengths": _attend(**LENGTHS),
    "residual": _attend(return_residual=True, is_causal=True),
    "nothing left": _attend(mask=np.zeros((1, 1, 5, 7), bool)),
    "bias": (
        lambda nn, q, k, v, b: nn.dot_product_attention(q, k, v, bias=b, mask=_mask(2, 1, 5, 7)),
        (Q, K, K, (2, 6, 5, 7)),
    ),
    "no batch": (lambda nn, q, k, v: nn.dot_product_attention(q, k, v), ((5, 3, 4), (6, 1, 4), (6, 1, 4))),
}
OTHERS: dict[str, Call] = {
    name: ((lambda nn, x, name=name: getattr(nn, name)(x)), ((4, 5),))
    for name in ("sparse_plus", "sparse_sigmoid", "logmeanexp")
} | {
    "log1mexp": ((lambda nn, x: nn.log1mexp(abs(x) + 0.01)), ((4, 5),)),
    "logmeanexp along": ((lambda nn, x: nn.logmeanexp(x, 1, keepdims=True)), ((4, 5),)),
    "logmeanexp where": ((lambda nn, x: nn.logmeanexp(x, 1, where=np.arange(5) % 2 == 0)), ((4, 5),)),
}


def _initializer_call(name: str, shape: tuple[int, ...], **options: Any) -> Call:
    """An initializer's array, by the key 7 of the library that `nn` belongs to."""

    def call(nn: Any) -> Any:
        key = importlib.import_module(nn.__name__.split(".")[0]).random.key(7)
        return getattr(nn.initializers, name)(**options)(key, shape)

    return call, ()


INITIALIZERS = {
    "orthogonal": _initializer_call("orthogonal", (4, 3)),
    "orthogonal wide": _initializer_call("orthogonal", (2, 5), scale=2.0),
    "orthogonal kernel": _initializer_call("orthogonal", (3, 4, 2), column_axis=1),
    "delta orthogonal": _initializer_call("delta_orthogonal", (3, 4, 3, 5)),
}
CALLS = ATTENTION | OTHERS | INITIALIZERS
SMOOTH = [name for name in ATTENTION | OTHERS if name not in ("residual", "nothing left", "sparse_sigmoid")]
