"""Predicted times: what bounds a kernel, and laws that hold for every kernel.

The only times with an expected value are those of copies and sums, which follow from the record of
the device.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune.backends.cuda.devices import native
from rune.dtypes import f32
from rune.lowering.costs import DeviceRecord, cost
from rune.lowering.costs.devices import record_of
from rune.lowering.costs.records import Cache
from rune.lowering.costs.registers import registers
from rune.lowering.costs.table import A100, GPUS, H100
from rune.lowering.kernel.text import parse
from rune.lowering.stages import stages
from tests.lowering.costs.kernels import M16, copy, kernel, loop, on_h100, target
from tests.lowering.kernel import test_matrices as matrices

M16_IN_AND_OUT = f"x: read f32[{M16}], y: write f32[{M16}]"
NUMBERS = "a: i64 in 0..1048575 = i64(p[2*i]) b: i64 in 0..1048575 = i64(p[2*i + 1])"


def total(terms: list[str]) -> str:
    """The sum of terms as an expression."""
    return reduce(lambda a, b: f"({a} + {b})", terms)


def test_a_large_copy_is_bound_by_memory():
    result = copy("i")

    assert result.bound == "memory"
    assert result.parts["memory"] == 2 * 4 * M16 / H100.memory_rate


def test_a_tiny_kernel_is_bound_by_its_launch():
    assert copy("i", size=32).bound == "launch"


def test_one_thread_is_bound_by_latency():
    assert loop(1 << 16, points=1).bound == "latency"


def test_products_of_numbers_at_hand_are_bound_by_arithmetic():
    inner = "for k in 4096 serial { s add= contract s * s }"
    body = f"for i in 1048576 grid {{ var s: f32 = 1.0_f32 {inner} store y[i] = s }}"

    assert on_h100(body, "y: write f32[1048576]").bound in ("f32 units", "instructions")


def test_a_transposition_is_bound_by_sectors_that_are_mostly_waste():
    body = "for i in 4096 grid { for j in 4096 grid { store y[4096*i + j] = x[i + 4096*j] } }"
    result = on_h100(body, f"x: read f32[{M16}], y: write f32[{M16}]")

    assert result.bound == "L2"
    assert result.seconds > 2 * copy("i").seconds


def test_a_multiply_add_is_two_operations():
    inner = "for k in 64 serial { s add= contract x[k] * x[k] }"
    body = f"for i in 1024 grid {{ var s: f32 = 0.0_f32 {inner} store y[i] = s }}"

    assert on_h100(body, "x: read f32[64], y: write f32[1024]").flops == 2 * 64 * 1024


def test_many_groups_that_do_little_are_bound_by_their_starts():
    body = "for i in 262144 grid { for t in 32 workgroup { store y[32*i + t] = 1.0_f32 } }"

    assert on_h100(body, "y: write f32[8388608]").bound == "starts"


def test_elements_by_two_numbers_are_twice_as_many_as_those_by_one():
    def through(value: str) -> float:
        body = f"for i in 1048576 grid {{ {NUMBERS} store y[i] = {value} }}"
        params = "p: read i32[2097152], x: read f32[1048576], y: write f32[1048576]"
        return (
            on_h100(body, params).bytes_through["L2"]
            - on_h100(body.replace(value, "1.0_f32"), params).bytes_through["L2"]
        )

    assert through("x[a] + x[b]") == pytest.approx(2 * through("x[a]"), rel=0.05)


def test_numbers_that_threads_share_name_no_more_rows_than_there_are_numbers():
    place = "n: i64 in 0..8191 = i64(p[4*i + t // 64])"
    body = f"for i in 1024 grid {{ for t in 256 workgroup {{ {place} store y[256*i + t] = x[64*n + t % 64] }} }}"
    params = "p: read i32[8192], x: read f32[524288], y: write f32[262144]"

    # Four rows of each group, its results, and the numbers.
    assert on_h100(body, params).bytes_through["L2"] <= 1024 * 4 * (4 * 64 + 4 * 64) + 4 * 8192


def test_the_same_kernel_costs_the_same():
    assert loop(100) == loop(100)


# --- laws -------------------------------------------------------------------------------------


@given(st.integers(1, 5000), st.integers(0, 5000))
def test_more_rounds_never_cost_less(rounds: int, more: int):
    assert loop(rounds + more).seconds >= loop(rounds).seconds


@given(st.integers(1, 1 << 22), st.integers(1, 1 << 22))
def test_a_larger_copy_never_costs_less(size: int, more: int):
    # Within one size of groups: a launch spreads few points over more groups than many.
    small, large = copy("i", size=size), copy("i", size=size + more)

    # Where the few groups of a launch are sampled shows in the last digits.
    assert small.group_threads != large.group_threads or large.seconds >= 0.99 * small.seconds


@given(st.integers(1, 6))
def test_another_operand_never_costs_less(operands: int):
    def summed(count: int) -> float:
        value = total([f"x[i + {M16 * k}]" for k in range(count)])
        params = f"x: read f32[{8 * M16}], y: write f32[{M16}]"
        return on_h100(f"for i in {M16} grid {{ store y[i] = {value} }}", params).seconds

    assert summed(operands + 1) > summed(operands)


def _slower(record: DeviceRecord, name: str) -> DeviceRecord:
    match name:
        case "caches":
            slow = tuple(replace(c, rate=c.rate / 2) for c in record.caches)
            return replace(record, caches=slow)
        case "launch_ns" | "memory_latency_cycles":
            return replace(record, **{name: 2 * getattr(record, name)})
        case _:
            return replace(record, **{name: getattr(record, name) / 2})


@pytest.mark.parametrize(
    "name",
    """caches memory_rate clock_hz cycle_requests cycle_lines cycle_instructions special_operations
    launch_ns memory_latency_cycles unit_cycle_bytes""".split(),
)
def test_a_slower_part_never_makes_a_kernel_faster(name: str):
    for body in ("x[i] / 3.0_f32", "x[33*i]", "exp(x[i])"):
        text = f"for i in 1048576 grid {{ store y[i] = {body} }}"
        params = "x: read f32[34603008], y: write f32[1048576]"

        assert on_h100(text, params, _slower(H100, name)).seconds >= on_h100(text, params).seconds


@pytest.mark.parametrize("record", [pytest.param(r, id=r.name) for r in GPUS])
def test_no_device_copies_faster_than_its_memory(record: DeviceRecord):
    code = kernel(f"for i in {M16} grid {{ store y[i] = x[i] }}", f"x: read f32[{M16}], y: write f32[{M16}]")

    result = cost(code, target(language="spirv"), record)
    # A cache of 256 MB holds both arrays; its earlier contents do not matter.
    assert result.seconds >= 2 * 4 * M16 / record.memory_rate


# --- what it is made of -----------------------------------------------------------------------


def test_a_group_that_needs_all_shared_memory_is_alone():
    def resident_groups(size: int) -> int:
        threads = "for t in 128 workgroup { store part[t] = 1.0_f32 barrier store y[128*i + t] = part[127 - t] }"
        body = f"for i in 4096 grid {{ alloc part: f32[{size}] shared {threads} }}"
        return on_h100(body, "y: write f32[524288]").resident_groups

    assert resident_groups(50_000) == 1
    assert resident_groups(1_000) == 16  # as many threads as a unit holds


def test_a_launch_with_few_groups_fills_no_unit():
    result = copy("i", size=132 * 32)

    assert (result.groups, result.group_threads, result.resident_groups) == (132, 32, 1)


def test_scalars_that_are_alive_together_take_registers():
    def needed(count: int) -> int:
        lets = " ".join(f"a{k}: f32 = x[i + {k}]" for k in range(count))
        value = total([f"a{k}" for k in range(count)])
        body = f"for i in 64 grid {{ {lets} store y[i] = {value} }}"
        return registers(kernel(body, "x: read f32[99], y: write f32[64]"))

    assert needed(20) - needed(4) == 16


def test_scalars_that_follow_each_other_share_a_register():
    def needed(count: int) -> int:
        steps = " ".join(f"a{k}: f32 = x[i + {k}] store y[i + {64 * k}] = a{k}" for k in range(count))
        return registers(kernel(f"for i in 64 grid {{ {steps} }}", "x: read f32[99], y: write f32[9999]"))

    assert needed(20) == needed(4)


def test_a_loop_with_dependent_loads_has_more_latency():
    def waiting(index: str) -> float:
        inner = f"for k in 64 serial {{ p: i64 in 0..4095 = i64(z[k]) s add= x[{index}] }}"
        body = f"for i in 64 grid {{ var s: f32 = 0.0_f32 {inner} store y[i] = s }}"
        return on_h100(body, "z: read i32[64], x: read f32[4096], y: write f32[64]").parts["latency"]

    assert waiting("p") > 1.5 * waiting("k")


def test_sizes_that_are_not_given_are_typical():
    code = kernel_of_symbols()

    assert cost(code, target(), H100) == cost(code, target(), H100, {"n": 1024})
    assert cost(code, target(), H100, {"n": 1 << 24}).bound == "memory"


def kernel_of_symbols():
    """A copy of n elements."""
    return parse(
        "code f(x: read f32[n], y: write f32[n]) sizes n in 1..100000000 { for i in n grid { store y[i] = x[i] } }"
    )


# --- processors -------------------------------------------------------------------------------


def on_processor(body: str, params: str, cores: int = 2) -> float:
    """Seconds on a processor with vectors of 32 bytes."""
    return cost(kernel(body, params), target("llvm", cores, 32)).seconds


@pytest.mark.parametrize("name", ["threefry2x32_mixed", "philox4x32_first"])
def test_a_word_of_a_cipher_takes_a_gpus_units_for_multiply_adds_too(name: str):
    zeros = ", 0_u32, 0_u32" if name.startswith("philox") else ""
    word = f"{name}(k[0], k[1]{zeros}, 0_u32, u32(index(i)))"
    code = f"for i in {M16} grid {{ store y[i] = {word} }}", f"k: read u32[2], y: write u32[{M16}]"
    on_gpu = on_h100(*code).parts

    assert 0.2 < on_gpu["f32 units"] / on_gpu["i32 units"] < 1.0
    assert "f32 units" not in cost(kernel(*code), target("llvm", 2, 32)).parts


def function(name: str, dtype: str = "f32") -> tuple[str, str]:
    """A kernel of a function of 16 million numbers."""
    params = f"x: read {dtype}[{M16}], y: write {dtype}[{M16}]"
    return f"for i in {M16} grid {{ store y[i] = {name}(x[i]) }}", params


def test_a_function_takes_the_special_units_of_a_gpu_where_its_machine_code_does():
    rates = H100.special_operations, H100.rate(f32)
    exponential, logarithm = (on_h100(*function(name)).parts for name in ("exp", "log"))

    assert exponential["special units"] / exponential["f32 units"] == pytest.approx(rates[1] / rates[0] / 7)
    assert logarithm["special units"] == 0
    assert logarithm["f32 units"] / exponential["f32 units"] == pytest.approx(15 / 7)


def test_a_function_of_f64_and_of_a_processor_is_counted_by_its_operations():
    wide = on_h100(*function("exp", "f64")).parts
    on_cpu = cost(kernel(*function("exp")), target("llvm", 2, 32)).parts

    assert wide["special units"] == 0
    assert "special units" not in on_cpu or on_cpu["special units"] == 0


def test_a_processor_walks_rows_faster_than_columns():
    params = "x: read f32[16777216], y: write f32[4096]"

    def summed(index: str) -> float:
        inner = f"for k in 4096 vector {{ s add= x[{index}] }}"
        return on_processor(f"for i in 4096 grid {{ var s: f32 = 0.0_f32 {inner} store y[i] = s }}", params)

    assert summed("4096*i + k") < summed("2*i + 8192*(k // 2) + k % 2")


def test_ordered_loops_are_read_element_by_element():
    # Along j neighbours are one vector; along i each is a separate request.
    code = kernel("for i in 64 grid { for j in 1024 grid { store y[1024*i + j] = x[1024*i + j] } }", M16_IN_AND_OUT)
    processor = target("llvm", 2, 32)

    in_order, in_lanes = (cost(c, processor).parts["requests"] for c in (replace(code, scalar_loops=("j",)), code))
    assert in_order >= 4 * in_lanes


def test_more_cores_never_make_arithmetic_slower():
    body = "for i in 1048576 grid { store y[i] = exp(x[i]) }"
    params = "x: read f32[1048576], y: write f32[1048576]"

    assert on_processor(body, params, 8) < on_processor(body, params, 2)


def test_arrays_in_the_last_cache_of_a_processor_are_not_fetched_again():
    code = kernel("for i in 1024 grid { store y[i] = x[i] }", "x: read f32[1024], y: write f32[1024]")

    assert cost(code, target("llvm", 2, 32)).bytes_through["memory"] == 0


def test_a_cache_is_named_after_what_it_caches():
    assert all(isinstance(c, Cache) for c in H100.caches)
    assert set(copy("i").bytes_through) == {"L2", "memory"}


def test_explain_names_the_bottleneck_of_each_kernel():
    program = rune.make_program(lambda x: rnp.exp(x))(rune.ShapeDtypeStruct((M16,), "f32"))

    text = stages(program, target()).text("predictions")
    assert text.startswith("exp_0: ")
    assert "on H100 SXM, bound by memory; 16384 groups of 256, 16.0 sectors a request" in text


def test_products_of_matrices_take_the_units_for_them_and_rows_of_shared_memory():
    text = matrices.kernel().replace("for g in 1 grid", "for g in 132000 grid").replace("store y[", "store y[512*g + ")
    costs = cost(parse(text.replace("f32[512]", "f32[67584000]")), target(), H100)

    # Sums and products of 132000 groups: 32 x 16 x 16 each.
    assert costs.flops == 2 * 132000 * 32 * 16 * 16
    assert costs.parts["bf16 matrix units"] == pytest.approx(costs.flops / (H100.matrix_share * 989.4e12))


def test_a_product_of_halves_takes_more_than_three_fifths_of_what_the_units_of_an_a100_do():
    program = rune.make_program(lambda x, w: x @ w)(*(rune.ShapeDtypeStruct((4096, 4096), "bf16"),) * 2)
    device = replace(target(cores=108, description="A100"), native=native(80))
    (code,) = stages(program, device).plan.kernels.values()

    assert 2 * 4096**3 / cost(code, device, A100).seconds > 0.6 * 312e12


@pytest.mark.parametrize(("dtype", "low", "high"), [("i64", -(2**62), 2**62), ("u64", 0, 2**64 - 1), ("i8", -128, 127)])
def test_a_load_at_a_computed_index_of_any_range_has_a_cost(dtype: str, low: int, high: int):
    lets = f"a: {dtype} in {low}..{high} = {dtype}(p[i]) b: i32 = q[a % 7]"
    body = f"for i in 1024 grid {{ {lets} c: i64 in 0..6 = min(max(i64(b), 0_i64), 6_i64) store y[i] = x[c] }}"

    result = on_h100(body, f"p: read {dtype}[1024], q: read i32[7], x: read f32[7], y: write f32[1024]")

    assert 0 < result.seconds < 1e-3


def test_sums_for_which_a_processor_has_no_registers_are_read_and_written():
    def requests(sums: int) -> float:
        names = [f"s{k}" for k in range(sums)]
        first = " ".join(f"var {name}: f32 = 0.0_f32" for name in names)
        additions = " ".join(f"{name} add= contract x[k] * x[k]" for name in names)
        last = " ".join(f"store y[{sums}*i + {k}] = {name}" for k, name in enumerate(names))
        params = f"x: read f32[512], y: write f32[{64 * sums}]"
        code = kernel(f"for i in 64 grid {{ {first} for k in 512 serial {{ {additions} }} {last} }}", params)
        return cost(code, target("llvm", vector_bytes=64)).parts["requests"] / sums

    assert requests(24) <= requests(12)
    assert requests(96) > 1.5 * requests(24)


def columns(first: str, other: str) -> tuple[float, float]:
    """Bytes from the last cache, and its seconds: sums of two vectors of columns at a time."""
    indices = f"x[{first} + 1024*k]", f"x[{other} + 1024*k]"
    inner = f"for k in 1024 serial {{ s add= {indices[0]} t add= {indices[1]} }}"
    head = "var s: f32 = 0.0_f32 var t: f32 = 0.0_f32"
    body = f"for i in 32 grid {{ for j in 16 grid {{ {head} {inner} store y[{first}] = s store y[{other}] = t }} }}"
    code = kernel(body, "x: read f32[1048576], y: write f32[1024]")
    costs = cost(code, target("llvm", 1, 64))
    return costs.bytes_through["L3"], costs.parts["L3"]


def test_adjacent_lines_are_read_faster_than_as_many_separate_lines():
    together, apart = columns("32*i + j", "32*i + j + 16"), columns("16*i + j", "16*i + j + 512")

    assert together[0] == apart[0]  # as many bytes
    assert 1.2 * together[1] < apart[1]


def test_one_row_of_memory_after_the_other_is_one_run_of_lines():
    code = kernel(f"for i in {M16} grid {{ store y[i] = x[i] }}", M16_IN_AND_OUT)
    costs, record = cost(code, target("llvm", 1, 64)), record_of(target("llvm", 1, 64))

    assert costs.parts["memory"] == pytest.approx(costs.bytes_through["memory"] / record.memory_rate, rel=1e-4)
