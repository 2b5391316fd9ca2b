"""Loops and branches in lowering: one step of the plan, whatever the trip count.

Texts first, then memory (rows are filled in place, carries keep or take turns with their buffers),
hoisting, and that the checks find what is wrong. Meaning on every executor is tested with the
control primitives and by the laws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import control, dtypes, lax
from rune.backends.shared.plan_check import check_plan
from rune.core.evaluate import eval_program
from rune.core.lower import Convert, Scalar
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.errors import CheckError
from rune.lowering import kernels_check, kernels_parse, kernels_text, plan_text
from rune.lowering.decompose import decompose
from rune.lowering.explain import Lowered
from rune.lowering.kernels import Repeat
from rune.lowering.pipeline import program_passes
from rune.lowering.plan import Branch, Launch, Loop, Plan, all_steps
from rune.lowering.plan_check import check_overlap
from rune.lowering.simplify.constant_carries import constant_carries
from rune.lowering.simplify.eliminate_common import eliminate_common
from rune.lowering.simplify.hoist_loops import hoist_loops
from rune.lowering.stages import stages
from rune.ops.loop import loop
from tests.support.close import close
from tests.support.lowering import PLAIN, WITH_DOT, f32

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def running_sum(xs: Any) -> Any:
    """The sum of all rows, and the sums before each."""
    return control.scan(lambda total, x: (total + x, total), xs[0] * 0.0, xs)


def fibonacci(limit: Any) -> Any:
    """The first two successive Fibonacci numbers that are at least `limit`."""
    start = rnp.asarray(0.0), rnp.asarray(1.0)
    return control.while_loop(lambda s: s[0] < limit, lambda s: (s[1], s[0] + s[1]), start)


def chosen(k: Any, x: Any) -> Any:
    """One of three functions of x."""
    return control.switch(k, [rnp.sin, lambda x: x * 2.0, lambda x: x], x)


def powers(x: Any) -> Any:
    """A loop within a loop, the inner one as long as a condition holds."""

    def row(carry: Any, x: Any) -> Any:
        power = control.while_loop(lambda v: rnp.sum(v * v) < 10.0, lambda v: v * 2.0 + 1.0, x)
        return carry + power, control.fori_loop(0, 3, lambda i, v: v * x + i, power)

    return control.scan(row, x[0] * 0.0, x)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scan": (running_sum, (X,)),
    "while": (fibonacci, (np.float32(20),)),
    "switch": (chosen, (np.int32(1), X)),
    "nested": (powers, (X,)),
}


def program_of(name: str) -> Program:
    function, args = CASES[name]
    return rune.make_program(function)(*map(rnp.asarray, args))


def lowered(name: str) -> Lowered:
    return stages(program_of(name), WITH_DOT, check=True)


def loop_of(plan: Plan) -> Loop:
    return next(s for s in plan.steps if isinstance(s, Loop))


# --- texts ------------------------------------------------------------------------------------


def test_a_scan_is_a_loop_that_takes_and_puts_rows(expect):
    expect(
        lowered("scan").simplified,
        """
        program running_sum(%0: f32[3,4]) {
          %1: f32[1,4] = slice %0 {limit=(1, 4), start=(0, 0), stride=(1, 1)}
          %2: f32[4] = reshape %1 {shape=(4,)}
          %3: f32[4] = mul %2, 0.0: f32[]
          %4: f32[4], %5: f32[3,4] = loop %0, %3 {body=program body(%0: i32[], %1: f32[3,4], %2: f32[4], %3: f32[3,4]) {
            %4: f32[4] = take_row %1, %0
            %5: f32[4] = add %2, %4
            %6: f32[1,4] = reshape %2 {shape=(1, 4)}
            %7: f32[3,4] = put_row %3, %6, %0
            return %5, %7
          }, condition=None, consts=1, count=3}
          return %4, %5
        }""",
    )


def test_the_kernels_of_a_body_are_listed_inside_the_loop(expect):
    expect(
        lowered("while").text("kernels"),
        """
        kernels fibonacci(%0: f32[]) {
          %1: f32[] = broadcast_0
          %2: f32[] = broadcast_1
          %3: f32[], %4: f32[] = repeat while consts 1 %0, %1, %2 {
            kernels condition(%0: i32[], %1: f32[], %2: f32[], %3: f32[]) {
              %4: bool[] = lt_3 %2, %1
              return %4: bool[]
            }
            kernels body(%0: i32[], %1: f32[], %2: f32[], %3: f32[]) {
              %4: f32[] = add_2 %2, %3
              return %3: f32[], %4: f32[]
            }
          }
          return %3: f32[], %4: f32[]
        }
        kernel broadcast_0() -> (y0: f32[]) {
          write y0[]: 0.0_f32
        }
        kernel broadcast_1() -> (y0: f32[]) {
          write y0[]: 1.0_f32
        }
        kernel add_2(x0: f32[], x1: f32[]) -> (y0: f32[]) {
          write y0[]: x0[] + x1[]
        }
        kernel lt_3(x0: f32[], x1: f32[]) -> (y0: bool[]) {
          write y0[]: x0[] < x1[]
        }
        # broadcast_0 -> loop (%1): a loop or branch
        # broadcast_1 -> loop (%2): a loop or branch""",
    )


