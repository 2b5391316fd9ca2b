"""Shape functions that divide positions of elements by sizes, with NumPy as the oracle.

As a program it tries all of them on the CPU and prints each name first. It needs a separate
process, because once PoCL is loaded it handles divisions by 0 for the whole process, which hides
them.

    python -m tests.support.shape_functions
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import rune
from rune import lax
from rune import numpy as rnp
from tests.support.close import near

ROWS = [(0,), (1,), (2,), (5,), (0,), (3,), (8,)]
PLANES = [(0, 3), (3, 0), (0, 0), (1, 1), (2, 3), (1, 4), (5, 2)]
Function = Callable[[Any, Any], Any]


def _batches(size: int) -> Function:
    """lax.map some rows at a time."""
    return lambda m, x: 2 * x + 1 if m is np else lax.map(lambda v: 2 * v + 1, x, batch_size=size)


def _windows(m: Any, x: Any) -> Any:
    """Pairs of elements from the two halves."""
    half = x.shape[0] // 2
    return m.outer(x[:half], x[half : 2 * half]).ravel()


OF_ROWS: dict[str, Function] = {
    "repeat": lambda m, x: m.repeat(x, 3),
    "pad of repeat": lambda m, x: m.pad(m.repeat(x, 3), 1),
    "pad of tile": lambda m, x: m.pad(m.tile(x, 3), (2, 1)),
    "tile": lambda m, x: m.tile(x, (3, 2)),
    "tile of tile": lambda m, x: m.tile(m.pad(m.tile(x, 2), 1)[1:], 3),
    "repeat of pad": lambda m, x: m.repeat(m.pad(x, 1), 2),
    "outer": lambda m, x: m.outer(x, x),
    "outer, raveled and padded": lambda m, x: m.pad(m.outer(x, x + 1).ravel(), 1),
    "kron": lambda m, x: m.kron(x, x + 1),
    "kron, padded": lambda m, x: m.pad(m.kron(x, m.ones(2, "float32")), 1),
    "kron of one": lambda m, x: m.pad(m.kron(m.ones(3, "float32"), x), 1),
    "meshgrid": lambda m, x: m.concatenate([g.ravel() for g in m.meshgrid(x, x + 1)]),
    "meshgrid with more": lambda m, x: m.stack(m.meshgrid(x, m.pad(x, 1), indexing="ij")).ravel(),
    "concatenated ravels": lambda m, x: m.concatenate([m.outer(x, x).ravel(), x, m.tile(x, 2)]),
    "raveled stacks": lambda m, x: m.concatenate([m.stack([x, x]).T.ravel(), m.ones(1, "float32")]),
    "halves": _windows,
    "pairs": lambda m, x: m.pad(x[: x.shape[0] // 2 * 2].reshape(-1, 2).T.ravel(), 1),
    "pairs swapped": lambda m, x: m.roll(x[: x.shape[0] // 2 * 2].reshape(-1, 2), 1, 1).ravel(),
    "every third of repeat": lambda m, x: m.repeat(x, 2)[::3],
    "mirrored": lambda m, x: m.repeat(m.concatenate([x[::-1], m.repeat(x, 2)]), 2),
    "rolled": lambda m, x: m.roll(m.repeat(m.pad(x, 1), 2), 1),
    "sums of repeat": lambda m, x: m.cumsum(m.pad(m.repeat(x, 3), 1)),
    "sum of tile": lambda m, x: m.tile(x, 4).reshape(4, -1).sum(1),
    "batches of two": _batches(2),
    "batches of three": _batches(3),
    "batches of eight": _batches(8),
}
OF_PLANES: dict[str, Function] = {
    "ravel": lambda m, x: m.pad(x.ravel(), 1),
    "ravel of transpose": lambda m, x: m.pad(x.T.ravel(), 1),
    "repeat of rows": lambda m, x: m.pad(m.repeat(x, 2, axis=0).ravel(), 1),
    "repeat of columns": lambda m, x: m.pad(m.repeat(x, 3, axis=1), 1),
    "tile": lambda m, x: m.pad(m.tile(x, (2, 3)), 1),
    "kron": lambda m, x: m.pad(m.kron(x, x + 1), 1),
    "kron of eye": lambda m, x: m.kron(m.eye(2, dtype="float32"), x),
    "ravels of both": lambda m, x: m.concatenate([x.ravel(), x.T.ravel(), m.ones(1, "float32")]),
    "gram of ravel": lambda m, x: m.pad(m.outer(x.ravel(), x.ravel()), 1),
    "rows of the transpose": lambda m, x: m.pad(x.T, ((1, 0), (0, 1))).sum(0),
    "sums of tiles": lambda m, x: m.tile(x, (2, 2)).sum(1),
    "rolled": lambda m, x: m.roll(m.pad(x, 1), 1).ravel(),
}
CASES: dict[str, tuple[Function, Sequence[tuple[int, ...]]]] = {
    **{f"{name} of rows": (f, ROWS) for name, f in OF_ROWS.items()},
    **{f"{name} of planes": (f, PLANES) for name, f in OF_PLANES.items()},
}


def hold(name: str, make: Callable[[Any, int], Any]) -> None:
    """Assert that the function that `make` compiles is right for all its sizes."""
    function, shapes = CASES[name]
    program = make(lambda x: function(rnp, x), len(shapes[0]))
    for shape in shapes:
        x = 1 + np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        near(function(np, x), program(x), relative=1e-6, why="whole numbers in f32")


def symbolic(device: str) -> Callable[[Any, int], Any]:
    """One program for sizes that are declared."""
    dims = {"n": (0, 40), "m": (0, 40)}
    return lambda f, ndim: rune.jit(
        f, dims=dict(list(dims.items())[:ndim]), in_dims=("n", "n, m")[ndim - 1], device=device
    )


def main() -> None:
    """Try every function with declared sizes, and with automatic ones."""
    for name in CASES:
        print(f"{name}, declared", flush=True)
        hold(name, symbolic("cpu:0"))
        print(f"{name}, automatic", flush=True)
        with rune.configure(symbolic="auto"):
            hold(name, lambda f, _: rune.jit(f))


if __name__ == "__main__":
    main()
