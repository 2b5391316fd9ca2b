"""Programs of primitives that hold programs and Python functions: printed, and read back.

A text only names a Python function. With the functions given, what is read is the same program;
without, it prints alike, is checked and runs, and asking for the function is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import checkpoint_policies as policies
from rune.control import parse_program
from rune.core.check import check_program
from rune.core.evaluate import eval_program
from rune.core.program import Program
from rune.core.same import same_program
from rune.errors import CheckError
from rune.transforms.derivatives.jvp import jvp_flat
from rune.transforms.derivatives.linearize import linearize_flat
from tests.support.arrays import array
from tests.support.close import same
from tests.support.text import functions_in

X = array([0.5, 1.0, 2.0])
SCALAR = rune.ShapeDtypeStruct((), "f32")


@rune.custom_jvp
def doubled(x: Any) -> Any:
    """sin(x), with twice its derivative."""
    return rnp.sin(x)


doubled.defjvp(lambda p, t: (doubled(p[0]), 2.0 * t[0] * rnp.cos(p[0])))


@rune.custom_vjp
def tripled(x: Any) -> Any:
    """sin(x), with three times its derivative."""
    return rnp.sin(x)


tripled.defvjp(lambda x: (rnp.sin(x), x), lambda x, ct: (3.0 * ct * rnp.cos(x),))


def checkpointed_sine(policy: Any) -> Callable[..., Any]:
    return rune.checkpoint(lambda x: rnp.sin(rune.checkpoint_name(rnp.sin(x), "a")), policy=policy)


def called(x: Any) -> Any:
    return rune.pure_callback(np.sin, SCALAR, x, vmap_method="sequential")


def noted(x: Any) -> Any:
    rune.debug.print("x = {}", x, ordered=True)
    return x * 2.0


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "custom_jvp": doubled,
    "custom_jvp on lanes": rune.vmap(doubled),
    "jvp of custom_jvp": lambda x: rune.jvp(doubled, (x,), (x,)),
    "custom_vjp": tripled,
    "custom_vjp on lanes": rune.vmap(rune.vmap(lambda x: tripled(x))),
    "checkpoint": checkpointed_sine(None),
    "grad of checkpoint": rune.vmap(rune.grad(checkpointed_sine(policies.save_only_these_names("a")))),
    "either policy": rune.vmap(
        rune.grad(
            checkpointed_sine(
                policies.save_from_both_policies(policies.dots_saveable, policies.save_any_names_but_these("b", "c"))
            )
        )
    ),
    "a policy of one's own": rune.vmap(rune.grad(checkpointed_sine(lambda primitive, *_, **__: False))),
    "callback": called,
    "callback on lanes": rune.vmap(called),
    "ordered callback": noted,
    "ordered callback in a loop": lambda x: rune.scan(lambda c, _: (noted(c), None), x, None, 2),
    "jit": rune.jit(lambda x: x * 2.0),
}


def program_of(name: str) -> Program:
    x = array(np.ones((2, 2), np.float32)) if name == "custom_vjp on lanes" else X
    scalar = name in ("callback", "ordered callback")
    return rune.make_program(FUNCTIONS[name])(array(0.5) if scalar else x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_text_reads_back_as_the_same_program(name: str):
    program = program_of(name)

    copy = parse_program(str(program), functions_in(program))

    check_program(copy)
    assert same_program(copy, program)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_the_functions_the_text_is_the_same(name: str):
    text = str(program_of(name))

    assert str(parse_program(text)) == text


@pytest.mark.parametrize("name", ["custom_jvp", "custom_vjp", "jit", "checkpoint"])
def test_a_program_that_was_read_runs(name: str):
    program = program_of(name)

    same(eval_program(program, [X])[0], eval_program(parse_program(str(program)), [X])[0])


@pytest.mark.parametrize("name", ["custom_jvp", "custom_vjp"])
def test_a_rule_that_was_not_given_is_an_error_and_not_a_zero(name: str):
    program = parse_program(str(program_of(name)))

    with pytest.raises(CheckError, match=r"cannot call <rule of (doubled|tripled)>.*\n?.*"):
        jvp_flat(lambda x: eval_program(program, [x]), [X], [X])


def test_a_callback_that_was_not_given_cannot_be_called():
    program = parse_program(str(program_of("callback")))

    with pytest.raises(CheckError, match=r"cannot call <sin>[\s\S]*pass functions= to"):
        eval_program(program, [array(0.5)])


def test_the_linear_map_of_a_rule_reads_back():
    _, linear = linearize_flat(lambda x: [tripled(x)], [X], [True])

    copy = parse_program(str(linear.program), functions_in(linear.program))

    assert same_program(copy, linear.program)
