"""Laws of random programs: text, check, passes.

Every program that can be traced prints and reads back, checks itself, and keeps its value under
every pass, alone and in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune import dtypes, ops
from rune.core.check import check_program
from rune.core.printer import FULL
from rune.core.program import Program
from rune.core.same import same_program
from rune.lowering.decompose import decompose
from rune.lowering.pipeline import program_passes
from rune.lowering.simplify import eliminate_common, eliminate_dead, fold_constants, simplify_algebra
from rune.transforms.programs.make_program import parse_program
from tests.support.close import near, same
from tests.support.lowering import PLAIN
from tests.support.oracle import by_reference
from tests.support.strategies import SMOOTH, arguments, programs

SIMPLIFY = [p.PASS for p in (fold_constants, simplify_algebra, eliminate_common, eliminate_dead)]
EXACT = [p for p in ops.PRIMITIVES if p.expand is None]


def lowered(program: Program) -> Program:
    """The program as the passes see it: constants are inputs, everything lowers."""
    constants = tuple(v for v, _ in program.constants)
    closure = Program((*constants, *program.inputs), program.equations, program.outputs)
    return decompose(closure)


def values(program: Program, args: list[Any]) -> list[np.ndarray]:
    """The results of the program by the references of its primitives."""
    return [np.asarray(o) for o in by_reference(program, args)]


def with_constants(program: Program, args: list[Any]) -> list[Any]:
    """Arguments for the lowered program."""
    return [*(c for _, c in program.constants), *args]


@given(programs())
def test_every_program_passes_the_check(program: Program):
    check_program(program)


@given(programs(floating=dtypes.f32))
def test_reading_undoes_printing(program: Program):
    if any(np.size(np.asarray(c)) > FULL for _, c in program.constants):
        return

    copy = parse_program(str(program))

    assert str(copy) == str(program)
    assert same_program(copy, program)


@given(st.data())
def test_a_program_that_was_read_computes_the_same(data: st.DataObject):
    program = data.draw(programs())
    if any(np.size(np.asarray(c)) > FULL for _, c in program.constants):
        return
    args = data.draw(arguments(program))

    same(values(program, args), values(parse_program(str(program)), args))


@given(st.data())
def test_decomposing_changes_no_bit_where_nothing_is_expanded(data: st.DataObject):
    program = data.draw(programs(EXACT))
    args = data.draw(arguments(program))

    result = lowered(program)

    check_program(result)
    same(values(program, args), values(result, with_constants(program, args)))


@given(st.data())
def test_decomposing_expands_within_rounding(data: st.DataObject):
    program = data.draw(programs(SMOOTH, dtypes.f64))
    args = data.draw(arguments(program))

    results = values(lowered(program), with_constants(program, args))

    near(values(program, args), results, relative=1e-9, why="powers by repeated products")


@pytest.mark.parametrize("one", SIMPLIFY, ids=lambda p: p.name)
@given(data=st.data())
def test_every_single_pass_keeps_every_bit(one: Any, data: st.DataObject):
    program = data.draw(programs())
    args = data.draw(arguments(program))
    before = lowered(program)

    after = one.run(before)

    check_program(after)
    full = with_constants(program, args)
    same(values(before, full), values(after, full))


@given(st.data(), st.lists(st.sampled_from(SIMPLIFY), min_size=2, max_size=8))
def test_passes_in_any_order_keep_every_bit(data: st.DataObject, order: list[Any]):
    program = data.draw(programs())
    args = data.draw(arguments(program))
    before = after = lowered(program)

    for one in order:
        after = one.run(after)

    check_program(after)
    full = with_constants(program, args)
    same(values(before, full), values(after, full))


@given(programs())
def test_the_pipeline_reaches_a_fixed_point(program: Program):
    once = lowered(program)
    for one in program_passes(PLAIN):
        once = one.run(once)

    twice = once
    for one in program_passes(PLAIN):
        twice = one.run(twice)

    assert same_program(once, twice), f"{once}\n{twice}"
