"""debug.breakpoint stops a program, eager or compiled, and shows values by their names."""

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
    """The output of a debugger session of a function with a breakpoint, and the function's
    result."""
    output = io.StringIO()
    commands = io.StringIO(lines)

    def f(x: Any) -> Any:
        y = 2 * x
        weights = {"w": y + 1, "label": "net"}
        rune.debug.breakpoint(stdin=commands, stdout=output)
        return rnp.sum(y * weights["w"])

    result = transform(f)(argument)
    rune.effects_barrier()
    return output.getvalue(), result


@pytest.mark.parametrize("transform", [lambda f: f, rune.jit], ids=["eager", "compiled"])
def test_values_are_printed_by_name_and_the_program_continues(transform: Any):
    output, result = session("p y\nweights['w']\nc\n", transform, rnp.float32(3))
    assert "f()" in output.splitlines()[0]
    assert "Array(6." in output
    assert "Array(7." in output
    assert float(result) == 42


def test_each_run_shows_its_own_values():
    output = io.StringIO()
    commands = io.StringIO("x\nc\nx\nc\n")

    @rune.jit
    def f(x: Any) -> Any:
        rune.debug.breakpoint(stdin=commands, stdout=output)
        return x + 1

    f(1.0)
    f(2.0)
    assert "Array(1." in output.getvalue()
    assert "Array(2." in output.getvalue()


@pytest.mark.parametrize("lines", ["q\n", ""], ids=["quit", "end of input"])
def test_quitting_ends_the_program(lines: str):
    with pytest.raises(bdb.BdbQuit):
        session(lines, rune.jit, 3.0)


def test_the_names_are_listed_with_their_types():
    output, _ = session("a\nc\n", rune.jit, 3.0)
    assert "y: f32" in output
    assert "weights: dict" in output


def test_variables_of_the_module_are_seen():
    assert "8.0" in session("SCALE * 2\nc\n", rune.jit, 3.0)[0]


def test_an_error_of_an_expression_is_shown_and_the_prompt_repeats():
    output, result = session("y / unknown\ny\nc\n", rune.jit, 3.0)
    assert "NameError" in output
    assert "Array(6." in output
    assert float(result) == 42


def test_the_debugger_moves_to_the_caller_and_back():
    output, _ = session("u\ncommands is not None\nd\ny\nc\n", rune.jit, 3.0)
    assert "session()" in output
    assert "True" in output
    assert "Array(6." in output


def test_the_lines_around_have_an_arrow_at_the_place():
    output, _ = session("l\nc\n", rune.jit, 3.0)
    (line,) = [line for line in output.splitlines() if re.match(r"\s*\d+ ->", line)]
    assert "rune.debug.breakpoint" in line


def test_under_grad_it_stops_once_and_under_vmap_once_for_each_lane():
    assert session("c\n" * 9, rune.grad, 3.0)[0].count("f()") == 1
    assert session("c\n" * 9, rune.vmap, rnp.arange(3.0))[0].count("f()") == 3


def test_a_loop_stops_at_each_step():
    output = io.StringIO()
    commands = io.StringIO("i\nc\n" * 3)

    def body(i: Any, x: Any) -> Any:
        rune.debug.breakpoint(stdin=commands, stdout=output, ordered=True, num_frames=1)
        return x + i

    assert float(rune.jit(lambda x: rune.fori_loop(0, 3, body, x))(0.0)) == 3
    assert [n for n in range(3) if f"Array({n}, i32" in output.getvalue()] == [0, 1, 2]


def test_another_debugger_is_refused():
    with pytest.raises(ArgumentError, match="backend 'web'"):
        rune.debug.breakpoint(backend="web")
