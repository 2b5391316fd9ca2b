"""Graphs: labels that graphviz reads back, and drawings by its `dot` where that is installed.

Here `dot` is a script of the test, so that everything runs on every machine; the last test is
for the real one.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import rune
from rune.core import graph
from rune.core.graph import Edge, Graph, Node

GRAPH = Graph("g", (Node("a", "x"), Node("b", "y", "call")), (Edge("a", "b", "v"),), "a -> b <ok>")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the only entry of PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def script(folder: Path, text: str) -> None:
    """A program named `dot`."""
    dot = folder / "dot"
    dot.write_text(f"#!/bin/sh\n{text}\n")
    dot.chmod(0o755)


def test_labels_are_quoted_for_graphviz(expect):
    graph = Graph('say "g"', (Node("a", 'back\\slash "quoted"\nand a line'),), (), "")

    last = graph.to_dot().splitlines()[-2:]
    assert graph.to_dot().startswith('digraph "say \\"g\\"" {')
    assert last[0].startswith(r'  a [label="back\\slash \"quoted\"\nand a line", shape=box')


def test_a_notebook_shows_what_dot_draws(path: Path):
    script(path, "read first\necho '<?xml?><!DOCTYPE svg>'\necho \"<svg>$first</svg>\"")

    assert GRAPH._repr_html_() == '<svg>digraph "g" {</svg>\n'


def test_without_dot_a_notebook_shows_the_text_and_the_reason(path: Path):
    html = GRAPH._repr_html_()

    assert "# no drawing: graphviz's `dot` is not installed" in html.replace("&#x27;", "'")
    assert "a -&gt; b &lt;ok&gt;" in html


def test_a_drawing_that_takes_too_long_is_given_up(path: Path, monkeypatch: pytest.MonkeyPatch):
    script(path, "exec /bin/sleep 60")
    monkeypatch.setattr(graph, "SECONDS", 0.1)

    with pytest.raises(TimeoutError, match=r"graphviz's `dot` took longer than 0.1 s"):
        GRAPH.to_svg()


def test_when_dot_fails_a_notebook_shows_the_text_and_the_reason(path: Path):
    script(path, "echo 'out of ink' >&2\nexit 3")

    html = GRAPH._repr_html_().replace("&#x27;", "'")
    assert "graphviz's `dot` failed (out of ink)" in html


def test_a_value_used_twice_has_two_edges():
    graph = rune.make_program(lambda x: x * x)(1.0).graph()

    assert graph.edges[:2] == (Edge("v0", "e0"), Edge("v0", "e0"))


def test_constants_stand_in_the_label_of_what_uses_them():
    graph = rune.make_program(lambda x: 2.0 - x)(1.0).graph()

    assert "sub 2.0" in {n.label.splitlines()[0] for n in graph.nodes}


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_graphviz_draws_a_program():
    svg = rune.make_program(lambda x: x * x)(1.0).graph().to_svg()

    assert svg.startswith("<svg")
    assert "mul" in svg
