"""debug.breakpoint: a program stops where it says, eager or compiled, and values have names."""

from __future__ import annotations

import bdb
import io
import re
from collections.abc import Callable
from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError

SCALE = 4.0


def session(lines: str, transform: Callable[[Any], Any], argument: Any) -> tuple[str, Any]:
    """What is said while a function with a breakpoint runs, and its result."""
    said = io.StringIO()
    asked = io.StringIO(lines)

    def f(x: Any) -> Any:
        y = 2 * x
        weights = {"w": y + 1, "label": "net"}
        rune.debug.breakpoint(stdin=asked, stdout=said)
        return rnp.sum(y * weights["w"])

    result = transform(f)(argument)
    rune.effects_barrier()
    return said.getvalue(), result


@pytest.mark.parametrize("transform", [lambda f: f, rune.jit], ids=["eager", "compiled"])
def test_values_are_printed_by_name_and_the_program_goes_on(transform: Any):
    said, result = session("p y\nweights['w']\nc\n", transform, rnp.float32(3))
    assert "f()" in said.splitlines()[0]
    assert "Array(6." in said
    assert "Array(7." in said
    assert float(result) == 42


def test_each_run_shows_its_own_values():
    said = io.StringIO()
    asked = io.StringIO("x\nc\nx\nc\n")

    @rune.jit
    def f(x: Any) -> Any:
        rune.debug.breakpoint(stdin=asked, stdout=said)
        return x + 1

    f(1.0)
    f(2.0)
    assert "Array(1." in said.getvalue()
    assert "Array(2." in said.getvalue()


@pytest.mark.parametrize("lines", ["q\n", ""], ids=["quit", "end of input"])
def test_quitting_ends_the_program(lines: str):
    with pytest.raises(bdb.BdbQuit):
        session(lines, rune.jit, 3.0)


def test_the_names_are_listed_with_their_types():
    said, _ = session("a\nc\n", rune.jit, 3.0)
    assert "y: f32" in said
    assert "weights: dict" in said


def test_variables_of_the_module_are_seen():
    assert "8.0" in session("SCALE * 2\nc\n", rune.jit, 3.0)[0]


def test_an_error_of_an_expression_is_shown_and_asked_again():
    said, result = session("y / unknown\ny\nc\n", rune.jit, 3.0)
    assert "NameError" in said
    assert "Array(6." in said
    assert float(result) == 42


def test_one_goes_to_the_caller_and_back():
    said, _ = session("u\nasked is not None\nd\ny\nc\n", rune.jit, 3.0)
    assert "session()" in said
    assert "True" in said
    assert "Array(6." in said


def test_the_lines_around_have_an_arrow_at_the_place():
    said, _ = session("l\nc\n", rune.jit, 3.0)
    (line,) = [line for line in said.splitlines() if re.match(r"\s*\d+ ->", line)]
    assert "rune.debug.breakpoint" in line


def test_under_grad_it_stops_once_and_under_vmap_once_for_each_lane():
    assert session("c\n" * 9, rune.grad, 3.0)[0].count("f()") == 1
    assert session("c\n" * 9, rune.vmap, rnp.arange(3.0))[0].count("f()") == 3


def test_a_loop_stops_at_each_step():
    said = io.StringIO()
    asked = io.StringIO("i\nc\n" * 3)

    def body(i: Any, x: Any) -> Any:
        rune.debug.breakpoint(stdin=asked, stdout=said, ordered=True, num_frames=1)
        return x + i

    assert float(rune.jit(lambda x: rune.fori_loop(0, 3, body, x))(0.0)) == 3
    assert [n for n in range(3) if f"Array({n}, i32" in said.getvalue()] == [0, 1, 2]


def test_another_debugger_is_refused():
    with pytest.raises(ArgumentError, match="backend 'web'"):
        rune.debug.breakpoint(backend="web")
