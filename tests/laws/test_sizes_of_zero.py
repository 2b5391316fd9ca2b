"""Shape functions over sizes of 0, 1 and others, compiled once for all: NumPy's answers.

Functions that split shapes divide positions by sizes. A size of 0, given or computed (n // 2 of 1),
must never be a divisor: a processor would stop the whole process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rune
from tests.support.sampling import in_turn, one_in
from tests.support.shape_functions import CASES, hold, symbolic

ROOT = Path(__file__).parents[2]
DEVICES = [d.name for d in rune.devices() if d.target.backend not in ("null", "cpu", "reference")]


def test_nothing_is_divided_by_a_size_of_zero():
    command = [sys.executable, "-m", "tests.support.shape_functions"]

    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)

    assert process.returncode == 0, (process.returncode, process.stdout.splitlines()[-1:], process.stderr)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("device", ["cpu:0", "reference:0"])
def test_one_program_is_right_for_sizes_of_zero(device: str, name: str):
    hold(name, symbolic(device))


@in_turn()
@pytest.mark.parametrize("name", one_in(6, list(CASES)))
@pytest.mark.parametrize("device", DEVICES)
def test_one_program_is_right_for_sizes_of_zero_on_every_executor(device: str, name: str):
    hold(name, symbolic(device))
