"""Elements that NumPy reads at once are those that a traced index reads (ops/subscript.py)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import AxisError
from rune.ops.subscript import read
from tests.support.work import calls

VALUES = np.arange(20, dtype=np.float32).reshape(4, 5)
ENTRIES = (0, -1, 3, 4, -6, slice(None), slice(1, 3), slice(None, None, -2), slice(9, -9, -1), slice(2, 2), None, ...)
INDICES = [*ENTRIES, *itertools.product(ENTRIES, repeat=2), *itertools.product(ENTRIES[:6], (None,), ENTRIES[5:10])]
POSITIONS = ([1, -1, 2], [[0], [3]], [], [4, -5, 0])


def outcome(read: Any) -> Any:
    try:
        out = read()
    except Exception as error:
        return type(error), str(error).splitlines()[0]
    return out.type, np.asarray(out).tolist()


@pytest.mark.parametrize("shape", [(4, 5), (20,), (), (0, 3)])
def test_basic_indices_read_what_they_read_of_traced_arrays(shape: tuple[int, ...]):
    x = rnp.asarray(VALUES.reshape(-1)[: int(np.prod(shape))].reshape(shape))
    for index in INDICES:
        assert outcome(lambda index=index: x[index]) == outcome(lambda index=index: read(x, index)), index


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("positions", POSITIONS, ids=str)
def test_arrays_of_positions_read_what_they_read_of_traced_arrays(positions: Any, dtype: str):
    x, index = rnp.asarray(VALUES), rnp.asarray(np.array(positions).astype(dtype), dtype)
    assert outcome(lambda: x[index]) == outcome(lambda: read(x, index))


def test_masks_read_what_they_read_of_traced_arrays():
    x = rnp.asarray(VALUES)
    for mask in (x > 7.0, x > 99.0, rnp.asarray([True, False, True, True]), rnp.asarray(True)):
        assert outcome(lambda mask=mask: x[mask]) == outcome(lambda mask=mask: read(x, mask))


def test_weak_and_committed_arrays_stay_so():
    assert rune.device_put(rnp.asarray(VALUES), "cpu")[1].committed
    weak = rune.jit(lambda: rnp.broadcast_to(1.0, (3,)))()
    assert weak[1].weak_type == weak.weak_type


def test_elements_outlive_the_donation_of_their_array():
    x = rnp.asarray(VALUES)
    row = x[1]
    rune.jit(lambda a: a * 0.0, donate_argnums=0)(x)
    assert row.tolist() == VALUES[1].tolist()


def test_shapes_are_those_of_rune_numpy():
    x = rnp.asarray(VALUES)
    for shape in ((20,), (2, -1), (-1,), (5, 4, 1), (2, 2, 5)):
        assert x.reshape(*shape).tolist() == VALUES.reshape(shape).tolist() == x.reshape(shape).tolist()
    for shape in ((3, -1), (21,), (-1, -1)):
        assert outcome(lambda shape=shape: x.reshape(shape)) == outcome(lambda shape=shape: rnp.reshape(x, shape))
    assert x.T.reshape(-1).tolist() == VALUES.T.reshape(-1).tolist()
    assert outcome(lambda: rnp.zeros((0, 3)).reshape(-1, 3)) == outcome(lambda: rnp.reshape(rnp.zeros((0, 3)), (-1, 3)))


def test_errors_name_the_index():
    with pytest.raises(AxisError, match="rank is 2"):
        rnp.asarray(VALUES)[0, 0, 0]


def test_an_element_is_read_by_few_calls():
    x = rnp.asarray(VALUES)
    assert calls(lambda: x[1, 2]) < 30
