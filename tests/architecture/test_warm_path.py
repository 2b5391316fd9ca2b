"""The cost of a derivative that is already traced: executed lines of the package, and calls.

Code for features that few programs use (references, mesh axes, symbolic sizes) does not belong
here: whether a program uses them is decided when it is traced or compiled."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT

MOST_LINES = 615
# In a separate process, since the tests check every stage. The measured call comes after as many
# calls as it takes until nothing more is traced or compiled.
MEASURE = """
import sys, rune, rune.numpy as rnp

x = rnp.arange(12.0).reshape(4, 3)
plain = lambda x: rnp.sum(rnp.sin(x) * x)
f = {function}
for _ in range({calls}):
    rune.grad(f)(x)
lines = set()

def of_a_call(frame, event, argument):
    if not frame.f_code.co_filename.startswith(rune.__path__[0]):
        return None
    lines.add((frame.f_code.co_filename, frame.f_lineno))
    return of_a_line

def of_a_line(frame, event, argument):
    lines.add((frame.f_code.co_filename, frame.f_lineno))
    return of_a_line

sys.settrace(of_a_call)
rune.grad(f)(x)
sys.settrace(None)
print(len(lines))
"""


def executed(function: str, calls: int) -> int:
    """How many lines `grad(f)(x)` executes after this many calls."""
    code = MEASURE.format(function=function, calls=calls)
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return int(process.stdout)


@pytest.mark.parametrize(("function", "calls"), [("plain", 3), ("rune.jit(plain)", 5)])
def test_a_repeated_derivative_executes_few_lines(function: str, calls: int):
    assert 100 < executed(function, calls) <= MOST_LINES
