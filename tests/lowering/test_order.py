"""Schedule: an order that is legal, deterministic, and keeps few bytes alive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rune import ops
from rune.lowering.arena import type_bytes
from rune.lowering.kernelize import kernelize
from rune.lowering.kernels import Buffer, Invoke, Kernel, KernelProgram, Value
from rune.lowering.kernels_check import check
from rune.lowering.memory import live_ranges
from rune.lowering.order import with_steps_ordered
from tests.support.lowering import WITH_DOT, f32, program_of
from tests.support.random_programs import random_program


def peak(program: KernelProgram) -> Any:
    """Bytes of intermediate values alive at once, at most."""
    callers = {*program.inputs, *program.outputs}
    ranges = {v: r for v, r in live_ranges(program).items() if v not in callers}
    return max(
        (
            sum(type_bytes(v.type) for v, (a, b) in ranges.items() if a <= step <= b)
            for step in range(len(program.steps))
        ),
        default=0,
    )


def step(name: str, results: list[Value], operands: list[Value]) -> Invoke:
    return Invoke(name, tuple(results), tuple(operands))


def program_of_steps(inputs: tuple[Value, ...], steps: tuple[Invoke, ...], outputs: tuple[Value, ...]) -> KernelProgram:
    kernels = {s.kernel: Kernel(s.kernel, (), (), (), ()) for s in steps}
    return KernelProgram("f", inputs, steps, outputs, tuple(v.type for v in outputs), kernels)


def test_a_value_is_used_up_before_the_next_one_is_made():
    x, big, small = Value(0, f32(1)), f32(1000), f32(1)
    a, b, c, d = Value(1, big), Value(2, big), Value(3, small), Value(4, small)
    steps = (step("a", [a], [x]), step("b", [b], [x]), step("c", [c], [a]), step("d", [d], [b]))
    program = program_of_steps((x,), steps, (c, d))

    result = with_steps_ordered(program)

    assert [s.kernel for s in result.steps if isinstance(s, Invoke)] == ["a", "c", "b", "d"]
    assert peak(result) == 4000
    assert peak(program) == 8000


def test_the_order_of_the_program_decides_between_equals():
    x = Value(0, f32(4))
    values = [Value(n, f32(4)) for n in range(1, 6)]
    steps = tuple(step(f"k{v.number}", [v], [x]) for v in values)

    program = program_of_steps((x,), steps, tuple(values))

    assert with_steps_ordered(program) == program


def test_all_parts_of_a_value_are_written_before_it_is_read():
    x, y, z = Value(0, f32(4)), Value(1, f32(8)), Value(2, f32(8))
    steps = (step("left", [y], [x]), step("read", [z], [y]), step("right", [y], [x]))
    program = program_of_steps((x,), steps, (z,))

    names = [s.kernel for s in with_steps_ordered(program).steps if isinstance(s, Invoke)]

    assert names.index("read") == 2


def test_an_array_is_read_by_others_before_it_is_changed_in_place():
    x, y, z = Value(0, f32(8)), Value(1, f32(8)), Value(2, f32(1))
    program = program_of_steps((x,), (step("change", [y], [x]), step("read", [z], [x])), (y, z))
    change = Kernel("change", (Buffer("x0", x.type),), (Buffer("y0", y.type),), (), (), (("x0", "y0"),))

    result = with_steps_ordered(replace(program, kernels={**program.kernels, "change": change}))

    assert [s.kernel for s in result.steps if isinstance(s, Invoke)] == ["read", "change"]


@given(st.integers(0, 1 << 20))
def test_any_program_stays_legal_and_keeps_its_steps(seed: int):
    program = kernelize(random_program(seed, length=30), WITH_DOT)

    result = with_steps_ordered(program)

    check(result)
    assert sorted(map(str, result.steps)) == sorted(map(str, program.steps))


def test_a_wide_program_is_ordered_with_a_small_peak():
    # 50 large values, each reduced to a row: in textual order all of them would be alive.
    def function(x):
        large = [ops.cumsum(ops.exp(x), axis=0, reverse=bool(k % 2)) for k in range(50)]
        return [ops.reduce_sum(ops.sub(v, x), axes=(0,)) for v in large]

    program = kernelize(program_of(function, f32(64, 64)), WITH_DOT)

    assert peak(with_steps_ordered(program)) <= 2 * 64 * 64 * 4
