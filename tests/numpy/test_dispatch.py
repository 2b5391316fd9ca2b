"""SciPy and scikit-learn compute with arrays of rune; and the box that makes writing possible."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune.numpy as rnp
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

    ran = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "SCIPY_ARRAY_API": "1"}, capture_output=True
    )

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
    box *= 2.5

    assert box is same_box
    same(np.array([2, 5, 7], np.int32), box.value)


def test_functions_take_boxes_and_give_boxes():
    box = in_a_box(rnp.ones((2, 3)))
    xp = box.__array_namespace__(api_version="2024.12")

    stacked = xp.stack([box, 2 * box], axis=0)
    parts = xp.unique_counts(stacked)

    assert stacked.value.shape == (2, 2, 3)
    assert parts.counts.value.tolist() == [6, 6]
    assert xp.linalg.matrix_norm(box).value.shape == ()
    assert (xp.float32, xp.pi) == (rnp.float32, rnp.pi)


def test_a_copy_is_another_box_and_asarray_the_same():
    box = in_a_box(rnp.ones(2))
    xp = box.__array_namespace__()

    assert xp.asarray(box) is box
    for copy in (xp.asarray(box, copy=True), xp.astype(box, xp.float32), box[:], np.asarray(box)):
        copy[0] = 5
    assert box.value.tolist() == [1.0, 1.0]


def test_a_box_converts_compares_and_iterates_as_its_array():
    box = in_a_box(rnp.array([1.0, 2.0]))

    assert (float(box[0]), int(box[1]), bool(box[0]), len(box)) == (1.0, 2, True, 2)
    assert [float(x) for x in box] == [1.0, 2.0]
    assert (box > 1.5).value.tolist() == [False, True]
    assert (3 - box).value.tolist() == [2.0, 1.0]
    assert (box.shape, box.dtype, box.device) == ((2,), np.float32, rnp.ones(1).device)
    assert 2.0 in box
    assert np.from_dlpack(box).tolist() == [1.0, 2.0]
