"""The short form of tests/stress.py; ./scripts/stress is the long one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import stress

ROOT = Path(__file__).parent.parent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forks_interrupts_kills_damage_and_other_users_change_no_result():
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.stress", "--share", "0.005"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=2 * stress.HANG_S,
    )
    lines = [line.split(" (")[0] for line in process.stdout.splitlines()]

    assert process.returncode == 0, process.stdout + process.stderr
    assert [line.split()[1].rstrip(":") for line in lines] == [*stress.SUBJECTS]


def test_failures_are_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    monkeypatch.setattr(stress.DiskCache, "load", lambda *_: b"of somebody else")

    assert stress.main(["damage", "--share", "0.001"]) == 1
    assert "10 served" in capsys.readouterr().out
