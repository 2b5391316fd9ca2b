"""The language itself: types, dispatch, the check, dead code, evaluation.

Small programs built by hand, each breaking one rule; and direct calls of interpreters.
"""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, ops
from rune.core.check import check_program, checker
from rune.core.dead_code import prune
from rune.core.evaluate import eval_program, last_uses
from rune.core.higher import subprograms
from rune.core.interpreter import Interpreter, Tracer, current, is_evaluating, type_of
from rune.core.program import Equation, Literal, Program, Var, substitute
from rune.core.types import ArrayType
from rune.errors import ArgumentError, CheckError
from rune.transforms.programs.make_program import parse_program
from tests.support.arrays import array
from tests.support.close import same

VECTOR = ArrayType((3,), dtypes.f32)
SCALAR = ArrayType((), dtypes.f32)
X = array([1.0, 2.0, 3.0])


# --- types ------------------------------------------------------------------------------------


def test_equal_types_are_one_object_and_cannot_be_changed():
    assert ArrayType((3,), dtypes.f32) is VECTOR
    assert copy.deepcopy(VECTOR) is VECTOR
    assert pickle.loads(pickle.dumps(VECTOR)) is VECTOR
    with pytest.raises(AttributeError, match="immutable"):
        VECTOR.dtype = dtypes.f64


def test_types_of_python_values_are_weak_and_of_numpy_values_are_not():
    assert str(type_of(2.0)) == "f32*[]"
    assert str(type_of(2)) == "i32*[]"
    assert str(type_of(True)) == "bool[]"
    assert str(type_of(np.float64(2.0))) == "f64[]"
    assert str(type_of(X)) == "f32[3]"


# --- dispatch ---------------------------------------------------------------------------------


def test_outside_any_transformation_values_are_computed_at_once():
    assert is_evaluating()
    assert isinstance(ops.sin(X), rune.Array)


def test_a_transformation_is_left_even_when_the_function_raises():
    outside = current()

    with pytest.raises(ZeroDivisionError):
        rune.grad(lambda x: 1 / 0)(1.0)

    assert current() is outside


def test_threads_do_not_see_each_others_transformations():
    answers = []

    def in_thread() -> None:
        answers.append(is_evaluating())
        answers.append(float(rune.grad(lambda x: x * x)(3.0)))

    def traced(x: Any) -> Any:
        thread = threading.Thread(target=in_thread)
        thread.start()
        thread.join()
        return x

    rune.jit(traced)(X)

    assert answers == [True, 6.0]


def test_generators_resumed_in_another_context_use_that_context():
    def steps() -> Any:
        while True:
            yield ops.sin(X)

    running = steps()
    first = next(running)
    program = rune.make_program(lambda x: next(running) + x)(X)

    assert isinstance(first, rune.Array)
    assert [e.primitive for e in program.equations][-1] is ops.add


# --- check ------------------------------------------------------------------------------------


def equation(primitive: Any, operands: tuple, result: ArrayType, **params: Any) -> Equation:
    return Equation(primitive, operands, params, (Var(result),))


def test_a_well_formed_program_passes():
    x = Var(VECTOR)
    sin = equation(ops.sin, (x,), VECTOR)

    check_program(Program((x,), (sin,), sin.results))


def test_a_variable_used_before_it_is_bound_is_found():
    x, y = Var(VECTOR), Var(VECTOR)

    with pytest.raises(CheckError, match="sin uses a variable before it is bound"):
        check_program(Program((x,), (equation(ops.sin, (y,), VECTOR),), (x,)))
    with pytest.raises(CheckError, match="return uses a variable before it is bound"):
        check_program(Program((x,), (), (y,)))


def test_a_variable_bound_twice_is_found():
    x = Var(VECTOR)

    with pytest.raises(CheckError, match=r"of type f32\[3\] is bound twice"):
        check_program(Program((x, x), (), (x,)))
    with pytest.raises(CheckError, match="bound twice"):
        check_program(Program((x,), (Equation(ops.sin, (x,), {}, (x,)),), (x,)))


def test_a_result_whose_type_contradicts_the_rule_is_detected():
    x = Var(VECTOR)

    with pytest.raises(CheckError, match=r"sin gives \(f32\[3\]\), not \(f32\[\]\)"):
        check_program(Program((x,), (equation(ops.sin, (x,), SCALAR),), (x,)))


