"""Kernel code through LLVM against the interpreter: the examples, random kernels, every machine.

Then what the renderer promises beyond results: a range may be split anywhere, guarded loads read
nothing else, the wanted loops run in vector registers, no two runs differ.
"""

from __future__ import annotations

import ctypes
import mmap
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest

from rune import dims, dtypes
from rune.backends.cpu.compiler import machine
from rune.errors import CompileError
from rune.lowering.codegen.llvm import render as llvm
from rune.lowering.codegen.llvm.render import render
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.nodes import For, KernelCode
from rune.lowering.kernel.rewrite import bodies
from rune.lowering.kernel.text import parse
from rune.lowering.lanes import layout
from rune.lowering.lanes.choose import Choice, is_vectorisable
from tests.lowering.codegen.llvm_run import MACHINES, compiled, run
from tests.lowering.kernel.examples import TEXTS, example
from tests.lowering.kernel.random_code import random_code, random_inputs

WIDE = machine().has_cheap_masks  # AVX-512
MASKED = pytest.mark.skipif(not WIDE, reason="the host has no masked vectors of 64 bytes")


def buffers(code: KernelCode, **sizes: int) -> list[np.ndarray]:
    """Random contents for every parameter."""
    rng = np.random.default_rng(0)
    arrays = []
    for param in code.params:
        count = dims.evaluate(param.size, sizes)
        integer = param.dtype in dtypes.INTEGER
        values = rng.integers(-3, 12, count) if integer else rng.normal(size=count)
        arrays.append(values.astype(param.dtype))
    return arrays


def expected(code: KernelCode, buffers: list[np.ndarray], **sizes: int) -> list[np.ndarray]:
    result = [b.copy() for b in buffers]
    interpret(code, result, sizes)
    return result


# --- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("size", [1, 16, 37])
@pytest.mark.parametrize("name", sorted(TEXTS.keys() - {"workgroup"}))
def test_an_example_computes_what_the_interpreter_computes(name, size, on):
    code = example(name)
    sizes: dict[str, int] = {str(n): size for n in code.sizes}
    actual = buffers(code, **sizes)
    reference = expected(code, actual, **sizes)

    run(code, actual, MACHINES[on], span=None, **sizes)

    for a, b in zip(reference, actual, strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("on", MACHINES)
def test_random_kernels_compute_what_the_interpreter_computes(on):
    for seed in range(25):
        code = random_code(seed)
        actual, reference = random_inputs(seed), random_inputs(seed)
        interpret(code, reference)

        run(code, actual, MACHINES[on])

        np.testing.assert_array_equal(actual[2], reference[2], err_msg=f"random_code({seed})")


def outermost(body, lanes, aliases=frozenset(), ordered=frozenset()) -> Choice:
    """The outermost loops that may run in lanes, whatever they cost."""
    loops, pending = set(), list(body)
    while pending:
        stmt = pending.pop()
        if isinstance(stmt, For) and is_vectorisable(stmt, aliases):
            loops.add(id(stmt))
        else:
            pending += [inner for body in bodies(stmt) for inner in body]
    return Choice(frozenset(loops), 1.0)


@pytest.mark.parametrize("on", MACHINES)
def test_any_choice_of_lanes_gives_the_same_result(on, monkeypatch):
    monkeypatch.setattr(layout, "choose", outermost)
    for seed in range(100, 120):
        code = random_code(seed)
        actual, reference = random_inputs(seed), random_inputs(seed)
        interpret(code, reference)

        run(code, actual, MACHINES[on])

        np.testing.assert_array_equal(actual[2], reference[2], err_msg=f"random_code({seed})")


def sums_of(name: str, uses: int) -> KernelCode:
    """A sum of this many values of one function."""
    terms = reduce("({}) + {}".format, (f"{name}(x[i] * {k}.5_f32)" for k in range(uses)))
    return parse(f"""
        code f(x: read f32[n], y: write f32[n]) sizes n in 0..4096 {{
          for i in n grid {{
            store y[i] = {terms}
          }}
        }}""")


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("name", ["sin", "erf", "log"])
def test_a_function_that_is_called_gives_the_bits_of_one_written_out(name, on, monkeypatch):
    code, results = sums_of(name, 12), []
    x = np.random.default_rng(0).normal(size=37).astype(np.float32) ** 9  # some beyond any limit

    for most in (0, 12):
        monkeypatch.setattr(llvm, "MOST_COPIES", most)
        y = np.zeros_like(x)
        run(code, [x, y], MACHINES[on], n=37)
        results.append(y.tobytes())

    assert results[0] == results[1]


def test_a_kernel_calls_functions_that_would_be_inlined_many_times():
    few, many = (render(sums_of("sin", uses), MACHINES["wide"]).text for uses in (3, 40))

    assert "@math.sin" not in few
    assert many.count("@math.sin") == 40
    assert len(many) < 4 * len(few)


@pytest.mark.parametrize("name", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64, dtypes.f16, dtypes.i32], ids=str)
def test_reductions_of_any_length_are_exact_on_small_integers(name, dtype):
    for length in (0, 1, 15, 16, 64, 67, 300):
        code = reduction(name, dtype, length)
        x = np.random.default_rng(length).integers(1, 3, max(length, 1)).astype(dtype)
        x[20:] = 1  # so that f16 holds every product and sum
        y = np.zeros(1, dtype)
        function = {"add": np.sum, "mul": np.prod, "max": np.max, "min": np.min}[name]

        run(code, [x, y])

        assert y[0] == (
            function(x[:length], dtype=dtype) if name in ("add", "mul") else function(x[:length], initial=2)
        ), length


