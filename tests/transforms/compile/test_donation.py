"""Donation: memory is lent to a result only where nothing else can see it.

A donated array is deleted in any case. On the CPU eager movement gives views of its operand, and
NumPy may hold a view too; both keep what they show.
"""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import DeletedArrayError
from rune.lowering.plan import Copy, Space

SIZES = (8, 1 << 20)  # NumPy's own allocation, and a recycled block


def fresh(size: int) -> rune.Array:
    return rune.jit(lambda x: x * 1.0)(rnp.arange(float(size)))


def add_one(x: rune.Array) -> rune.Array:
    return rune.jit(lambda x: x + 1, donate_argnums=0)(x)


@pytest.mark.parametrize("size", SIZES)
def test_the_result_takes_the_memory_of_a_donated_argument(size):
    x = fresh(size)
    address = x.buffer.ctypes.data

    y = add_one(x)

    assert y.buffer.ctypes.data == address


@pytest.mark.parametrize("size", SIZES)
def test_memory_can_be_donated_again_and_again(size):
    x = add_one(fresh(size))
    address = x.buffer.ctypes.data

    for _ in range(3):
        x = add_one(x)
        assert x.buffer.ctypes.data == address


@pytest.mark.parametrize("device", ["cpu", "opencl", "reference"])
def test_an_update_in_donated_memory_changes_no_other_element(device):
    if not any(d.name.startswith(device) for d in rune.devices()):
        pytest.skip(f"no {device} device")
    x = rune.device_put(np.ones(1 << 15, np.float32), device)
    update = rune.jit(lambda x, i: x.at[i].set(2.0), donate_argnums=0)

    for i in (3, 5):
        x = update(x, i)

    np.testing.assert_array_equal(np.flatnonzero(np.asarray(x) == 2), [3, 5])
    assert float(x.sum()) == (1 << 15) + 2


def test_several_updates_of_a_donated_array_are_all_made_where_it_is():
    def function(rows, x):
        for layer in range(3):
            rows = rows.at[layer, 1].set(x * layer)
            x = x + rows[layer].sum(0)
        return rows, x

    rows, x = np.ones((3, 256, 64), np.float32), np.ones(64, np.float32)
    program = rune.jit(function, donate_argnums=0)
    plan = rune.explain(program)(rnp.asarray(rows), x).plan

    (copy,) = (step for step in plan.steps if isinstance(step, Copy))
    assert (copy.source.space, copy.target.space) == (Space.ARGUMENT, Space.RESULT)
    assert plan.donations == ((0, 0),)
    assert plan.arena_bytes < rows.nbytes
    for expected, result in zip(function(rnp.asarray(rows), x), program(rnp.asarray(rows) * 1, x)):
        np.testing.assert_allclose(expected, result, rtol=1e-6)


def test_a_donated_array_that_is_read_later_is_not_written_before():
    def function(rows):
        update = rows.at[1].set(2.0)
        return update.at[2].set(rows.sum()), rows[0] - update[1]

    rows = np.ones((256, 64), np.float32)
    program = rune.jit(function, donate_argnums=0)

    for expected, result in zip(function(rnp.asarray(rows)), program(rnp.asarray(rows) * 1)):
        np.testing.assert_array_equal(expected, result)


@pytest.mark.parametrize("device", ["cpu", "opencl", "reference"])
def test_an_array_that_is_given_twice_is_read_before_it_is_written(device):
    if not any(d.name.startswith(device) for d in rune.devices()):
        pytest.skip(f"no {device} device")
    x = rune.device_put(np.arange(8.0, dtype="f"), device) * 1

    sums, others = rune.jit(lambda a, b: (rnp.cumsum(a) + 1, rnp.cumsum(b)), donate_argnums=0)(x, x)

    np.testing.assert_array_equal(sums, np.arange(8.0).cumsum() + 1)
    np.testing.assert_array_equal(others, np.arange(8.0).cumsum())


@pytest.mark.parametrize("size", SIZES)
def test_a_donated_argument_is_deleted(size):
    x = fresh(size)

    add_one(x)

    with pytest.raises(DeletedArrayError, match="was donated"):
        _ = x + 1


@pytest.mark.parametrize("size", SIZES)
def test_an_eager_view_of_a_donated_array_keeps_its_contents(size):
    x = fresh(size)
    view = x.reshape(2, -1)

    add_one(x)

    np.testing.assert_array_equal(view, np.arange(float(size)).reshape(2, -1))


@pytest.mark.parametrize("size", SIZES)
def test_a_numpy_view_of_a_donated_array_keeps_its_contents(size):
    x = fresh(size)
    view = np.asarray(x)

    add_one(x)

    np.testing.assert_array_equal(view, np.arange(float(size)))


@pytest.mark.parametrize("size", SIZES)
def test_donating_a_view_does_not_change_the_whole_array(size):
    base = fresh(size)

    add_one(base.reshape(2, -1)[0])

    np.testing.assert_array_equal(base, np.arange(float(size)))


def test_an_eager_result_does_not_follow_changes_of_the_numpy_array_it_came_from():
    host = np.arange(6, dtype=np.float32)

    matrix = rnp.reshape(host, (2, 3))
    host[:] = -1

    np.testing.assert_array_equal(matrix, np.arange(6.0).reshape(2, 3))
