"""Runs the tests of eight_devices/ in a process whose processor counts as eight devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent / "eight_devices"


def test_the_tests_of_eight_devices_pass_in_a_process_that_has_them():
    environment = {**os.environ, "RUNE_CPU_DEVICES": "8"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", str(HERE)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)

    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