def reduction(name: str, dtype: np.dtype, length: int) -> KernelCode:
    short = dtypes.short(dtype)
    start = {"add": "0", "mul": "1", "max": "2", "min": "2"}[name]
    start = start if dtype in dtypes.INTEGER else start + ".0"
    return parse(f"""
        code f(x: read {short}[{max(length, 1)}], y: write {short}[1]) {{
          var s: {short} = {start}_{short}
          for j in {length} serial {{
            s {name}= x[j]
          }}
          store y[0] = s
        }}""")


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("place", [0, 3, 17, 79, 80])
def test_a_reduction_propagates_nan_from_anywhere(name, place):
    x = np.random.default_rng(0).normal(size=81).astype(np.float32)
    x[place] = np.nan
    y = np.zeros(1, np.float32)

    run(reduction(name, dtypes.f32, 81), [x, y])

    assert np.isnan(y[0])


def test_the_sum_of_a_contract_product_rounds_once():
    code = parse("""
        code f(x: read f32[1], y: write f32[1]) {
          var s: f32 = -1.0_f32
          for j in 1 serial {
            s add= contract x[j] * x[j]
          }
          store y[0] = s
        }""")
    x, y = np.array([1 + 2.0**-12], np.float32), np.zeros(1, np.float32)

    run(code, [x, y])

    assert y[0] == 2.0**-11 + 2.0**-24


def test_in_place_code_reads_each_element_before_writing_it():
    code = parse("""
        code f(x: read f32[100], y: write f32[100]) aliases x = y {
          for i in 100 grid {
            store y[i] = x[i] + 1.0_f32
          }
        }""")
    x = np.arange(100, dtype=np.float32)

    run(code, [x, x])

    assert (x == np.arange(1, 101)).all()


# --- ranges and memory ------------------------------------------------------------------------

ADD_ROWS = """
code f(x: read f32[n*m], y: write f32[n*m]) sizes n in 0..9999, m in 0..9999 {
  for i in n grid {
    for j in m grid {
      store y[m*i + j] = x[m*i + j] + 1.0_f32
    }
  }
}"""


@pytest.mark.parametrize("cuts", [(0, 35), (0, 1, 2, 35), (0, 4, 8, 9, 20, 35), (0, 34, 35)])
def test_a_range_may_be_split_anywhere(cuts):
    code = parse(ADD_ROWS)
    x, y = np.arange(35, dtype=np.float32), np.zeros(35, np.float32)

    for begin, end in pairwise(cuts):
        run(code, [x, y], span=(begin, end), n=5, m=7)

    assert (y == x + 1).all()


def test_a_part_of_a_range_writes_nothing_else():
    code = parse(ADD_ROWS)
    x, y = np.zeros(35, np.float32), np.zeros(35, np.float32)

    run(code, [x, y], span=(9, 24), n=5, m=7)

    assert np.flatnonzero(y).tolist() == list(range(9, 24))


@pytest.mark.parametrize("n", [0, 3])
@pytest.mark.parametrize("m", [0, 5])
def test_empty_axes_need_no_work(n, m):
    x, y = np.zeros(n * m, np.float32), np.zeros(n * m, np.float32)

    run(parse(ADD_ROWS), [x, y], n=n, m=m)

    assert (y == 1).all()


@pytest.mark.parametrize("on", MACHINES)
def test_nothing_beyond_the_end_is_read_or_written(on):
    page = mmap.PAGESIZE
    room = mmap.mmap(-1, 2 * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(room))
    libc = ctypes.CDLL(None)
    assert libc.mprotect(ctypes.c_void_p(address + page), page, 0) == 0
    x = np.frombuffer(room, np.float32, 37, page - 37 * 4)
    y = np.zeros(37, np.float32)

    run(example("elementwise"), [x, y], MACHINES[on], n=37)  # a read beyond would crash

    assert (y == 0).all()
    libc.mprotect(ctypes.c_void_p(address + page), page, 3)


