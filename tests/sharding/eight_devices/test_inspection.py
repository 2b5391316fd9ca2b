"""inspect_array_sharding reports the layout of a value in a program, once; JAX's answers beside.

The specs are those that jax 0.10.2 reports for the same programs on eight devices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import NamedSharding, P, Sharding, SingleDeviceSharding, make_mesh

GRID = make_mesh((2, 4), ("a", "b"))
X = np.sin(np.arange(64, dtype="f")).reshape(8, 8)
inspect = rune.debug.inspect_array_sharding


def on_grid() -> Any:
    return rune.device_put(X, NamedSharding(GRID, P("a", "b")))


# What is reported for, how the program runs, and the spec.
REPORTED: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], P]] = {
    "an argument": (lambda x: x, rune.jit, P("a", "b")),
    "an elementwise result": (rnp.sin, rune.jit, P("a", "b")),
    "a transpose": (lambda x: x.T, rune.jit, P("b", "a")),
    "a sum": (lambda x: x.sum(0), rune.jit, P("b")),
    "a wanted layout": (
        lambda x: lax.with_sharding_constraint(x, NamedSharding(GRID, P(None, "a"))),
        rune.jit,
        P(None, "a"),
    ),
    "in a derivative": (rnp.sin, lambda f: rune.jit(rune.grad(lambda x: f(x).sum())), P("a", "b")),
    "in a jit in a jit": (rnp.sin, lambda f: rune.jit(lambda x: rune.jit(f)(x * 2)), P("a", "b")),
    "in a loop": (
        rnp.sin,
        lambda f: rune.jit(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)),
        P("a", "b"),
    ),
    "eagerly": (lambda x: x.T, lambda f: f, P("b", "a")),
    "in a body": (
        rnp.sin,
        lambda f: rune.jit(rune.shard_map(f, mesh=GRID, in_specs=P("a", "b"), out_specs=P("a", "b"))),
        P(),
    ),
}


@pytest.mark.parametrize("name", REPORTED)
def test_the_layout_of_a_value_is_reported_once(name: str):
    value, run, spec = REPORTED[name]
    reports: list[Sharding] = []

    def inspected(x: Any) -> Any:
        y = value(x)
        inspect(y, callback=reports.append)
        return y

    f = run(inspected)
    f(on_grid())
    assert [(s.num_devices, getattr(s, "spec", None)) for s in reports] == [(8, spec)]
    f(on_grid())
    assert len(reports) == (2 if name == "eagerly" else 1)


def test_other_layouts_of_the_argument_are_reported_too():
    reports: list[Any] = []
    f = rune.jit(lambda x: inspect(x * 2, callback=reports.append))

    for spec in (P("a"), P(None, "b"), P("a")):
        f(rune.device_put(X, NamedSharding(GRID, spec)))
    f(rune.device_put(X, "cpu:3"))
    f(X)

    assert [s.spec for s in reports[:2]] == [P("a"), P(None, "b")]
    assert reports[2:] == [SingleDeviceSharding("cpu:3"), SingleDeviceSharding("cpu:0")]


def test_under_vmap_the_layout_is_that_of_all_lanes():
    reports: list[Any] = []

    rune.jit(rune.vmap(lambda row: inspect(row, callback=reports.append)))(on_grid())

    assert [s.spec for s in reports] == [P("a", "b")]


def test_each_leaf_of_a_tree_is_reported_and_the_results_do_not_change():
    reports: list[Any] = []

    def f(t: Any) -> Any:
        inspect(t, callback=reports.append)
        return t["x"] + t["y"]

    np.testing.assert_array_equal(rune.jit(f)({"x": on_grid(), "y": X}), X + X)
    assert len(reports) == 2


def test_an_error_of_the_function_reaches_the_caller():
    def refuse(sharding: Sharding) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        rune.jit(lambda x: inspect(x, callback=refuse))(on_grid())
    with pytest.raises(rune.errors.TransformError, match=r"debug\.inspect_array_sharding"):
        inspect(on_grid(), callback=3)  # type: ignore[arg-type]


def test_a_traced_array_is_drawn_as_the_array_itself(capsys: pytest.CaptureFixture[str]):
    rune.debug.visualize_array_sharding(on_grid().T)
    picture = capsys.readouterr().out

    rune.jit(lambda x: rune.debug.visualize_array_sharding(x.T))(on_grid())

    assert capsys.readouterr().out == picture
    assert picture
