"""Products by four subgroups: the values, the waits and the refusals of their schedules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rune import dtypes, lax, ops
from rune.core.types import ArrayType
from rune.dims import symbol
from rune.errors import ArgumentError, CheckError
from rune.lowering.build import Built, build, build_by_default
from rune.lowering.build.schedule import Schedule, parse
from rune.lowering.codegen.target import Target, natively
from rune.lowering.kernel.check import check
from rune.lowering.kernel.nodes import Barrier, Fetch, KernelCode, MatrixProduct
from rune.lowering.kernel.rewrite import map_stmts, walk
from rune.lowering.kernel.text import parse as parse_code
from rune.lowering.kernel.text import to_text
from rune.lowering.passes import run_passes
from rune.lowering.pipeline import kernel_passes
from tests.lowering import models
from tests.lowering.test_schedule_defaults import AB, ABT, ATB, dot, of
from tests.lowering.test_schedules import GPU, kernel_of, run
from tests.support.lowering import agree, evaluate, program_of, random_arguments

HALVES = [dtypes.f16, dtypes.bf16]
LARGE = replace(GPU, shared_bytes=227 << 10, cores=132)
TEAMS = replace(LARGE, native=natively(multiply=HALVES, multiply_together=HALVES, fetch=[*HALVES, dtypes.f32]))
STEPS = "tile(i0={}, i1={}) stage(i0={}, i1={}, j0=64) units(64, 8, 16, buffers={}{})"
LEAST = STEPS.format(64, 64, 1, 1, 4, "")


def batched(a: Any, b: Any) -> Any:
    return ops.dot_general(a, b, dimension_numbers=(((2,), (1,)), ((0,), (0,))))


def sizes(dtype: np.dtype, m: int, k: int, n: int) -> tuple[ArrayType, ArrayType]:
    return of(dtype, m, k), of(dtype, k, n)


CASES: dict[str, tuple[Any, tuple[ArrayType, ...], str]] = {
    "rows and columns": (dot(AB), sizes(dtypes.bf16, 64, 128, 64), LEAST),
    "odd sizes": (dot(AB), sizes(dtypes.f16, 37, 71, 67), LEAST),
    "columns of both": (dot(ATB), sizes(dtypes.bf16, 72, 136, 72)[:1] * 2, STEPS.format(64, 64, 2, 1, 5, "")),
    "rows of both": (dot(ABT), (of(dtypes.f16, 72, 328), of(dtypes.f16, 136, 328)), STEPS.format(64, 64, 1, 2, 4, "")),
    "two blocks of rows": (dot(ATB), sizes(dtypes.f16, 64, 128, 192)[:1] * 2, STEPS.format(128, 64, 1, 1, 4, "")),
    "blocks of columns": (dot(AB), sizes(dtypes.bf16, 64, 64, 200), STEPS.format(64, 128, 1, 1, 4, "")),
    "rows of groups": (dot(AB), sizes(dtypes.bf16, 250, 40, 72), STEPS.format(64, 64, 1, 1, 4, ", abreast=2")),
    "tiles in turn": (
        dot(AB),
        sizes(dtypes.f16, 250, 140, 200),
        STEPS.format(64, 64, 2, 1, 4, ", abreast=2, groups=3"),
    ),
    "one round a tile": (dot(ATB), sizes(dtypes.f16, 40, 256, 0)[:1] * 2, STEPS.format(64, 64, 1, 1, 5, ", groups=5")),
    "more groups than tiles": (dot(AB), sizes(dtypes.bf16, 70, 200, 70), STEPS.format(64, 64, 1, 2, 4, ", groups=7")),
    "batches in turn": (
        batched,
        (of(dtypes.f16, 3, 72, 72), of(dtypes.f16, 3, 72, 72)),
        "tile(i1=64, i2=64) stage(i1=1, i2=1, j0=64) units(64, 8, 16, buffers=4, abreast=2, groups=5)",
    ),
    "many rounds": (dot(ABT), sizes(dtypes.bf16, 64, 640, 64)[:1] * 2, STEPS.format(64, 64, 1, 1, 6, "")),
    "batches": (
        batched,
        (of(dtypes.f16, 2, 72, 64), of(dtypes.f16, 2, 64, 64)),
        "tile(i1=64, i2=64) stage(i1=1, i2=1, j0=64) units(64, 8, 16, buffers=4)",
    ),
    "layer": (
        lambda x, w, b: ops.tanh(models.linear(x, w, b)),
        (*sizes(dtypes.bf16, 65, 96, 80), of(dtypes.bf16, 80)),
        LEAST,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_four_subgroups_keep_the_values_of_a_product(name: str):
    function, types, text = CASES[name]
    program = program_of(function, *types)
    args = random_arguments(program)
    variant = Built(parse(text), build(kernel_of(function, *types), parse(text), LARGE))
    check(variant.code)

    agree(evaluate(program, args), run(variant, program, GPU, args), relative=1e-2)


def test_rows_may_be_of_open_number():
    kinds = ArrayType((symbol("n", 1, 4096), 72), dtypes.bf16), of(dtypes.bf16, 72, 72)
    program = program_of(dot(AB), *kinds)
    args = random_arguments(program, n=70)
    variant = Built(parse(LEAST), build(kernel_of(dot(AB), *kinds), parse(LEAST), LARGE))

    agree(evaluate(program, args), run(variant, program, GPU, args), relative=1e-2)


@pytest.mark.parametrize("device", [LARGE, TEAMS])
def test_all_passes_keep_the_values(device: Target):
    function, types, text = CASES["odd sizes"]
    program = program_of(function, *types)
    args = random_arguments(program)
    code = run_passes(kernel_passes(device), build(kernel_of(function, *types), parse(text), device), check)

    assert any(isinstance(s, MatrixProduct) for s in walk(code.body)) == (device is TEAMS)
    agree(evaluate(program, args), run(Built(parse(text), code), program, GPU, args), relative=1e-2)


def test_a_product_of_four_subgroups_parses_back_from_what_it_prints():
    code = small()

    assert parse_code(to_text(code)) == code
    assert "multiply by 4 subgroups x0_panel" in to_text(code)


# --- work that continues after a statement --------------------------------------------------------


def small() -> KernelCode:
    function, types, text = CASES["rows and columns"]
    return build(kernel_of(function, *types), parse(text), LARGE)


def interpreted(code: KernelCode) -> None:
    function, types, text = CASES["many rounds"]
    program = program_of(function, *types)
    run(Built(parse(text), code), program, GPU, random_arguments(program))


def many() -> KernelCode:
    function, types, text = CASES["many rounds"]
    return build(kernel_of(function, *types), parse(text.replace("buffers=6", "buffers=4")), LARGE)


def with_barriers(code: KernelCode, change: Any) -> KernelCode:
    body = map_stmts(lambda s: change(s) if isinstance(s, Barrier) else (s,), code.body)
    return replace(code, body=body)


def test_sums_must_not_be_read_before_a_barrier_that_covers_them():
    interpreted(many())

    with pytest.raises(CheckError, match="four subgroups may still add to it"):
        interpreted(with_barriers(many(), lambda s: (s,) if s.in_flight else ()))


def test_a_copy_that_may_still_be_pending_must_not_be_read():
    with pytest.raises(CheckError, match="which nothing has written"):
        interpreted(with_barriers(many(), lambda s: (replace(s, in_flight=2 * s.in_flight),)))


def test_a_buffer_that_may_still_be_read_must_not_be_filled():
    # Three rounds ahead of four buffers is the one that the units may still read.
    code = many()
    nearer = map_stmts(lambda s: (_ahead(s),), code.body)

    with pytest.raises(CheckError, match="a race within the workgroup"):
        interpreted(replace(code, body=nearer))


def _ahead(stmt: Any) -> Any:
    """A fetch into the memory of the round after the one that it is for."""
    if not isinstance(stmt, Fetch) or "round" not in str(stmt.target_index).replace("_round", ""):
        return stmt
    return replace(stmt, target_index=(stmt.target_index + 4096) % 16384)


# --- legality -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "units", "reason"),
    [
        ("tile(i0=96, i1=64) stage(i0=1, i1=1, j0=64)", "units(64, 8, 16, buffers=4)", "a tile has 64, 128, ... rows"),
        ("tile(i0=64, i1=32) stage(i0=1, i1=1, j0=64)", "units(64, 8, 16, buffers=4)", "a tile has 64, 128, ... rows"),
        ("tile(i0=64, i1=64) stage(i0=1, i1=1, j0=32)", "units(64, 8, 16, buffers=4)", "a depth is 64, not 32"),
        ("tile(i0=64, i1=64) stage(i0=1, i1=1, j0=64)", "units(64, 8, 16, buffers=3)", "there are 4 buffers at least"),
        (
            "tile(i0=64, i1=64) stage(i0=1, i1=1, j0=64)",
            "units(64, 8, 16, buffers=4, abreast=3)",
            "3 do not divide 1 rows of groups",
        ),
        ("tile(i0=64, i1=64) stage(i0=1, i1=1, j0=64)", "units(64, 16, 16, buffers=4)", "the only ones are"),
    ],
)
def test_teams_are_refused_for_what_they_cannot_multiply(steps: str, units: str, reason: str):
    kernel = kernel_of(dot(AB), of(dtypes.bf16, 64, 128), of(dtypes.bf16, 128, 64))

    with pytest.raises(ArgumentError) as error:
        build(kernel, parse(f"{steps} {units}"), LARGE)

    assert str(error.value).startswith(f"schedule: cannot apply {units} to {kernel.name} ({reason}")


def test_four_subgroups_count_as_all_of_their_threads_and_all_buffers():
    kernel = kernel_of(dot(AB), of(dtypes.bf16, 64, 128), of(dtypes.bf16, 128, 64))

    with pytest.raises(ArgumentError, match=r"cannot apply stage.*\(2048 threads are not within 2 to 1024"):
        build(kernel, parse(STEPS.format(64, 64, 4, 4, 4, "")), LARGE)
    with pytest.raises(ArgumentError, match=r"cannot apply stage.*\(it needs 262144 bytes of shared memory"):
        build(kernel, parse(STEPS.format(64, 256, 4, 1, 4, "")), LARGE)


# --- defaults -------------------------------------------------------------------------------------


def default(function: Any, *types: ArrayType, device: Target = TEAMS) -> Schedule:
    return build_by_default(kernel_of(function, *types, device=device), device).schedule


@pytest.mark.parametrize("numbers", [AB, ATB, ABT])
@pytest.mark.parametrize("dtype", HALVES)
def test_a_large_product_of_halves_is_one_of_four_subgroups_where_these_multiply_together(
    dtype: np.dtype, numbers: Any
):
    schedule = default(dot(numbers), of(dtype, 4096, 4096), of(dtype, 4096, 4096))

    assert str(schedule) == "tile(i0=64, i1=256) stage(i0=2, i1=1, j0=64) units(64, 8, 16, buffers=4, abreast=4)"


def test_a_small_product_of_halves_is_one_of_single_subgroups():
    units = default(dot(AB), *sizes(dtypes.bf16, 32, 64, 32)).units

    assert units is not None
    assert units.rows == 16


def test_a_convolution_whose_windows_divide_no_line_is_one_of_single_subgroups():
    kinds = of(dtypes.bf16, 16, 64, 34, 34), of(dtypes.bf16, 64, 64, 3, 3)
    units = default(lambda x, w: lax.conv(x, w, (1, 1), "VALID"), *kinds).units

    assert units is None or units.rows == 16


def test_an_inner_product_has_no_rows_for_four_subgroups():
    assert default(dot(((0,), (0,))), of(dtypes.bf16, 40), of(dtypes.bf16, 40)).units is None


def test_odd_sizes_whose_elements_pass_through_registers_are_products_of_single_subgroups():
    odd, even = (default(dot(AB), *sizes(dtypes.bf16, n, n, n)).units for n in (515, 520))

    assert odd is not None
    assert even is not None
    assert (odd.rows, even.rows) == (16, 64)
