"""The short form of soak.py: `python -m tests.data.soak` is the long one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT
from tests.data import soak


def test_pipelines_start_and_stop_without_a_deadlock():
    process = subprocess.run(
        [sys.executable, "-m", "tests.data.soak", "--times", "150"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=4 * soak.HANG_S,
    )

    assert process.returncode == 0, process.stdout + process.stderr
    assert "150, 0 wrong" in process.stdout


def test_failures_are_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    monkeypatch.setattr(soak, "tripled", lambda x: x + 1)

    assert soak.main(["--times", "20", "--processes", "0"]) == 1
    assert "other elements" in capsys.readouterr().out
