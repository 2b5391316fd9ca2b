"""The guards of a run detect writes and reads outside an array or a value."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.guarded_memory import PAGE, Guards
from tests.support.guards import GUARD

with_canaries = pytest.mark.skipif(GUARD.guards is not Guards.CANARIES, reason="this run has other guards")
with_pages = pytest.mark.skipif(sys.platform != "linux", reason="pages as Linux maps them")

ONE_BYTE = """
import ctypes, sys
import numpy as np
from tests.support.guards import GUARD

x = np.ones(17, np.uint16)
ctypes.string_at(x.ctypes.data + {at}, 1)
"""


def reading(guards: str, at: int) -> int:
    """The exit status of a process that reads a byte this far from the first of 34 bytes."""
    environment = {**os.environ, "RUNE_TEST_GUARDS": guards}
    command = [sys.executable, "-c", ONE_BYTE.format(at=at)]
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


@with_canaries
@pytest.mark.parametrize("at", [-1, 34, 40])
def test_a_byte_written_outside_an_array_is_noticed_when_the_array_is_freed(at: int):
    x = np.ones(17, np.uint16)
    ctypes.memset(x.ctypes.data + at, 0, 1)
    del x

    assert GUARD.damage() == ["beside 1 arrays, the last of 34 bytes"]


@with_canaries
def test_a_byte_written_between_two_values_of_an_arena_is_noticed():
    f = rune.jit(lambda x: rnp.sort(rnp.sort(x) @ x) @ x)
    f(np.ones((5, 5), np.float32))
    executable = next(w for w in GUARD.arenas if w.arenas)
    begin, _ = executable.gaps[1]
    executable.arenas[0][begin] = 0

    assert len(GUARD.damage()) == 1


@with_pages
@pytest.mark.parametrize(("guards", "at"), [("after", 34), ("before", -1), ("after", 34 + PAGE - 1)])
def test_a_byte_read_outside_an_array_ends_the_process(guards: str, at: int):
    assert reading(guards, at) == -signal.SIGSEGV


@with_pages
@pytest.mark.parametrize("guards", ["after", "before"])
def test_reading_an_arrays_own_bytes_succeeds(guards: str):
    assert [reading(guards, at) for at in (0, 33)] == [0, 0]
