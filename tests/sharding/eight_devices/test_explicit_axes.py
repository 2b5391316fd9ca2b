"""Explicit axes: layouts of results, and refusals, as jax 0.10.2 has them, eager and jitted.

The answers were made by make_jax_explicit.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax  # pyright: ignore[reportMissingImports]  # rune, under JAX's names
import numpy as np
import pytest

import rune
from rune import dtypes
from rune import numpy as rnp
from rune.core.types import ArrayType
from rune.errors import ArgumentError, ShardingTypeError
from rune.sharding import AxisType, NamedSharding, P, set_mesh
from rune.transforms.sharding.explicit.known import FREE, known_on
from rune.transforms.sharding.explicit.reshapes import reshaped
from rune.transforms.sharding.explicit.stage import Layouts, staged
from tests.sharding.explicit_operations import COUNT, FUNCTIONS, OPERATIONS, Operation
from tests.sharding.explicit_programs import MESH, PROGRAMS, RESHAPES, array_on, library, names_of
from tests.support.sampling import one_in

FOLDER = Path(__file__).parents[1]
ANSWERS = json.loads((FOLDER / "jax_explicit_0_10_2.json").read_text())
LIBRARY, on = library(jax), partial(array_on, jax)
# What JAX refuses and rune runs.
RUN_HERE = {
    "slice of a split axis": "JAX's eager index is a gather, and its jitted one a slice, which it runs",
    "slice with a step": "as the slice",
    "repeat": "JAX asks for out_sharding",
    "batches of one": "JAX's matmul refuses batches that are split in one operand, its einsum does not",
    "cholesky of lanes": "JAX selects NaN by a mask without a layout",
}


def explicit_mesh() -> Any:
    return jax.make_mesh(tuple(MESH.values()), tuple(MESH))


def layout(x: Any) -> list[list[str]]:
    return [[*x.sharding.spec.names(axis)] for axis in range(x.ndim)]


def ways(name: str) -> list[tuple[Callable[..., Any], Any]]:
    """The program, eager and jitted, with JAX's answers."""
    run = partial(PROGRAMS[name].run, LIBRARY)
    return [*zip((run, rune.jit(run)), ANSWERS[name], strict=True)]


ACCEPTED = [name for name, answers in ANSWERS.items() if all(a is not None for a in answers)]
REFUSED = [name for name, answers in ANSWERS.items() if None in answers and name not in RUN_HERE]


@pytest.mark.parametrize("name", one_in(3, ACCEPTED))
def test_a_result_has_the_layout_of_its_type_in_jax(name: str):
    mesh = explicit_mesh()
    with set_mesh(mesh):
        operands = [on(mesh, x) for x in PROGRAMS[name].operands]
        results = [(run(*operands), answer) for run, answer in ways(name)]

    assert [layout(x) for x, _ in results] == [answer for _, answer in results]
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", one_in(3, REFUSED))
def test_operands_that_jax_refuses_are_refused(name: str):
    mesh = explicit_mesh()
    with set_mesh(mesh):
        operands = [on(mesh, x) for x in PROGRAMS[name].operands]
        for run, _ in ways(name):
            with pytest.raises(ShardingTypeError):
                run(*operands)


@pytest.mark.parametrize("name", one_in(9, [name for name in REFUSED if not name.startswith(("constraint", "shard"))]))
def test_on_auto_axes_nothing_is_refused(name: str):
    mesh = explicit_mesh().update(axis_types=(AxisType.Auto,) * 2)
    with set_mesh(mesh):
        operands = [on(mesh, x) for x in PROGRAMS[name].operands]

        assert all(run(*operands) is not None for run, _ in ways(name))


def test_a_reshaped_array_has_the_layout_that_jax_gives_it():
    """Axes of size 1 beside a split are refused by JAX, and kept here."""
    answers = json.loads((FOLDER / "jax_reshapes_0_10_2.json").read_text())
    results = [reshaped(shape, tuple(map(names_of, spec)), target, MESH) for shape, spec, target in RESHAPES]
    has_ones = [1 in (*shape, *target) for shape, _, target in RESHAPES]
    pairs = zip(results, answers, has_ones, strict=True)

    assert [r and [*map(list, r)] for r, a, ones in pairs if a or not ones] == [
        a for a, ones in zip(answers, has_ones, strict=True) if a or not ones
    ]


def layout_by_rules(mesh: Any, operation: Operation) -> list[list[str]] | None:
    """The layout of an operation's result, while it is traced; None if it is refused."""
    layouts = Layouts(mesh, tuple(tuple(map(names_of, spec)) for _, spec in operation.operands))
    types = [ArrayType(shape, dtypes.f32) for shape, _ in operation.operands]
    known: list[Any] = []

    def run(*values: Any) -> list[Any]:
        out = FUNCTIONS[operation.name](LIBRARY, operation.params, *values)
        known.append(known_on(mesh, out))
        return [out]

    try:
        staged(run, types, operation.name, layouts)
    except ShardingTypeError:
        return None
    # A number with axes of size 1 is free.
    return [[]] * int(known[0] is FREE) or [[*names] for names in known[0]]


