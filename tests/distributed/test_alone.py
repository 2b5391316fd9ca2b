"""rune.distributed in a program of one process, as a script under test is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rune import distributed
from rune.distributed.checkpoints import INDEX
from rune.errors import ArgumentError, DistributedError


def test_a_program_of_one_process_needs_no_mpi():
    x = np.arange(6.0).reshape(2, 3)

    np.testing.assert_array_equal(distributed.process_allgather(x), x[None])
    np.testing.assert_array_equal(distributed.process_allgather(x, tiled=True), x)
    np.testing.assert_array_equal(distributed.broadcast_one_to_all(x), x)
    distributed.sync_global_devices("here")
    assert (distributed.process_index(), distributed.process_count()) == (0, 1)


def test_processes_are_joined_once():
    distributed.initialize()
    try:
        assert distributed.is_initialized()
        with pytest.raises(DistributedError, match="cannot initialize twice"):
            distributed.initialize()
    finally:
        distributed.shutdown()
    assert not distributed.is_initialized()


@pytest.mark.parametrize("deadline", [0, -1.0, float("nan"), "long"])
def test_a_deadline_is_a_positive_number(deadline: object):
    with pytest.raises(ArgumentError, match="cannot wait"):
        distributed.initialize(deadline=deadline)  # pyright: ignore[reportArgumentType]


def test_a_broadcast_without_a_source_is_an_error():
    with pytest.raises(DistributedError, match="cannot send from 0 processes"):
        distributed.broadcast_one_to_all(np.ones(3), is_source=False)


def test_an_index_that_is_damaged_is_refused(tmp_path: Path):
    distributed.save_checkpoint(tmp_path, np.ones(3))
    (index,) = tmp_path.rglob(INDEX)
    index.write_text('[{"path": ""}]')

    with pytest.raises(DistributedError, match="load_checkpoint: cannot read"):
        distributed.load_checkpoint(tmp_path, np.ones(3))


def test_a_leaf_that_is_not_an_array_is_refused():
    with pytest.raises(ArgumentError, match="process_allgather"):
        distributed.process_allgather({"a": object()})
