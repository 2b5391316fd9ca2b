"""Collectives of one kind that are ready at about the same time become one message."""

from __future__ import annotations

from typing import Any

import numpy as np

import rune
from rune import lax
from rune import numpy as rnp
from rune.core.check import check_program
from rune.core.higher import subprograms
from rune.core.program import Program
from rune.lowering.call_order import in_order
from rune.lowering.decompose import decompose
from rune.lowering.messages import MOST_BYTES, is_collective, merge_all
from rune.sharding import P, make_mesh
from rune.transforms.programs.variation import untyped

X = np.ones(4, "f")


def merged(body: Any, *args: Any) -> Program:
    """The program that a device runs for the body of a shard_map."""
    mesh = make_mesh((1,), ("d",))
    outer = rune.make_program(rune.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False))(*args)
    program = merge_all(decompose(untyped(outer.equations[0].params["program"])))
    check_program(program)
    return program


def sizes(program: Program) -> list[int]:
    """How many operands each message has, those of programs within included."""
    message_sizes = []
    for equation in program.equations:
        message_sizes += [len(equation.operands)] if is_collective(equation) else []
        message_sizes += [n for p in subprograms(equation) for n in sizes(p)]
    return message_sizes


def test_sums_that_are_ready_together_move_to_the_last_one_and_their_readers_after_it():
    def body(x: Any, y: Any) -> Any:
        first = lax.psum(x, "d")
        return first + 1.0, lax.psum(rnp.tanh(y), "d")

    text = str(merged(body, X, X)).replace("CollectiveCall(primitive=psum, params=(('axis_name', 'd'),))", "psum")
    assert text == (
        "program body(%0: f32[4], %1: f32[4]) {\n"
        "  %2: f32[4] = tanh %1\n"
        "  %3: f32[4], %4: f32[4] = host_call %0, %2 "
        "{call=psum, effect=ordered, has_token=false, results=(f32[4], f32[4])}\n"
        "  %5: f32[4] = add %3, 1.0: f32[]\n"
        "  return %5, %4\n"
        "}"
    )


def test_a_sum_of_a_sum_is_a_separate_message():
    def body(x: Any, y: Any) -> Any:
        first = lax.psum(x, "d")
        return lax.psum(first * y, "d"), lax.psum(y, "d"), lax.psum(rnp.exp(first), "d")

    assert sizes(merged(body, X, X)) == [2, 2]


def test_two_messages_never_wait_for_each_other():
    def body(x: Any, y: Any) -> Any:
        a, b = lax.psum(x, "d"), lax.pmax(y, "d")
        return lax.pmax(a, "d"), lax.psum(b, "d"), lax.pmax(x * 2.0, "d"), lax.psum(y * 2.0, "d")

    assert sorted(sizes(merged(body, X, X))) == [1, 1, 2, 2]


def test_other_kinds_and_other_parameters_are_other_messages():
    def body(x: Any) -> Any:
        kinds = lax.psum(x, "d"), lax.pmax(x, "d"), lax.all_gather(x, "d"), lax.all_gather(x, "d", axis=1)
        return kinds[0] + lax.psum(x + 1.0, "d"), *kinds[1:]

    assert sorted(sizes(merged(body, X))) == [1, 1, 1, 2]


def test_types_and_shapes_may_differ_within_a_message():
    def body(x: Any, y: Any) -> Any:
        return lax.psum(x, "d"), lax.psum(y, "d")

    assert sizes(merged(body, X, np.ones((2, 3), np.int32))) == [2]


def test_large_messages_are_not_merged():
    def body(x: Any, y: Any) -> Any:
        return lax.psum(x, "d"), lax.psum(y, "d"), lax.psum(y + 1.0, "d")

    assert sorted(sizes(merged(body, np.ones(MOST_BYTES // 4 + 1, "f"), X))) == [1, 2]


def test_nothing_passes_a_call_of_python():
    def body(x: Any) -> Any:
        first = lax.psum(x, "d")
        rune.debug.callback(lambda v: None, x, ordered=True)
        return first, lax.psum(x + 1.0, "d")

    assert sizes(merged(body, X)) == [1, 1]


def test_nothing_passes_a_loop_with_collectives_and_those_of_its_step_are_one_message():
    def step(carry: Any, row: Any) -> Any:
        return lax.psum(carry, "d"), lax.psum(row, "d")

    def body(x: Any) -> Any:
        first = lax.psum(x, "d")
        carry, rows = lax.scan(step, x, x)
        return first, carry, rows, lax.psum(x + 1.0, "d")

    assert sizes(merged(lambda x: body(x[0]), np.ones((1, 4), "f"))) == [1, 2, 1]


def test_messages_come_in_the_order_of_the_program():
    def body(x: Any) -> Any:
        return lax.psum(x, "d"), lax.pmax(x, "d"), lax.psum(x * 2.0, "d")

    calls = [e.params["call"] for e in in_order(merged(body, X)).equations if is_collective(e)]

    assert list(map(str, calls)) == ["pmax over 'd'", "psum over 'd'"]
