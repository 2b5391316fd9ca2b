"""Operations along a split axis turn to another one, and what is quick to compute is not sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import NamedSharding, P, make_mesh
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.exchanges import exchanges
from rune.transforms.sharding.localize import localized
from tests.support.sampling import IS_WHOLE

MESHES = {"x": (8,), "ab": (4, 2), "abc": (2, 2, 2)}


def mesh_of(names: str) -> Any:
    return make_mesh(MESHES[names], tuple(names))


def numbers(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape), dtype="f") * 1.3).reshape(shape)


def bytes_of(function: Callable[..., Any], names: str, specs: tuple[P, ...], out: P | None, *args: Any) -> int:
    """What a device sends."""
    mesh, program = mesh_of(names), rune.make_program(function)(*args)
    local, _ = localized(program, Region(mesh, mesh.axis_names), specs, (out,) * len(program.outputs))
    return sum(int(e.bytes_sent) * (e.steps or 1) for e in exchanges(local, mesh))


def attention(q: Any, k: Any, v: Any) -> Any:
    shares = rune.nn.softmax(rnp.einsum("bqhd,bkhd->bhqk", q, k) / 4)
    return rnp.einsum("bhqk,bkhd->bqhd", shares, v)


def distances(x: Any) -> Any:
    return ((x[:, None] - x[None]) ** 2).sum(-1)


def in_columns(rows: Any, columns: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, carry: rnp.sin(columns + i), rows)


def by_others(x: Any, y: Any) -> Any:
    return lax.scan(lambda carry, _: (y * 2 + carry * 0, None), x, None, length=5)[0]


EDGES = np.arange(10.0, dtype="f")


class Sent(NamedTuple):
    """A program, how its arguments are split, and the bytes that a device sends, with XLA's.

    xla: of jax 0.10.2, from the collectives of its compiled code
    """

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    specs: tuple[P, ...]
    out: P | None
    bytes: int
    xla: int
    names: str = "x"


ROWS, COLUMNS = P("x"), P(None, "x")
SENT = {
    "cumsum": Sent(lambda x: rnp.cumsum(x, axis=0), ((64, 48),), (ROWS,), ROWS, 1344, 10752),
    "sort": Sent(lambda x: rnp.sort(x, axis=0), ((64, 48),), (ROWS,), ROWS, 2688, 2688),
    "top_k": Sent(lambda x: lax.top_k(x, 4)[0], ((16, 512),), (COLUMNS,), None, 3584, 28672),
    "Fourier": Sent(lambda x: rnp.fft.fft(x, axis=0), ((64, 48),), (ROWS,), ROWS, 4032, 21504),
    "axes joined": Sent(lambda x: x.reshape(-1), ((64, 48),), (COLUMNS,), ROWS, 1344, 1344),
    "other axes": Sent(lambda x: x.reshape(48, 64), ((64, 48),), (ROWS,), ROWS, 0, 0),
    "a transpose": Sent(lambda x, y: x + y.T, ((64, 48), (48, 64)), (ROWS, ROWS), None, 1344, 1344),
    "outer": Sent(lambda x: rnp.outer(x, x), ((128,),), (ROWS,), None, 448, 7168),
    "distances": Sent(distances, ((128, 3),), (ROWS,), None, 1344, 21504),
    "tile": Sent(lambda x: rnp.tile(x, 3), ((128,),), (ROWS,), ROWS, 448, 1344),
    "attention": Sent(attention, ((2, 32, 8, 16),) * 3, (COLUMNS,) * 3, COLUMNS, 14336, 57344),
    "attention to heads": Sent(attention, ((2, 32, 8, 16),) * 3, (COLUMNS,) * 3, P(None, None, "x"), 10752, 39424),
    "a product": Sent(rnp.matmul, ((64, 48), (48, 32)), (P(), COLUMNS), ROWS, 896, 5376),
    "a loop": Sent(in_columns, ((64, 48),) * 2, (ROWS, COLUMNS), None, 1344, 6720),
    "a loop by other mesh axes": Sent(by_others, ((64, 48),) * 2, (P("a"), P("b")), None, 1536, 6144, "ab"),
    "truths": Sent(lambda x: (x.max(0) > 1).all() | (x > 9).any(), ((64, 48),), (COLUMNS,), None, 4, 4),
    "searches": Sent(rnp.searchsorted, ((101,), (64, 7)), (P(), ROWS), ROWS, 0, 0),
    "interpolation": Sent(lambda x: rnp.interp(x, EDGES, EDGES**2), ((64,),), (ROWS,), ROWS, 0, 0),
    "right-hand sides": Sent(rnp.linalg.solve, ((7, 7), (7, 64)), (P(), COLUMNS), COLUMNS, 0, 1568),
    "a whole matrix and rows": Sent(rnp.matmul, ((64, 48), (48, 32)), (P(), ROWS), COLUMNS, 672, 672),
    "columns and a whole matrix": Sent(rnp.matmul, ((64, 48), (48, 32)), (COLUMNS, P()), ROWS, 1344, 1344),
    "rows by both and columns by one": Sent(
        rnp.matmul, ((64, 48), (48, 32)), (P(("a", "b")), P(None, "b")), P("a", "b"), 1536, 1536, "ab"
    ),
    "a sort by both": Sent(lambda x: rnp.sort(x, axis=0), ((64, 48),), (P("a", "b"),), P("a", "b"), 2304, 2688, "ab"),
}


@pytest.mark.parametrize("name", SENT)
def test_a_device_sends_no_more_than_by_xla(name: str):
    row = SENT[name]

    assert bytes_of(row.function, row.names, row.specs, row.out, *(numbers(*s) for s in row.shapes)) == row.bytes
    assert row.bytes <= row.xla


# --- meaning ------------------------------------------------------------------------------------

# Functions of matrices; axes of 24 are divided by eight devices, of 12 by four, and of 7 by none.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "running sums": lambda xp, x: xp.cumsum(x, axis=0) + xp.cumsum(x, axis=1),
    "sorts": lambda xp, x: xp.sort(x, axis=0) * xp.argsort(x, axis=1),
    "transposes": lambda xp, x: x.T @ x + x.sum(),
    "reshapes": lambda xp, x: (x.reshape(-1) * 2).reshape(x.shape[1], x.shape[0]) - x.T,
    "outer products": lambda xp, x: xp.tanh(x[:, 0, None] - x[None, :, 0]).sum(1) + x[:, 1],
    "Fourier": lambda xp, x: abs(xp.fft.fft(x, axis=0)) + abs(xp.fft.fft(x, axis=1)),
    "repeats": lambda xp, x: xp.tile(x, (2, 1)) + xp.repeat(x, 2, axis=0),
}
SPECS = {
    "x": [P("x"), P(None, "x")],
    "ab": [P("a"), P("a", "b"), P(("b", "a")), P(None, "b")],
    "abc": [P("a", ("c", "b")), P(("c", "a"))],
}
SHAPES = [(24, 7), (8, 24), (24, 12), (7, 24), (24, 24)]


@pytest.mark.parametrize(("number", "names"), [*enumerate(MESHES)])
def test_results_and_gradients_of_operations_along_split_axes_are_those_of_one_device(number: int, names: str):
    mesh = mesh_of(names)
    cases = [(s, spec) for s in SHAPES for spec in SPECS[names] if is_divided(s, spec, mesh)]
    for case, (shape, spec) in enumerate(cases if IS_WHOLE else cases[number : number + 1]):
        functions = [*FUNCTIONS.values()] if IS_WHOLE else [*FUNCTIONS.values()][(number + case) % 3 :: 3]
        x = numbers(*shape)
        split = rune.device_put(x, NamedSharding(mesh, spec))

        def squares(x: Any, functions: Any = functions) -> Any:
            results = [f(rnp, x) for f in functions]
            return sum((out**2).sum() for out in results), results

        step = rune.jit(rune.value_and_grad(squares, has_aux=True))
        (_, results), gradient = step(split)
        for f, result in zip(functions, results, strict=True):
            np.testing.assert_allclose(result, f(np, x), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(gradient, step(x)[1], rtol=1e-3, atol=1e-3)


def is_divided(shape: tuple[int, ...], spec: P, mesh: Any) -> bool:
    return all(n % NamedSharding(mesh, spec).parts(axis) == 0 for axis, n in enumerate(shape))


@pytest.mark.parametrize(
    ("length", "first", "other"),
    [(1, P("a"), P("b")), (3, P("a", "b"), P("b", "a")), (2, P(("a", "b")), P(None, "a"))],
    ids=repr,
)
def test_a_carry_takes_the_layout_of_the_steps_and_keeps_its_value(length: int, first: P, other: P):
    mesh, x, y = mesh_of("ab"), numbers(8, 24), numbers(24, 8)

    def run(x: Any, y: Any) -> Any:
        return lax.scan(lambda c, _: (rnp.cos(y.T) + c[::-1], c.sum()), x, None, length=length)

    split = [rune.device_put(v, NamedSharding(mesh, s)) for v, s in ((x, first), (y, other))]
    for a, b in zip(rune.jit(run)(*split), run(x, y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4)
