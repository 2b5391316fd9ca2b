"""Runs tests of eight_devices/ in a process whose processor counts as eight devices."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent / "eight_devices"
# Parts of the time; three files share it, since a file of tests runs in one worker.
OF_PROGRAMS = frozenset(
    {"test_batches", "test_bodies", "test_callbacks", "test_pmap", "test_programs", "test_variation"}
    | {"test_donation", "test_variation_laws", "test_partition", "test_messages"}
)
OF_NEIGHBOURS = frozenset({"test_borders", "test_eager_functions", "test_indices", "test_layouts_of_updates"})
OTHERS = frozenset(file.stem for file in HERE.glob("test_*.py")) - OF_PROGRAMS - OF_NEIGHBOURS


def require_passing(names: Iterable[str]) -> None:
    """Errors: AssertionError with pytest's output unless all tests of these files pass."""
    environment = {**os.environ, "RUNE_CPU_DEVICES": "8"}
    files = [str(HERE / f"{name}.py") for name in sorted(names)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", *files]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)

    assert process.returncode == 0, process.stdout[-20_000:] + process.stderr[-2_000:]
