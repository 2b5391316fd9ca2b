"""Rewritten programs keep the user's lines, so that errors and costs name them at every stage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends import device_named
from rune.core.higher import subprograms
from rune.core.program import Program
from rune.errors import Frame, at_line, user_frame
from rune.frames import pass_over
from rune.lowering.stages import stages

X = np.ones(4, np.float32)


def function(x: Any) -> Any:
    return rnp.log(x * 2.0).sum()  # the line


def lines(program: Program) -> set[str]:
    """The source lines of a program's equations, calls aside, and of the programs it holds."""
    plain = (e for e in program.equations if not subprograms(e))
    own_lines = {str(e.frame).rpartition(": ")[2] for e in plain}
    return own_lines.union(*(lines(p) for e in program.equations for p in subprograms(e)))


LINE = "return rnp.log(x * 2.0).sum()  # the line"
REWRITTEN: dict[str, Any] = {
    "jvp": lambda f: lambda x: rune.jvp(f, (x,), (x,)),
    "grad": rune.grad,
    "vmap": lambda f: rune.vmap(f, in_axes=None, axis_size=3),
    "checkpoint": lambda f: rune.grad(rune.checkpoint(f)),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_a_program_rewritten_within_jit_keeps_its_lines(name: str):
    program = rune.make_program(REWRITTEN[name](rune.jit(function)))(X)

    inner = [p for e in program.equations for p in subprograms(e)]
    assert inner
    for p in inner:
        assert lines(p) == {LINE}


def test_a_lowered_program_keeps_its_lines():
    program = rune.make_program(rune.jit(function))(X)

    assert lines(stages(program, device_named("cpu:0").target).simplified) == {LINE}


def test_operations_of_a_custom_rule_carry_the_lines_of_the_rule():
    square = rune.custom_jvp(lambda x: x * x)

    @square.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        y = square(primals[0])
        return y, tangents[0] * 3.0  # the rule

    program = rune.make_program(rune.grad(rune.jit(square)))(1.0)

    all_lines = set().union(*(lines(p) for e in program.equations for p in subprograms(e)))
    assert "return y, tangents[0] * 3.0  # the rule" in all_lines


def test_a_given_line_holds_only_inside_the_block():
    frame = Frame("demo.py", 3, "f")

    with at_line(frame):
        assert user_frame() is frame
        with at_line(None):
            assert user_frame() != frame
    assert user_frame() != frame


def test_lines_of_a_library_that_is_passed_over_are_those_that_called_it(tmp_path: Path):
    library = str(tmp_path / "layers.py")
    names: dict[str, Any] = {"rnp": rnp}
    exec(compile("def layer(x): return rnp.log(x)", library, "exec"), names)

    before = rune.make_program(lambda x: names["layer"](x))(X)
    pass_over(library)
    after = rune.make_program(lambda x: names["layer"](x))(X)

    frames = [p.equations[0].frame for p in (before, after)]
    assert [f and f.short.split(":")[0] for f in frames] == ["layers.py", "test_lines.py"]
