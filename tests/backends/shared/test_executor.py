"""Code that executors share: sizes from shapes, concrete plans, memory for the results."""

from __future__ import annotations

import pytest

from rune import dims, dtypes
from rune.backends.shared.executor import (
    Concretes,
    ConcreteStep,
    concrete,
    dot_shapes,
    result_buffers,
    size_bytes,
    size_values,
)
from rune.core.types import ArrayType
from rune.errors import ArgumentError, DimensionError
from rune.lowering.plan import Copy, Plan, SizeSource, Slot, Space

n, m = dims.symbol("n", 1, 8), dims.symbol("m", 0)
MATRIX, ROW = ArrayType((n, 2 * m), dtypes.f32), ArrayType((n,), dtypes.i8)
STEP = Copy(Slot(Space.ARENA, MATRIX, offset=16 * n), Slot(Space.ARGUMENT, MATRIX))
# A size is read from an axis that equals that size: m has its own argument.
SOURCES = (SizeSource("n", 0, 0, 1, 8), SizeSource("m", 2, 0, 0, None))
PLAN = Plan(
    "f",
    "",
    (MATRIX, ROW, ArrayType((m,), dtypes.i8)),
    (ROW, ROW),
    (STEP,),
    {},
    24 * n * m,
    SOURCES,
    donations=((1, 1),),
)


def test_sizes_are_read_off_the_shapes():
    assert size_values(PLAN, [(3, 10), (3,), (5,)]) == {"n": 3, "m": 5}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(9, 10), (9,), (5,)], r"f: cannot run with n = 9 \(n in 1..8; axis 0 of argument 0\)"),
        ([(0, 10), (0,), (5,)], "f: cannot run with n = 0"),
        ([(3, 10), (4,), (5,)], r"f: cannot run with n = 3 \(axis 0 of argument 1 is 4\)"),
        ([(3, 9), (3,), (5,)], r"with 2\*m = 10 for m = 5 \(axis 1 of argument 0 is 9\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(shapes, message):
    with pytest.raises(DimensionError, match=message):
        size_values(PLAN, shapes)


def test_a_wrong_number_of_arguments_is_refused():
    with pytest.raises(ArgumentError, match=r"f: cannot run .* \(1 given, 3 expected\)"):
        size_values(PLAN, [(3, 10)])


def test_a_concrete_plan_has_offsets_bytes_and_shapes():
    concrete_plan = concrete(PLAN, {"n": 3, "m": 5})

    (step,) = concrete_plan.steps
    assert isinstance(step, ConcreteStep)
    target, source = step.places
    assert (target.offset, target.bytes, target.type.shape) == (48, 120, (3, 10))
    assert source.space is Space.ARGUMENT
    assert concrete_plan.arena_bytes == 360
    assert [str(t) for t in concrete_plan.results] == ["i8[3]", "i8[3]"]


def test_equal_shapes_give_the_same_concrete_plan():
    concretes = Concretes(PLAN)

    assert concretes([(3, 10), (3,), (5,)]) is concretes([(3, 10), (3,), (5,)])
    assert concretes([(4, 10), (4,), (5,)]).sizes["n"] == 4


def test_a_result_takes_the_memory_of_a_donated_argument():
    concrete_plan = concrete(PLAN, {"n": 3, "m": 5})

    def results(donations: tuple[int, ...]) -> list[str]:
        return result_buffers(
            PLAN, concrete_plan, ["a", "b", "c"], donations, lambda t: f"new {t}", lambda b, t: f"{b} as {t}"
        )

    assert results((0, 1)) == ["new i8[3]", "b as i8[3]"]
    assert results((0,)) == ["new i8[3]", "new i8[3]"]


def test_the_dot_routine_states_the_layout_of_its_operands():
    sizes = {"batch": 2, "m": n, "n": 5, "k": 7, "trans_a": True, "trans_b": False}

    assert dot_shapes(sizes, {"n": 3}) == ((2, 7, 3), (2, 7, 5), (2, 3, 5))


def test_bytes_of_a_rank_zero_array_are_one_element():
    assert size_bytes(ArrayType((), dtypes.f64)) == 8
