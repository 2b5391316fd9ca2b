"""Classes that declare which of their arrays `vmap` splits, by `register_vmappable`.

MuJoCo MJX declares one when it is imported. Here a table has rows, one for each lane, and a scale,
which is the same in all lanes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.interpreters import batching as private_batching
from jax._src.interpreters.batching import is_vmappable
from jax.extend import backend
from jax.interpreters import batching

from rune.errors import ArgumentError, TransformError


class Table(NamedTuple):
    rows: Any
    scale: Any


def _to_lane(each, lane_number, table, axis):
    return Table(each(table.rows, axis), table.scale)


def _from_lane(each, size, table, axis):
    return Table(each(size, table.rows, axis), table.scale)


batching.register_vmappable(Table, int, int, _to_lane, _from_lane, None)

ROWS = np.arange(35, dtype=np.float32).reshape(5, 7)
WEIGHTS = np.linspace(-1, 1, 3, dtype=np.float32)


def _table():
    return Table(jnp.asarray(ROWS), jnp.asarray(WEIGHTS))


@pytest.fixture(params=[False, True], ids=["eager", "jit"])
def wrap(request):
    return jax.jit if request.param else lambda f: f


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_only_the_arrays_that_the_class_splits_have_lanes(wrap, axis):
    shapes = []

    def lane(table):
        shapes.append((table.rows.shape, table.scale.shape))
        return table.rows.sum() * table.scale

    result = wrap(jax.vmap(lane, in_axes=(axis,)))(_table())

    assert set(shapes) == {((7,) if axis == 0 else (5,), (3,))}
    np.testing.assert_allclose(result, ROWS.sum(1 if axis == 0 else 0)[:, None] * WEIGHTS, rtol=1e-6)


def test_a_result_of_the_class_has_lanes_where_the_class_joins_them(wrap):
    result = wrap(jax.vmap(lambda table, x: table._replace(rows=table.rows * x)))(_table(), jnp.arange(5.0))

    np.testing.assert_array_equal(result.rows, ROWS * np.arange(5, dtype=np.float32)[:, None])
    np.testing.assert_array_equal(result.scale, WEIGHTS)


def test_objects_of_the_class_stand_in_trees_and_keywords(wrap):
    def lane(pair, *, table):
        return pair["table"].rows[0] + pair["x"] + table.rows[-1]

    result = wrap(jax.vmap(lane))({"table": _table(), "x": jnp.arange(5.0)}, table=_table())

    np.testing.assert_array_equal(result, ROWS[:, 0] + np.arange(5) + ROWS[:, -1])


def test_an_object_without_lanes_is_the_same_in_all(wrap):
    result = wrap(jax.vmap(lambda table, x: table.rows[0, 1] * x, in_axes=(None, 0)))(_table(), jnp.arange(3.0))

    np.testing.assert_array_equal(result, np.arange(3))


def test_gradients_pass_through_a_split_object(wrap):
    gradient = wrap(jax.grad(lambda table: jax.vmap(lambda t: (t.rows**2).sum() * t.scale[0])(table).sum()))(_table())

    np.testing.assert_allclose(gradient.rows, 2 * ROWS * WEIGHTS[0], rtol=1e-6)
    np.testing.assert_allclose(gradient.scale, [(ROWS**2).sum(), 0, 0], rtol=1e-6)


def test_an_unbatched_field_of_a_class_must_not_receive_lanes():
    with pytest.raises(ValueError, match="vmap"):
        jax.vmap(lambda table: table._replace(scale=table.rows[:3]))(_table())


def test_several_axes_for_one_object_are_refused():
    with pytest.raises(TransformError, match=r"cannot split a Table by several axes \(\[0, 1\]\)"):
        jax.vmap(lambda table: table.rows, in_axes=(Table(0, 1),))(_table())


def test_a_class_whose_axes_have_another_type_than_integers_is_refused():
    with pytest.raises(ArgumentError, match="cannot split a Table by other axes than integers"):
        batching.register_vmappable(Table, str, int, _to_lane, _from_lane, None)


def test_a_class_stays_declared_when_it_is_unregistered_as_in_jax():
    batching.unregister_vmappable(Table)

    assert jax.vmap(lambda table: table.scale)(_table()).shape == (5, 3)


def test_a_declared_class_is_known_by_its_private_name_and_public_names_stand_beside_it():
    assert is_vmappable(_table())
    assert not is_vmappable(ROWS)
    assert not is_vmappable((ROWS, WEIGHTS))
    assert private_batching.is_vmappable is is_vmappable
    assert private_batching.register_vmappable is batching.register_vmappable


def test_the_backends_that_there_are_have_names():
    names = backend.backends()

    assert "cpu" in names
    assert names["cpu"] == jax.devices("cpu")[0].client
