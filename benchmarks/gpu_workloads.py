"""The workloads of gpu.py and gpu_static.py: functions, and the types of their arguments.

Each is written once, over a module `jx` that is rune or jax.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import rune
import rune.lax
import rune.nn
import rune.numpy
import rune.random

N, M16 = 4096, 1 << 24


@dataclass(frozen=True, slots=True)
class Workload:
    """A function and its arguments.

    write:    the function, of rune or jax
    flops:    of products, a multiply-add as two; 0 where memory decides
    baseline: microseconds on an H100, lowest and highest, as estimated for commit 35fa330
    best:     microseconds on an H100 of the best known program (cuBLAS, cuDNN, CUB and their like)
    unread:   bytes of the arguments that are not needed
    """

    write: Callable[[Any], Callable[..., Any]]
    types: tuple[rune.ShapeDtypeStruct, ...]
    flops: float = 0.0
    baseline: tuple[float, float] = (0.0, 0.0)
    best: float = 0.0
    unread: int = 0

    @property
    def function(self) -> Callable[..., Any]:
        """The function as rune's users write it."""
        return self.write(rune)


def of(text: str) -> tuple[rune.ShapeDtypeStruct, ...]:
    """Types from their text.

    >>> [t.shape for t in of("f32[4,3] i32[]")]
    [(4, 3), ()]
    """
    types = []
    for word in text.split():
        dtype, _, shape = word.rstrip("]").partition("[")
        types.append(rune.ShapeDtypeStruct(tuple(map(int, filter(None, shape.split(",")))), dtype))
    return tuple(types)


# --- functions --------------------------------------------------------------------------------


def layernorm(jx: Any) -> Any:
    """Rows of mean 0 and variance 1, scaled and shifted."""

    def of_rows(x: Any, scale: Any, shift: Any) -> Any:
        mean = jx.numpy.mean(x, axis=-1, keepdims=True)
        variance = jx.numpy.var(x, axis=-1, keepdims=True)
        return (x - mean) / jx.numpy.sqrt(variance + 1e-5) * scale + shift

    return of_rows


