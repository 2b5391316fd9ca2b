"""Plans of many steps on the CPU: functions of limited size give what one function would."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.backends.cpu import plan, steps
from rune.errors import CompileError
from rune.lowering.kernel.text import parse
from rune.lowering.plan import Call, Slot, Space
from rune.transforms.compile.executables import compiled, device_for
from tests.backends.plans import plan_of

AROUND = [1, steps.MOST_STEPS - 1, steps.MOST_STEPS, steps.MOST_STEPS + 1, 997]


def leaves(count):
    return [np.arange(k % 5, dtype=np.float32) + k for k in range(count)]


def functions(f, *args):
    """The lines of each LLVM function of the compiled program."""
    executable: Any = compiled(rune.jit(f).program(*args), device_for(None))
    return [
        text.splitlines() for text in re.findall(r"^define .*?^}", executable.rendering.text, re.DOTALL | re.MULTILINE)
    ]


def chain(x, count):
    """Steps that cannot be one kernel: each needs the sum of all before."""
    for k in range(count):
        x = x * 0.5 + rnp.cumsum(x) * (1 + k % 3)
        x = x / x.sum()
    return x


def chain_numpy(x, count):
    for k in range(count):
        x = x * 0.5 + np.cumsum(x) * (1 + k % 3)
        x = x / x.sum()
    return x


@pytest.mark.parametrize("count", AROUND)
def test_every_leaf_of_a_tree_of_any_size_is_restored(count):
    operands = leaves(count)
    same = rune.jit(lambda tree: tree)(operands)
    more = rune.jit(lambda tree: [x + 1 for x in tree])(operands)
    for x, y, z in zip(operands, same, more, strict=True):
        np.testing.assert_array_equal(y, x)
        np.testing.assert_array_equal(z, x + 1)


def test_kernels_are_laid_out_once_for_a_draft_and_the_final_code(monkeypatch):
    layout, names = plan.layout, []
    monkeypatch.setattr(plan, "layout", lambda code, width: names.append(code.name) or layout(code, width))
    x = rnp.arange(37, dtype="f32")
    executable: Any = compiled(rune.jit(lambda x: chain(x, 3)).program(x), device_for(None))
    assert executable.is_draft

    executable.refine()

    assert not executable.is_draft
    assert len(names) == len({*names}) > 1


def test_a_routine_that_the_cpu_does_not_have_is_refused_by_name():
    double = parse("code double(x: read f32[3], y: write f32[3]) { for i in 3 grid { store y[i] = x[i] } }")
    doubling = plan_of(double)
    y, x = Slot(Space.RESULT, doubling.results[0]), Slot(Space.ARGUMENT, doubling.arguments[0])
    sorting = replace(doubling, steps=(Call("sort", (y,), (x,), ()),))

    with pytest.raises(
        CompileError, match=r"cannot call sort \(its plans may call dot, strided_dot, line_fft, cholesky"
    ):
        device_for(None).backend.record(sorting)


def test_the_argument_that_does_not_fit_is_found_among_many():
    operands = [rnp.asarray(x) for x in leaves(211)]
    program = rune.jit(lambda tree: tree).program(operands)
    executable = compiled(program, device_for(None))
    buffers = [x.buffer for x in operands]
    for number in (0, 1, 100, 210):
        for shape, dtype in (((7, 1), "f4"), ((6,), "f4"), (buffers[number].shape, "i4")):
            wrong = [*buffers]
            wrong[number] = np.zeros(shape, dtype)
            with pytest.raises((rune.errors.DimensionError, rune.errors.LayoutError)) as error:
                executable(wrong)
            assert re.search(rf"argument {number}[ ,]|i32\[", str(error.value))


def test_no_function_grows_with_the_number_of_leaves():
    few, many = (max(map(len, functions(lambda tree: [x + 1 for x in tree], leaves(n)))) for n in (300, 1500))
    assert many <= 1.2 * few


def test_no_function_grows_with_the_number_of_steps():
    few, many = (max(map(len, functions(lambda x, n=n: chain(x, n), np.ones(3, np.float32)))) for n in (50, 250))
    assert many <= 1.2 * few


@pytest.mark.parametrize("count", [5, steps.MOST_STEPS])
def test_many_steps_in_a_loop_carry_what_few_do(count):
    x = np.linspace(1, 2, 5, dtype=np.float32)
    loop = rune.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: chain(x, count) + i, x))
    expected = x
    for i in range(3):
        expected = chain_numpy(expected, count) + i
    np.testing.assert_allclose(loop(x), expected, rtol=1e-4)


def test_carries_of_a_loop_of_many_steps_change_places():
    def body(i, carry):
        a, b, c = carry
        return b, chain(a, steps.MOST_STEPS), c

    operands = np.array([1, 2], "f"), np.array([3, 5], "f"), np.arange(1000, dtype=np.float32)
    a, b, c = rune.jit(lambda *t: lax.fori_loop(0, 5, body, t))(*operands)
    x, y = operands[:2]
    for _ in range(5):
        x, y = y, chain_numpy(x, steps.MOST_STEPS)
    np.testing.assert_allclose((a, b), (x, y), rtol=1e-4)
    np.testing.assert_array_equal(c, operands[2])


def test_branches_of_many_steps_in_loops_of_many_steps():
    count = steps.MOST_STEPS

    def body(i, x):
        x = chain(x, count)
        return lax.cond(i % 2 == 0, lambda x: chain(x, count) + 1, lambda x: x - 1, x)

    x = expected = np.linspace(1, 2, 3, dtype=np.float32)
    for i in range(4):
        expected = chain_numpy(expected, count)
        expected = chain_numpy(expected, count) + 1 if i % 2 == 0 else expected - 1
    result = rune.jit(lambda x: lax.fori_loop(0, 4, body, x))(x)
    np.testing.assert_allclose(result, expected, rtol=1e-4)


def test_symbolic_sizes_reach_every_function():
    f = rune.jit(lambda x: chain(x, 2 * steps.MOST_STEPS), dims={"n": (1, 64)})
    for n in (1, 2, 7, 64):
        x = np.linspace(1, 2, n, dtype=np.float32)
        np.testing.assert_allclose(f(x), chain_numpy(x, 2 * steps.MOST_STEPS), rtol=1e-4)


def test_an_error_of_a_callback_ends_a_plan_of_many_steps():
    values = []

    def look(x):
        values.append(float(x))
        if len(values) == 2:
            raise ValueError("enough")

    def f(x):
        for _ in range(3):
            x = chain(x, steps.MOST_STEPS)
            rune.debug.callback(look, x[0], ordered=True)
        return x

    with pytest.raises(Exception, match="enough"):
        rune.jit(f)(np.ones(3, np.float32))
    assert len(values) == 2