def test_a_guarded_load_reads_only_where_its_guard_holds():
    code = parse("""
        code f(x: read f32[4], y: write f32[64]) {
          for i in 64 grid {
            store y[i] = x[1000000000*i if index(i) < 1_i64]
          }
        }""")
    x, y = np.ones(4, np.float32), np.full(64, 9, np.float32)

    run(code, [x, y])

    assert y.tolist() == [1.0] + 63 * [0.0]


def test_two_runs_give_the_same_bits():
    x = np.random.default_rng(0).normal(size=64 * 37).astype(np.float32)
    first, second = np.zeros_like(x), np.zeros_like(x)

    run(example("softmax"), [x, first], n=37)
    run(example("softmax"), [x, second], n=37)

    assert first.tobytes() == second.tobytes()


def test_a_barrier_is_refused():
    with pytest.raises(CompileError, match="cannot render a barrier"):
        render(example("workgroup"), machine())


def test_too_much_scratch_is_refused():
    code = parse("""
        code f(y: write f32[1]) {
          alloc e: f32[1000000] local
          store e[0] = 1.0_f32
          store y[0] = e[0]
        }""")

    with pytest.raises(CompileError, match="cannot hold 4000000 B of scratch"):
        render(code, machine())


# --- vector code ------------------------------------------------------------------------------


def assembly(text: str) -> str:
    return compiled(parse(text)).assembly()


@MASKED
def test_an_elementwise_kernel_runs_in_vector_registers():
    text = compiled(example("elementwise")).assembly()

    assert "vfmadd" in text
    assert "zmm" in text
    assert "callq" not in text  # erf is part of the loop


def rendered(text: str) -> str:
    return render(parse(text), machine()).text


@MASKED
@pytest.mark.parametrize(("size", "lanes"), [(7, 8), (8, 8), (9, 16), (100, 16)])
def test_a_short_axis_takes_no_more_lanes_than_it_has_elements(size: int, lanes: int):
    text = rendered(f"""
        code f(x: read f32[{size}], y: write f32[{size}]) {{
          for i in {size} grid {{
            store y[i] = x[i] * 2.0_f32
          }}
        }}""")

    assert f"fmul <{lanes} x float>" in text


@MASKED
def test_an_index_that_is_one_for_all_lanes_does_not_halve_their_number():
    text = rendered("""
        code f(x: read f32[4096], t: read i32[1], y: write f32[64]) {
          for i in 64 grid {
            g: i64 in 0..63 = i64(t[0])
            store y[i] = x[64*g + i] * 2.0_f32
          }
        }""")

    assert "fmul <16 x float>" in text


@MASKED
def test_a_costly_function_of_a_sum_leaves_the_sum_its_registers():
    text = rendered("""
        code f(w: read f32[4096], h: read f32[64], y: write f32[64]) {
          for i in 64 grid {
            var s: f32 = 0.0_f32
            for j in 64 serial {
              s add= contract h[j] * w[64*j + i]
            }
            store y[i] = tanh(s)
          }
        }""")

    assert "@llvm.fma.v64f32" in text  # four registers at once: their additions overlap


@MASKED
def test_softmax_runs_in_vector_registers():
    text = compiled(example("softmax")).assembly()

    for instruction in ("vminps", "vdivps", "vaddps", "vfmadd"):
        assert any(instruction in line and "zmm" in line for line in text.splitlines())
    assert "callq" not in text


@MASKED
def test_a_dot_uses_fused_multiply_adds():
    text = assembly("""
        code f(a: read f32[4096], b: read f32[4096], y: write f32[1]) {
          var s: f32 = 0.0_f32
          for j in 4096 serial {
            s add= contract a[j] * b[j]
          }
          store y[0] = s
        }""")

    assert text.count("vfmadd") >= 4  # one for each of the sums side by side
    assert "zmm" in text


@MASKED
def test_sums_down_the_columns_run_across_them():
    text = assembly("""
        code f(x: read f32[1048576], y: write f32[1024]) {
          for i in 1024 grid {
            var s: f32 = 0.0_f32
            for j in 1024 serial {
              s add= x[1024*j + i]
            }
            store y[i] = s
          }
        }""")

    assert "vaddps" in text
    assert "zmm" in text
    assert "gather" not in text


@MASKED
def test_a_guarded_load_becomes_a_masked_one():
    text = compiled(example("pad")).assembly()

    assert "{%k" in text
    assert "{z}" in text


@MASKED
def test_scattered_elements_are_gathered():
    assert "vgather" in compiled(example("gather")).assembly()