def rmsnorm(jx: Any) -> Any:
    """Rows over the root of their mean square."""
    return lambda x, scale: x * jx.lax.rsqrt(jx.numpy.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def attention(jx: Any) -> Any:
    """Attention of every head, of all positions to all."""

    def of_heads(q: Any, k: Any, v: Any) -> Any:
        scores = jx.numpy.einsum("bhqd,bhkd->bhqk", q, k) * 0.125
        return jx.numpy.einsum("bhqk,bhkd->bhqd", jx.nn.softmax(scores), v)

    return of_heads


def attention_gradients(jx: Any) -> Any:
    """The gradients of attention by queries, keys and values."""
    return jx.grad(lambda q, k, v: jx.numpy.sum(attention(jx)(q, k, v) ** 2), argnums=(0, 1, 2))


def conv(jx: Any) -> Any:
    """Images by filters, of the images' size."""
    return lambda x, w: jx.lax.conv_general_dilated(x, w, (1, 1), "SAME")


def conv_weight_gradient(jx: Any) -> Any:
    """The gradient of a convolution by its filters, from a cotangent."""
    return lambda x, w, y: jx.vjp(lambda w: conv(jx)(x, w), w)[1](y)[0]


def adam(jx: Any) -> Any:
    """A step of Adam, with its moments."""

    def step(p: Any, g: Any, m: Any, v: Any) -> Any:
        mean, square = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 1e-3 * mean / (jx.numpy.sqrt(square) + 1e-8), mean, square

    return step


def mlp_step(jx: Any) -> Any:
    """A step of gradient descent of two layers."""

    def loss(weights: Any, x: Any, y: Any) -> Any:
        hidden = jx.numpy.maximum(x @ weights[0] + weights[1], 0)
        logits = hidden @ weights[2] + weights[3]
        return -jx.numpy.mean(jx.numpy.sum(jx.nn.log_softmax(logits) * y, axis=-1))

    def step(*arguments: Any) -> Any:
        *weights, x, y = arguments
        gradients = jx.grad(loss)(tuple(weights), x, y)
        return tuple(w - 0.1 * g for w, g in zip(weights, gradients, strict=True))

    return step


def product(_: Any) -> Any:
    """a @ b."""
    return lambda a, b: a @ b


def dense(m: int, n: int, k: int, batch: int = 1) -> float:
    """Operations of a product."""
    return 2.0 * m * n * k * batch


_SQUARES = dense(N, N, N)
_HEADS = 2 * dense(512, 512, 64, 16)
_CONV = dense(32 * 28 * 28, 64, 64 * 9)
_MLP = 2 * dense(128, 512, 784) + 3 * dense(128, 10, 512)
_MLP_TYPES = "f32[784,512] f32[512] f32[512,10] f32[10] f32[128,784] f32[128,10]"

WORKLOADS: dict[str, Workload] = {
    "matmul f32 4096": Workload(product, of("f32[4096,4096] f32[4096,4096]"), _SQUARES, (12400, 15500), 2300),
    "matmul bf16 4096": Workload(product, of("bf16[4096,4096] bf16[4096,4096]"), _SQUARES, (13000, 16700), 190),
    "a @ b.T f32 4096": Workload(
        lambda _: lambda a, b: a @ b.T, of("f32[4096,4096] f32[4096,4096]"), _SQUARES, (28000, 86000), 2300
    ),
    "64 products of 512": Workload(
        product, of("f32[64,512,512] f32[64,512,512]"), dense(512, 512, 512, 64), (1570, 1960), 290
    ),
    "64 x 65536 x 64": Workload(product, of("f32[64,65536] f32[65536,64]"), dense(64, 64, 65536), (1750, 2200), 15),
    "matrix vector 4096": Workload(product, of("f32[4096,4096] f32[4096]"), 0.0, (113, 190), 26),
    "softmax 512 x 4096": Workload(lambda jx: jx.nn.softmax, of("f32[512,4096]"), 0.0, (9, 17), 9),
    "softmax 8 x 131072": Workload(lambda jx: jx.nn.softmax, of("f32[8,131072]"), 0.0, (20, 20), 6),
    "layernorm 4096 x 1024": Workload(layernorm, of("f32[4096,1024] f32[1024] f32[1024]"), 0.0, (99, 176), 15),
    "rmsnorm 4096 x 4096": Workload(rmsnorm, of("f32[4096,4096] f32[4096]"), 0.0, (170, 390), 48),
    "attention 2x8x512x64": Workload(attention, of("f32[2,8,512,64] " * 3), _HEADS, (220, 520), 16),
    "its gradients": Workload(attention_gradients, of("f32[2,8,512,64] " * 3), 3.5 * _HEADS, (600, 1300), 50),
    "conv 32x64x28x28 3x3": Workload(conv, of("f32[32,64,28,28] f32[64,64,3,3]"), _CONV, (180, 870), 45),
    "its weight gradient": Workload(
        conv_weight_gradient, of("f32[32,64,28,28] f32[64,64,3,3] f32[32,64,28,28]"), _CONV, (1500, 5700), 50
    ),
    "tanh(x)*y+exp(-x*x) 16M": Workload(
        lambda jx: lambda x, y: jx.numpy.tanh(x) * y + jx.numpy.exp(-x * x),
        of(f"f32[{M16}] f32[{M16}]"),
        0.0,
        (70, 127),
        70,
    ),
    "add f32 16M": Workload(lambda _: lambda x, y: x + y, of(f"f32[{M16}] f32[{M16}]"), 0.0, (70, 127), 70),
    "add bf16 16M": Workload(lambda _: lambda x, y: x + y, of(f"bf16[{M16}] bf16[{M16}]"), 0.0, (57, 93), 37),
    "Adam 4M": Workload(adam, of("f32[4096,1024] " * 4), 0.0, (42, 59), 43),
    "sum axis 0, 65536 x 256": Workload(
        lambda jx: lambda x: jx.numpy.sum(x, axis=0), of("f32[65536,256]"), 0.0, (31, 41), 26
    ),
    "sum axis 0, 8192 x 1024": Workload(
        lambda jx: lambda x: jx.numpy.sum(x, axis=0), of("f32[8192,1024]"), 0.0, (52, 67), 15
    ),
    "sum axis 1, 65536 x 256": Workload(
        lambda jx: lambda x: jx.numpy.sum(x, axis=1), of("f32[65536,256]"), 0.0, (26, 82), 26
    ),
    "sum 16M": Workload(lambda jx: jx.numpy.sum, of(f"f32[{M16}]"), 0.0, (61, 137), 26),
    "argmax 16M": Workload(lambda jx: jx.numpy.argmax, of(f"f32[{M16}]"), 0.0, (230, 380), 26),
    "transpose 4096": Workload(lambda _: lambda x: x.T + 0, of("f32[4096,4096]"), 0.0, (113, 170), 48),
    "gather 4M of 1M": Workload(lambda _: lambda x, i: x[i], of("f32[1048576] i32[4194304]"), 0.0, (34, 57), 20),
    "gather 8192 rows of 512": Workload(
        lambda _: lambda x, i: x[i], of("f32[32768,512] i32[8192]"), 0.0, (15, 49), 15, 4 * 512 * (32768 - 8192)
    ),
    "cumsum 4M": Workload(lambda jx: jx.numpy.cumsum, of("f32[4194304]"), 0.0, (46, 93), 15),
    "sort 1M": Workload(lambda jx: jx.numpy.sort, of("f32[1048576]"), 0.0, (2400, 4600), 84),
    "scatter-add 4M into 1M": Workload(
        lambda _: lambda x, i, u: x.at[i].add(u), of("f32[1048576] i32[4194304] f32[4194304]"), 0.0, (11000, 18500), 104
    ),
    "MLP step 784-512-10": Workload(mlp_step, of(_MLP_TYPES), _MLP, (50, 60), 40),
    "uniform 16M": Workload(lambda jx: lambda key: jx.random.uniform(key, (M16,)), of("u32[2]"), 0.0, (57, 112), 26),
}
