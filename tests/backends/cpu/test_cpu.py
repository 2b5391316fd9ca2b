"""The CPU executor: plans of every kind, sizes known and symbolic, and what surrounds them.

Values against NumPy; then arguments that do not fit, donation, memory, threads, forks, and that
a compiled plan is freed with its executable.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from rune import configure, dims, dtypes
from rune.backends import cpu
from rune.backends.cpu import compiler
from rune.backends.shared import host_memory
from rune.core.types import ArrayType
from rune.errors import ArgumentError, CompileError, DimensionError, OutOfMemory
from rune.lowering.kernel.text import parse
from rune.lowering.plan import Call, Copy, Launch, Plan, SizeSource, Slot, Space
from tests.backends.plans import plan_of, run

f32, f64 = dtypes.f32, dtypes.f64
TARGETS, WHY = cpu.probe()
BACKEND = cpu.open_device(TARGETS[0])
SINGLE = cpu.open_device(replace(TARGETS[0], cores=1))
n = dims.symbol("n", 0, 1 << 24)

ADD_ONE = """
code add_one(x: read f32[n], y: write f32[n]) sizes n in 0..16777216 {
  for i in n grid {
    store y[i] = x[i] + 1.0_f32
  }
}"""


def argument(number: int, type: ArrayType) -> Slot:
    return Slot(Space.ARGUMENT, type, number)


def result(number: int, type: ArrayType) -> Slot:
    return Slot(Space.RESULT, type, number)


def arena(offset, type: ArrayType) -> Slot:
    return Slot(Space.ARENA, type, 0, offset)


def symbolic(donations=()) -> Plan:
    source = SizeSource("n", 0, 0, 0, 1 << 24)
    return plan_of(parse(ADD_ONE), sources=[source], donations=donations)


def twice() -> Plan:
    """y = (x + 1) + 1 through the arena, which holds one array of n behind another of 64 n."""
    x, y = ArrayType((n,), f32), ArrayType((n,), f32)
    middle = arena(256 * n, x)
    steps = (Launch("add_one", (argument(0, x), middle)), Launch("add_one", (middle, result(0, y))))
    return replace(symbolic(), steps=steps, arena_bytes=260 * n)


# --- values -----------------------------------------------------------------------------------


def test_the_host_is_a_device():
    assert WHY is None
    assert TARGETS[0].name == "cpu:0"
    assert TARGETS[0].vector_bytes in (16, 32, 64)


@pytest.mark.parametrize("size", [0, 1, 5, 1000, 1 << 20])
def test_one_compiled_plan_covers_every_size(size):
    executable = BACKEND.record(symbolic())
    x = np.arange(size, dtype=np.float32)

    (y,) = executable([x])

    assert (y == x + 1).all()
    assert y.shape == (size,)


@pytest.mark.parametrize("size", [0, 3, 4000])
def test_the_arena_has_room_at_symbolic_offsets(size):
    x = np.arange(size, dtype=np.float32)

    (y,) = BACKEND.record(twice())([x])

    assert (y == x + 2).all()


def test_a_size_that_grows_and_shrinks_gets_the_arena_it_needs():
    executable = BACKEND.record(twice())

    for size in (10, 100_000, 3, 200_000):
        (y,) = executable([np.zeros(size, np.float32)])
        assert (y == 2).all()


def test_several_cores_and_one_give_the_same_bits():
    code = parse("""
        code f(x: read f32[300000], y: write f32[300000]) {
          for i in 300000 grid {
            store y[i] = tanh(x[i]) * exp(x[i])
          }
        }""")
    x = np.random.default_rng(0).normal(size=300_000).astype(np.float32)

    many, one = (backend.record(plan_of(code))([x])[0] for backend in (BACKEND, SINGLE))

    assert many.tobytes() == one.tobytes()


def test_a_copy_step_copies():
    type = ArrayType((5, 3), f64)
    plan = Plan("f", "cpu:0", (type,), (type,), (Copy(result(0, type), argument(0, type)),), {}, 0)
    x = np.random.default_rng(0).normal(size=(5, 3))

    (y,) = run(BACKEND, plan, x)

    assert (y == x).all()


def test_a_plan_without_steps_runs():
    assert BACKEND.record(Plan("f", "cpu:0", (), (), (), {}, 0))([]) == []


# --- dot --------------------------------------------------------------------------------------


def dot(batch, m, n, k, trans_a, trans_b, dtype, sources=()) -> Plan:
    a = ArrayType((batch, k, m) if trans_a else (batch, m, k), dtype)
    b = ArrayType((batch, n, k) if trans_b else (batch, k, n), dtype)
    c = ArrayType((batch, m, n), dtype)
    extents = (("batch", batch), ("m", m), ("n", n), ("k", k))
    flags = (("trans_a", trans_a), ("trans_b", trans_b))
    call = Call("dot", (result(0, c),), (argument(0, a), argument(1, b)), (*extents, *flags))
    return Plan("dot", "cpu:0", (a, b), (c,), (call,), {}, 0, tuple(sources))


@pytest.mark.parametrize("dtype", [f32, f64], ids=dtypes.short)
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize(
    "extents",
    [
        (1, 1, 1, 1),
        (1, 5, 7, 3),
        (3, 17, 9, 33),
        (2, 64, 48, 100),
        (1, 200, 130, 260),
        (4, 0, 3, 2),
        (0, 3, 3, 3),
        (2, 3, 4, 0),
        (1, 1, 40, 50),
        (1, 40, 1, 50),
    ],
)
def test_a_dot_agrees_with_numpy(extents, trans_a, trans_b, dtype):
    batch, m, n, k = extents
    plan = dot(batch, m, n, k, trans_a, trans_b, dtype)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, t.shape).astype(dtype) for t in plan.arguments)

    (c,) = run(BACKEND, plan, a, b)

    lhs, right = a.swapaxes(1, 2) if trans_a else a, b.swapaxes(1, 2) if trans_b else b
    assert (c == lhs @ right).all()  # small integers: exact in any order


def test_a_dot_of_symbolic_sizes():
    plan = dot(1, n, 8, 5, False, False, f32, [SizeSource("n", 0, 1, 0, 1 << 24)])
    executable = BACKEND.record(plan)

    for size in (0, 1, 33):
        a, b = np.ones((1, size, 5), np.float32), np.ones((1, 5, 8), np.float32)
        (c,) = executable([a, b])
        assert (c == 5).all()
        assert c.shape == (1, size, 8)


def test_an_unknown_routine_is_refused():
    plan = replace(dot(1, 2, 2, 2, False, False, f32), steps=(Call("fft", (), (), ()),))

    with pytest.raises(CompileError, match="cpu: cannot call fft"):
        BACKEND.record(plan)


# --- arguments --------------------------------------------------------------------------------


def test_arguments_that_do_not_fit_are_refused_before_anything_runs():
    executable = BACKEND.record(symbolic())
    good = np.zeros(8, np.float32)

    for bad in (good.astype(np.float64), good.reshape(2, 4), good[::2], np.float32(1)):
        with pytest.raises((ArgumentError, DimensionError), match="add_one: cannot run with"):
            executable([bad])
    with pytest.raises(ArgumentError, match="cannot run with these arguments"):
        executable([good, good])


def test_a_size_out_of_its_range_is_refused():
    plan = replace(symbolic(), size_sources=(SizeSource("n", 0, 0, 2, 4),))
    executable = BACKEND.record(plan)

    for size in (1, 5):
        with pytest.raises(DimensionError, match="cannot run with n = "):
            executable([np.zeros(size, np.float32)])
    assert executable([np.zeros(4, np.float32)])[0].shape == (4,)


def test_shapes_that_contradict_each_other_are_refused():
    code = parse("""
        code f(x: read f32[n], y: read f32[n], z: write f32[n]) sizes n in 0..99 {
          for i in n grid {
            store z[i] = x[i] + y[i]
          }
        }""")
    executable = BACKEND.record(plan_of(code, sources=[SizeSource("n", 0, 0, 0, 99)]))

    with pytest.raises(DimensionError):
        executable([np.zeros(8, np.float32), np.zeros(7, np.float32)])


def test_an_equal_dtype_that_is_another_object_is_accepted():
    x = np.zeros(8, np.dtype("f4", metadata={"unit": "m"}))

    assert (BACKEND.record(symbolic())([x])[0] == 1).all()


def test_a_wrong_kernel_shows_its_numbered_source(monkeypatch):
    from rune.backends.cpu.plan import Rendering

    broken = Rendering("define void @f() {\n  oops\n}", {})
    monkeypatch.setattr("rune.backends.cpu.plan.render_plan", lambda plan, host, kernels: broken)

    with pytest.raises(CompileError, match="cpu: cannot compile add_one") as error:
        BACKEND.record(symbolic())
    assert ">   2    oops\n    3  }" in str(error.value)


def test_sources_and_assembly_can_be_read():
    executable = BACKEND.record(symbolic())

    assert "define void @kernel.add_one" in executable.sources()["add_one"]
    assert "kernel.add_one" in executable.assembly()


# --- donation and memory ----------------------------------------------------------------------


def test_a_donated_argument_becomes_the_result():
    executable = BACKEND.record(symbolic(donations=[(0, 0)]))
    x = np.zeros(100, np.float32)

    (y,) = executable([x], donated=[0])

    assert np.shares_memory(x, y)
    assert (y == 1).all()


def test_an_argument_that_is_not_donated_is_kept():
    executable = BACKEND.record(symbolic(donations=[(0, 0)]))
    x = np.zeros(100, np.float32)

    (y,) = executable([x])

    assert not np.shares_memory(x, y)
    assert (x == 0).all()


def test_a_read_only_argument_is_never_overwritten():
    executable = BACKEND.record(symbolic(donations=[(0, 0)]))
    x = np.zeros(100, np.float32)
    x.flags.writeable = False

    (y,) = executable([x], donated=[0])

    assert (y == 1).all()
    assert (x == 0).all()


def test_copies_are_their_own():
    x = np.arange(12.0).reshape(3, 4).T

    copy = BACKEND.copy_in(x)
    x[0, 0] = 99

    assert copy[0, 0] == 0
    assert copy.flags.c_contiguous


def test_large_blocks_are_aligned_and_used_again():
    type = ArrayType((1 << 20,), f32)
    first = BACKEND.alloc(type)
    address = first.ctypes.data
    view = first[10:]
    del first

    assert address % 64 == 0
    other = BACKEND.alloc(type)
    assert other.ctypes.data != address  # a view keeps the block
    del view
    assert BACKEND.alloc(type).ctypes.data == address


def test_the_free_list_is_bounded():
    arrays = [host_memory.empty((host_memory.KEPT_BYTES // 4,), np.dtype("u1")) for _ in range(8)]
    del arrays

    assert host_memory.kept_bytes() <= host_memory.KEPT_BYTES
    host_memory.clear()
    assert host_memory.kept_bytes() == 0


def test_out_of_memory_states_requested_used_and_limit_bytes():
    elements = 1 << 60

    with pytest.raises(OutOfMemory, match=f"cannot allocate {elements * 4} B .* free .* limit"):
        BACKEND.alloc(ArrayType((elements,), f32))


def test_out_of_memory_names_the_largest_live_arrays_and_who_made_them():
    buffer = BACKEND.alloc(ArrayType((3, 1 << 26), f32))

    listing = r"largest live buffers: f32\[3,67108864\] \(805306368 B, "
    with pytest.raises(OutOfMemory, match=listing):
        BACKEND.alloc(ArrayType((1 << 60,), f32))
    del buffer


def test_a_dropped_executable_frees_its_code():
    executable = BACKEND.record(symbolic())
    code = weakref.ref(executable.code.engine)

    del executable
    gc.collect()

    assert code() is None


class HeapUsage(ctypes.Structure):
    """glibc's mallinfo2: `small` bytes in use on the heap, `large` in separate maps."""

    _fields_ = [(n, ctypes.c_size_t) for n in ("_0", "_1", "_2", "_3", "large", "_5", "_6", "small", "_8", "_9")]


