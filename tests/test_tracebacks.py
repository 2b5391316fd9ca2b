"""The output of an uncaught error of rune: the user's lines, the message, and no line of rune."""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import rune
from rune.scipy.interpolate import BSpline
from rune.tracebacks import NOTE, users_frames

SCRIPT = """
import rune, rune.numpy as rnp
def model(x):
    return rnp.linalg.inv(x)
rune.jit(model)(rnp.ones((2, 3)))
"""


def printed(folder: Path, **environment: str) -> str:
    path = folder / "script.py"
    path.write_text(SCRIPT)
    process = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, env=environment)
    assert process.returncode == 1
    return process.stderr


def test_a_failing_script_shows_only_its_own_lines(tmp_path: Path):
    text = printed(tmp_path)

    assert "rune.jit(model)" in text
    assert "return rnp.linalg.inv(x)" in text
    assert "inv: cannot take f32[2,3]" in text
    assert NOTE in text
    assert 'rune/transforms/compile/jit.py"' not in text


def test_a_line_that_python_wrote_for_a_dataclass_is_hidden_as_well():
    with pytest.raises(rune.errors.ArgumentError) as error:
        BSpline(rune.numpy.ones(4), rune.numpy.ones(2), -1)

    trace = users_frames(error.tb)

    assert trace is not None
    assert [f.f_code.co_filename for f, _ in traceback.walk_tb(trace)] == [__file__]


def test_all_lines_are_shown_on_request(tmp_path: Path):
    text = printed(tmp_path, RUNE_TRACEBACK="full")

    assert 'rune/transforms/compile/jit.py"' in text
    assert NOTE not in text


def test_a_name_that_is_missing_is_shown_without_the_lookup(tmp_path: Path):
    path = tmp_path / "script.py"
    path.write_text("import rune.numpy as rnp\nrnp.nanmeen\n")
    environment = {"PYTHONPATH": str(Path(rune.__file__).parents[1])}
    process = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, env=environment)

    assert "did you mean rune.numpy.nanmean?" in process.stderr
    assert "rune/absent" not in process.stderr


def test_who_catches_an_error_finds_its_whole_traceback():
    with pytest.raises(rune.errors.ShapeError) as error:
        rune.numpy.linalg.inv(rune.numpy.ones((2, 3)))

    traceback = error.value.__traceback__
    assert traceback is not None
    assert traceback.tb_next is not None
    frames = users_frames(traceback)
    assert frames is not None
    assert frames.tb_next is None


def test_other_errors_are_printed_unchanged(tmp_path: Path):
    path = tmp_path / "script.py"
    path.write_text("import rune\n1 / 0\n")

    process = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)

    assert "ZeroDivisionError" in process.stderr
    assert NOTE not in process.stderr
