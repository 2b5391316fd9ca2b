"""Every notebook runs from top to bottom, in a minute of a processor, to the outputs that are
committed.

The two that train networks do with RUNE_TEST_WHOLE=1: test_digits.py and tests/llm train the same
ones in each run. That on random numbers runs twice, to the same outputs; all do with
RUNE_TEST_WHOLE=1.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.support.sampling import IS_WHOLE

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "notebooks"))

from refresh import NOTEBOOKS, SECONDS, execute  # noqa: E402  (a script, not a package)

TRAINING = frozenset() if IS_WHOLE else {"digits", "language_model"}
FILES = {file.stem: file for file in NOTEBOOKS if file.stem not in TRAINING}


def _text(output: Any) -> str:
    """The text of an output: printed text, or a value's text."""
    return output["text"] if "text" in output else output.get("data", {}).get("text/plain", "")


def _texts(notebook: Any) -> list[list[str]]:
    """Texts by cell. Progress bars go to stderr, and are no result."""
    cells = (c for c in notebook.cells if c.cell_type == "code")
    return [_joined([o for o in c.outputs if o.get("name") != "stderr"]) for c in cells]


def _joined(outputs: list[Any]) -> list[str]:
    """The texts of outputs. What a cell prints may come in pieces, as time passes."""
    texts_found: list[str] = []
    for is_printed, group in groupby(outputs, lambda o: o.get("name") == "stdout"):
        texts = [_text(o) for o in group]
        texts_found += ["".join(texts)] if is_printed else texts
    return texts_found


def _pictures(notebook: Any) -> int:
    outputs = (o for c in notebook.cells if c.cell_type == "code" for o in c.outputs)
    data_of_outputs = [o.get("data", {}) for o in outputs]
    return sum("image/png" in data or "<svg" in data.get("text/html", "") for data in data_of_outputs)


each_notebook = pytest.mark.parametrize("name", FILES)


@cache
def executed(name: str) -> tuple[Any, float]:
    """The notebook after its first run, and the processor time that its kernel took. Units: s."""
    start = seconds_of_children()
    notebook = execute(FILES[name])
    return notebook, seconds_of_children() - start


def seconds_of_children() -> float:
    """Processor time of the processes that this one started, and that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def test_there_are_notebooks():
    assert NOTEBOOKS


@each_notebook
def test_a_notebook_takes_no_more_than_a_minute_of_a_processor(name: str):
    _, seconds = executed(name)

    assert 0 < seconds < SECONDS, f"{name} took {seconds:.0f} s"


@pytest.mark.parametrize("name", FILES if IS_WHOLE else ["random"])
def test_running_a_notebook_again_gives_the_same_outputs(name: str):
    notebook, _ = executed(name)

    second = execute(FILES[name])

    assert _texts(second) == _texts(notebook)


@each_notebook
def test_a_notebook_shows_pictures_and_arrays(name: str):
    notebook, _ = executed(name)

    assert _pictures(notebook) >= 4
    assert any("Array(" in text and "f32[" in text for cell in _texts(notebook) for text in cell)


def _words(text: str) -> str:
    """The text without its numbers: last bits, and so an accuracy, differ between processors.

    So do the digits that are printed, and the blanks beside them in a column.
    """
    return re.sub(r" ?[-+]?\d[\d.e+-]* ?", "#", re.sub(r"\s+", " ", text))


@each_notebook
def test_the_committed_outputs_are_those_of_this_code(name: str):
    notebook, _ = executed(name)
    stored_notebook = nbformat.read(FILES[name], as_version=4)

    for reference, actual in zip(_texts(stored_notebook), _texts(notebook), strict=True):
        assert list(map(_words, reference)) == list(map(_words, actual))
    assert _pictures(stored_notebook) == _pictures(notebook)
