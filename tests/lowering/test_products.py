"""Groups of threads that compute products: their points, their waits, and their loops."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune import dims, lax, ops
from rune.lowering.build.schedule import Stage, Tile
from rune.lowering.build.stage import Group as Threads
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.c.render import render
from rune.lowering.kernel.text import parse
from rune.lowering.kernelize.product_time import Group, Product, cycles, shortest
from rune.lowering.stages import stages
from tests.lowering.test_build import AB, dot
from tests.lowering.test_schedules import UNITS, kernel_of
from tests.support.lowering import f32, program_of, random_arguments, run_plan

KERNEL = kernel_of(dot(AB), f32(64, 96), f32(96, 128))


def threads(down: int, along: int, rows: int, columns: int) -> Threads:
    return Threads(KERNEL, Tile("i0", rows, "i1", columns), Stage("i0", down, "i1", along, "j0", 8))


def at(place: Any, thread: int) -> int:
    return place if isinstance(place, int) else int(str(dims.substitute(place, {"thread": thread})))


# --- whose points are whose -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("down", "along", "rows", "columns"),
    [(16, 16, 8, 8), (8, 8, 2, 2), (4, 8, 3, 5), (8, 16, 4, 6), (12, 8, 1, 7), (5, 7, 2, 4), (16, 4, 2, 4)],
)
def test_the_threads_of_a_group_compute_every_point_of_its_tile_once(down: int, along: int, rows: int, columns: int):
    group = threads(down, along, rows, columns)
    points = Counter(
        (at(group.row(r), t), at(group.column(c), t))
        for t, r, c in itertools.product(range(group.threads), range(rows), range(columns))
    )

    assert set(points) == set(itertools.product(range(down * rows), range(along * columns)))
    assert set(points.values()) == {1}


@pytest.mark.parametrize(("down", "along"), [(16, 16), (8, 8), (4, 8), (8, 32)])
def test_threads_in_step_read_four_rows_and_eight_columns(down: int, along: int):
    group = threads(down, along, 1, 1)

    for first in range(0, group.threads, 32):
        lanes = range(first, first + 32)
        assert len({at(group.row(0), t) for t in lanes}) == 4
        assert len({at(group.column(0), t) for t in lanes}) == 8


@pytest.mark.parametrize(("columns", "run"), [(8, 4), (4, 4), (6, 2), (2, 2), (5, 1), (1, 1)])
def test_as_many_columns_of_a_thread_are_neighbours_as_one_access_has(columns: int, run: int):
    group = threads(4, 8, 1, columns)
    first = [at(group.column(c), 0) for c in range(columns)]

    assert first[:run] == list(range(run))
    assert group.run == run


# --- what is written out ----------------------------------------------------------------------

LOOP = """
code f(x: read f32[{count}], y: write f32[32]) {{
  for i in 32 grid {{
    alloc panel: f32[{count}] shared
    for thread in 32 workgroup {{
      var s: f32 = 0.0_f32
      barrier
      for k in {rounds} serial {{
        a: f32 = {buffer}[k]
        s add= a * a
      }}
      store y[i] = s
    }}
  }}
}}
"""


def text(rounds: int, buffer: str = "panel") -> str:
    return render(parse(LOOP.format(rounds=rounds, count=rounds, buffer=buffer)), CUDA_C).text


@pytest.mark.parametrize(("rounds", "together"), [(8, 8), (16, 16), (48, 16), (28, 14), (9, 9), (17, 16), (31, 16)])
def test_rounds_that_read_shared_memory_are_unrolled_by_a_divisor_if_there_is_one(rounds: int, together: int):
    assert f"#pragma unroll {together}\n" in text(rounds)


def test_a_loop_over_global_memory_is_left_to_the_compiler():
    assert "#pragma" not in text(16, "x")


# --- what groups wait for ---------------------------------------------------------------------

CORES = 132
LARGE = Product(1, 4096, 4096, 4096)
FEW = Product(1, 128, 512, 784)


def test_a_large_product_takes_the_time_of_its_instructions():
    group = Group(16, 16, 8, 8, 16, is_ahead=True)

    assert 1.0 <= cycles(LARGE, group, CORES) / (4096**3 / 128 / CORES) <= 1.2


def test_a_product_of_few_results_is_faster_from_deep_panels_that_are_fetched_ahead():
    shallow, deep = Group(8, 8, 2, 2, 16), Group(8, 8, 2, 2, 64, is_ahead=True)

    assert cycles(FEW, deep, CORES) < cycles(FEW, shallow, CORES)


def test_a_group_that_no_multiprocessor_holds_takes_forever():
    assert cycles(LARGE, Group(16, 16, 16, 16, 16), CORES) == float("inf")


@given(sizes=st.tuples(*(st.integers(1, 5_000) for _ in range(3))), more=st.integers(1, 1_000), is_ahead=st.booleans())
def test_a_longer_sum_never_takes_less_time(sizes: tuple[int, int, int], more: int, is_ahead: bool):
    product = Product(1, *sizes)
    longer = replace(product, sums=product.sums + more)

    assert shortest(longer, CORES, ahead=is_ahead) >= shortest(product, CORES, ahead=is_ahead)


# --- the defaults, as wholes ------------------------------------------------------------------

DEVICE = replace(UNITS, cores=1, shared_bytes=227 << 10)


def convolved(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The sum of shifted images, in f64."""
    height, width = (n - k + 1 for n, k in zip(x.shape[2:], w.shape[2:]))
    shifts = itertools.product(range(w.shape[2]), range(w.shape[3]))
    parts = (
        np.einsum("nchw,oc->nohw", x[:, :, i : i + height, j : j + width].astype(np.float64), w[:, :, i, j])
        for i, j in shifts
    )
    return sum(parts, np.zeros(()))