def test_a_plan_shows_the_plans_within_it(expect):
    expect(
        lowered("scan").text("plan"),
        """
        plan running_sum on test:0 {
          argument 0: f32[3,4]
          result 0: f32[4]
          result 1: f32[3,4]
          arena 128 bytes, at least 128
          0: launch mul_0 result 0 <- argument 0
          1: loop 3 arrays 1 at 0 arena[64]:f32[4], result 1 <- arena[0]:i32[], argument 0, result 0, result 1 {
            plan body on test:0 {
              argument 0: i32[]
              argument 1: f32[3,4]
              argument 2: f32[4]
              argument 3: f32[3,4]
              result 0: f32[4]
              result 1: f32[3,4]
              arena 0 bytes, at least 0
              donate argument 3 -> result 1
              0: launch add_1 result 0 <- argument 2, argument 0, argument 1
              1: copy result 1 <- argument 3
              2: launch put_row_2 result 1 <- result 1, argument 0, argument 2
            }
          }
        }""",
    )


@pytest.mark.parametrize("name", CASES)
def test_printed_kernels_parse_to_the_same_kernels(name: str):
    text = kernels_text.program_text(lowered(name).kernels)
    code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))

    assert kernels_text.program_text(kernels_parse.parse_program(text)) == code


@pytest.mark.parametrize("name", CASES)
def test_printed_plans_parse_to_the_same_plans(name: str):
    plan = lowered(name).plan

    assert plan_text.parse(plan_text.to_text(plan)) == plan


@pytest.mark.parametrize("name", CASES)
def test_every_pass_keeps_what_loops_and_branches_mean(name: str):
    program, args = program_of(name), CASES[name][1]
    expected = eval_program(program, args)

    for one in program_passes(PLAIN):
        program = one.run(program)
        for reference, result in zip(expected, eval_program(program, args), strict=True):
            close(np.asarray(reference), np.asarray(result), ulps=4, why="order of additions")


# --- cost -------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [2, 1_000, 1_000_000])
def test_a_loop_of_any_length_is_one_step(length: int):
    program = rune.make_program(running_sum)(rune.ArrayType((length, 4), dtypes.f32))
    every_stage = stages(program, WITH_DOT)

    assert [type(s) for s in all_steps(every_stage.plan)].count(Loop) == 1
    assert len(every_stage.codes) <= 4


def test_the_rows_of_a_result_are_written_in_place():
    loop = loop_of(lowered("scan").plan)

    assert loop.arrays == 1
    assert loop.results[-1] == loop.arguments[-1]
    assert (len(loop.arguments) - 1, len(loop.results) - 1) in loop.body.donations


