"""Control flow as programs: their size and text, what is hoisted, and what is dropped.

A loop is one equation whatever its number of steps, and derivatives add a constant number. Each
golden text shows one idea; other tests run the programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.control import parse_program
from rune.core.check import check_program
from rune.core.dead_code import prune
from rune.core.higher import subprograms
from rune.core.program import Program, Var
from rune.core.same import program_key, same_program
from rune.core.words import program_words
from rune.errors import CheckError
from tests.support.arrays import array
from tests.support.close import near
from tests.support.work import calls

X = array([0.5, 1.0, 2.0])


def size(program: Program) -> int:
    """The number of equations, inner ones included."""
    return sum(1 + sum(map(size, subprograms(e))) for e in program.equations)


def names(program: Program) -> list[str]:
    return [e.primitive.name for e in program.equations]


# --- size does not depend on the number of steps ------------------------------------------------


def scanned(length: int) -> Callable[..., Any]:
    return lambda x: rune.scan(lambda c, _: (rnp.sin(c) * x, c), x, None, length)[0].sum()


@pytest.mark.parametrize(
    "of",
    [lambda f: f, rune.grad, lambda f: rune.grad(rune.jit(f)), lambda f: rune.vmap(f)],
    ids=["value", "grad", "grad of jit", "vmap"],
)
def test_a_scan_of_many_steps_has_as_many_equations_as_one_of_few(of: Any):
    x = np.ones((2, 3), np.float32)

    sizes = {size(rune.make_program(of(scanned(n)))(x)) for n in (2, 1000, 10**7)}

    assert len(sizes) == 1


def test_tracing_does_as_much_work_for_many_steps_as_for_few():
    rune.make_program(rune.grad(scanned(7)))(X)  # what is remembered is remembered for both

    few, many = (calls(lambda n=n: rune.make_program(rune.grad(scanned(n)))(X)) for n in (10, 10**6))

    assert abs(many - few) < 0.02 * few


def test_compiling_does_as_much_work_for_many_steps_as_for_few():
    few, many = (calls(lambda n=n: rune.explain(scanned(n))(X)) for n in (10, 1000))

    assert many < 1.1 * few


# --- hoisting -----------------------------------------------------------------------------------


def test_residuals_that_no_step_changes_are_computed_once_before_the_loop(expect: Any):
    def loss(w: Any, x: Any) -> Any:
        return rune.scan(lambda c, _: (c * rnp.exp(w), None), x, None, length=9)[0]

    program = rune.make_program(rune.grad(loss, argnums=1))(2.0, 3.0)

    # exp is computed outside, and the backward loop reads it unchanged: nothing is stacked.
    expect(
        program,
        """
        program grad_loss(%0: f32*[], %1: f32*[]) {
          %2: f32*[] = scan %0, %1 {body=program jvp_lambda_known(%0: f32*[], %1: f32*[]) {
            %2: f32*[] = exp %0
            %3: f32*[] = mul %1, %2
            return %3
          }, carries=1, consts=1, length=9, reverse=false, unroll=1}
          %3: f32*[] = exp %0
          %4: f32*[] = scan %3, 1.0: f32*[] {body=program transpose_jvp_lambda_unknown(%0: f32*[], %1: f32*[]) {
            %2: f32*[] = mul %1, %0
            return %2
          }, carries=1, consts=1, length=9, reverse=true, unroll=1}
          return %4
        }""",
    )


def test_an_unchanged_const_is_passed_to_the_backward_loop_unstacked():
    w, h, xs = rnp.ones((8, 8)), rnp.ones(8), rnp.ones((50, 8))

    def loss(w: Any, h: Any) -> Any:
        return rune.scan(lambda c, x: (rnp.tanh(w @ c + x), None), h, xs)[0].sum()

    program = rune.make_program(rune.grad(loss, argnums=(0, 1)))(w, h)

    forward, backward = [e for e in program.equations if e.primitive.name == "scan"]
    stack_shapes = [v.type.shape for v in forward.results[1:]]
    assert sorted(stack_shapes) == [(50, 8), (50, 8)]  # the carry, and the derivative of tanh
    assert program.inputs[0] in backward.operands
    assert (50, 8, 8) not in [v.type.shape for e in program.equations for v in e.results]


def test_the_gradient_of_a_weight_is_one_product_after_the_loop(expect: Any):
    w, h, xs = rnp.ones((8, 8)), rnp.ones(8), rnp.ones((5, 8))

    def loss(w: Any) -> Any:
        return rune.scan(lambda c, x: (w @ c + x, None), h, xs)[0].sum()

    program = rune.make_program(rune.grad(loss))(w)

    backward, product = program.equations[-2:]
    assert [v.type.shape for v in backward.results] == [(8,), (5, 8)]  # no sum of f32[8,8]
    expect(product.primitive, "dot_general")
    expect(product.results[0].type, "f32[8,8]")


@pytest.mark.parametrize(
    "step",
    [
        lambda w, c, x: w @ c + x,
        lambda w, c, x: w @ (w @ c) * x,
        lambda w, c, x: w.T @ c + w @ x,
        lambda w, c, x: (w * 0.5) @ c + w.sum(),
        lambda w, c, x: w[0] * c + x,
    ],
)
def test_sums_of_products_are_those_of_the_loop_written_out(step: Any):
    rng = np.random.default_rng(0)
    w, h, xs = (array(rng.normal(size=s) * 0.3) for s in ((4, 4), (4,), (6, 4)))

    def loss(w: Any) -> Any:
        return (rune.scan(lambda c, x: (step(w, c, x), None), h, xs)[0] ** 2).sum()

    def twin(w: Any) -> Any:
        c = h
        for i in range(6):
            c = step(w, c, xs[i])
        return (c**2).sum()

    for of in (rune.grad, rune.hessian):
        near(of(twin)(w), of(loss)(w), relative=1e-10, absolute=1e-12, why="f64")


def test_rows_that_are_read_unchanged_are_not_copied():
    def loss(h: Any, xs: Any) -> Any:
        return rune.scan(lambda c, x: (c * x, None), h, xs)[0]

    program = rune.make_program(rune.grad(loss))(1.0, X)

    forward, backward = [e for e in program.equations if e.primitive.name == "scan"]
    assert len(forward.results) == 1
    assert program.inputs[1] in backward.operands


def test_a_residual_that_is_also_a_result_is_not_stacked_twice():
    def loss(x: Any) -> Any:
        last, ys = rune.scan(lambda c, _: (c * c, c), x, None, length=5)
        return last + ys.sum()

    program = rune.make_program(rune.grad(loss))(1.0)

    # The results are what the derivative of the square reads.
    forward = next(e for e in program.equations if e.primitive.name == "scan")
    assert len(forward.results) == 2


def test_a_loop_keeps_only_the_carries_that_a_residual_reads():
    def loss(x: Any) -> Any:
        def body(s: Any) -> Any:
            i, v, big = s
            return i + 1, rnp.sin(v), big * 2.0

        _, v, big = rune.while_loop(lambda s: s[0] < 5, body, (0, x, rnp.ones((4, 4))))
        return v + 0.0 * big.sum()

    program = rune.make_program(rune.grad(loss))(1.0)

    (known, *_) = [e for e in program.equations if e.primitive.name == "while"]
    # Steps, n, v, big; and the carries kept of v alone.
    assert sorted(v.type.shape for v in known.results) == [(), (), (), (4, 4), (65,)]


def test_branches_share_the_slots_of_their_residuals():
    def loss(x: Any) -> Any:
        return rune.switch(2, [lambda v: rnp.sin(v) * rnp.exp(v), lambda v: rnp.tanh(v), lambda v: v**3], x).sum()

    program = rune.make_program(rune.grad(loss))(X)

    forward = next(e for e in program.equations if e.primitive.name == "cond")
    # The value, and as many residuals as the branch with the most of them has.
    widest = len(forward.results)
    alone = [
        rune.make_program(rune.grad(lambda x, b=b: rune.cond(True, b, b, x).sum()))(X)
        for b in (lambda v: rnp.sin(v) * rnp.exp(v), lambda v: rnp.tanh(v), lambda v: v**3)
    ]
    assert widest == max(len(next(e for e in p.equations if e.primitive.name == "cond").results) for p in alone)


# --- unused results -----------------------------------------------------------------------------


def needed(program: Program, *uses: bool) -> Program:
    smaller, _ = prune(program, uses)
    check_program(smaller)
    return smaller


def test_unused_rows_and_the_carries_that_only_they_need_are_dropped(expect: Any):
    def function(x: Any, y: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            a, b = c
            return (a * x, b + a * y), (a, b)

        (a, b), (first, second) = rune.scan(step, (x, y), None, length=3)
        return a, b, first, second

    program = rune.make_program(function)(1.0, 2.0)

    expect(
        needed(program, False, False, True, False),
        """
        program function(%0: f32*[]) {
          %1: f32*[], %2: f32*[3] = scan %0, %0 {body=program step(%0: f32*[], %1: f32*[]) {
            %2: f32*[] = mul %1, %0
            return %2, %1
          }, carries=1, consts=1, length=3, reverse=false, unroll=1}
          return %2
        }""",
    )


def test_a_loop_keeps_what_its_condition_needs(expect: Any):
    def function(x: Any, y: Any) -> Any:
        def body(s: Any) -> Any:
            n, a, b, c = s
            return n + 1, a * y, b + x, c + b

        return rune.while_loop(lambda s: s[2] < 9.0, body, (0, x, x, x))

    program = rune.make_program(function)(1.0, 2.0)

    expect(
        needed(program, False, True, False, False),
        """
        program function(%0: f32*[], %1: f32*[]) {
          %2: f32*[], %3: f32*[] = while %1, %0, %0, %0 {body=program body(%0: f32*[], %1: f32*[], %2: f32*[], %3: f32*[]) {
            %4: f32*[] = mul %2, %0
            %5: f32*[] = add %3, %1
            return %4, %5
          }, body_consts=2, condition=program lambda(%0: f32*[], %1: f32*[]) {
            %2: bool[] = lt %1, 9.0: f32*[]
            return %2
          }, condition_consts=0, reverse=Checkpoints(count=64)}
          return %2
        }""",  # noqa: E501
    )


def test_unused_results_of_branches_are_dropped_with_their_operands():
    def function(x: Any, y: Any) -> Any:
        return rune.cond(True, lambda a, b: (a, b * 2.0), lambda a, b: (-a, b), x, y)

    program = needed(rune.make_program(function)(1.0, 2.0), True, False)

    equation = program.equations[-1]
    assert (equation.primitive.name, len(equation.results)) == ("cond", 1)
    assert len(program.inputs) == 1


def test_the_linear_part_of_a_loop_is_pruned_like_the_loop():
    def function(x: Any, y: Any) -> Any:
        def body(s: Any) -> Any:
            i, a, b = s
            return i + 1, rnp.sin(a), rnp.cos(b) * a

        return rune.while_loop(lambda s: s[0] < 4, body, (0, x, y))[1]

    def pushed(x: Any, y: Any) -> Any:
        return rune.linearize(function, x, y)[1](1.0, 1.0)

    program = rune.make_program(pushed)(0.3, 0.4)

    (equation,) = [e for e in program.equations if e.primitive.name == "while_linear"]
    assert (equation.params["checkpoints"], len(equation.results)) == (1, 1)


# --- text ---------------------------------------------------------------------------------------


def everything(x: Any) -> Any:
    def body(s: Any) -> Any:
        i, v = s
        return i + 1, rune.cond(v.sum() > 0, rnp.sin, lambda v: v * 2.0, v)

    y = rune.while_loop(lambda s: s[0] < 3, body, (0, x), reverse=rune.GrowingResiduals())[1]
    y = rune.while_loop(lambda s: s[0] < 3, body, (0, y), reverse=rune.Checkpoints(4))[1]
    last, ys = rune.scan(lambda c, _: (c * y.sum(), c), y, None, 4, reverse=True, unroll=2)
    return last.sum() + ys.sum()


@pytest.mark.parametrize("of", [lambda f: f, rune.vmap], ids=["value", "vmap"])
def test_text_of_nested_control_flow_reads_back(of: Any):
    program = rune.make_program(of(everything))(np.ones((2, 3), np.float32))

    copy = parse_program(str(program))

    check_program(copy)
    assert str(copy) == str(program)
    assert same_program(copy, program)


def test_the_linear_part_reads_back():
    def function(x: Any) -> Any:
        return rune.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, rnp.sin(s[1])), (0, x))[1]

    def pushed(x: Any, t: Any) -> Any:
        return rune.linearize(function, x)[1](t)

    program = rune.make_program(pushed)(1.0, 1.0)

    assert same_program(parse_program(str(program)), program)


def test_programs_that_differ_in_a_branch_are_not_the_same():
    def choose(second: Any) -> Program:
        return rune.make_program(lambda x: rune.cond(x > 0, rnp.sin, second, x))(1.0)

    assert same_program(choose(rnp.cos), choose(rnp.cos))
    assert not same_program(choose(rnp.cos), choose(rnp.tan))


def of_many_values(a: Any, b: Any, c: Any) -> Any:
    x, y = rnp.sin(a), rnp.cos(b) * c
    z, w = rnp.exp(c), x + y
    return x, y, rune.lax.top_k(rnp.stack([z, w, y]), 2), rune.scan(lambda s, _: (s * z, s + w), y, None, 3), w - a


def reading_others(program: Program) -> Iterator[Program]:
    """The program with one operand or result in place of another, for all that have its type."""
    bound: list[Var] = list(program.inputs)
    for number, equation in enumerate(program.equations):
        for place, old in enumerate(equation.operands):
            for new in (v for v in bound if v is not old and v.type is old.type):
                operands = (*equation.operands[:place], new, *equation.operands[place + 1 :])
                variant = replace(equation, operands=operands)
                body = (*program.equations[:number], variant, *program.equations[number + 1 :])
                yield program.with_equations(body, program.outputs)
        bound += equation.results
    for place, old in enumerate(program.outputs):
        for new in (v for v in bound if v is not old and v.type is old.type):
            yield program.with_equations(
                program.equations, (*program.outputs[:place], new, *program.outputs[place + 1 :])
            )


@pytest.mark.parametrize("key", [program_key, program_words])
def test_programs_that_read_another_value_anywhere_have_another_key(key: Callable[[Program], object]):
    program = rune.make_program(of_many_values)(1.0, 2.0, 3.0)
    others = list(reading_others(program))

    assert len(others) > 50
    assert key(program) is not None
    assert len({key(p) for p in (program, *others)}) == 1 + len(others)


def chosen(which: int) -> Callable[..., Any]:
    """The body of a loop that ends with one value or with another, by a Python number."""

    def step(state: tuple[Any, ...], _: Any) -> Any:
        a, b, c = state
        x, y = rnp.sin(a), rnp.cos(b)
        return (x, y, rnp.exp([c, y][which])), None

    return step


def test_loops_with_equal_bodies_that_read_other_values_differ():
    start = 1.0, 2.0, 3.0
    lasts = [rune.scan(chosen(which), start, None, 1)[0][2] for which in (0, 1)]

    near([np.exp(3.0), np.exp(np.cos(2.0))], lasts, relative=1e-6, why="roundings of f32")


def test_equal_parameters_of_different_types_are_different_programs():
    def scanned_with(reverse: Any) -> Any:
        program = rune.make_program(lambda x: rune.scan(lambda c, r: (c + r, c), 0.0, x))(X)
        equation = program.equations[-1]
        params = {**equation.params, "reverse": reverse}
        new = type(equation)(equation.primitive, equation.operands, params, equation.results)
        return program_key(program.with_equations([*program.equations[:-1], new], new.results))

    assert len({scanned_with(v) for v in (True, False, 0, 1, 0.0, 1.0)}) == 6


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("length=3", "length=4"),
        ("carries=1", "carries=2"),
        ("consts=0", "consts=1"),
        ("f32[], %1: f32[]) {", "f32[], %1: f32[2]) {"),
    ],
)
def test_the_check_refuses_a_scan_that_does_not_fit_its_body(before: str, after: str):
    text = str(rune.make_program(lambda x: rune.scan(lambda c, r: (c + r, c), np.float32(0), x))(X))
    assert before in text

    with pytest.raises(CheckError):
        check_program(parse_program(text.replace(before, after, 1)))
