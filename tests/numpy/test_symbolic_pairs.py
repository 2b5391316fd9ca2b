"""Functions of x [n], y [m] and a [n, m]: one program each, right for all sizes, with its gradient.

Axes of size n and m are joined, padded by each other, merged and split, contracted, reduced,
gathered, broadcast, cut, repeated, counted and mapped over. The oracle is the same function of
numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import nn, tree
from tests.support.arrays import array
from tests.support.close import near
from tests.support.sampling import one_in

SIZES = [(3, 5), (5, 3), (4, 4), (2, 7)]
FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "concatenate": lambda x, y, a: rnp.concatenate([x, y, x]),
    "concatenate columns": lambda x, y, a: rnp.concatenate([a, a * 2.0], 1),
    "stack": lambda x, y, a: rnp.stack([x, x * 2.0, x], 1),
    "append": lambda x, y, a: rnp.append(a, y),
    "pad by a size": lambda x, y, a: rnp.pad(a, ((x.shape[0], 1), (2, y.shape[0]))),
    "pad edge": lambda x, y, a: rnp.pad(x, (2, y.shape[0]), mode="edge"),
    "pad reflect": lambda x, y, a: rnp.pad(a, 1, mode="reflect"),
    "pad symmetric": lambda x, y, a: rnp.pad(a, (2, 1), mode="symmetric"),
    "pad wrap": lambda x, y, a: rnp.pad(rnp.append(x, y), x.shape[0], mode="wrap"),
    "merge": lambda x, y, a: a.reshape(x.shape[0] * y.shape[0]),
    "merge and split": lambda x, y, a: a.reshape(-1).reshape(y.shape[0], -1),
    "split by two": lambda x, y, a: rnp.concatenate([a, a]).reshape(2, x.shape[0], -1),
    "merge with a number": lambda x, y, a: rnp.concatenate([a, a]).reshape(-1, 2),
    "matmul": lambda x, y, a: (a @ a.T, a.T @ a, a @ y, x @ a),
    "batched matmul": lambda x, y, a: rnp.matmul(a[:, None, :], a[:, :, None]),
    "einsum": lambda x, y, a: rnp.einsum("i,ij,j->", x, a, y),
    "tensordot": lambda x, y, a: rnp.tensordot(a, a, ((0,), (0,))),
    "outer": lambda x, y, a: rnp.outer(x, y) + a,
    "kron": lambda x, y, a: rnp.kron(x, y),
    "trace and diagonal": lambda x, y, a: (rnp.trace(a @ a.T), rnp.diagonal(a.T @ a)),
    "reductions": lambda x, y, a: (rnp.sum(a, 0), rnp.mean(a), rnp.max(a, 1), rnp.prod(a, 0)),
    "keepdims": lambda x, y, a: a - rnp.mean(a, 1, keepdims=True),
    "var": lambda x, y, a: (rnp.var(a, 1), rnp.std(a, axis=(0, 1))),
    "argmax": lambda x, y, a: (rnp.argmax(a, 1), rnp.argmin(a)),
    "cumsum": lambda x, y, a: (rnp.cumsum(rnp.append(x, y)), rnp.cumsum(a)),
    "cumprod": lambda x, y, a: rnp.cumprod(a, 1),
    "scan of all": lambda x, y, a: rune.scan(lambda c, v: (c + v, c * v), 0.0, a.reshape(-1))[0],
    "steps with all": lambda x, y, a: rune.fori_loop(0, 3, lambda i, c: c * 2.0 + rnp.ones(c.shape), a.reshape(-1)),
    "interp of all": lambda x, y, a: rnp.interp(a, rnp.arange(3.0), rnp.arange(3.0) ** 2),
    "searchsorted of all": lambda x, y, a: rnp.searchsorted(rnp.arange(3.0), a),
    "reduceat": lambda x, y, a: rnp.add.reduceat(x, rnp.array([0, 1])),
    "gather": lambda x, y, a: (x[rnp.arange(y.shape[0]) % 2], a[rnp.array([0, 1, -1])]),
    "take": lambda x, y, a: rnp.take(a, rnp.argmax(a, 1), axis=1),
    "take_along_axis": lambda x, y, a: rnp.take_along_axis(a, rnp.argmax(a, 1)[:, None], 1),
    "update a row": lambda x, y, a: a.at[0].set(y).at[:, 0].add(x),
    "update by indices": lambda x, y, a: x.at[rnp.arange(y.shape[0])].add(y),
    "broadcast": lambda x, y, a: x[:, None] * y + a,
    "broadcast_to": lambda x, y, a: rnp.broadcast_to(y, a.shape),
    "where": lambda x, y, a: rnp.where(a > 0, x[:, None], y),
    "slice": lambda x, y, a: rnp.append(x, y)[x.shape[0] :],
    "slice inside": lambda x, y, a: rnp.concatenate([x, y, x])[x.shape[0] : sum(a.shape)],
    "slice from the end": lambda x, y, a: rnp.append(x, y)[-x.shape[0] :],
    "slice to the end": lambda x, y, a: rnp.append(x, y)[: -x.shape[0]],
    "every third": lambda x, y, a: rnp.append(x, y)[1::3],
    "one element": lambda x, y, a: (rnp.append(x, y)[x.shape[0]], a[x.shape[0] - 1]),
    "split at a size": lambda x, y, a: rnp.split(rnp.append(x, y), [x.shape[0]]),
    "split in halves": lambda x, y, a: rnp.split(rnp.append(x, x), 2),
    "split unevenly": lambda x, y, a: rnp.array_split(rnp.append(rnp.append(x, x), 1.0), 2),
    "tile": lambda x, y, a: (rnp.tile(a, (2, 3)), rnp.tile(x, y.shape[0])),
    "repeat": lambda x, y, a: (rnp.repeat(x, 3), rnp.repeat(x, y.shape[0])),
    "roll": lambda x, y, a: (rnp.roll(a, 1, 1), rnp.roll(rnp.append(x, y), x.shape[0])),
    "roll far": lambda x, y, a: rnp.roll(x, 9),
    "flip and turn": lambda x, y, a: (rnp.flip(a, (0, 1)), rnp.rot90(a), rnp.moveaxis(a, 0, 1)),
    "diff": lambda x, y, a: rnp.diff(a, axis=1),
    "triangles": lambda x, y, a: (rnp.tril(a), rnp.triu(a, 1), rnp.eye(*a.shape) * a),
    "arange": lambda x, y, a: (rnp.arange(1, x.shape[0] + 1), rnp.arange(0, 2 * y.shape[0] + 1, 2)),
    "arange down": lambda x, y, a: rnp.arange(x.shape[0], 0, -1),
    "linspace": lambda x, y, a: rnp.linspace(0.0, 1.0, x.shape[0]),
    "filled": lambda x, y, a: rnp.zeros(a.shape) + rnp.full(y.shape[0], 3.0),
    "meshgrid": lambda x, y, a: rnp.meshgrid(x, y),
    "numbers": lambda x, y, a: rnp.sum(a) / a.size + x.shape[0] - rnp.asarray(y.shape[0]),
    "a decided branch": lambda x, y, a: a if x.shape[0] >= 2 else -a,
    "softmax": lambda x, y, a: (nn.softmax(a, 1), nn.logsumexp(a, 0), nn.layer_norm(a)),
    "one_hot": lambda x, y, a: nn.one_hot(rnp.argmax(a, 1), y.shape[0]),
    "vmap": lambda x, y, a: rune.vmap(lambda row: rnp.append(row * y, x))(a),
    "vmap of columns": lambda x, y, a: rune.vmap(lambda v: rnp.sum(v * x), in_axes=1)(a),
    "vmap of an index": lambda x, y, a: rune.vmap(lambda row, i: row[i])(a, rnp.argmax(a, 1)),
    "gradient": lambda x, y, a: rune.grad(lambda v: rnp.sum(rnp.sin(rnp.append(v, y))))(x),
    "jacobian": lambda x, y, a: rune.jacrev(lambda v: rnp.sin(v)[:, None] * y)(x),
    "jacfwd": lambda x, y, a: rune.jacfwd(lambda v: v * v)(x),
    "jit inside": lambda x, y, a: rune.jit(lambda v: v * v.shape[0] + y.shape[0])(x),
    "vmap of jit": lambda x, y, a: rune.vmap(rune.jit(lambda v: rnp.cumsum(rnp.sin(v))))(a.T),
}


def arguments(n: int, m: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(10 * n + m)
    x, y, a = (array(rng.normal(size=s), np.float32) for s in ((n,), (m,), (n, m)))
    return x, y, a


def loss(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of the sines of all floating results."""

    def total(*args: Any) -> Any:
        leaves = [v for v in tree.leaves(f(*args)) if v.dtype == np.float32]
        return sum((rnp.sum(rnp.sin(v)) for v in leaves), 0.0 * rnp.sum(args[0]))

    return total


@pytest.mark.parametrize("name", one_in(4, [*FUNCTIONS]))
def test_one_program_is_right_for_all_pairs_of_sizes(name: str):
    f = FUNCTIONS[name]
    program = rune.jit(f, dims={"n": (2, 64), "m": (2, 64)}, in_dims=("n", "m", "n,m"))
    gradient = rune.grad(loss(program), argnums=(0, 1, 2))

    program(*arguments(6, 6))
    gradient(*arguments(6, 6))
    for sizes in SIZES:
        args = arguments(*sizes)
        with rune.counting() as counts:
            results = program(*args), gradient(*args)
        expected = f(*args), rune.grad(loss(f), argnums=(0, 1, 2))(*args)
        near(expected, results, relative=5e-5, why="f32, other order of sums")
        assert (counts.traces, counts.compiles) == (0, 0)