def test_a_carry_that_is_updated_elementwise_has_one_buffer():
    loop = loop_of(lowered("nested").plan)

    assert loop.results[0] == loop.state[0]


def test_carries_that_rotate_take_turns_with_second_buffers():
    loop = loop_of(lowered("while").plan)

    assert all(a != b for a, b in zip(loop.state, loop.results, strict=True))


def test_a_loop_of_no_steps_gives_the_first_carries_and_empty_rows():
    total, rows = rune.jit(lambda x, c: control.scan(lambda c, x: (c + x, c), c, x))(rnp.zeros((0, 4)), rnp.ones(4))

    assert rows.shape == (0, 4)
    close(np.ones(4, np.float32), np.asarray(total), ulps=0, why="nothing was added")


def test_unrolling_writes_out_so_many_steps_where_they_divide_the_length():
    def unrolled(xs: Any) -> Any:
        return control.scan(lambda c, x: (rnp.sin(c) + x, c), xs[0], xs, unroll=3)

    every_stage = stages(rune.make_program(unrolled)(rune.ArrayType((12, 4), dtypes.f32)), WITH_DOT)

    assert loop_of(every_stage.plan).count == 4
    assert sum(e.primitive.name == "sin" for e in _body(every_stage.simplified).equations) == 3


@pytest.mark.parametrize("length", [1, 2, 7, 10, 12, 34, 35])
@pytest.mark.parametrize("reverse", [False, True])
def test_unrolling_by_any_number_computes_what_single_steps_do(length, reverse):
    xs = np.arange(3 * length, dtype=np.int32).reshape(length, 3)
    total, before = np.zeros(3, np.int32), np.zeros_like(xs)
    for t in reversed(range(length)) if reverse else range(length):
        before[t], total = total, 3 * total + xs[t]

    def step(total: Any, x: Any) -> Any:
        return 3 * total + x, total

    unrolled = rune.jit(lambda xs: control.scan(step, xs[0] * 0, xs, unroll=16, reverse=reverse))
    last, rows = unrolled(xs)

    np.testing.assert_array_equal(total, np.asarray(last))
    np.testing.assert_array_equal(before, np.asarray(rows))


def test_a_scan_that_is_written_out_as_a_whole_is_no_loop():
    def unrolled(xs: Any) -> Any:
        return control.scan(lambda c, x: (c + x, c), xs[0], xs, unroll=16)

    assert loops_left(unrolled, f32(10, 4)) == 0
    assert loops_left(unrolled, f32(11, 4)) == 0
    assert loops_left(unrolled, f32(17, 4)) == 1


def _body(program: Program) -> Program:
    return next(e.params["body"] for e in program.equations if e.primitive.name == "loop")


# --- equal loops ------------------------------------------------------------------------------


def loops_left(function: Callable[..., Any], *types: Any) -> int:
    """The loops of a program in which equal equations are one."""
    program = eliminate_common(decompose(rune.make_program(function)(*types)))
    return sum(e.primitive is loop for e in program.equations)


def test_a_loop_that_is_written_twice_runs_once():
    def twice(x: Any) -> Any:
        return running_sum(x)[0] + running_sum(x)[0]

    assert loops_left(twice, f32(3, 4)) == 1


@pytest.mark.parametrize(
    "other",
    [
        lambda x: control.scan(lambda total, x: (total - x, total), x[0] * 0.0, x)[0],
        lambda x: control.scan(lambda total, x: (total + x, total), x[0] * 1.0, x)[0],
        lambda x: control.scan(lambda total, x: (total + x, total), x[0] * 0.0, x[:2])[0],
    ],
    ids=["another body", "another start", "another count"],
)
def test_loops_that_differ_are_two(other: Callable[..., Any]):
    assert loops_left(lambda x: running_sum(x)[0] + other(x), f32(3, 4)) == 2


# --- carries that stay ------------------------------------------------------------------------


