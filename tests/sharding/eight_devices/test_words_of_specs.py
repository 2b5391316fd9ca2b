"""Specs of results are exactly those requested: P("a", None) and P("a") differ, as in JAX.

The answers are those of jax 0.10.2 on a mesh whose axes are Auto.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.errors import ShapeError
from rune.sharding import NamedSharding, P, make_mesh


def laid(spec: P, rank: int = 2) -> rune.Array:
    return rune.device_put(np.arange(8.0**rank, dtype="f").reshape((8,) * rank), sharding(spec))


def sharding(spec: P) -> NamedSharding:
    return NamedSharding(make_mesh((4, 2), ("a", "b")), spec)


@pytest.mark.parametrize(
    "spec", [P("a", None), P("a"), P(None, "b"), P(None, None), P(None), P(), P(("a",), None), P(("a", "b"), None)]
)
@pytest.mark.parametrize("f", [lambda x: x * 2, lambda x: x, lambda x: x.T], ids=["twice", "same", "turned"])
def test_a_result_has_the_sharding_that_was_asked_for(spec: P, f: Callable[[Any], Any]):
    x = np.ones((8, 8), "f")

    assert rune.jit(f, out_shardings=sharding(spec))(x).sharding == sharding(spec)


ROWS, FEW, CUBE, LINE = (P("a", None), 2), (P("a"), 2), (P("a", None, None), 3), (P("a"), 1)
RESULTS: list[tuple[Callable[..., Any], list[tuple[P, int]], P]] = [
    (lambda x: x * 2, [ROWS], P("a", None)),
    (lambda x, y: x + y, [ROWS, FEW], P("a", None)),
    (lambda x, y: x + y, [FEW, ROWS], P("a")),
    (lambda x, y: x + y, [(P(None, None), 2), ROWS], P("a")),
    (lambda x, y: x @ y, [ROWS, (P(None, None), 2)], P("a", None)),
    (lambda x: x.T, [ROWS], P(None, "a")),
    (lambda x: x.sum(1), [ROWS], P("a")),
    (lambda x: x.sum(0), [ROWS], P()),
    (lambda x: x * 2, [CUBE], P("a", None, None)),
    (lambda x: x[:, 0], [CUBE], P("a")),
    (lambda x, y: y * 2, [LINE, CUBE], P("a", None, None)),
    (lambda x, y: (x * 2, y * 2)[1], [LINE, CUBE], P("a", None, None)),
    (lambda x, y: y * 2 + x.sum(), [LINE, CUBE], P("a")),
    (lambda x: rnp.sin(x) @ x, [(P(("a", "b"), None), 2)], P(("a", "b"), None)),
]


@pytest.mark.parametrize(("f", "operands", "spec"), RESULTS)
def test_a_result_has_the_words_of_the_first_argument_that_is_read(
    f: Callable[..., Any], operands: list[tuple[P, int]], spec: P
):
    result = rune.jit(f)(*(laid(*operand) for operand in operands))

    assert result.sharding.spec == spec


def test_eager_results_have_the_words_of_their_operand():
    x: Any = laid(P("a", None))

    assert (x * 2).sharding.spec == P("a", None)


def test_an_array_on_no_mesh_gives_no_words():
    total = rune.jit(lambda x, y: x + y)(np.ones((8, 8), "f"), laid(P("a", None)))

    assert total.sharding.spec == P("a")


def test_a_constraint_within_a_program_gives_the_shortest_spec():
    constrained = rune.jit(lambda x: lax.with_sharding_constraint(x * 2, sharding(P("a", None))))

    assert constrained(np.ones((8, 8), "f")).sharding.spec == P("a")


def test_steps_keep_the_sharding_of_what_they_start_from():
    step = rune.jit(lambda x: rnp.tanh(x) * 2)
    x = laid(P("a", None))

    y = step(step(x))

    assert y.sharding == x.sharding


def test_lanes_come_before_the_spec_that_was_asked_for():
    f = rune.jit(lambda x: x * 1, out_shardings=sharding(P("a")))

    assert rune.vmap(f)(laid(P("a", None))).sharding.spec == P(None, "a")


@pytest.mark.parametrize("spec", [P("a", None), P(None, "a"), P(None, None)], ids=repr)
def test_a_spec_of_more_axes_than_a_traced_array_has_is_refused_as_for_any_other(spec: P):
    longer = sharding(spec)
    ways: list[Callable[[Any], Any]] = [
        lambda x: lax.with_sharding_constraint(x * 2, longer),
        lambda x: rune.device_put(x * 2, longer),
        rune.jit(lambda x: x * 2, out_shardings=longer),
    ]

    for way in ways:
        for compiled in (rune.jit(way), way, rune.grad(lambda x, way=way: way(x).sum())):
            with pytest.raises(ShapeError, match=r"cannot cut f32\[8\].* as P\(.*\) says \(2 axes required\)"):
                compiled(rnp.arange(8.0))


# --- stages of compilation ----------------------------------------------------------------------


@pytest.mark.parametrize("option", ["described", "an array", "in_shardings"])
def test_a_compiled_function_says_how_its_arguments_and_results_are_split(option: str):
    rows, x = sharding(P("a")), np.ones((8, 3), "f")
    in_shardings = rows if option == "in_shardings" else None
    f = rune.jit(lambda x: (x * 2, x.sum()), in_shardings=in_shardings)
    described = {"described": rune.ShapeDtypeStruct(x.shape, x.dtype, sharding=rows), "in_shardings": x}

    compiled: Any = f.lower(described.get(option, rune.device_put(x, rows))).compile()
    assert compiled.input_shardings == ((rows,), {})
    assert compiled.output_shardings == (rows, sharding(P()))
    assert [r.sharding for r in compiled(x)] == [*compiled.output_shardings]


def test_shapes_of_results_have_the_shardings_that_a_function_gives_them():
    columns = sharding(P(None, "a"))
    f = rune.jit(lambda x: {"columns": x, "sum": x.sum()}, out_shardings={"columns": columns, "sum": None})
    x = rune.ShapeDtypeStruct((7, 8), "f4")

    shapes = [rune.eval_shape(f, x), rune.eval_shape(lambda x: f(x), x), f.lower(x).out_info]
    assert [(s["columns"].sharding, s["sum"].sharding) for s in shapes] == [(columns, None)] * 3
