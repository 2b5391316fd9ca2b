"""The reference executor: whole plans, interpreted; every check on at every call."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from rune import dims, dtypes
from rune.backends import reference
from rune.core.types import ArrayType
from rune.errors import ArgumentError, CheckError, OutOfMemory
from rune.lowering.kernel.text import parse
from rune.lowering.plan import Call, Copy, Launch, Plan, SizeSource, Slot, Space
from tests.backends.plans import plan_of, run
from tests.lowering.kernel.examples import example
from tests.support.close import close, same

n = dims.symbol("n", 1, 100)
rng = np.random.default_rng(0)


@pytest.fixture
def device() -> reference.ReferenceBackend:
    targets, reason = reference.probe()
    assert reason is None
    return reference.open_device(targets[0])


def test_a_symbolic_plan_runs_at_every_size(device):
    shapes = {"x": (n, 64), "y": (n, 64)}
    plan = plan_of(example("softmax"), shapes, [SizeSource("n", 0, 0, 1, 100)])

    for size in (1, 5, 100):
        x = rng.normal(size=(size, 64)).astype(np.float32)
        e = np.exp(x - x.max(1, keepdims=True))
        (y,) = run(device, plan, x)
        close(e / e.sum(1, keepdims=True), y, ulps=4, why="the order of the sum")


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_the_dot_routine_reads_operands_without_a_copy(device, trans_a, trans_b):
    a, b = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 5))
    lhs = a.swapaxes(1, 2).copy() if trans_a else a
    right = b.swapaxes(1, 2).copy() if trans_b else b
    types = [ArrayType(x.shape, dtypes.f64) for x in (lhs, right)]
    out = ArrayType((2, 3, 5), dtypes.f64)
    sizes = {"batch": 2, "m": 3, "n": 5, "k": 4, "trans_a": trans_a, "trans_b": trans_b}
    call = Call(
        "dot",
        (Slot(Space.RESULT, out),),
        tuple(Slot(Space.ARGUMENT, t, k) for k, t in enumerate(types)),
        tuple(sizes.items()),
    )
    plan = Plan("f", "reference:0", tuple(types), (out,), (call,), {}, 0)

    (y,) = run(device, plan, lhs, right)

    np.testing.assert_allclose(y, a @ b)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.int8, np.uint64, np.complex64, np.bool_])
def test_every_dtype_moves_through_the_arena(device, dtype):
    short = dtypes.short(np.dtype(dtype))
    copy = parse(f"code f(x: read {short}[6], y: write {short}[6]) {{ for i in 6 grid {{ store y[i] = x[-i + 5] }} }}")
    type_ = ArrayType((2, 3), np.dtype(dtype))
    x, y, middle = (Slot(space, type_) for space in (Space.ARGUMENT, Space.RESULT, Space.ARENA))
    steps = (Launch("f", (x, middle)), Copy(y, middle))
    arena = 6 * np.dtype(dtype).itemsize
    plan = Plan("f", "", (type_,), (type_,), steps, {"f": copy}, arena)
    values = np.arange(6).reshape(2, 3).astype(dtype)

    (result,) = run(device, plan, values)

    same(values.reshape(-1)[::-1].reshape(2, 3).copy(), result)


def test_a_donated_argument_lends_its_memory(device):
    code = parse(
        "code f(x: read f32[4], y: write f32[4]) aliases x = y { for i in 4 grid { store y[i] = x[i] * 2.0_f32 } }"
    )
    executable = device.record(plan_of(code, donations=[(0, 0)]))
    x = np.ones(4, np.float32)

    (fresh,) = executable([x])
    assert not np.shares_memory(fresh, x)
    (in_place,) = executable([x], donated=(0,))
    assert np.shares_memory(in_place, x)
    same(np.full(4, 2, np.float32), in_place)


def test_a_race_is_found_when_the_plan_runs(device):
    code = parse("code f(x: read f32[4], y: write f32[4]) { for i in 4 grid { store y[0] = x[i] } }")

    with pytest.raises(CheckError, match="a race within the grid"):
        run(device, plan_of(code), np.ones(4, np.float32))


def test_a_loop_whose_points_do_not_fit_into_memory_is_an_error_of_rune(device, monkeypatch):
    def too_much(*_):
        raise MemoryError("Unable to allocate 32 GiB")

    monkeypatch.setattr(reference, "interpret", too_much)

    with pytest.raises(OutOfMemory, match=r"pad: cannot interpret .*32 GiB"):
        run(device, plan_of(example("pad")), np.ones(8, np.float32))


def test_a_wrong_plan_is_refused_before_it_runs(device):
    code = example("pad")
    plan = plan_of(code)

    with pytest.raises(CheckError, match="plan pad: cannot run the return"):
        device.record(replace(plan, steps=()))


def test_an_argument_of_other_dtype_is_refused(device):
    executable = device.record(plan_of(example("pad")))

    with pytest.raises(ArgumentError, match="argument 0 must be f32"):
        executable([np.ones(8)])


def test_copies_are_copies(device):
    x = np.ones(3, np.float32)
    buffer = device.copy_in(x)
    x[:] = 2

    out = device.copy_out(buffer, ArrayType((3,), dtypes.f32))
    out[:] = 3

    assert buffer.tolist() == [1, 1, 1]