def test_operations_drawn_at_random_have_the_layouts_that_jax_gives_them():
    answers = json.loads((FOLDER / "jax_operations_0_10_2.json").read_text())
    mesh = explicit_mesh()

    for number in one_in(4, [*range(COUNT)]):
        assert layout_by_rules(mesh, OPERATIONS[number]) == answers[number], OPERATIONS[number]


@pytest.mark.parametrize("name", ["eager", "jitted"])
def test_a_refusal_says_operation_types_axis_line_and_hint(name: str):
    mesh = explicit_mesh()
    x, y = on(mesh, ((8, 16), ("a", None))), on(mesh, ((8, 16), ("b", None)))
    run = (lambda u, v: u + v) if name == "eager" else rune.jit(lambda u, v: u + v)

    with pytest.raises(ShardingTypeError) as error:
        run(x, y)

    message = str(error.value).splitlines()
    assert message[0] == "add: cannot lay out f32[8@a,16], f32[8@b,16] (axis 0 is split by 'a' and by 'b')"
    assert message[1].startswith("hint: reshard an operand")
    assert "test_explicit_axes.py" in message[2]


def test_a_product_split_along_its_sum_asks_for_out_sharding():
    mesh = explicit_mesh()
    x, y = on(mesh, ((8, 16), (None, "a"))), on(mesh, ((16, 4), ("a", None)))

    with pytest.raises(ShardingTypeError, match=r"(?s)both are split by 'a'.*out_sharding=P"):
        rnp.matmul(x, y)


def test_a_type_says_how_explicit_axes_split_an_array():
    mesh = explicit_mesh()
    x = on(mesh, ((8, 16), (("a", "b"), None)))
    texts: list[str] = []
    rune.jit(lambda v: texts.append(str(rune.typeof(v.T))))(x)

    assert [str(rune.typeof(x)), *texts] == ["f32[8@(a,b),16]", "f32[16,8@(a,b)]"]
    assert rune.typeof(x).sharding.spec == P(("a", "b"), None)
    assert rune.typeof(x) is x.aval
    assert x.type is rune.typeof(x).plain is rnp.ones((8, 16)).type


def test_a_type_inside_vmap_and_grad_is_that_of_a_lane_and_of_the_primal():
    mesh, texts = explicit_mesh(), list[str]()

    def loss(row: Any) -> Any:
        texts.append(str(rune.typeof(row)))
        return row.sum()

    x = on(mesh, ((8, 16), ("a", "b")))
    rune.vmap(rune.grad(loss))(x)
    rune.jit(rune.vmap(rune.grad(loss)))(x)

    assert texts == ["f32[16@b]"] * 2


def test_an_array_of_another_layout_is_traced_again():
    mesh = explicit_mesh()
    add = rune.jit(lambda u, v: u + v)
    x, y = on(mesh, ((8,), ("a",))), on(mesh, ((8,), ("b",)))
    host = rnp.arange(1.0, 9.0) / 8

    np.testing.assert_array_equal(add(host, host), 2 * host)
    with pytest.raises(ShardingTypeError):
        add(x, y)
    assert layout(add(x, x)) == [["a"]]
    assert layout(add(y, host)) == [["b"]]


def test_a_call_with_out_sharding_does_not_serve_calls_without():
    """Functions of several operations are compiled at their first eager call on a mesh."""
    mesh = explicit_mesh()
    x, y = on(mesh, ((8, 16), (None, "a"))), on(mesh, ((16, 4), ("a", None)))
    sharding = NamedSharding(mesh, P("b"))

    assert layout(rnp.einsum("ij,jk->ik", x, y, out_sharding=sharding)) == [["b"], []]
    with pytest.raises(ShardingTypeError):
        rnp.einsum("ij,jk->ik", x, y)


def test_a_body_by_types_asks_for_specs_where_types_do_not_say_them():
    mesh = explicit_mesh()
    x = on(mesh, ((8, 16), ("a", "b")))
    body = rune.shard_map(lambda b: b * 2, mesh=mesh, out_specs=P("a", "b"))

    def of_unknown(v: Any) -> Any:
        return body(rnp.fft.fft(v).real)

    with pytest.raises(ArgumentError, match=r"in_specs=P"):
        rune.jit(of_unknown)(x)


def test_mesh_axes_of_other_kinds_are_left_to_the_operands():
    """One Explicit axis beside an Auto one: only the first is checked and named by types."""
    mesh = explicit_mesh().update(axis_types=(AxisType.Explicit, AxisType.Auto))
    x, y = on(mesh, ((8, 16), ("a", "b"))), on(mesh, ((8, 16), ("a", None)))

    assert str(rune.typeof(x)) == "f32[8@a,16]"
    assert layout(rune.jit(lambda u, v: u + v)(x, y)) == [["a"], ["b"]]