@pytest.mark.parametrize("sizes", [(3, 33, 35, 9, 11), (2, 32, 37, 12, 8), (5, 34, 64, 6, 7)])
def test_a_convolution_with_merged_points_is_a_sum_of_shifted_images(sizes: tuple[int, ...]):
    images, features, filters, height, width = sizes
    program = program_of(
        lambda x, w: lax.conv(x, w, (1, 1), "VALID"), f32(images, features, height, width), f32(filters, features, 3, 3)
    )
    lowering = stages(program, DEVICE, check=True)
    args = random_arguments(program)

    assert any(s.merge is not None and s.stage is not None for s in lowering.schedules.values())
    (result,) = run_plan(lowering.plan, args)
    np.testing.assert_allclose(result, convolved(*args), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("sizes", [(33, 1_021, 65), (67, 784, 129), (32, 4_099, 32)])
def test_a_product_of_few_results_by_its_default_is_that_of_numpy(sizes: tuple[int, int, int]):
    m, k, n = sizes
    program = program_of(dot(AB), f32(m, k), f32(k, n))
    args = random_arguments(program)
    lowering = stages(program, DEVICE, check=True)

    assert any(s.stage is not None for s in lowering.schedules.values())
    (result,) = run_plan(lowering.plan, args)
    np.testing.assert_allclose(result, args[0].astype(np.float64) @ args[1], rtol=1e-4, atol=1e-2)


# --- registers --------------------------------------------------------------------------------


def test_sums_of_products_are_copied_before_they_are_stored_as_neighbours():
    lowering = stages(program_of(dot(AB), f32(64, 64), f32(64, 64)), replace(DEVICE, language="cuda"))
    (code,) = lowering.codes.values()
    text = render(code, CUDA_C).text

    assert lowering.schedules[code.name].stage is not None
    assert text.count("rune_copy(") == len(set(re.findall(r"sum\w+_acc = 0", text)))


def test_a_sum_of_products_from_which_the_result_is_computed_is_not_copied():
    program = program_of(lambda a, b: dot(AB)(a, b) + 1.0, f32(64, 64), f32(64, 64))
    lowering = stages(program, replace(DEVICE, language="cuda"))
    (code,) = lowering.codes.values()

    assert lowering.schedules[code.name].stage is not None
    assert "rune_copy" not in render(code, CUDA_C).text


def test_a_sum_that_no_group_shares_is_stored_directly():
    lowering = stages(program_of(lambda x: ops.reduce_sum(x, axes=(1,)), f32(64, 7)), replace(DEVICE, language="cuda"))

    assert not any("rune_copy" in render(code, CUDA_C).text for code in lowering.codes.values())
