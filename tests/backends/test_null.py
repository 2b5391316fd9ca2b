"""The null executor finds what a plan can get wrong, before anything runs.

A correct plan first; then plans with one fault each, and the message that names it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rune import dims, dtypes
from rune.backends import null
from rune.core.types import ArrayType
from rune.dims import Size
from rune.errors import CheckError, DeletedArrayError, DimensionError
from rune.lowering.kernel.text import parse
from rune.lowering.plan import Branch, Call, Copy, Launch, Plan, SizeSource, Slot, Space, Step
from tests.backends.plans import plan_of

n = dims.symbol("n", 1, 100)
VECTOR = ArrayType((n,), dtypes.f32)
DOUBLE = parse("""
code double(x: read f32[n], y: write f32[n]) sizes n in 1..100 {
  for i in n grid { store y[i] = x[i] + x[i] }
}""")
ADD = parse("""
code add(a: read f32[n], b: read f32[n], y: write f32[n]) sizes n in 1..100 {
  for i in n grid { store y[i] = a[i] + b[i] }
}""")
INCREMENT = parse("""
code increment(y: readwrite f32[n]) sizes n in 1..100 {
  for i in n grid { store y[i] = y[i] + 1.0_f32 }
}""")
IN_PLACE = replace(DOUBLE, name="in_place", aliases=(("x", "y"),))
KERNELS = {c.name: c for c in (DOUBLE, ADD, INCREMENT, IN_PLACE)}
X, Y = Slot(Space.ARGUMENT, VECTOR), Slot(Space.RESULT, VECTOR)


def arena(offset: Size) -> Slot:
    return Slot(Space.ARENA, VECTOR, offset=offset)


def plan(*steps: Step, arena_bytes: Size = 8 * n, **changes) -> Plan:
    """A plan from one argument to one result."""
    sources = (SizeSource("n", 0, 0, 1, 100),)
    base = Plan("f", "test", (VECTOR,), (VECTOR,), steps, KERNELS, arena_bytes, sources)
    return replace(base, **changes)


def refused(broken: Plan) -> str:
    with pytest.raises(CheckError, match="plan f: cannot") as error:
        null.check_plan(broken)
    return str(error.value).splitlines()[0]


def test_a_correct_plan_is_accepted():
    null.check_plan(
        plan(
            Launch("double", (X, arena(0))),
            Launch("add", (X, arena(0), arena(4 * n))),
            Launch("increment", (arena(4 * n),)),
            Launch("in_place", (arena(4 * n), arena(4 * n))),
            Copy(Y, arena(4 * n)),
        )
    )


def test_memory_is_used_again_after_its_last_read():
    null.check_plan(
        plan(
            Launch("double", (X, arena(0))),
            Launch("double", (arena(0), arena(4 * n))),
            Launch("double", (arena(4 * n), arena(0))),
            Launch("double", (arena(0), Y)),
        )
    )


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([Launch("triple", (X, Y))], "step 0 (there is no kernel triple)"),
        ([Launch("double", (X,))], "step 0 (double takes 2 buffers, given are 1)"),
        (
            [Launch("double", (X, Slot(Space.RESULT, VECTOR.with_dtype(dtypes.i32))))],
            "y of double is f32[1], result 0 is i32[1]",
        ),
        ([Launch("double", (arena(0), Y))], "step 0 (arena[0:4] was never written, or was overwritten since)"),
        ([Launch("double", (Y, arena(0)))], "result 0 was never written"),
        ([Launch("increment", (Y,))], "result 0 was never written"),
        ([Launch("double", (X, arena(0)))], "the return (result 0 was never written"),
        ([Launch("double", (X, X))], "x and y of double overlap, and are not aliases"),
        ([Launch("double", (X, arena(2)))], "is not aligned for f32"),
        (
            [Launch("double", (X, arena(0))), Launch("in_place", (arena(0), arena(4))), Copy(Y, arena(4))],
            "overlap, and are not aliases",
        ),
        (
            [Launch("double", (X, arena(0))), Launch("double", (X, arena(4))), Launch("add", (arena(0), arena(4), Y))],
            "arena[0:8] was never written, or was overwritten since",
        ),
        ([Launch("double", (X, arena(8 * n)))], "arena[8:12] is outside the arena of 8 bytes"),
        ([Copy(X, X)], "overlaps an input"),
        ([Copy(Y, X), Copy(X, Y)], "step 1 (argument 0 must not be written)"),
        ([Copy(Y, Slot(Space.ARGUMENT, ArrayType((n + 1,), dtypes.f32)))], "argument 0 and result 0 differ in size"),
        ([Launch("double", (X, Slot(Space.RESULT, VECTOR, 1)))], "there is no result 1"),
        ([Call("fft", (Y,), (X,), ())], "there is no routine fft of 1 inputs"),
    ],
)
def test_a_broken_step_is_named(steps, reason):
    assert reason in refused(plan(*steps))


DOT = Call(
    "dot",
    (Slot(Space.RESULT, ArrayType((n, 3), dtypes.f32)),),
    (Slot(Space.ARGUMENT, ArrayType((n, 4), dtypes.f32)),) * 2,
    (("batch", 1), ("m", n), ("n", n), ("k", 4), ("trans_a", False), ("trans_b", True)),
)


def test_a_routines_operands_must_have_its_shapes():
    broken = replace(plan(DOT), arguments=(DOT.inputs[0].type,), results=(DOT.outputs[0].type,))

    assert "result 0 is f32[1,3], the routine takes [1, 1, 1]" in refused(broken)


def choice(offset: Size, *branches: tuple[Step, ...]) -> Plan:
    """A plan that reads its first value again after a choice. offset: of the branches' arena"""
    index, result = ArrayType((), dtypes.i32), arena(12 * n)
    inner = tuple(Plan("branch", "test", (VECTOR,), (VECTOR,), steps, KERNELS, 4 * n, ()) for steps in branches)
    step = Branch(Slot(Space.ARGUMENT, index, 1), (X,), (result,), inner, offset)
    steps = Launch("double", (X, arena(0))), step, Launch("add", (arena(0), result, Y))
    return plan(*steps, arguments=(VECTOR, index), arena_bytes=16 * n)