def with_constants(run: Callable[..., Any], *types: Any) -> Program:
    return constant_carries(decompose(rune.make_program(run)(*types)))


def test_a_carry_that_no_step_changes_is_a_constant():
    def powers_of(x: Any, y: Any) -> Any:
        return control.fori_loop(0, 5, lambda i, c: (c[0], c[1] * c[0]), (x, y))

    program = with_constants(powers_of, f32(4), f32(4))
    (equation,) = [e for e in program.equations if e.primitive is loop]

    assert equation.params["consts"] == 1
    assert program.outputs[0] is program.inputs[0]


def test_carries_that_change_places_stay_carries():
    def swapped(x: Any, y: Any) -> Any:
        return control.fori_loop(0, 5, lambda i, c: (c[1], c[0]), (x, y))

    program = with_constants(swapped, f32(4), f32(4))

    assert [e.params["consts"] for e in program.equations if e.primitive is loop] == [0]


def test_a_loop_that_changes_nothing_until_a_condition_holds_stays():
    program = with_constants(lambda x: control.while_loop(lambda x: x < 0.0, lambda x: x, x), f32())

    assert [e.primitive.name for e in program.equations] == ["loop"]


def test_a_condition_reads_the_carries_that_became_constants():
    def until(limit: Any, x: Any) -> Any:
        return control.while_loop(lambda c: c[1] < c[0], lambda c: (c[0], c[1] * 2.0), (limit, x))

    limit, x = rune.jit(until)(np.float32(100), np.float32(3))

    assert (float(limit), float(x)) == (100.0, 192.0)


# --- hoisting ---------------------------------------------------------------------------------


def hoisted(step: Callable[..., Any], *types: Any) -> Program:
    def run(w: Any, xs: Any) -> Any:
        return control.scan(lambda c, x: (step(w, c, x), x), xs[0], xs)

    return hoist_loops(decompose(rune.make_program(run)(*types)))


def test_an_expensive_loop_invariant_is_computed_before_the_loop(expect):
    program = hoisted(lambda w, c, x: rnp.exp(w) * 2.0 * c + x, f32(4), f32(3, 4))

    expect(
        program,
        """
        program run(%0: f32[4], %1: f32[3,4]) {
          %2: f32[1,4] = slice %1 {limit=(1, 4), start=(0, 0), stride=(1, 1)}
          %3: f32[4] = reshape %2 {shape=(4,)}
          %4: f32[4] = exp %0
          %5: f32[4], %6: f32[3,4] = loop %0, %1, %4, %3 {body=program body(%0: i32[], %1: f32[4], %2: f32[3,4], %3: f32[4], %4: f32[4], %5: f32[3,4]) {
            %6: f32[4] = take_row %2, %0
            %7: f32[4] = mul %3, 2.0: f32[]
            %8: f32[4] = mul %7, %4
            %9: f32[4] = add %8, %6
            %10: f32[1,4] = reshape %6 {shape=(1, 4)}
            %11: f32[3,4] = put_row %5, %10, %0
            return %9, %11
          }, condition=None, consts=3, count=3}
          return %5, %6
        }""",  # noqa: E501
    )


def test_cheap_arithmetic_and_views_stay_in_the_loop():
    program = hoisted(lambda w, c, x: (w * 2.0 + 1.0)[::-1] * c + x, f32(4), f32(3, 4))

    assert [e.primitive.name for e in program.equations].count("mul") == 0
    assert "mul" in [e.primitive.name for e in _body(program).equations]


def operations_outside(step: Callable[..., Any], *types: Any) -> list[str]:
    """The arithmetic that is left in no loop."""
    return [
        e.primitive.name for e in hoisted(step, *types).equations if isinstance(e.primitive.lower, Scalar | Convert)
    ]


SQUARE, ROWS = f32(64, 64), f32(3, 64)


def test_arithmetic_that_a_product_would_store_in_every_step_is_computed_before_the_loop():
    assert operations_outside(lambda w, c, x: (w * 2.0) @ c + x, SQUARE, ROWS) == ["mul"]


