"""Why jit traced again: the reason names what differs, and a call that finds its trace has none."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp


def reasons(*calls: Callable[[], Any]) -> list[str]:
    """The messages of some calls."""
    with rune.explain_cache_misses() as messages:
        for call in calls:
            call()
    return messages


def why(first: Callable[[], Any], second: Callable[[], Any]) -> str:
    """Why the second call was traced again."""
    first()
    (message,) = reasons(second)
    return message


F = functools.partial(rune.jit, static_argnames=("n", "mode"))


def function(x: Any, n: int = 0, mode: str = "") -> Any:
    return rune.tree.map(lambda v: v * 2.0, x)


CAUSES: list[tuple[str, Callable[[Any], Any], str]] = [
    ("shape", lambda f: f(rnp.ones(4)), r"(argument[0]: shape [3] before, [4] now)"),
    ("rank", lambda f: f(rnp.ones((3, 1))), r"(argument[0]: shape [3] before, [3, 1] now)"),
    ("dtype", lambda f: f(rnp.arange(3)), r"(argument[0]: dtype float32 before, int32 now)"),
    ("static value", lambda f: f(rnp.ones(3), n=2), r"(static argument n: absent before, 2 now)"),
    ("tree", lambda f: f({"w": rnp.ones(3)}), r"(argument[0] before, argument[0]['w'] now)"),
    ("named argument", lambda f: f(x=rnp.ones(3)), r"(argument[0] before, argument['x'] now)"),
    ("leaf", lambda f: f([rnp.ones(3)]), r"(argument[0] before, argument[0][0] now)"),
]


@pytest.mark.parametrize(("name", "second", "reason"), CAUSES, ids=[c[0] for c in CAUSES])
def test_the_reason_names_what_differs(name: str, second: Any, reason: str):
    f = F(function)

    message = why(lambda: f(rnp.ones(3)), lambda: second(f))

    assert message == f"jit: traced function again {reason}"


def test_a_python_number_is_not_an_array_without_axes():
    f = rune.jit(function)

    message = why(lambda: f(rnp.asarray(1.0, dtype="f32")), lambda: f(1.0))

    assert "(argument[0]: an array before, a number of Python's (weak type) now)" in message


def test_a_leaf_is_named_by_its_path():
    f = rune.jit(lambda p, *, y: p["w"][0] + y)

    message = why(lambda: f({"w": [rnp.ones(3)]}, y=1.0), lambda: f({"w": [rnp.ones(4)]}, y=1.0))

    assert "(argument[0]['w'][0]: shape [3] before, [4] now)" in message


def test_settings_are_part_of_the_key():
    f = rune.jit(function)

    def in_double() -> None:
        with rune.enable_x64():
            f(rnp.ones(3, "f32"))

    assert "(setting x64: False before, True now)" in why(lambda: f(rnp.ones(3, "f32")), in_double)


def test_a_call_is_compared_with_the_nearest_trace():
    f = rune.jit(lambda x, y: x + y)
    f(rnp.ones(3), rnp.ones(3))
    f(rnp.ones((2, 3)), 1.0)

    (message,) = reasons(lambda: f(rnp.ones((2, 4)), 1.0))

    assert message == "jit: traced lambda again (argument[0]: shape [2, 3] before, [2, 4] now)"


def test_the_explanation_of_a_first_call_says_so():
    assert reasons(lambda: rune.jit(lambda x: x)(1.0)) == ["jit: traced lambda first (it has not been called before)"]


def test_jit_applied_again_to_the_same_code_is_detected():
    def step(x: Any) -> Any:
        return rune.jit(lambda v: v * 2.0)(x)

    step(1.0)

    assert reasons(lambda: step(1.0)) == [
        "jit: traced lambda first (jit was applied anew to code that was traced before; keep the jitted function)"
    ]


def test_a_new_partial_of_the_same_function_is_the_same_code():
    def step(x: Any) -> Any:
        return rune.jit(functools.partial(function, n=2))(x)

    step(1.0)

    (message,) = reasons(lambda: step(1.0))
    assert message.startswith("jit: traced function first (jit was applied anew to code")


def test_leaves_that_come_and_go_are_named():
    f = rune.jit(lambda tree: tree["w"])
    f({"w": 1.0, "b": [2.0]})

    assert reasons(lambda: f({"w": 1.0}), lambda: f({"w": 1.0, "b": []})) == [
        "jit: traced lambda again (argument[0]['b'][0] is gone)",
        "jit: traced lambda again (the arguments are (({'w': *},), {}) before, (({'b': [], 'w': *},), {}) now)",
    ]


def test_the_latest_of_equally_near_traces_is_compared():
    f = rune.jit(function, static_argnames="n")
    for n in (1, 2):
        f(1.0, n=n)

    (message,) = reasons(lambda: f(1.0, n=3))
    assert message.endswith("(static argument n: 2 before, 3 now)")


def test_a_sampler_is_not_reported_as_jitted_again():
    key = rune.random.key(0)
    rune.random.rayleigh(key, 1.0, (2, 1, 17))

    (message,) = reasons(lambda: rune.random.rayleigh(key, 1.0, (3, 1, 17)))  # no other test's kind
    assert message.endswith("(rune has one such function for each kind of call, and this kind is new)")


def test_a_call_that_finds_its_trace_is_silent():
    f = rune.jit(function)
    f(rnp.ones(3))

    assert reasons(lambda: f(rnp.ones(3)), lambda: f(np.ones(3, np.float32))) == []


def test_reasons_are_warnings_of_the_logger_and_blocks_nest(caplog: pytest.LogCaptureFixture):
    f = rune.jit(function)

    with caplog.at_level(logging.WARNING, "rune"), rune.explain_cache_misses() as outer:
        inner = reasons(lambda: f(rnp.ones(3)))

    assert outer == inner == [r.message for r in caplog.records]
    f(rnp.ones(5))
    assert len(outer) == 1