def test_a_parameter_that_a_pass_changes_in_place_is_found_by_the_next_check():
    program = rune.make_program(lambda x: ops.reduce_sum(x, axes=(0,)))(np.ones((3, 5), np.float32))
    check = checker()
    check(program)

    dict.update(program.equations[0].params, axes=(0, 1))  # type: ignore[arg-type]

    with pytest.raises(CheckError, match="reduce_sum gives"):
        check(program)


def test_a_literal_or_constant_of_another_type_is_found():
    x = Var(VECTOR)

    with pytest.raises(CheckError, match=r"a literal of return of type f32\[\] holds f64\[\]"):
        check_program(Program((), (), (Literal(np.array(1.0), SCALAR),)))
    with pytest.raises(CheckError, match=r"a constant of type f32\[3\] holds f32\[2\]"):
        check_program(Program((), (), (x,), ((x, np.ones(2, np.float32)),)))


def test_a_nested_program_is_checked_with_its_arguments():
    inner = rune.make_program(ops.sin)(X)
    broken = Program(inner.inputs, inner.equations, (Var(VECTOR),))
    jit = rune.make_program(rune.jit(ops.sin))(X).equations[0].primitive
    x, s = Var(VECTOR), Var(SCALAR)

    with pytest.raises(CheckError, match="return uses a variable"):
        check_program(Program((x,), (equation(jit, (x,), VECTOR, program=broken),), (x,)))
    with pytest.raises(CheckError, match=r"jit takes \(f32\[3\]\), not \(f32\[\]\)"):
        check_program(Program((s,), (equation(jit, (s,), VECTOR, program=inner),), (s,)))


def test_the_error_shows_the_program():
    with pytest.raises(CheckError, match="program f") as error:
        check_program(Program((), (), (Var(VECTOR),)))
    assert "cannot accept f" in str(error.value)


# --- dead code --------------------------------------------------------------------------------

TWO = """
program f(%0: f32[3], %1: f32[3]) {
  %2: f32[3] = sin %0
  %3: f32[3] = cos %1
  %4: f32[3] = exp %2
  return %4, %3
}"""


def test_pruning_keeps_what_the_used_results_need(expect: Any):
    smaller, is_used = prune(parse_program(TWO), [False, True])

    assert is_used == (False, True)
    expect(
        smaller,
        """
        program f(%0: f32[3]) {
          %1: f32[3] = cos %0
          return %1
        }""",
    )


def test_pruning_reaches_into_nested_programs(expect: Any):
    inner = rune.jit(lambda x: (ops.sin(x), ops.exp(ops.cos(x))))
    program = rune.make_program(lambda x: inner(x))(X)

    smaller, _ = prune(program, [True, False])

    expect(
        smaller,
        """
        program lambda(%0: f32[3]) {
          %1: f32[3] = jit %0 {program=program lambda(%0: f32[3]) {
            %1: f32[3] = sin %0
            return %1
          }}
          return %1
        }""",
    )


def test_pruning_everything_used_changes_nothing():
    program = parse_program(TWO)

    smaller, is_used = prune(program, [True, True])

    assert is_used == (True, True)
    assert smaller.equations == program.equations


# --- evaluation and rewriting -----------------------------------------------------------------


def test_evaluation_frees_values_after_their_last_use():
    program = parse_program(TWO)
    x, y = program.inputs

    last = last_uses(program)

    assert (last[x], last[y]) == (0, 1)
    assert last[program.equations[-1].results[0]] == len(program.equations)


def test_a_wrong_number_of_arguments_is_an_error():
    with pytest.raises(ArgumentError, match="1 arguments for 2 inputs"):
        eval_program(parse_program(TWO), [X])


def test_substitution_follows_chains_and_leaves_no_stale_use():
    program = parse_program(TWO)
    sin, cos, exp = (e.results[0] for e in program.equations)

    result = substitute(program, {exp: sin, sin: program.inputs[0]}, program.equations[1:2])

    assert result.outputs == (program.inputs[0], cos)
    check_program(result)


def test_subprograms_are_those_in_parameters():
    (jit,) = rune.make_program(rune.jit(ops.sin))(X).equations

    assert [p.name for p in subprograms(jit)] == ["sin"]


def test_a_program_evaluates_to_the_same_each_time():
    program = parse_program(TWO)

    same(eval_program(program, [X, X]), eval_program(program, [X, X]))


def test_an_interpreter_must_define_operations():
    class Silent(Interpreter): ...

    with pytest.raises(NotImplementedError, match="Silent"):
        Silent(None).process(ops.sin, [1.0], {})


def test_a_tracer_must_define_its_type():
    with pytest.raises(NotImplementedError):
        _ = Tracer().type
