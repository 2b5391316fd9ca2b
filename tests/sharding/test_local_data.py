"""Arrays made from the data of this process: trees, with prefixes of shardings and shapes."""

from __future__ import annotations

import numpy as np
import pytest

import rune
from rune.errors import ArgumentError
from rune.sharding import NamedSharding, P, SingleDeviceSharding, make_mesh
from tests.support.close import same

HOST = rune.devices("cpu")[0]
ONE = NamedSharding(make_mesh((1,), ("a",), devices=["cpu"]), P("a"))
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_local_data_make_a_tree_of_arrays():
    single = SingleDeviceSharding(HOST)
    data = {"a": ROWS, "b": [ROWS, ROWS[0], None], "c": (2.0,)}

    arrays = rune.make_array_from_process_local_data({"a": ONE, "b": single, "c": single}, data)

    assert rune.tree.structure(arrays) == rune.tree.structure(data)
    assert [a.sharding for a in rune.tree.leaves(arrays)] == [ONE, single, single, single]
    for array, part in zip(rune.tree.leaves(arrays), rune.tree.leaves(data), strict=True):
        same(array, np.asarray(part, np.float32))


def test_empty_arrays_give_empty_results_with_any_sharding():
    assert rune.make_array_from_process_local_data(None, None) is None
    assert rune.make_array_from_process_local_data(ONE, (None, {})) == (None, {})


@pytest.mark.parametrize("shape", [(4, 3), [4, 3], (None, 3), {"x": (4, 3), "y": None}])
def test_a_shape_is_that_of_every_array_or_a_prefix(shape):
    arrays = rune.make_array_from_process_local_data(ONE, {"x": ROWS, "y": ROWS + 1}, shape)

    same(arrays["y"] - arrays["x"], np.ones_like(ROWS))


def test_a_tuple_of_shapes_is_not_a_prefix():
    with pytest.raises(ArgumentError, match="as the shape of one array"):
        rune.make_array_from_process_local_data(ONE, (ROWS, ROWS), ((4, 3), (4, 3)))
