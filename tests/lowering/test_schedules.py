"""Schedules: printing and parsing, which ones are refused and why, and that none changes a value.

A run builds each case for one of the four kinds of target; RUNE_TEST_WHOLE=1 builds it for all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import dtypes, lax, ops
from rune.core.types import ArrayType
from rune.dims import symbol
from rune.errors import ArgumentError
from rune.lowering.build import Built, build, build_by_default, flat_kernel
from rune.lowering.build.schedule import (
    PLAIN,
    Lanes,
    Merge,
    Order,
    Parts,
    Rows,
    Schedule,
    Share,
    Squares,
    Stage,
    Tile,
    Turn,
    Units,
    Vectors,
    parse,
)
from rune.lowering.build.space import shared, walks
from rune.lowering.codegen.target import Target, natively
from rune.lowering.kernel.check import check
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernelize import kernelize
from rune.lowering.kernels import Kernel
from tests.lowering import models
from tests.lowering.test_build import AB, ABT, ATB, dot
from tests.support.lowering import (
    agree,
    evaluate,
    f32,
    only_kernel,
    program_of,
    random_arguments,
    run_code,
    sizes_of,
    target,
)
from tests.support.sampling import IS_WHOLE, each_value, one_in

GPU = replace(target(language="opencl"), cores=1, threads_per_workgroup=1024, shared_bytes=1 << 15)
PROCESSOR = replace(GPU, subgroup_threads=1, vector_bytes=64, is_processor=True)
CPU = target()
UNITS = replace(
    GPU,
    language="cuda",
    native=natively(fma=[dtypes.f32], multiply=[dtypes.f16, dtypes.bf16], fetch=[dtypes.f32, dtypes.f64, dtypes.i32]),
)
TARGETS = {"gpu": GPU, "units": UNITS, "processor": PROCESSOR, "cpu": CPU}

COUNTS = st.integers(1, 64)
AXES = st.sampled_from(["i0", "i1", "j_2"])
TILES = st.builds(Tile, AXES, COUNTS) | st.builds(Tile, AXES, COUNTS, AXES, st.integers(2, 64), st.booleans())
STAGES = st.builds(Stage, st.just("i0"), COUNTS, st.just("i1"), COUNTS, st.just("j0"), COUNTS, st.booleans())
SCHEDULES = st.builds(
    Schedule,
    st.none() | st.builds(Order, st.lists(AXES, min_size=1).map(tuple)),
    st.none() | st.builds(Merge, AXES),
    st.none() | st.builds(Parts, COUNTS, COUNTS),
    st.none() | st.builds(Squares, AXES, COUNTS),
    st.none() | st.builds(Turn, AXES, COUNTS),
    st.none() | st.builds(Vectors, COUNTS, COUNTS),
    st.none() | st.builds(Rows, AXES, COUNTS),
    st.none() | TILES,
    st.none() | STAGES,
    st.none() | st.builds(Units, COUNTS, COUNTS, COUNTS, st.integers(0, 8), st.integers(1, 8), st.integers(0, 8)),
    st.none() | st.builds(Share, COUNTS, COUNTS, COUNTS, st.booleans(), st.booleans()),
    st.none() | st.builds(Lanes, AXES),
)

# --- text -----------------------------------------------------------------------------------------


@given(SCHEDULES)
def test_a_schedule_parses_back_from_what_it_prints(schedule: Schedule):
    assume(schedule.tile is None or schedule.tile.row_axis != schedule.tile.column_axis)

    assert parse(str(schedule)) == schedule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("til(i0=2)", "schedule: cannot apply 'til' (steps: order(i1, i0), merge(i2), parts(4, lanes=16), "),
        ("tile", "schedule: cannot read 'tile' (steps: "),
        ("", "schedule: cannot apply steps in the order of '' (it is: order, merge, parts, squares, "),
        ("share(8) tile(i0=2)", "schedule: cannot apply steps in the order of 'share(8) tile(i0=2)'"),
        ("tile(i0=2) tile(i0=2)", "schedule: cannot apply tile twice"),
        ("tile(i0=2, i0=3)", "schedule: cannot read tile(i0=2, i0=3) (it looks like tile(i0=8, i1=16, apart))"),
        ("tile(i0=2, apart)", "schedule: cannot read tile(i0=2, apart)"),
        ("tile(i0=2, i1=2, far)", "schedule: cannot read tile(i0=2, i1=2, far)"),
        ("share(i0=2)", "schedule: cannot read share(i0=2) (it looks like share(128, lanes=4, points=2))"),
        ("stage(i0=2, i1=2)", "schedule: cannot read stage(i0=2, i1=2) (it looks like stage(i0=16, i1=16, j0=8))"),
        ("order(i1, 0)", "schedule: cannot read order(i1, 0) (it looks like order(i1, i0))"),
        ("order(i1=0)", "schedule: cannot read order(i1=0)"),
        ("parts(i0=2)", "schedule: cannot read parts(i0=2) (it looks like parts(4, lanes=16))"),
        ("lanes(2)", "schedule: cannot read lanes(2) (it looks like lanes(i0))"),
        ("rows(4)", "schedule: cannot read rows(4) (it looks like rows(i0=4))"),
        ("units(16, 8)", "schedule: cannot read units(16, 8) (it looks like units(16, 8, 16))"),
        ("squares(16)", "schedule: cannot read squares(16)"),
        ("squares(i0=16, i1=8)", "schedule: cannot read squares(i0=16, i1=8) (it looks like squares(i0=16, lanes=8))"),
        ("vectors(4)", "schedule: cannot read vectors(4)"),
        ("vectors(4, lanes=2, i0=2)", "schedule: cannot read vectors(4, lanes=2, i0=2)"),
        ("parts(4, i0=2)", "schedule: cannot read parts(4, i0=2) (it looks like parts(4, lanes=16))"),
        ("stage(i0=2, i1=2, j0=2, thrice)", "schedule: cannot read stage(i0=2, i1=2, j0=2, thrice)"),
        ("units(16, 8, 16, i0=2)", "schedule: cannot read units(16, 8, 16, i0=2)"),
        ("share(8, i0=2)", "schedule: cannot read share(8, i0=2)"),
        ("share(8, apart)", "schedule: cannot read share(8, apart)"),
    ],
)
def test_text_that_is_not_a_schedule_is_refused_with_the_right_form(text: str, message: str):
    with pytest.raises(ArgumentError) as error:
        parse(text)

    assert str(error.value).startswith(message)


# --- legality -------------------------------------------------------------------------------------


def kernel_of(function: Any, *types: ArrayType, device: Target = GPU) -> Kernel:
    return only_kernel(kernelize(program_of(function, *types), device))


PRODUCT = kernel_of(dot(AB), f32(12, 5), f32(5, 6))
OPEN_SUM = kernel_of(
    dot(AB), ArrayType((12, symbol("k", 1, 99)), dtypes.f32), ArrayType((symbol("k", 1, 99), 6), dtypes.f32)
)
BOTH = kernel_of(lambda x, w: lax.conv(x, w, (1, 1), "VALID"), f32(2, 3, 7, 9), f32(5, 3, 3, 2))
HALVES = kernel_of(dot(AB), ArrayType((64, 40), dtypes.bf16), ArrayType((40, 48), dtypes.bf16))
COPY = kernel_of(lambda x: ops.transpose(x, permutation=(1, 0)) + 0.0, f32(8, 6))
ALONG = kernel_of(lambda x, y: ops.add(x, ops.broadcast(y, shape=(8, 6), axes=(1,))), f32(8, 6), f32(6))
SUMS = kernel_of(lambda x: ops.cumsum(x, axis=1, reverse=False), f32(3, 40))


def _refused(text: str) -> str:
    """The step of a schedule of one or two that is at fault."""
    first, *others = text.split(") ")
    return others[-1] if others and others[-1].startswith(("stage", "rows")) else f"{first.removesuffix(')')})"


@pytest.mark.parametrize(
    ("kernel", "text", "reason"),
    [
        (PRODUCT, "tile(i1=2)", "axis i1 is not one of those before the last: i0"),
        (PRODUCT, "tile(i0=2, i2=2)", "columns lie along the last axis, i1"),
        (PRODUCT, "tile(i0=64, i1=32)", "2048 is not within 1 to 1024"),
        (PRODUCT, "tile(i0=0)", "0 is not within 1 to 1024"),
        (PRODUCT, "squares(i0=16)", "its points do more than write single elements"),
        (PRODUCT, "vectors(4, lanes=2)", "8 columns do not divide axis i1 of 6"),
        (PRODUCT, "vectors(3, lanes=2, neighbours=2)", "2 neighbours do not divide 3"),
        (PRODUCT, "vectors(3, lanes=2) tile(i0=2)", "a tile has columns of its own"),
        (PRODUCT, "share(3)", "not a power of two from 2 to 1024, the threads of a group of test:0"),
        (PRODUCT, "share(2048)", "not a power of two from 2 to 1024, the threads of a group of test:0"),
        (PRODUCT, "stage(i0=2, i1=2, j0=2)", "it needs a tile that is not apart, and points that threads do not share"),
        (PRODUCT, "tile(i0=2) stage(i0=2, i1=2, k0=2)", "rows and columns of the tile are axes i0, i1, its sum's j0"),
        (PRODUCT, "tile(i0=2) stage(i0=64, i1=64, j0=2)", "4096 threads are not within 2 to 1024, as on test:0"),
        (
            PRODUCT,
            "tile(i0=64) stage(i0=16, i1=16, j0=64)",
            "it needs 267264 bytes of shared memory, of 32768 on test:0",
        ),
        (OPEN_SUM, "tile(i0=2) stage(i0=2, i1=2, j0=2)", "its sum is of open size"),
        (BOTH, "tile(i2=2) stage(i2=2, i3=2, j0=2)", "an operand of its dot depends on rows and columns"),
        (COPY, "tile(i0=2)", "it is not one dot with scalars and plain writes around it"),
        (COPY, "turn(i1=16)", "axis i1 is not one of those before the last: i0"),
        (COPY, "turn(i0=256)", "it needs 263168 bytes of shared memory, of 32768 on test:0"),
        (PRODUCT, "turn(i0=16)", "its points do more than write single elements"),
        (ALONG, "turn(i0=16)", "it reads nothing along i0 that it writes across"),
        (COPY, "merge(i1)", "axis i1 is not one of those before the last: i0"),
        (COPY, "squares(i1=16)", "axis i1 is not one of those before the last: i0"),
        (COPY, "squares(i0=12, lanes=8)", "blocks have sides of 1 to 16 that divide 12, not 8"),
        (COPY, "squares(i0=32, lanes=32)", "blocks have sides of 1 to 16 that divide 32, not 32"),
        (
            COPY,
            "share(16)",
            "it has no loop that a group could divide like that, or more memory is needed than the 32768 bytes",
        ),
        (
            SUMS,
            "share(16)",
            "it has no loop that a group could divide like that, or more memory is needed than the 32768 bytes",
        ),
        (SUMS, "vectors(2, lanes=2)", "it has scratch rows or scans"),
        (SUMS, "rows(i0=3)", "it has scratch rows or scans"),
        (PRODUCT, "order(i0)", "its axes are i0, i1"),
        (PRODUCT, "order(i0, i0)", "its axes are i0, i1"),
        (PRODUCT, "parts(2)", "it has no reduction whose last axis has 4 rounds for each"),
        (PRODUCT, "lanes(i0)", "test:0 chooses its lanes itself"),
        (PRODUCT, "parts(2, lanes=0)", "0 is not within 1 to 1024"),
        (PRODUCT, "parts(1)", "1 is not within 2 to 1024"),
        (PRODUCT, "rows(i2=2)", "it has no axis i2 of known size that 2 rows divide (i0 in 12, i1 in 6)"),
        (PRODUCT, "rows(i0=5)", "it has no axis i0 of known size that 5 rows divide (i0 in 12, i1 in 6)"),
        (PRODUCT, "rows(i0=1)", "1 is not within 2 to 1024"),
        (PRODUCT, "rows(i0=2) tile(i0=2)", "it has squares or a tile already"),
        (COPY, "vectors(2, lanes=1) rows(i1=2)", "its vectors are along the same axis"),
    ],
)
def test_an_illegal_step_is_refused_with_the_axis_and_what_it_lacks(kernel: Kernel, text: str, reason: str):
    with pytest.raises(ArgumentError) as error:
        build(kernel, parse(text), GPU)

    assert str(error.value).startswith(f"schedule: cannot apply {_refused(text)} to {kernel.name} ({reason}")


def test_two_panels_hold_whole_rounds():
    with pytest.raises(ArgumentError, match=r"stage\(i0=2, i1=2, j0=2, twice\) to dot_0 \(.*not 2 of 5\)"):
        build(PRODUCT, parse("tile(i0=2) stage(i0=2, i1=2, j0=2, twice)"), GPU)


STAGED = "tile(i0={}, i1={}) stage(i0={}, i1={}, j0={})"


@pytest.mark.parametrize(
    ("kernel", "steps", "units", "reason"),
    [
        (PRODUCT, "", "units(16, 8, 16)", "it goes with a tile and a stage"),
        (PRODUCT, STAGED.format(16, 8, 1, 1, 16), "units(16, 8, 16)", "its dot is not a sum of products of an element"),
        (HALVES, STAGED.format(16, 8, 1, 1, 16), "units(8, 8, 4)", "the only ones are units(16, 8, 16)"),
        (HALVES, STAGED.format(24, 8, 1, 1, 16), "units(16, 8, 16)", "they do not divide a tile of 24 x 8"),
        (HALVES, STAGED.format(16, 8, 1, 1, 8), "units(16, 8, 16)", "they do not divide a depth of 8"),
    ],
)
def test_units_are_refused_for_what_they_cannot_multiply(kernel: Kernel, steps: str, units: str, reason: str):
    with pytest.raises(ArgumentError) as error:
        build(kernel, parse(f"{steps} {units}"), GPU)

    assert str(error.value).startswith(f"schedule: cannot apply {units} to {kernel.name} ({reason}")


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ((16, 8, 8, 8, 16), "2048 threads are not within 2 to 1024"),
        ((64, 64, 4, 1, 64), "it needs 92160 bytes of shared memory, of 32768"),
    ],
)
def test_subgroups_count_as_all_of_their_threads_and_two_panels_of_each_operand(numbers: tuple[int, ...], reason: str):
    with pytest.raises(ArgumentError, match=rf"cannot apply stage.*\({reason}"):
        build(HALVES, parse(f"{STAGED.format(*numbers)} units(16, 8, 16)"), GPU)


# --- values ---------------------------------------------------------------------------------------


def batched(a: Any, b: Any) -> Any:
    return ops.dot_general(a, b, dimension_numbers=(((2,), (1,)), ((0,), (0,))))


def of(dtype: np.dtype, *shape: int) -> ArrayType:
    return ArrayType(shape, dtype)


N, M = symbol("n", 1, 4096), symbol("m", 1, 4096)

CASES: dict[str, tuple[Any, tuple[ArrayType, ...], dict[str, int]]] = {
    "product": (dot(AB), (f32(13, 7), f32(7, 22)), {}),
    "product of columns": (dot(ATB), (f32(7, 16), f32(7, 32)), {}),
    "product of rows": (dot(ABT), (f32(17, 5), f32(33, 5)), {}),
    "products": (batched, (f32(2, 9, 3), f32(2, 3, 19)), {}),
    "product of bf16": (dot(AB), (of(dtypes.bf16, 13, 7), of(dtypes.bf16, 7, 24)), {}),
    "product of f64": (dot(ABT), (of(dtypes.f64, 13, 9), of(dtypes.f64, 24, 9)), {}),
    "product of i32": (dot(AB), (of(dtypes.i32, 13, 16), of(dtypes.i32, 16, 24)), {}),
    "product of f16": (dot(AB), (of(dtypes.f16, 37, 40), of(dtypes.f16, 40, 24)), {}),
    "product of odd f16": (dot(AB), (of(dtypes.f16, 19, 35), of(dtypes.f16, 35, 27)), {}),
    "product of columns of bf16": (dot(ATB), (of(dtypes.bf16, 33, 40), of(dtypes.bf16, 33, 56)), {}),
    "product of rows of bf16": (dot(ABT), (of(dtypes.bf16, 33, 48), of(dtypes.bf16, 17, 48)), {}),
    "products of f16": (batched, (of(dtypes.f16, 2, 33, 24), of(dtypes.f16, 2, 24, 17)), {}),
    "layer of bf16": (
        lambda x, w, b: ops.tanh(models.linear(x, w, b)),
        (of(dtypes.bf16, 35, 32), of(dtypes.bf16, 32, 40), of(dtypes.bf16, 40)),
        {},
    ),
    "convolution of bf16": (
        lambda x, w: lax.conv(x, w, (1, 1), "VALID"),
        (of(dtypes.bf16, 2, 16, 5, 6), of(dtypes.bf16, 9, 16, 3, 2)),
        {},
    ),
    "inner product of bf16": (dot(((0,), (0,))), (of(dtypes.bf16, 40), of(dtypes.bf16, 40)), {}),
    "padded product": (
        lambda x, w: rnp.pad(x, ((1, 2), (3, 1))) @ rnp.pad(w, ((0, 1), (2, 2))),
        (f32(10, 7), f32(10, 18)),
        {},
    ),
    "product of joined rows": (
        lambda x, y, w: rnp.concatenate([x, y], 1) @ w,
        (f32(13, 5), f32(13, 6), f32(11, 22)),
        {},
    ),
    "triangular product": (lambda x, w: rnp.triu(x) @ rnp.tril(w), (f32(17, 17), f32(17, 21)), {}),
    "gathered product": (lambda x, w: x[:, ::-1] @ rnp.roll(w, 3, 0), (f32(9, 12), f32(12, 20)), {}),
    "padded transpose": (lambda x: rnp.pad(x, ((1, 2), (3, 1))).T * 2.0, (f32(7, 5),), {}),
    "transpose of joined rows": (lambda x, y: rnp.concatenate([x, y], 0).T * 2.0, (f32(20, 37), f32(15, 37)), {}),
    "open product": (dot(AB), (ArrayType((N, 3), dtypes.f32), ArrayType((3, M), dtypes.f32)), {"n": 9, "m": 19}),
    "layer": (
        lambda x, w, b: models.gelu_tanh(models.linear(x, w, b)),
        (f32(11, 4), f32(4, 18), f32(18)),
        {},
    ),
    "convolution": (lambda x, w: lax.conv(x, w, (1, 1), "VALID"), (f32(2, 3, 7, 9), f32(5, 3, 3, 2)), {}),
    "transpose": (lambda x: ops.transpose(x, permutation=(1, 0)) * 2.0, (f32(37, 65),), {}),
    "open transpose": (
        lambda x: ops.transpose(x, permutation=(1, 0)) * 2.0,
        (ArrayType((N, M), dtypes.f32),),
        {"n": 21, "m": 33},
    ),
    "swapped axes": (lambda x: ops.transpose(x, permutation=(2, 0, 1)) * 2.0, (f32(5, 17, 9),), {}),
    "columns": (lambda x: ops.reduce_sum(x, axes=(0,)), (f32(19, 64),), {}),
    "rows": (lambda x: ops.reduce_sum(x, axes=(1,)), (f32(5, 131),), {}),
    "means of both": (lambda x, y: ops.reduce_sum(x * y, axes=(0, 2)), (f32(4, 6, 37), f32(4, 6, 37)), {}),
    "distances": (
        lambda x, y: rnp.sum(rnp.square(x[:, None] - y[None]), axis=-1),
        (f32(8, 35), f32(12, 35)),
        {},
    ),
    "places": (lambda x: rnp.argmax(x, axis=1), (f32(8, 70, 4),), {}),
    "windows": (lambda x: rnp.max(rnp.reshape(x, (4, 2, 9, 3)), axis=(1, 3)), (f32(8, 27),), {}),
    "bits": (
        lambda x: (rnp.all(x > -1.0, axis=1), rnp.any(x > 2.0, axis=1), rnp.prod(1 + x / 64, axis=1)),
        (f32(6, 67),),
        {},
    ),
    "softmax": (models.softmax, (f32(3, 67),), {}),
    "layernorm": (models.layernorm, (f32(3, 128), f32(128), f32(128)), {}),
    "softmax of many rows": (models.softmax, (f32(16, 64),), {}),
    "layernorm of many rows": (models.layernorm, (f32(16, 128), f32(128), f32(128)), {}),
    "norms of bf16": (
        lambda x, y: x * rnp.sum(x * y, axis=1, keepdims=True),
        (of(dtypes.bf16, 8, 96), of(dtypes.bf16, 8, 96)),
        {},
    ),
    "sums of rows": (lambda x, y: (rnp.sum(x * y, axis=1), rnp.max(x, axis=1)), (f32(32, 76), f32(32, 76)), {}),
    "sums of columns": (lambda x: (rnp.sum(x, axis=0), rnp.prod(1 + x / 64, axis=0)), (f32(17, 64),), {}),
    "gathered rows": (lambda x, i: x[i] + 1.0, (f32(6, 72), of(dtypes.i32, 8)), {}),
    "sums": (lambda x: ops.cumsum(x, axis=1, reverse=False), (f32(3, 40),), {}),
    "elementwise": (lambda x, y: ops.tanh(x) * y, (f32(7, 48), f32(7, 48)), {}),
}  # fmt: skip


def run(variant: Built, program: Any, device: Target, args: list[np.ndarray]) -> list[np.ndarray]:
    """The results of a program of one kernel, by its loops."""
    return run_code(variant.code, kernelize(program, device), sizes_of(program, args), args)


def schedules(kernel: Kernel, device: Target) -> list[Schedule]:
    ways = list(walks(flat_kernel(kernel), device))
    return [*ways, *shared(flat_kernel(kernel), ways, device)]


# Tried for each case on a target; the 44 cases try different ones.
KINDS = 16 if IS_WHOLE else 3


@pytest.fixture(scope="module")
def right() -> set[tuple[str, KernelCode]]:
    """The loops of each case that gave its values: most targets build the same ones again."""
    return set()


@each_value()
@pytest.mark.parametrize("where", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_no_legal_schedule_changes_a_value(case: str, where: str, right: set[tuple[str, KernelCode]]):
    function, types, sizes = CASES[case]
    device, program = TARGETS[where], program_of(function, *types)
    kernel = only_kernel(kernelize(program, device))
    args = random_arguments(program, **sizes)
    reference = evaluate(program, args)
    candidates = schedules(kernel, device)
    if where == "units":  # all others build the same code as on the GPU, as the next test shows
        candidates = [c for c in candidates if asks_for_units(c)] or candidates
    variants = list(itertools.islice(some_of(kernel, candidates, device), KINDS))
    assert variants
    for one in (b for b in variants if (case, b.code) not in right):
        check(one.code)
        agree(reference, run(one, program, device, args), relative=tolerance(types))
        right.add((case, one.code))


def asks_for_units(schedule: Schedule) -> bool:
    """Whether its loops depend on matrix units or asynchronous copies of a GPU."""
    return schedule.stage is not None or schedule.units is not None


@pytest.mark.parametrize("case", one_in(6, list(CASES)))
def test_a_schedule_without_matrix_units_builds_the_same_kernel_on_every_gpu(case: str):
    function, types, _ = CASES[case]
    kernel = only_kernel(kernelize(program_of(function, *types), UNITS))
    others = [c for c in schedules(kernel, UNITS) if not asks_for_units(c)]
    for one in itertools.islice(some_of(kernel, others, UNITS), 2):
        assert build(kernel, one.schedule, GPU) == one.code


def some_of(kernel: Kernel, candidates: list[Schedule], device: Target) -> Iterator[Built]:
    """One of every kind of schedule, built: a kind has the same steps."""
    rng = np.random.default_rng(len(candidates))
    kinds: set[tuple[Any, ...]] = set()
    for c in (candidates[k] for k in rng.permutation(len(candidates))):
        steps = (getattr(c, f.name) is None for f in fields(Schedule))
        share = c.share and (c.share.lanes > 1, c.share.points > 1, c.share.across, c.share.registers)
        kind = (*steps, c.stage is not None and c.stage.twice, share)
        if kind in kinds:
            continue
        try:
            code = build(kernel, c, device)
        except ArgumentError:  # its threads cannot share such a point
            continue
        kinds.add(kind)
        yield Built(c, code)


def tolerance(types: tuple[ArrayType, ...]) -> float:
    return 2e-2 if types[0].dtype in (dtypes.f16, dtypes.bf16) else 1e-4


@each_value()
@pytest.mark.parametrize("where", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_the_default_is_a_schedule_by_which_the_same_loops_are_built(case: str, where: str):
    function, types, _ = CASES[case]
    kernel = kernel_of(function, *types, device=TARGETS[where])
    variant = build_by_default(kernel, TARGETS[where])

    assert build(kernel, parse(str(variant.schedule)), TARGETS[where]) == variant.code


# --- schedules on request -------------------------------------------------------------------------


def layer(x: Any, w: Any) -> Any:
    return rnp.tanh(x @ w)


TWICE = "tile(i0=2, i1=4) stage(i0=4, i1=8, j0=1, twice)"
X, W = np.random.default_rng(0).normal(size=(2, 37, 37)).astype(np.float32)


@pytest.mark.parametrize("text", ["plain", "tile(i0=3, i1=5)", "tile(i0=3, i1=5, apart)", "share(32)", TWICE])
def test_a_jitted_function_runs_by_its_schedule(text: str):
    f = rune.jit(layer, device="opencl", schedule={"dot_tanh_0": text})

    assert rune.explain(f)(X, W)["schedules"] == f"dot_tanh_0: {text}  # asked for"
    np.testing.assert_allclose(f(X, W), np.tanh(X.astype(float) @ W), rtol=1e-5, atol=1e-6)


def test_a_schedule_of_another_kernel_is_refused_with_the_valid_names():
    f = rune.jit(layer, device="opencl", schedule={"dot_1": "plain"})

    with pytest.raises(ArgumentError, match=r"cannot find the kernel 'dot_1' of layer \(it has: dot_tanh_0\)"):
        f(X, W)


def test_the_derivative_of_a_function_with_a_schedule_has_default_schedules():
    f = rune.jit(layer, device="opencl", schedule={"dot_tanh_0": "tile(i0=4)"})
    derivative = rune.grad(lambda x: rnp.sum(f(x, W)))(X)

    np.testing.assert_allclose(derivative, (1 - np.tanh(X.astype(float) @ W) ** 2) @ W.T, rtol=1e-4, atol=1e-5)


def test_a_printed_schedule_is_one_line_without_its_kernel():
    assert str(PLAIN) == "plain"
    assert str(parse(" tile( i0=8 , i1=16,apart )share(128) ")) == "tile(i0=8, i1=16, apart) share(128)"
