"""Random operations on arrays that Explicit axes split at random, for a comparison with jax 0.10.2.

Each is the name of a function, its parameters, and the shapes and specs of its operands. All sizes
are multiples of the devices of the mesh (explicit_programs.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.sharding.explicit_programs import Operand, Part

COUNT = 400
SIZES = (8, 16)


class Operation(NamedTuple):
    """A function by name, parameters, and operands."""

    name: str
    params: tuple[Any, ...]
    operands: tuple[Operand, ...]


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "add": lambda j, _, x, y: x + y,
    "where": lambda j, _, x, y: j.np.where(x > y, x, y),
    "sum": lambda j, p, x: j.np.sum(x, p[0]),
    "max": lambda j, p, x: j.np.max(x, p[0], keepdims=True),
    "argmin": lambda j, p, x: j.np.argmin(x, p[0]),
    "cumsum": lambda j, p, x: j.np.cumsum(x, p[0]),
    "sort": lambda j, p, x: j.np.sort(x, p[0]),
    "flip": lambda j, p, x: j.np.flip(x, p[0]),
    "transpose": lambda j, p, x: j.np.transpose(x, p),
    "expand": lambda j, p, x: j.np.expand_dims(x, p[0]),
    "broadcast": lambda j, p, x: j.np.broadcast_to(x, (p[0], *x.shape)),
    "slice": lambda j, p, x: j.lax.slice_in_dim(x, 0, p[1], axis=p[0]),
    "pad": lambda j, p, x: j.lax.pad(x, 0.0, [(p[1] * (n == p[0]), 0, 0) for n in range(x.ndim)]),
    "concatenate": lambda j, p, x, y: j.np.concatenate([x, y], p[0]),
    "stack": lambda j, p, x, y: j.np.stack([x, y], p[0]),
    "take": lambda j, p, x: j.np.take(x, j.np.array([1, 0, 2]), axis=p[0]),
    "dot_general": lambda j, p, x, y: j.lax.dot_general(x, y, (((p[0],), (p[1],)), ((), ()))),
    "matmul": lambda j, _, x, y: j.np.matmul(x, y),
    "batches": lambda j, _, x, y: j.np.einsum("bij,bjk->bik", x, y),
    "diagonal sums": lambda j, _, x, y: j.np.einsum("ij,kj->ik", x, y),
    "softmax": lambda j, p, x: j.nn.softmax(x, axis=p[0]),
    "mean": lambda j, p, x: x - j.np.mean(x, axis=p[0], keepdims=True),
}
OF_EQUAL_SHAPES = ("add", "where", "concatenate", "stack")
PRODUCTS: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "matmul": ((8, 16), (16, 8)),
    "batches": ((8, 16, 8), (8, 8, 16)),
    "diagonal sums": ((8, 16), (16, 16)),
}


def _spec(draw: random.Random, ndim: int) -> tuple[Part, ...]:
    """A spec that names each mesh axis at most once."""
    parts: list[Part] = [None] * ndim
    for axis in (("a", "b"), ("b", "a")) if draw.random() < 0.1 else ("a", "b"):
        at = draw.randrange(2 * ndim)
        if at < ndim and parts[at] is None and not any(isinstance(p, tuple) or p == axis for p in parts):
            parts[at] = axis
            if isinstance(axis, tuple):
                break
    return tuple(parts)


def _operation(draw: random.Random) -> Operation:
    name = draw.choice([*FUNCTIONS])
    ndim = draw.randint(1, 3)
    shape = tuple(draw.choice(SIZES) for _ in range(ndim))
    if name in PRODUCTS:
        shapes = PRODUCTS[name]
    elif name == "dot_general":
        ndim = draw.randint(1, 2)
        shapes = ((8,) * ndim, (8,) * draw.randint(1, 3))
    else:
        shapes = (shape, shape) if name in OF_EQUAL_SHAPES else (shape,)
    axis = draw.randrange(ndim)
    params: dict[str, tuple[Any, ...]] = {
        "transpose": tuple(draw.sample(range(ndim), ndim)),
        "broadcast": (draw.choice(SIZES),),
        "slice": (axis, draw.randint(1, 8)),
        "pad": (axis, draw.randint(1, 8)),
        "dot_general": (axis, draw.randrange(len(shapes[-1]))),
    }
    return Operation(name, params.get(name, (axis,)), tuple((s, _spec(draw, len(s))) for s in shapes))


_draw = random.Random(0)
OPERATIONS = [_operation(_draw) for _ in range(COUNT)]