def test_what_one_branch_overwrites_cannot_be_read_after_the_choice():
    by_copy, by_arena = (Copy(Y, X),), (Launch("double", (X, arena(0))), Copy(Y, arena(0)))

    null.check_plan(choice(8 * n, by_arena, by_copy))
    for branches in ((by_arena, by_copy), (by_copy, by_arena)):
        assert "arena[0:8] was never written, or was overwritten since" in refused(choice(4, *branches))


def test_the_steps_are_checked_with_and_without_donation():
    read_after = (Launch("double", (X, Y)), Launch("add", (X, X, arena(0))))

    null.check_plan(plan(*read_after))
    assert "argument 0 was never written, or was overwritten" in refused(
        plan(*read_after, donations=((0, 0),))
    ) or "overlap" in refused(plan(*read_after, donations=((0, 0),)))


def test_a_donated_argument_may_be_overwritten_by_its_last_reader_in_place():
    null.check_plan(plan(Launch("in_place", (X, Y)), donations=((0, 0),)))

    assert "overlap, and are not aliases" in refused(plan(Launch("double", (X, Y)), donations=((0, 0),)))


def test_a_donation_to_a_result_of_other_size_is_illegal():
    wide = ArrayType((n, 2), dtypes.f32)

    assert "donation of argument 0 to result 0: other size" in refused(plan(donations=((0, 0),), results=(wide,)))
    assert "one buffer twice" in refused(plan(donations=((0, 0), (0, 0))))


def test_a_symbolic_size_needs_a_source():
    assert "cannot read the size n (no argument has it)" in refused(plan(Launch("double", (X, Y)), size_sources=()))


def test_a_broken_kernel_is_found_by_its_own_check():
    broken = {"double": replace(DOUBLE, params=DOUBLE.params[:1])}

    with pytest.raises(CheckError, match="check: cannot accept kernel double"):
        null.check_plan(plan(kernels=broken))


def test_a_kernel_under_another_name_is_refused():
    assert "cannot use kernel add (listed as double)" in refused(plan(kernels={"double": ADD}))


# --- the executable ---------------------------------------------------------------------------


@pytest.fixture
def device() -> null.NullBackend:
    targets, why = null.probe()
    assert why is None
    return null.open_device(targets[0])


def in_place() -> Plan:
    shapes: dict[str, tuple[Size, ...]] = {"x": (n,), "y": (n,)}
    return plan_of(IN_PLACE, shapes, (SizeSource("n", 0, 0, 1, 100),), [(0, 0)])


def test_a_call_gives_results_of_the_right_type(device):
    (y,) = device.record(in_place())([device.copy_in(np.ones(7, np.float32))])

    assert y.type == ArrayType((7,), dtypes.f32)
    assert device.copy_out(y, y.type).shape == (7,)


def test_a_donated_buffer_is_deleted(device):
    executable = device.record(in_place())
    x = device.copy_in(np.ones(7, np.float32))
    executable([x])
    executable([x], donated=(0,))

    with pytest.raises(DeletedArrayError, match="cannot use argument 0"):
        executable([x])
    with pytest.raises(DeletedArrayError, match="copy_out: cannot read"):
        device.copy_out(x, x.type)


def test_arguments_are_checked_at_every_call(device):
    executable = device.record(in_place())

    with pytest.raises(DimensionError, match="n = 101"):
        executable([device.copy_in(np.ones(101, np.float32))])
    with pytest.raises(CheckError, match="argument 0 must be f32"):
        executable([device.copy_in(np.ones(5, np.int32))])


def test_sources_are_kernel_code(device):
    assert device.record(in_place()).sources()["in_place"].startswith("code in_place(")
