"""rune.debug: printing and calling back while a program runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError


def printed(capsys: pytest.CaptureFixture[str], call: Any) -> str:
    """The output of a call."""
    call()
    return capsys.readouterr().out


FORMATS: list[tuple[Any, str]] = [
    (lambda: rune.debug.print("plain"), "plain\n"),
    (lambda: rune.debug.print("{} and {x}", 1.5, x=2), "1.5 and 2\n"),
    (lambda: rune.debug.print("{1} {0}", 1.5, 2.5), "2.5 1.5\n"),
    (lambda: rune.debug.print("{x:.3f}", x=rnp.float32(1 / 3)), "0.333\n"),
    (lambda: rune.debug.print("{x:>{width}}", x=1.5, width=5), "  1.5\n"),
    (lambda: rune.debug.print("{} {}", rnp.arange(3), rnp.ones((1, 2))), "[0 1 2] [[1. 1.]]\n"),
    (lambda: rune.debug.print("{x.shape} {p[a]}", x=rnp.ones(3), p={"a": 1.0}), "(3,) 1.0\n"),
    (lambda: rune.debug.print("{} {{}}", "text"), "text {}\n"),
]


@pytest.mark.parametrize(("call", "text"), FORMATS, ids=[t.strip() for _, t in FORMATS])
def test_print_formats_as_str_format_does(capsys: pytest.CaptureFixture[str], call: Any, text: str):
    assert printed(capsys, call) == text
    assert printed(capsys, rune.jit(lambda: call())) == text


def test_print_prints_the_value_of_each_run_not_of_the_trace(capsys: pytest.CaptureFixture[str]):
    f = rune.jit(lambda x: rune.debug.print("{}", x))

    assert [printed(capsys, lambda x=x: f(x)) for x in (1.0, 2.0)] == ["1.0\n", "2.0\n"]


UNFIT: list[tuple[Any, str]] = [
    (lambda: rune.debug.print("{} {}", 1.0), "no argument 1"),
    (lambda: rune.debug.print("{x}", y=1.0), "no argument x"),
    (lambda: rune.debug.print("{}", 1.0, 2.0), "no field for argument 1"),
    (lambda: rune.debug.print("{}", 1.0, x=2.0), "no field for argument x"),
]


@pytest.mark.parametrize(("call", "reason"), UNFIT, ids=[w for _, w in UNFIT])
def test_a_format_that_does_not_fit_is_refused_when_it_is_traced(call: Any, reason: str):
    with pytest.raises(ArgumentError, match=f"cannot fill .* .{reason}"):
        call()


def test_print_may_skip_the_format_check(capsys: pytest.CaptureFixture[str]):
    rune.jit(lambda x: rune.debug.print("{{{x}}}", x=x, y=1, skip_format_check=True))(2)

    assert capsys.readouterr().out == "{2}\n"


def test_print_uses_the_print_options_in_force_at_its_call(capsys: pytest.CaptureFixture[str]):
    @rune.jit
    def f(x: Any) -> None:
        with np.printoptions(precision=2):
            rune.debug.print("{}", x)

    f(rnp.arange(3.0) / 7)

    assert capsys.readouterr().out == "[0.   0.14 0.29]\n"


def test_callback_hands_over_arrays_and_ignores_what_comes_back():
    calls: list[Any] = []

    def note(x: Any, *, name: str) -> str:
        calls.append((type(x).__name__, float(x), name))
        return "ignored"

    assert rune.jit(lambda x: rune.debug.callback(note, x, name="loss"))(2.0) is None
    assert calls == [("Array", 2.0, "loss")]
