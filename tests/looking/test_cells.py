"""Lines of a notebook's cells are named as IPython names them, in errors, programs and profiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = (
    "import rune, rune.numpy as rnp\nx = rnp.ones(3)",
    "def f(x):\n    return rnp.sin(x)\nprint(rune.make_program(f)(x).pretty_print(source_info=True))",
    "def g(x):\n    return x @ rnp.ones(4)\ntry:\n    g(x)\nexcept rune.errors.ShapeError as error:\n    print(error)",
    "with rune.debug.profile() as p:\n    y = f(x)\n\np",
    "print([e.line for e in p.events])",
    "rune.jit(f)",
    "p.picture()",
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    root = str(Path(__file__).parents[2])
    resources = {"metadata": {"path": root}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    return [cell.outputs for cell in notebook.cells]


def test_a_program_names_the_cell(outputs: list[list[Any]]):
    assert "# Cell In[2], line 2" in outputs[1][0]["text"]


def test_an_error_names_the_cell_and_shows_its_line(outputs: list[list[Any]]):
    assert "Cell In[3], line 2 in g: return x @ rnp.ones(4)" in outputs[2][0]["text"]


def test_a_profile_names_the_cell(outputs: list[list[Any]]):
    assert "'Cell In[2], line 2'" in outputs[4][0]["text"]


def test_a_profile_is_a_table_and_a_timeline(outputs: list[list[Any]]):
    html = outputs[3][0]["data"]["text/html"]
    assert "<svg" in html
    assert "<table>" in html
    assert "Cell In[2], line 2" in html


def test_a_jitted_function_and_a_picture_are_shown_in_the_last_line(outputs: list[list[Any]]):
    assert outputs[5][0]["data"]["text/plain"] == "jit(f: 0 traces)"
    assert outputs[6][0]["data"]["text/html"].count("<svg") == 1
