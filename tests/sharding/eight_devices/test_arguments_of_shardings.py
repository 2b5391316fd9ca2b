"""in_shardings refuse an array that is committed to another layout, as JAX does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import numpy as rnp
from rune.errors import ArgumentError
from rune.sharding import Mesh, NamedSharding, P, make_mesh

LINE, GRID = make_mesh((8,), ("x",)), make_mesh((4, 2), ("a", "b"))
X = np.sin(np.arange(64, dtype="f")).reshape(8, 8)
SHARDINGS = [
    *(NamedSharding(LINE, spec) for spec in (P(), P("x"), P(None, "x"))),
    *(NamedSharding(GRID, spec) for spec in (P("a"), P("a", "b"), P(("a", "b")), P(("b", "a")))),
]


@pytest.mark.parametrize("present", SHARDINGS, ids=repr)
def test_an_array_is_refused_exactly_if_its_devices_have_other_blocks(present: NamedSharding):
    x = rune.device_put(X, present)
    blocks = [s.index for s in x.addressable_shards]

    for required in SHARDINGS:
        f = rune.jit(lambda x: x * 2, in_shardings=required)
        if blocks == [*required.devices_indices_map(X.shape).values()]:
            np.testing.assert_array_equal(f(x), X * 2)
        else:
            with pytest.raises(ArgumentError, match=r"jit: cannot take .*in_shardings says") as error:
                f(x)
            assert "hint: rune.device_put(x, sharding)" in str(error.value)


ROWS, COLUMNS = NamedSharding(LINE, P("x")), NamedSharding(LINE, P(None, "x"))


CALLS: dict[str, Any] = {
    "called": lambda f, x: f({"w": x}),
    "differentiated": lambda f, x: rune.grad(lambda t: f(t).sum())({"w": x}),
    "compiled for it": lambda f, x: f.lower({"w": x}).compile()({"w": x}),
    "compiled for a description": lambda f, x: f.lower({"w": rune.ShapeDtypeStruct(X.shape, "f")}).compile()({"w": x}),
}


@pytest.mark.parametrize("way", CALLS)
def test_a_leaf_is_refused_in_each_way_to_call(way: str):
    f = rune.jit(lambda t: rnp.sin(t["w"]), in_shardings=({"w": COLUMNS},))

    CALLS[way](f, rune.device_put(X, COLUMNS))
    with pytest.raises(ArgumentError, match="in_shardings says"):
        CALLS[way](f, rune.device_put(X, ROWS))


def test_what_is_not_committed_or_traced_is_laid_out():
    f = rune.jit(lambda x: x * 2, in_shardings=COLUMNS, out_shardings=COLUMNS)
    rows = rune.device_put(X, ROWS)

    for result in (f(X), f(rnp.asarray(X)), f(rnp.asarray(X) + 0), rune.jit(lambda x: f(x))(rows)):
        assert result.sharding.is_equivalent_to(COLUMNS, 2)
        np.testing.assert_array_equal(result, X * 2)


def test_a_constraint_in_the_function_moves_its_argument():
    rows = rune.device_put(X, ROWS)

    result = rune.jit(lambda x: rune.lax.with_sharding_constraint(x, COLUMNS))(rows)

    assert result.sharding.is_equivalent_to(COLUMNS, 2)


def test_axes_that_in_shardings_leave_open_are_not_compared():
    f = rune.jit(lambda x: x * 2, in_shardings=NamedSharding(LINE, P(P.UNCONSTRAINED)))

    np.testing.assert_array_equal(f(rune.device_put(X, ROWS)), X * 2)


def test_as_many_other_devices_in_the_same_layout_are_moved_to():
    other = Mesh(np.array(LINE.devices[::-1]), ("y",))

    result = rune.jit(lambda x: x * 2, in_shardings=NamedSharding(other, P("y")))(rune.device_put(X, ROWS))

    np.testing.assert_array_equal(result, X * 2)
