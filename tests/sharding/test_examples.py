"""The examples of many devices, run as a user runs them; each compares itself with one device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.faults import MPIRUN, mpirun
from tests.support.program_pages import shown_output, words

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
LAST_WORDS = {
    "data_parallel": "on one device within ",
    "heat": "the same bits on {} devices and on one",
    "ring_attention": "attention as on one device within ",
    "tensor_parallel": "sharded jit: loss ",
}


def printed(name: str, *arguments: str, **variables: str) -> str:
    """The output of an example in a separate process."""
    environment = {n: v for n, v in os.environ.items() if n != "RUNE_CPU_DEVICES"}
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    process = subprocess.run(command, env={**environment, **variables}, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.parametrize("name", LAST_WORDS)
def test_an_example_computes_on_four_devices_what_it_computes_on_one(name: str):
    text = printed(name)

    assert LAST_WORDS[name].format(4) in text
    assert words(text) == words(shown_output(name.replace("_", "-")))


@pytest.mark.skipif(MPIRUN is None, reason="there is no mpirun: pip install 'rune-ml[distributed]'")
def test_processes_train_together_what_one_device_trains_alone():
    command = mpirun((2, 2), sys.executable, str(EXAMPLES / "data_parallel.py"), "4")
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)

    assert process.stdout.count(LAST_WORDS["data_parallel"]) == 1, process.stdout + process.stderr


def test_an_example_runs_on_the_requested_number_of_devices():
    assert LAST_WORDS["heat"].format(2) in printed("heat", "2", RUNE_CPU_DEVICES="8")
