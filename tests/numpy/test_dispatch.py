"""SciPy and scikit-learn compute with rune's arrays; and boxes, which allow assignments."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.array import Array
from rune.errors import DtypeError, ShapeError
from tests.support.close import same


def in_a_box(x: Any) -> Any:
    """Its operators are made in a loop, so their types are not known."""
    return rnp.mutable(x)


ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("library", ["scipy", "sklearn"])
def test_the_librarys_dispatch_gives_arrays_of_rune_and_numpys_values(library: str):
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    command = [sys.executable, "-m", "tests.numpy.dispatched", library]

    ran = subprocess.run(command, cwd=ROOT, env={**os.environ, "SCIPY_ARRAY_API": "1"}, capture_output=True)

    assert ran.returncode == 0, ran.stderr.decode()
    count, differing = json.loads(ran.stdout)
    assert count > 10
    assert not differing


# --- the box ----------------------------------------------------------------------------------


def test_an_assignment_changes_the_box_and_not_the_array():
    x = rnp.arange(4)
    box = in_a_box(x)

    box[1:3] = 9
    box[in_a_box(rnp.array([True, False, False, False]))] = in_a_box(rnp.array(7))

    assert box.value.tolist() == [7, 9, 9, 3]
    assert x.tolist() == [0, 1, 2, 3]


def test_operators_in_place_keep_the_box_and_its_dtype():
    box = same_box = in_a_box(rnp.arange(3))

    box += 1
    box *= np.array([1, 2, 3], np.int64)

    assert box is same_box
    same(np.array([1, 4, 9], np.int32), box.value)


@pytest.mark.parametrize(("other", "error"), [(2.5, DtypeError), (rnp.ones(3), ShapeError)])
def test_an_operator_in_place_refuses_what_the_box_cannot_hold(other: Any, error: type):
    box = in_a_box(rnp.arange(1))

    with pytest.raises(error, match=r"mutable: cannot keep f32\*?\[\d\] in a box of i32\[1\]"):
        box += other


def test_functions_take_boxes_and_give_boxes():
    box = in_a_box(rnp.ones((2, 3)))
    xp = box.__array_namespace__(api_version="2024.12")

    stack = xp.stack([box, 2 * box], axis=0)
    parts = xp.unique_counts(stack)

    assert stack.value.shape == (2, 2, 3)
    assert parts.counts.value.tolist() == [6, 6]
    assert xp.linalg.matrix_norm(box).value.shape == ()
    assert (xp.float32, xp.pi) == (rnp.float32, rnp.pi)


def test_a_copy_is_another_box_and_asarray_the_same():
    box = in_a_box(rnp.ones(2))
    xp = box.__array_namespace__()

    assert xp.asarray(box) is box
    for other in (xp.asarray(box, copy=True), xp.astype(box, xp.float32), np.asarray(box)):
        other[0] = 5
    assert box.value.tolist() == [1.0, 1.0]


def test_a_basic_index_is_a_view_both_ways():
    box = in_a_box(rnp.zeros((2, 3)))
    row, every_other = box[0], box[1][::2]

    row[1] = 5
    every_other += 7
    box[:, 0] = -1

    assert box.value.tolist() == [[-1, 5, 0], [-1, 0, 7]]
    assert row.value.tolist() == [-1, 5, 0]
    assert every_other.value.tolist() == [-1, 7]


@pytest.mark.parametrize("index", [2, -3, (0, 3), (..., -4), (None, 2), (slice(None), ..., 3)])
def test_a_number_out_of_bounds_is_an_error_for_boxes(index: Any):
    box = in_a_box(rnp.zeros((2, 3)))

    with pytest.raises(IndexError, match=r"mutable: cannot index axis \d of f32\[2,3\] by "):
        box[index]
    with pytest.raises(IndexError, match="mutable: cannot index axis"):
        box[index] = 1


@pytest.mark.parametrize(
    "view",
    [
        lambda xp, x: xp.permute_dims(x, (1, 0)),
        lambda xp, x: xp.flip(x, axis=0),
        lambda xp, x: xp.reshape(x, (-1,))[1:],
        lambda xp, x: xp.expand_dims(x, axis=0)[0].mT,
        lambda xp, x: xp.moveaxis(x.T, 0, -1)[:, ::2],
        lambda xp, x: x.reshape(3, 2),
        lambda xp, x: x.ravel(),
        lambda xp, x: xp.ravel(x)[1:],
        lambda xp, x: xp.unstack(x)[1],
        lambda xp, x: xp.unstack(x, axis=-1)[0],
        lambda xp, x: xp.unstack(x.T, axis=1)[1],
        lambda xp, x: xp.rot90(x)[1:],
        lambda xp, x: xp.rollaxis(xp.flipud(xp.fliplr(x)), 1),
        lambda xp, x: x.mT if xp is np else xp.linalg.matrix_transpose(x),
    ],
    ids=range(14),
)
def test_a_movement_of_the_axes_is_a_view_as_in_numpy(view: Any):
    host = np.arange(6.0)[None].reshape(2, 3)
    box = in_a_box(rnp.asarray(host))

    for x in (host, box):
        part = view(x.__array_namespace__(), x)
        part *= 3
        part[0] -= 1

    same(host.astype(np.float32), box.value)


def test_there_is_no_axis_beyond_the_last_to_unstack():
    box = in_a_box(rnp.zeros((2, 3)))

    with pytest.raises(IndexError, match="unstack: "):
        box.__array_namespace__().unstack(box, axis=2)


def test_a_movement_that_needs_a_copy_is_not_a_view():
    box = in_a_box(rnp.arange(4))

    box.__array_namespace__().reshape(box, (2, 2), copy=True)[0] = 9

    assert box.value.tolist() == [0, 1, 2, 3]


def test_ten_thousand_views_of_views_are_one_walk():
    box = root = in_a_box(rnp.zeros(1))
    for _ in range(10_000):
        box = box[:]

    box[0] = 1

    assert root.value.tolist() == [1.0]


def test_numpy_data_keep_their_64_bits_in_the_standards_namespace():
    xp = rnp.ones(1).__array_namespace__()

    assert xp.asarray(np.ones(2)).dtype == xp.asarray(np.float64(1)).dtype == np.float64
    assert xp.asarray([1.0]).dtype == xp.ones(1).dtype == np.float32


@pytest.mark.parametrize("index", [0, np.int64(0), slice(1), rnp.array([True, False])], ids=type)
@pytest.mark.parametrize("number", [np.float64(0.1), np.array(0.1), 0.1], ids=type)
def test_a_number_assigned_to_64_bits_keeps_its_digits(index: Any, number: Any):
    box = in_a_box(rnp.zeros(2, "f64"))

    box[index] = number

    assert box.value.tolist() == [0.1, 0.0]


@pytest.mark.parametrize("index", [[0, 2], (slice(None), [1, 1]), [True, False, True], []], ids=str)
def test_a_list_in_an_index_is_an_array_as_in_numpy(index: Any):
    host = np.arange(6.0).reshape(3, 2)
    box = in_a_box(rnp.asarray(host, "f64"))

    same(host[index], box[index].value)
    for x in (host, box):
        x[index] = -1

    same(host, box.value)


@pytest.mark.parametrize(
    "write",
    [
        lambda xp, x: xp.put_along_axis(x, xp.asarray([[1], [0]]), -1.0, axis=1),
        lambda xp, x: xp.put(x, xp.asarray([0, 3]), -1.0),
        lambda xp, x: xp.place(x, x > 2, xp.asarray([-1.0])),
        lambda xp, x: xp.fill_diagonal(x, -1.0),
    ],
    ids=range(4),
)
def test_a_function_that_writes_in_numpy_writes_a_box_and_no_array(write: Any):
    host, array = np.arange(4.0).reshape(2, 2), rnp.arange(4.0).reshape(2, 2)
    box = in_a_box(array)

    assert write(np, host) is write(box.__array_namespace__(), box) is None

    same(host.astype(np.float32), box.value)
    with pytest.raises(TypeError, match="immutable"):
        write(box.__array_namespace__(), array)


@pytest.mark.parametrize("index", [0, rnp.array([True, False])], ids=type)
def test_a_complex_number_does_not_become_real_in_a_box(index: Any):
    box = in_a_box(rnp.zeros(2))

    with pytest.raises(DtypeError, match=r"mutable: cannot keep c64\*?\[\] in a box of f32\[2\]"):
        box[index] = 1j


def test_numpy_integers_index_a_view_too():
    box = in_a_box(rnp.zeros((2, 2)))

    box[np.int64(1)][:] = 3

    assert box.value.tolist() == [[0, 0], [3, 3]]


def test_a_mask_or_positions_are_a_copy():
    box = in_a_box(rnp.arange(3))

    for part in (box[box > 0], box[rnp.array([1, 2])]):
        part[0] = 9

    assert box.value.tolist() == [0, 1, 2]


def test_an_element_changed_in_place_is_written_once():
    box = in_a_box(rnp.arange(3))

    box[1] += 10
    for element in box:
        element *= 2

    assert box.value.tolist() == [0, 22, 4]


def written(x: Any) -> Any:
    """A function of a library that follows the standard and assigns to elements."""
    xp = x.__array_namespace__()
    copy = xp.asarray(x, copy=True)
    copy[0] = copy[1] * copy[2]
    copy[copy > 5] = 2 * x[1]
    copy *= 3
    return xp.sum(copy)


def test_a_function_that_writes_is_compiled_and_differentiated_like_any_other():
    x = rnp.array([1.0, 2.0, 4.0])

    value = rune.jit(written)(x)

    assert isinstance(value, Array)
    assert value.item() == 30.0
    assert rune.grad(written)(x).tolist() == [0.0, 9.0, 3.0]
    assert rune.vmap(written)(rnp.stack([x, 2 * x])).tolist() == [30.0, 60.0]
    assert x.tolist() == [1.0, 2.0, 4.0]


def test_rune_takes_a_box_as_the_array_in_it():
    x = rnp.array([3.0, 4.0])
    box = in_a_box(x)

    assert rnp.linalg.norm(box).item() == 5.0
    assert isinstance(rnp.stack([box, x]), Array)
    assert rnp.asarray([box, box]).shape == (2, 2)
    assert rune.jit(lambda v: v + 1)(box).tolist() == [4.0, 5.0]
    assert rune.grad(lambda v: (v * v).sum())(box).tolist() == [6.0, 8.0]
    assert x[in_a_box(rnp.array([1]))].tolist() == [4.0]
    assert rune.lax.scan(lambda c, v: (c + v, c), in_a_box(rnp.zeros(())), box)[0].item() == 7.0


def test_a_box_and_its_namespace_are_copied_and_stored():
    box = in_a_box(rnp.arange(2))
    xp = box.__array_namespace__()

    for other in (copy.copy(box), copy.deepcopy(box), pickle.loads(pickle.dumps(box))):
        other[0] = 9
    assert box.value.tolist() == [0, 1]
    assert pickle.loads(pickle.dumps(xp.linalg)) is xp.linalg


def test_a_box_converts_compares_and_iterates_as_its_array():
    box = in_a_box(rnp.array([1.0, 2.0]))

    assert (float(box[0]), int(box[1]), bool(box[0]), len(box)) == (1.0, 2, True, 2)
    assert [float(x) for x in box] == [1.0, 2.0]
    assert (box > 1.5).value.tolist() == [False, True]
    assert (3 - box).value.tolist() == [2.0, 1.0]
    assert (box.shape, box.dtype, box.device) == ((2,), np.float32, rnp.ones(1).device)
    assert 2.0 in box
    assert np.from_dlpack(box).tolist() == [1.0, 2.0]