def test_several_operations_in_a_row_are_computed_before_the_loop():
    assert operations_outside(lambda w, c, x: (w * 2.0 + 1.0) * w * c + x, f32(512), f32(3, 512)) == [
        "mul",
        "add",
        "mul",
    ]
    assert operations_outside(lambda w, c, x: (w * 2.0 + 1.0) * c + x, f32(512), f32(3, 512)) == []


def test_arithmetic_stays_in_the_loop_if_its_result_is_larger_than_what_it_reads():
    def converted(w: Any, c: Any, x: Any) -> Any:
        return w.astype("float32") @ c + x

    def repeated(w: Any, c: Any, x: Any) -> Any:
        return ((w[:, None] * w + 1.0) * w * c).sum(0) + x

    assert operations_outside(converted, ArrayType((64, 64), dtypes.i8), ROWS) == []
    assert operations_outside(repeated, f32(512), f32(3, 512)) == []


def test_arithmetic_stays_in_the_loop_if_each_step_reads_a_part_of_it():
    def row(w: Any, c: Any, x: Any) -> Any:
        return lax.dynamic_slice((w * 2.0 + 1.0) * w, (c[0].astype("int32"), 0), (1, 64))[0] + x

    assert operations_outside(row, f32(512, 64), ROWS) == []


# --- checks -----------------------------------------------------------------------------------


def test_a_body_that_takes_other_types_is_found():
    kernels = lowered("while").kernels
    (repeat,) = (s for s in kernels.steps if isinstance(s, Repeat))
    broken = replace(repeat, body=replace(repeat.body, inputs=repeat.body.inputs[:-1]))
    steps = tuple(broken if s is repeat else s for s in kernels.steps)

    with pytest.raises(CheckError, match="gives body other types than it takes"):
        kernels_check.check(replace(kernels, steps=steps))


def _with_loop(plan: Plan, **changes: Any) -> Plan:
    loop = loop_of(plan)
    return replace(plan, steps=tuple(replace(s, **changes) if s is loop else s for s in plan.steps))


def test_the_arena_within_must_fit_into_the_arena():
    plan = lowered("nested").plan

    with pytest.raises(CheckError, match="cannot place the arena of body"):
        check_overlap(_with_loop(plan, offset=plan.arena_bytes))


def test_a_carry_in_one_slot_must_be_updated_in_place():
    plan = lowered("while").plan

    with pytest.raises(CheckError, match="is not updated in place"):
        check_overlap(_with_loop(plan, results=loop_of(plan).state))


def test_the_null_executor_finds_a_body_that_reads_unwritten_memory():
    plan = lowered("nested").plan
    loop = loop_of(plan)
    later = tuple(s for s in loop.body.steps if not isinstance(s, Launch))

    with pytest.raises(CheckError, match=r"cannot run step \d+\.\d+.*never written"):
        check_plan(_with_loop(plan, body=replace(loop.body, steps=later)))


def test_every_branch_writes_the_same_results():
    branch = next(s for s in lowered("switch").plan.steps if isinstance(s, Branch))

    assert [p.results for p in branch.branches] == [branch.branches[0].results] * 3
    check_plan(stages(program_of("switch"), PLAIN).plan)


def test_a_const_that_nothing_reads_any_more_is_dropped_where_all_results_are_read():
    def function(x: Any, y: Any, n: Any) -> Any:
        def step(c: Any) -> Any:
            # The choice is the same either way, which is found once the body is simplified.
            return c[0] + 1, rnp.where(y[0] > c[0], c[1] + 1.0, c[1] + 1.0)

        return rune.while_loop(lambda c: c[0] < n, step, (0, x))

    program = rune.explain(function)(np.zeros(5, np.float32), np.zeros(3, np.float32), np.int32(3))["simplified"]

    assert "loop %2, 0: i32[], %0 {" in str(program)
