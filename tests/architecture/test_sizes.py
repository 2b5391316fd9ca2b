"""Limits that keep the code readable: lines of a file, lines of a function, words at the top.

A file over its limit should be two files, and a function over its limit several named functions.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import statistics
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, Source, sources, statements

FILE_LINES, FUNCTION_LINES = 500, 60
EVERYTHING = (*sources("rune"), *sources("tests"))


@dataclass(frozen=True)
class Measured:
    """The measures of a file: its docstring, and the length of every function in lines."""

    docstring: str
    functions: dict[str, int]


@functools.cache
def measured(source: Source) -> Measured:
    """A file's docstring, and its functions by name and the line where they begin."""
    lengths = {}
    for node in (s.node for s in statements(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lengths[f"{node.name}:{node.lineno}"] = (node.end_lineno or node.lineno) - node.lineno + 1
    return Measured(ast.get_docstring(source.tree) or "", lengths)


def comments(source: Source) -> Iterator[str]:
    """Every comment."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def test_no_file_is_longer_than_its_limit():
    lengths = {str(s): len(s.text.splitlines()) for s in EVERYTHING}

    assert not {s: n for s, n in lengths.items() if n > FILE_LINES}


def test_no_function_is_longer_than_its_limit():
    lengths = {f"{s} {name}": n for s in EVERYTHING for name, n in measured(s).functions.items()}

    assert not {f: n for f, n in lengths.items() if n > FUNCTION_LINES}


def test_a_function_with_overloads_is_measured_by_its_own_length(tmp_path: Path):
    path = tmp_path / "typed.py"
    path.write_text("@overload\ndef f(x: int): ...\n@overload\ndef f(x: str): ...\ndef f(x):\n    return x\n")

    assert measured(Source(path)).functions == {"f:2": 1, "f:4": 1, "f:5": 2}


def test_every_module_has_a_docstring():
    silent = [
        str(s) for s in EVERYTHING if not measured(s).docstring and (s.text.strip() or s.path.name != "__init__.py")
    ]

    assert not silent


def test_no_todo_stands_without_the_number_of_its_issue():
    loose = re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!\(#\d+\))")
    suspects = [s for s in EVERYTHING if loose.search(s.text)]  # a file without one has none in a comment

    assert not [(str(s), c) for s in suspects for c in comments(s) if loose.search(c)]


def test_functions_are_short():
    lengths = [n for s in sources("rune") for n in measured(s).functions.values()]

    assert statistics.median(lengths) <= 6
    assert statistics.quantiles(lengths, n=10)[-1] <= 25


def test_few_files_are_long():
    lengths = [len(s.text.splitlines()) for s in sources("rune")]

    assert statistics.quantiles(lengths, n=10)[-1] <= 350


def passes() -> list[Source]:
    """The files that have a pass."""
    lists = ("rune.lowering.passes", "rune.lowering.pipeline")
    return [s for s in sources("rune/lowering") if re.search(r"\bPass\(", s.text) and s.name not in lists]


def test_few_passes_are_long():
    lengths = [len(s.text.splitlines()) for s in passes()]

    assert statistics.quantiles(lengths, n=10)[-1] <= 250


def test_a_pass_shows_before_and_after_and_says_its_invariant_and_its_cost():
    parts = ("Before ", "After ", "Invariant: ", "Cost: ")
    docstrings = {str(s): measured(s).docstring for s in passes()}

    assert len(docstrings) > 20
    assert not {s: [p for p in parts if p not in d] for s, d in docstrings.items() if not all(p in d for p in parts)}


INTERPRETERS = {"rune/transforms/derivatives/jvp.py": "Jvp", "rune/transforms/batching/batch.py": "Batch"}


@pytest.mark.parametrize(("path", "name"), INTERPRETERS.items())
def test_an_interpreter_is_a_page_and_its_class_a_screen(path: str, name: str):
    text = (ROOT / path).read_text()
    (node,) = (n for n in ast.parse(text).body if isinstance(n, ast.ClassDef) and n.name == name)

    assert len(text.splitlines()) <= 180
    assert (node.end_lineno or 0) - node.lineno + 1 <= 40


def class_lines(path: str, name: str) -> int:
    """The length of a class of the package."""
    (node,) = (n for n in Source(ROOT / path).tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    return (node.end_lineno or 0) - node.lineno + 1


def test_the_interpreter_that_writes_programs_is_a_screen():
    assert class_lines("rune/core/staging.py", "Stage") <= 40
    assert class_lines("rune/core/captures.py", "Captures") <= 40
    assert len((ROOT / "rune/core/staging.py").read_text().splitlines()) <= 200


PACKAGES = ("cpu", "cuda", "opencl", "vulkan", "wgpu")
HANDLERS = {"Handler", "Each", "Recorder", "Stream"}


def test_a_handler_is_short():
    files = [s for s in sources("rune") if "Handler" in s.text]
    classes = [n for s in files for n in s.tree.body if isinstance(n, ast.ClassDef)]
    handlers = [
        n for n in classes if n.name == "Handler" or {*map(ast.unparse, n.bases)} & {"Handler", "effects.Handler"}
    ]
    lengths = {n.name: (n.end_lineno or 0) - n.lineno + 1 for n in handlers}

    assert set(lengths) == HANDLERS
    assert not {name: n for name, n in lengths.items() if n > 25}


@pytest.mark.parametrize("name", ["null", "reference", *PACKAGES])
def test_a_backend_opens_its_device_in_one_short_file(name: str):
    folder = ROOT / "rune/backends" / name
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    functions = {n.name for n in Source(file).tree.body if isinstance(n, ast.FunctionDef)}

    assert len(file.read_text().splitlines()) <= 400
    assert {"probe", "open_device"} <= functions


def test_the_order_of_the_passes_is_one_page():
    assert len((ROOT / "rune/lowering/pipeline.py").read_text().splitlines()) <= 150
