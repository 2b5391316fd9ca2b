"""pyright and mypy --strict accept a user's program against the wheel, and find mistakes."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import zipfile
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CORRECT, WRONG = HERE / "users_program.py", HERE / "wrong_program.py"
CHECKERS = ("mypy", "pyright")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("user")
    build = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    process = subprocess.run([sys.executable, "-c", build], cwd=ROOT, capture_output=True, text=True, check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
    (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    zipfile.ZipFile(folder / process.stdout.split()[-1]).extractall(packages)
    # rune is that of the wheel: the folder of the others has a link to these sources alone.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "env" / "bin" / "python"


@cache
def complaints(checker: str, python: Path) -> dict[tuple[str, int], str]:
    """The errors of a checker in both programs, by file and line."""
    pytest.importorskip(checker)
    commands = {
        "mypy": ["mypy", "--strict", "--no-incremental", "--python-executable", str(python)],
        "pyright": ["pyright", "--pythonpath", str(python)],
    }
    command = [sys.executable, "-m", *commands[checker], str(CORRECT), str(WRONG)]
    # Elsewhere, so that rune is the wheel's and no settings are ours.
    process = subprocess.run(command, cwd=python.parent, capture_output=True, text=True, check=False)
    errors = re.findall(r"(\w+\.py):(\d+)(?::\d+)?(?: -|:) error:? (.*)", process.stdout)
    assert errors or process.returncode == 0, process.stdout + process.stderr
    return {(file, int(line)): text for file, line, text in errors}


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_checker_accepts_a_users_program(checker: str, python: Path):
    assert {place: text for place, text in complaints(checker, python).items() if place[0] != WRONG.name} == {}


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_checker_finds_each_mistake_and_no_other(checker: str, python: Path):
    mistakes = {n for n, line in enumerate(WRONG.read_text().splitlines(), 1) if line.endswith("# mistake")}

    assert {line for file, line in complaints(checker, python) if file == WRONG.name} == mistakes
