"""The pages on placement and scale print what they show, where no machine matters."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import scaling  # noqa: E402  (a script, not a package)


def test_every_snippet_of_the_page_on_placement_prints_what_it_shows():
    """In a process of its own, which has two devices."""
    program = "from tests.test_readme import PLACEMENT, require_true; require_true(PLACEMENT)"
    environment = {name: value for name, value in os.environ.items() if name != "RUNE_CPU_DEVICES"}
    command = [sys.executable, "-c", program]
    process = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
    )

    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize(("data", "model"), [(8, 1), (1, 8), (1024, 1), (128, 8)])
def test_a_device_sends_as_many_bytes_as_the_table_of_scale_states(data: int, model: int):
    rows = [line.strip("| ").split(" | ") for line in (ROOT / "docs/scaling.md").read_text().splitlines()]
    (row,) = (r for r in rows if len(r) > 4 and r[1] == f"{data} x {model}")

    assert row[:4] == scaling.counts(scaling.share(data, model))


def test_the_page_of_scale_has_the_sizes_of_the_script():
    text = re.sub(r"\s+", " ", (ROOT / "docs/scaling.md").read_text())
    weights = sum(scaling.math.prod(leaf.shape) for leaf in scaling.rune.tree.leaves(scaling.shapes()))

    assert f"{weights / 1e6:.0f} million weights, {4 * weights / 1e6:.0f} MB" in text
    assert f"{scaling.BATCH} texts for each device" in text
