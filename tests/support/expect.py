"""Golden text, inline: the test holds the expected text, and --accept rewrites it.

    expect(program, '''
        program f(%0: f32[3]) {
          return %0
        }''')

The text is compared after dedenting. With `pytest --accept` each call that differs has its string
literal replaced in the test's own source, from the last one in the file to the first. Files of
golden text are compared by `expect_file`, and rewritten in the same way.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

_new_texts: dict[str, dict[int, str]] = defaultdict(dict)  # file -> line of the call -> new text


def pytest_addoption(parser: pytest.Parser) -> None:
    """`pytest --accept`."""
    parser.addoption("--accept", action="store_true", help="rewrite golden texts that differ")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the accepted texts into the tests."""
    for file, changes in _new_texts.items():
        path = Path(file)
        path.write_text(rewritten(path.read_text(), changes))


@pytest.fixture
def expect(request: pytest.FixtureRequest) -> Any:
    """A function that compares a value's text with the text in the test."""
    accept = request.config.getoption("--accept")

    def compare(value: Any, expected: str) -> None:
        actual, golden = str(value), textwrap.dedent(expected).strip("\n")
        frame = inspect.stack()[1]
        if actual != golden and accept:
            _new_texts[frame.filename][frame.lineno] = actual
        else:
            assert actual == golden

    return compare


def expect_file(config: pytest.Config, path: Path, text_of_value: str) -> None:
    """Compare a text with a golden file, or with --accept write the file."""
    text = text_of_value.rstrip("\n") + "\n"
    if config.getoption("--accept"):
        path.write_text(text)
    golden = path.read_text()
    assert golden == text, f"{path.name} differs; review it, and run pytest --accept\n" + "\n".join(
        difflib.unified_diff(golden.splitlines(), text.splitlines(), "golden", "found", n=2)
    )


def rewritten(source: str, changes: dict[int, str]) -> str:
    """`source` with the second argument of the `expect` call at each line replaced."""
    lines = source.splitlines(keepends=True)
    calls = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call))
    for call in sorted(filter(_is_expect, calls), key=lambda c: -c.lineno):
        new = next((t for line, t in changes.items() if call.lineno <= line <= _end(call)), None)
        if new is not None:
            _replace(lines, call.args[1], new, " " * (call.col_offset + 4))
    return "".join(lines)


def _is_expect(call: ast.Call) -> bool:
    is_name = isinstance(call.func, ast.Name) and call.func.id == "expect"
    return is_name and len(call.args) == 2


def _end(call: ast.Call) -> int:
    return call.end_lineno or call.lineno


def _replace(lines: list[str], node: ast.expr, text: str, pad: str) -> None:
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    before = lines[first].encode()[: node.col_offset].decode()
    after = lines[last].encode()[node.end_col_offset :].decode()
    body = textwrap.indent(text.replace("\\", "\\\\"), pad)
    lines[first : last + 1] = [f'{before}"""\n{body}"""{after}']