def heap_bytes() -> int:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("the C library does not say what of its heap is in use")
    libc.mallinfo2.restype = HeapUsage
    usage = libc.mallinfo2()
    return usage.small + usage.large


def test_llvm_frees_everything_that_it_allocated_for_a_module():
    def compile(number: int) -> None:
        text = f"define double @f(double %x) {{\n  %y = fadd double %x, {number:e}\n  ret double %y\n}}"
        compiler.compile_module("f", text).address("f")

    with configure(cache_dir=""):
        for number in range(100):  # what is allocated once for all modules
            compile(number)
        before = heap_bytes()
        for number in range(100, 500):
            compile(number)

    assert heap_bytes() - before < 400 * 256


# --- threads and processes --------------------------------------------------------------------


def test_eight_threads_may_call_one_executable_at_once():
    executable = BACKEND.record(twice())
    xs = [np.full(50_000 + k, k, np.float32) for k in range(8)]

    def call(k: int) -> bool:
        return all((executable([xs[k]])[0] == k + 2).all() for _ in range(30))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(call, range(8)))


def test_eight_threads_may_compile_at_once():
    def compile_and_run(k: int) -> float:
        return float(BACKEND.record(symbolic())([np.full(10, k, np.float32)])[0][0])

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(compile_and_run, range(8))) == [k + 1 for k in range(8)]


def test_other_threads_run_during_a_call():
    executable = BACKEND.record(symbolic())
    x = np.zeros(1 << 22, np.float32)
    stop, ticks = threading.Event(), []

    def tick() -> None:
        while not stop.is_set():
            ticks.append(1)
            stop.wait(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    for _ in range(20):
        executable([x])
    stop.set()
    thread.join()

    assert len(ticks) > 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_computes_without_workers():
    executable = BACKEND.record(symbolic())
    x = np.zeros(1 << 20, np.float32)
    executable([x])  # the pool is awake

    child = os.fork()
    if child == 0:
        os._exit(0 if (executable([x])[0] == 1).all() else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (executable([x])[0] == 1).all()
