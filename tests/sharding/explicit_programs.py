"""Programs on a mesh of Explicit axes: what jax 0.10.2 says of their results, or that it refuses.

A program is a function of a library and of arrays, with the shapes and specs of these arrays. The
mesh has four devices along "a" and two along "b".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

Part = str | tuple[str, ...] | None
Operand = tuple[tuple[int, ...], tuple[Part, ...]]  # shape and spec
MESH: Mapping[Hashable, int] = {"a": 4, "b": 2}


def library(jax: Any) -> SimpleNamespace:
    """What the programs take of JAX, or of rune under its names."""
    names = ("nn", "lax", "random", "shard_map", "typeof", "grad", "jvp", "vjp", "vmap", "jit", "checkpoint")
    sharding = {"P": jax.sharding.PartitionSpec, "reshard": jax.sharding.reshard, "auto_axes": jax.sharding.auto_axes}
    return SimpleNamespace(np=jax.numpy, **sharding, **{name: getattr(jax, name) for name in names})


def array_on(jax: Any, mesh: Any, operand: Operand) -> Any:
    """The operand on the devices of a mesh."""
    shape, spec = operand
    values = np.arange(1, 1 + np.prod(shape), dtype="float32").reshape(shape) / 8
    return jax.device_put(values, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec)))


class Program(NamedTuple):
    """A function of a library and of arrays, and what the arrays are."""

    run: Callable[..., Any]
    operands: Sequence[Operand]


ROWS, COLUMNS, BOTH, WHOLE = (
    ((8, 16), ("a", None)),
    ((8, 16), (None, "a")),
    ((8, 16), ("a", "b")),
    ((8, 16), (None, None)),
)
A, B, N = ((8,), ("a",)), ((8,), ("b",)), ((8,), (None,))
INDICES = ((8,), (None,))


def program(run: Callable[..., Any], *operands: Operand) -> Program:
    """The program of a function on operands."""
    return Program(run, operands)


_ELEMENTWISE: Mapping[str, Program] = {
    "x + y of one layout": program(lambda j, x, y: x + y, ROWS, ROWS),
    "x + y of a and whole": program(lambda j, x, y: x + y, A, N),
    "x + y of a and b": program(lambda j, x, y: x + y, A, B),
    "x * y of rows and columns": program(lambda j, x, y: x * y, ROWS, COLUMNS),
    "x * y of (a, None) and (None, b)": program(lambda j, x, y: x * y, ROWS, ((8, 16), (None, "b"))),
    "x + 1": program(lambda j, x: x + 1, BOTH),
    "sin": program(lambda j, x: j.np.sin(x), BOTH),
    "astype": program(lambda j, x: x.astype("int32"), ROWS),
    "x > y of a and b": program(lambda j, x, y: x > y, A, B),
    "maximum of one layout": program(lambda j, x, y: j.np.maximum(x, y), A, A),
    "where of one layout": program(lambda j, x, y: j.np.where(x > 0, x, y), A, A),
    "where of a number": program(lambda j, x: j.np.where(x > 0, x, 0), A),
    "where of a and whole": program(lambda j, x, y: j.np.where(x > 0, x, y), A, N),
    "where of a and b": program(lambda j, x, y: j.np.where(x > 0, x, y), A, B),
    "select of a and whole": program(lambda j, x, y: j.lax.select(x > 0, x, y), A, N),
    "clip": program(lambda j, x: j.np.clip(x, 0, 1), A),
    "row and matrix": program(lambda j, x, y: x + y, ((16,), ("b",)), ROWS),
    "row and matrix in conflict": program(lambda j, x, y: x + y, ((16,), ("a",)), ROWS),
    "row and matrix split alike": program(lambda j, x, y: x + y, ((16,), ("a",)), COLUMNS),
    "column and matrix": program(lambda j, x, y: x[:, None] * y, A, WHOLE),
    "outer by broadcasting": program(lambda j, x, y: x[:, None] * y[None, :], A, B),
    "outer by broadcasting along one axis": program(lambda j, x, y: x[:, None] * y[None, :], A, A),
    "softmax": program(lambda j, x: j.nn.softmax(x, axis=-1), BOTH),
    "mean": program(lambda j, x: x - j.np.mean(x, axis=1, keepdims=True), BOTH),
    "power": program(lambda j, x: x**3, A),
}
_MOVEMENT: Mapping[str, Program] = {
    "transpose": program(lambda j, x: x.T, BOTH),
    "swapaxes": program(lambda j, x: j.np.swapaxes(x, 0, 1), ROWS),
    "new axis": program(lambda j, x: x[None], ROWS),
    "expand and squeeze": program(lambda j, x: j.np.squeeze(x[:, None], 1), ROWS),
    "broadcast_to": program(lambda j, x: j.np.broadcast_to(x, (4, 8)), A),
    "reshape split": program(lambda j, x: x.reshape(4, 2, 16), ROWS),
    "reshape split by too few": program(lambda j, x: x.reshape(2, 4, 16), ROWS),
    "reshape merged": program(lambda j, x: x.reshape(128), ROWS),
    "reshape merged inner": program(lambda j, x: x.reshape(128), COLUMNS),
    "reshape of neither": program(lambda j, x: x.reshape(4, 32), COLUMNS),
    "reshape of a whole array": program(lambda j, x: x.reshape(4, 32), WHOLE),
    "ravel of both": program(lambda j, x: x.ravel(), BOTH),
    "flip": program(lambda j, x: x[::-1], A),
    "slice of the whole axis": program(lambda j, x: x[:, :4], ROWS),
    "slice of a split axis": program(lambda j, x: x[:4], ROWS),
    "slice of a split axis, uneven": program(lambda j, x: x[:3], ROWS),
    "slice with a step": program(lambda j, x: x[::2], ROWS),
    "pad of the whole axis": program(lambda j, x: j.np.pad(x, ((0, 0), (1, 1))), ROWS),
    "pad of a split axis": program(lambda j, x: j.np.pad(x, ((1, 1), (0, 0))), ROWS),
    "pad of a split axis, even": program(lambda j, x: j.np.pad(x, ((2, 2), (0, 0))), ROWS),
    "concatenate of one layout": program(lambda j, x, y: j.np.concatenate([x, y]), ROWS, ROWS),
    "concatenate beside the split axis": program(lambda j, x, y: j.np.concatenate([x, y], 1), ROWS, ROWS),
    "concatenate of a and whole": program(lambda j, x, y: j.np.concatenate([x, y]), A, N),
    "concatenate of a and b": program(lambda j, x, y: j.np.concatenate([x, y]), A, B),
    "stack": program(lambda j, x, y: j.np.stack([x, y]), A, A),
    "split": program(lambda j, x: j.np.split(x, 2)[0], ROWS),
    "roll": program(lambda j, x: j.np.roll(x, 1), A),
    "tile": program(lambda j, x: j.np.tile(x, 2), A),
    "repeat": program(lambda j, x: j.np.repeat(x, 2), A),
}
_SUMS: Mapping[str, Program] = {
    "sum of the split axis": program(lambda j, x: j.np.sum(x, 0), BOTH),
    "sum of the other axis": program(lambda j, x: j.np.sum(x, 1), ROWS),
    "sum of all": program(lambda j, x: j.np.sum(x), BOTH),
    "max": program(lambda j, x: j.np.max(x, 0), BOTH),
    "prod": program(lambda j, x: j.np.prod(x, 1), ROWS),
    "any": program(lambda j, x: j.np.any(x > 3, 0), BOTH),
    "argmax": program(lambda j, x: j.np.argmax(x, 0), BOTH),
    "cumsum of the split axis": program(lambda j, x: j.np.cumsum(x, 0), ROWS),
    "cumsum of the other axis": program(lambda j, x: j.np.cumsum(x, 1), ROWS),
    "sort of the split axis": program(lambda j, x: j.np.sort(x, 0), ROWS),
    "sort of the other axis": program(lambda j, x: j.np.sort(x, 1), ROWS),
    "logsumexp": program(lambda j, x: j.nn.logsumexp(x, axis=1), BOTH),
    "var": program(lambda j, x: j.np.var(x, axis=0), BOTH),
}
_PRODUCTS: Mapping[str, Program] = {
    "rows @ whole": program(lambda j, x, y: x @ y, ROWS, ((16, 4), (None, None))),
    "rows @ columns": program(lambda j, x, y: x @ y, ROWS, ((16, 4), (None, "b"))),
    "rows @ columns of one mesh axis": program(lambda j, x, y: x @ y, ROWS, ((16, 4), (None, "a"))),
    "split along the sum": program(lambda j, x, y: x @ y, COLUMNS, ((16, 4), ("a", None))),
    "split along the sum in one": program(lambda j, x, y: x @ y, COLUMNS, ((16, 4), (None, None))),
    "split along the sum in conflict": program(lambda j, x, y: x @ y, COLUMNS, ((16, 4), ("b", None))),
    "matmul with out_sharding": program(
        lambda j, x, y: j.np.matmul(x, y, out_sharding=j.P("b", None)), COLUMNS, ((16, 4), ("a", None))
    ),
    "dot with out_sharding": program(
        lambda j, x, y: j.np.dot(x, y, out_sharding=j.P(None, "b")), COLUMNS, ((16, 4), ("a", None))
    ),
    "einsum with out_sharding": program(
        lambda j, x, y: j.np.einsum("ij,jk->ik", x, y, out_sharding=j.P("a", None)), COLUMNS, ((16, 4), ("a", None))
    ),
    "einsum": program(lambda j, x, y: j.np.einsum("ij,jk->ik", x, y), COLUMNS, ((16, 4), ("a", None))),
    "einsum of batches": program(
        lambda j, x, y: j.np.einsum("bij,bjk->bik", x, y), ((8, 4, 4), ("a", None, None)), ((8, 4, 4), ("a", None, "b"))
    ),
    "batches in conflict": program(
        lambda j, x, y: j.np.einsum("bij,bjk->bik", x, y),
        ((8, 4, 4), ("a", None, None)),
        ((8, 4, 4), ("b", None, None)),
    ),
    "batches of one": program(lambda j, x, y: x @ y, ((8, 4, 4), ("a", None, None)), ((8, 4, 4), (None, None, None))),
    "inner of vectors": program(lambda j, x, y: j.np.dot(x, y), A, A),
    "outer": program(lambda j, x, y: j.np.outer(x, y), A, B),
}
_INDICES: Mapping[str, Program] = {
    "take of whole rows": program(lambda j, x: x[j.np.array([0, 2])], COLUMNS),
    "take of split rows": program(lambda j, x: x[j.np.array([0, 2])], ROWS),
    "take with out_sharding": program(
        lambda j, x: x.at[j.np.array([0, 2, 4, 5])].get(out_sharding=j.P("a", None)), ROWS
    ),
    "one row": program(lambda j, x: x[2], ROWS),
    "one column": program(lambda j, x: x[:, 2], ROWS),
    "set": program(lambda j, x: x.at[0].set(1), COLUMNS),
    "add to rows": program(lambda j, x, y: x.at[j.np.array([0, 1])].add(y), COLUMNS, ((2, 16), (None, "a"))),
    "dynamic_slice along the split axis": program(lambda j, x: j.lax.dynamic_slice_in_dim(x, 1, 4, 0), ROWS),
    "dynamic_slice beside it": program(lambda j, x: j.lax.dynamic_slice_in_dim(x, 1, 4, 1), ROWS),
    "dynamic_update_slice": program(
        lambda j, x, y: j.lax.dynamic_update_slice_in_dim(x, y, 1, 1), ROWS, ((8, 4), ("a", None))
    ),
    "dynamic_update_slice in conflict": program(
        lambda j, x, y: j.lax.dynamic_update_slice_in_dim(x, y, 1, 1), ROWS, ((8, 4), (None, None))
    ),
}
_LAYOUTS: Mapping[str, Program] = {
    "reshard": program(lambda j, x: j.reshard(x, j.P(None, "b")), ROWS),
    "conflict after a reshard": program(lambda j, x, y: j.reshard(x, j.P("b")) + y, A, B),
    "constraint that is true": program(lambda j, x: j.lax.with_sharding_constraint(x, j.P("a", None)), ROWS),
    "constraint that is not": program(lambda j, x: j.lax.with_sharding_constraint(x, j.P(None, "a")), ROWS),
    "auto_axes": program(lambda j, x, y: j.auto_axes(lambda u, v: u + v, out_sharding=j.P("a"))(x, y), A, B),
    "zeros_like": program(lambda j, x: j.np.zeros_like(x), BOTH),
    "ones_like plus": program(lambda j, x, y: j.np.ones_like(x) + y, A, B),
    "zeros beside": program(lambda j, x: j.np.zeros((8,)) + x, A),
    "arange beside": program(lambda j, x: j.np.arange(8) * x, A),
    "by the type": program(lambda j, x: j.reshard(x.T, j.typeof(x).sharding.spec), ((8, 8), ("a", "b"))),
    "shard_map by types": program(lambda j, x: j.shard_map(lambda b: b * 2, out_specs=j.P("a", "b"))(x), BOTH),
    "shard_map of a sum by types": program(
        lambda j, x: j.shard_map(lambda b: j.lax.psum(b, "a"), out_specs=j.P(None, "b"))(x), BOTH
    ),
    "shard_map of other specs": program(
        lambda j, x: j.shard_map(lambda b: b * 2, in_specs=j.P("a"), out_specs=j.P("a"))(x), WHOLE
    ),
}
_CONTROL: Mapping[str, Program] = {
    "jit inside": program(lambda j, x, y: j.jit(lambda u, v: u * v)(x, y), A, A),
    "conflict in a jit inside": program(lambda j, x, y: j.jit(lambda u, v: u * v)(x, y), A, B),
    "cond": program(lambda j, x: j.lax.cond(x[:, 0].sum() > 0, lambda v: v * 2, lambda v: v + 1, x), ROWS),
    "fori_loop": program(lambda j, x: j.lax.fori_loop(0, 3, lambda i, v: v * 2, x), ROWS),
    "fori_loop in conflict": program(lambda j, x, y: j.lax.fori_loop(0, 3, lambda i, v: v * y, x), A, B),
    "scan over whole rows": program(
        lambda j, x, y: j.lax.scan(lambda c, r: (c + r, c * r), x, y)[1], A, ((5, 8), (None, "a"))
    ),
    "carry of a scan": program(
        lambda j, x, y: j.lax.scan(lambda c, r: (c + r, c * r), x, y)[0], A, ((5, 8), (None, "a"))
    ),
    "scan in conflict": program(
        lambda j, x, y: j.lax.scan(lambda c, r: (c + r, c * r), x, y)[0], A, ((5, 8), (None, "b"))
    ),
    "checkpoint": program(lambda j, x: j.checkpoint(lambda v: j.np.sin(v))(x), ROWS),
}
_DERIVATIVES: Mapping[str, Program] = {
    "grad of a sum": program(lambda j, x: j.grad(lambda v: j.np.sum(j.np.sin(v)))(x), BOTH),
    "grad of a product": program(lambda j, x, y: j.grad(lambda u: (u @ y).sum())(x), ROWS, ((16, 4), (None, "b"))),
    "grad of the second factor": program(
        lambda j, x, y: j.grad(lambda v: ((x @ v) ** 2).sum())(y), ROWS, ((16, 4), (None, "b"))
    ),
    "grad of a broadcast row": program(lambda j, x, y: j.grad(lambda u: (u + y).sum())(x), ((16,), ("b",)), ROWS),
    "grad in conflict": program(lambda j, x, y: j.grad(lambda u: (u * y).sum())(x), A, B),
    "grad of a reshard": program(lambda j, x: j.grad(lambda v: (j.reshard(v, j.P(None, "b")) ** 2).sum())(x), ROWS),
    "grad of a gather": program(
        lambda j, x: j.grad(lambda v: v.at[j.np.array([0, 2, 4, 5])].get(out_sharding=j.P(None, None)).sum())(x), ROWS
    ),
    "grad of a scan": program(
        lambda j, x, y: j.grad(lambda u: j.lax.scan(lambda c, r: (c * r, c), u, y)[0].sum())(x),
        A,
        ((5, 8), (None, "a")),
    ),
    "grad of a jit": program(lambda j, x: j.grad(lambda v: j.jit(j.np.sin)(v).sum())(x), ROWS),
    "jvp": program(lambda j, x, y: j.jvp(j.np.sin, (x,), (y,))[1], ROWS, ROWS),
    "vmap over the whole axis": program(lambda j, x: j.vmap(j.np.sin)(x), COLUMNS),
    "vmap over the split axis": program(lambda j, x: j.vmap(lambda v: v * 2)(x), ROWS),
    "vmap of a sum": program(lambda j, x: j.vmap(j.np.sum)(x), ROWS),
    "vmap in conflict": program(lambda j, x, y: j.vmap(lambda u, v: u + v)(x, y), COLUMNS, ((8, 16), (None, "b"))),
    "vmap of lanes in conflict": program(lambda j, x, y: j.vmap(lambda u, v: u + v)(x, y), A, B),
    "per-example gradients": program(
        lambda j, x, y: j.vmap(j.grad(lambda w, v: j.np.sin(w * v).sum()), (None, 0))(x, y), ((16,), (None,)), ROWS
    ),
}


def _mlp_loss(j: Any, w1: Any, w2: Any, x: Any, y: Any) -> Any:
    return j.np.mean((j.nn.gelu(x @ w1) @ w2 - y) ** 2)


def _cross_entropy(j: Any, w: Any, x: Any) -> Any:
    logits = x @ w
    labels = j.nn.one_hot(j.np.arange(8) % 4, 4)
    return -j.np.mean(j.np.sum(labels * j.nn.log_softmax(logits), axis=-1))


def _attention(j: Any, q: Any, k: Any, v: Any) -> Any:
    scores = j.np.einsum("bqhd,bkhd->bhqk", q, k) / 2.0
    mask = j.np.tril(j.np.ones((4, 4), bool))
    scores = j.np.where(mask, scores, -1e9)
    return j.np.einsum("bhqk,bkhd->bqhd", j.nn.softmax(scores, axis=-1), v)


def _layer_norm(j: Any, x: Any, scale: Any) -> Any:
    centred = x - j.np.mean(x, axis=-1, keepdims=True)
    return centred * j.lax.rsqrt(j.np.mean(centred**2, axis=-1, keepdims=True) + 1e-6) * scale


def _layers(j: Any, x: Any, weights: Any) -> Any:
    return j.lax.scan(lambda h, w: (j.np.tanh(h @ w), None), x, weights)[0]


def _adam(j: Any, w: Any, x: Any) -> Any:
    g = j.grad(lambda u: ((x @ u) ** 2).mean())(w)
    first, second = 0.1 * g, 0.001 * g**2
    return w - 0.01 * first / (j.np.sqrt(second) + 1e-8)


def _clipped(j: Any, w: Any, x: Any) -> Any:
    g = j.grad(lambda u: ((x @ u) ** 2).mean())(w)
    norm = j.np.sqrt(j.np.sum(g**2))
    return g * j.np.minimum(1.0, 1.0 / (norm + 1e-6))


HEADS = ((8, 4, 2, 4), ("a", None, "b", None))
WEIGHT, WEIGHT_BACK = ((16, 32), (None, "b")), ((32, 16), ("b", None))
_OF_USERS: Mapping[str, Program] = {
    "first layer's gradient": program(
        lambda j, u, v, x, y: j.grad(lambda w: _mlp_loss(j, w, v, x, y))(u),
        WEIGHT,
        ((32, 4), (None, None)),
        ROWS,
        ((8, 4), ("a", None)),
    ),
    "hidden layer split in both": program(
        lambda j, u, v, x: j.np.matmul(j.nn.relu(x @ u), v, out_sharding=j.P("a", None)), WEIGHT, WEIGHT_BACK, ROWS
    ),
    "its gradient": program(
        lambda j, u, v, x: j.grad(lambda w: (j.np.matmul(j.nn.relu(x @ w), v, out_sharding=j.P("a", None)) ** 2).sum())(
            u
        ),
        WEIGHT,
        WEIGHT_BACK,
        ROWS,
    ),
    "its second gradient": program(
        lambda j, u, v, x: j.grad(lambda w: (j.np.matmul(j.nn.relu(x @ u), w, out_sharding=j.P("a", None)) ** 2).sum())(
            v
        ),
        WEIGHT,
        WEIGHT_BACK,
        ROWS,
    ),
    "cross entropy": program(lambda j, w, x: _cross_entropy(j, w, x), ((16, 4), (None, None)), ROWS),
    "gradient of cross entropy": program(
        lambda j, w, x: j.grad(lambda u: _cross_entropy(j, u, x))(w), ((16, 4), (None, None)), ROWS
    ),
    "attention": program(_attention, HEADS, HEADS, HEADS),
    "gradient of attention": program(
        lambda j, q, k, v: j.grad(lambda u: _attention(j, q, u, v).sum())(k), HEADS, HEADS, HEADS
    ),
    "layer norm": program(_layer_norm, ROWS, ((16,), (None,))),
    "gradient of layer norm": program(
        lambda j, x, s: j.grad(lambda u: (_layer_norm(j, x, u) ** 2).sum())(s), ROWS, ((16,), (None,))
    ),
    "layers by scan": program(_layers, ROWS, ((3, 16, 16), (None, None, None))),
    "gradient of layers": program(
        lambda j, x, w: j.grad(lambda u: _layers(j, x, u).sum())(w), ROWS, ((3, 16, 16), (None, None, None))
    ),
    "layers split along the steps": program(_layers, ROWS, ((4, 16, 16), ("a", None, None))),
    "a step of Adam": program(_adam, ((16, 4), (None, "b")), ROWS),
    "a clipped gradient": program(_clipped, ((16, 4), (None, "b")), ROWS),
    "a jitted gradient": program(
        lambda j, w, x: j.jit(j.grad(lambda u, v: ((v @ u) ** 2).sum()))(w, x), ((16, 4), (None, "b")), ROWS
    ),
    "a checkpointed layer": program(
        lambda j, w, x: j.grad(lambda u: j.checkpoint(lambda v: j.np.tanh(x @ v))(u).sum())(w),
        ((16, 4), (None, "b")),
        ROWS,
    ),
    "an embedding": program(lambda j, w: w[j.np.arange(8) % 3], ((16, 8), (None, "b"))),
    "an embedding of split ids": program(
        lambda j, w, i: w.at[i.astype("int32") % 3].get(out_sharding=j.P("a", None)), ((16, 8), (None, None)), A
    ),
    "labels by take_along_axis": program(
        lambda j, x: j.np.take_along_axis(x, j.np.zeros((8, 1), "int32"), axis=1), ROWS
    ),
    "a mean over the batch": program(lambda j, x: x - x.mean(0), ROWS),
    "a norm": program(lambda j, x: x / j.np.linalg.norm(x, axis=1, keepdims=True), ROWS),
    "a while loop": program(
        lambda j, x: j.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1], ROWS
    ),
    "second derivatives": program(
        lambda j, x: j.grad(lambda v: (j.grad(lambda u: (j.np.sin(u) ** 2).sum())(v) ** 2).sum())(x), ROWS
    ),
    "a vjp": program(lambda j, x, y: j.vjp(lambda v: v @ y, x)[1](x @ y)[0], ROWS, ((16, 4), (None, "b"))),
    "min over lanes": program(lambda j, x: j.vmap(lambda v: v / v.max())(x), ROWS),
    "a product of lanes": program(lambda j, x, y: j.vmap(lambda v: v @ y)(x), ROWS, ((16, 4), (None, "b"))),
    "cholesky of lanes": program(
        lambda j, x: j.np.linalg.cholesky(x @ x.mT + 100 * j.np.eye(4)), ((8, 4, 4), ("a", None, None))
    ),
    "cumulative maximum of both": program(lambda j, x: j.lax.cummax(x, axis=1), BOTH),
    "argsort": program(lambda j, x: j.np.argsort(x, axis=1), ROWS),
    "concatenate of halves": program(lambda j, x: j.np.concatenate([x[:, 8:], x[:, :8]], axis=1), ROWS),
    "rotary halves": program(
        lambda j, x: j.np.concatenate([-x[..., 8:], x[..., :8]], axis=-1) * j.np.cos(j.np.arange(16)), ROWS
    ),
    "heads split from features": program(lambda j, x: x.reshape(8, 4, 4).swapaxes(1, 2), ((8, 16), ("a", "b"))),
    "heads merged again": program(lambda j, x: x.reshape(8, 4, 8), HEADS),
    "one_hot": program(lambda j, x: j.nn.one_hot(x.astype("int32"), 4), A),
    "isnan and any": program(lambda j, x: j.np.any(j.np.isnan(x)), BOTH),
    "square of a norm": program(lambda j, x: j.np.vdot(x, x), A),
    "full_like": program(lambda j, x: j.np.full_like(x, 3.0) + x, BOTH),
    "dropout": program(lambda j, x: j.np.where(j.random.bernoulli(j.random.key(0), 0.5, x.shape), x / 0.5, 0), ROWS),
    "noise": program(lambda j, x: x + j.random.normal(j.random.key(0), x.shape), ROWS),
}
PROGRAMS: Mapping[str, Program] = {
    **_ELEMENTWISE,
    **_MOVEMENT,
    **_SUMS,
    **_PRODUCTS,
    **_INDICES,
    **_LAYOUTS,
    **_CONTROL,
    **_DERIVATIVES,
    **_OF_USERS,
}


def _reshapes() -> list[tuple[tuple[int, ...], tuple[Part, ...], tuple[int, ...]]]:
    """Shapes, specs and other shapes of as many elements."""
    shapes = [(8, 16), (8, 4, 4), (4, 2, 16), (128,), (2, 64), (16, 8), (1, 8, 16), (8, 1, 16), (4, 32), (2, 4, 4, 4)]
    shapes += [(8, 16, 1), (32, 4), (8, 2, 8)]
    parts: tuple[Part, ...] = (None, "a", "b", ("a", "b"), ("b", "a"))
    triples = []
    for number, (shape, target) in enumerate(itertools.permutations(shapes, 2)):
        specs = [
            spec
            for spec in itertools.product(parts, repeat=len(shape))
            if any(spec) and _is_once(spec) and all(map(_divides, spec, shape))
        ]
        triples += [(shape, spec, target) for spec in specs[number % 5 :: 5]]
    return triples


def names_of(part: Part) -> tuple[str, ...]:
    """The mesh axes of a part of a spec."""
    return part if isinstance(part, tuple) else () if part is None else (part,)


def _is_once(spec: Sequence[Part]) -> bool:
    names = [name for part in spec for name in names_of(part)]
    return len(names) == len(set(names))


def _divides(part: Part, size: int) -> bool:
    return size % math.prod(MESH[name] for name in names_of(part)) == 0


RESHAPES = _reshapes()
