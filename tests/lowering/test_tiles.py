"""Tiles of dots on devices: several rows and columns at one point.

Which tile is chosen for which device, and that every remainder of rows and columns is computed.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

import rune.numpy as rnp
from rune import dtypes, lax, ops
from rune.core.types import ArrayType
from rune.dims import symbol
from rune.lowering.build import build_by_default, flat_kernel
from rune.lowering.build.schedule import Tile
from rune.lowering.build.tile_choice import choose_tile
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import If
from rune.lowering.kernel.rewrite import walk
from rune.lowering.kernelize import kernelize
from tests.lowering import models
from tests.lowering.test_build import AB, ABT, ATB, code_of, dot, grid, hold, shapes
from tests.support.lowering import f32, only_kernel, program_of, target

# One processor, so that small products have points enough; threads in step want columns apart.
GPU = replace(target(language="opencl"), cores=1)
PROCESSOR = replace(GPU, subgroup_threads=1, vector_bytes=64, is_processor=True)
DEVICES = pytest.mark.parametrize("device", [GPU, PROCESSOR], ids=["gpu", "processor"])
SIZES = [(128, 64, 3), (130, 67, 5), (67, 130, 2), (129, 33, 7), (1_021, 7, 2), (7, 1_021, 2), (257, 8, 1)]


def tile_of(device: Target, function: Any, *types: ArrayType) -> Tile | None:
    kernel = only_kernel(kernelize(program_of(function, *types), device))
    return choose_tile(flat_kernel(kernel), device)


@DEVICES
@pytest.mark.parametrize(("numbers", "size"), list(itertools.product((AB, ABT, ATB), SIZES)), ids=str)
def test_a_tiled_dot_is_right_for_any_remainder(numbers: Any, size: Any, device: Target):
    hold(dot(numbers), *shapes(numbers, *size), device=device)


@DEVICES
def test_a_dot_of_symbolic_rows_and_columns_is_tiled(device: Target):
    m, n = symbol("m", 1, 4096), symbol("n", 1, 4096)

    for sizes in ((1, 1), (8, 16), (9, 17), (33, 5)):
        types = ArrayType((m, 3), dtypes.f32), ArrayType((3, n), dtypes.f32)
        hold(dot(AB), *types, device=device, m=sizes[0], n=sizes[1])


@DEVICES
def test_the_epilogue_of_a_tile_is_done_for_every_row_and_column(device: Target):
    hold(lambda x, w, b: models.gelu_tanh(models.linear(x, w, b)), f32(70, 3), f32(3, 41), f32(41), device=device)


@DEVICES
def test_a_batch_of_dots_is_tiled(device: Target):
    def function(a: Any, b: Any) -> Any:
        return ops.dot_general(a, b, dimension_numbers=(((2,), (1,)), ((0,), (0,))))

    hold(function, f32(3, 31, 5), f32(3, 5, 37), device=device)


@DEVICES
@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_is_tiled_by_what_its_points_share(device: Target, stride: int):
    def function(x: Any, w: Any) -> Any:
        return lax.conv(x, w, (stride, stride), "VALID")

    hold(function, f32(2, 3, 9, 13), f32(9, 3, 3, 3), device=device)


def test_a_point_has_rows_and_columns_that_are_neighbours_on_a_processor():
    assert tile_of(PROCESSOR, dot(AB), f32(512, 512), f32(512, 512)) == Tile("i0", 8, "i1", 16)
    assert grid(code_of(dot(AB), f32(512, 8), f32(8, 512), device=PROCESSOR)) == [64, 32]


def test_a_transposition_walks_squares_on_a_cpu_behind_a_driver():
    code = code_of(lambda x: ops.transpose(x, permutation=(1, 0)) + 0.0, f32(64, 64), device=PROCESSOR)

    assert grid(code) == [4, 4]


@pytest.mark.parametrize(
    ("function", "shape", "squares"),
    [
        (lambda x: x.T + 0.0, (1_024, 1_024), "squares(i0=32, lanes=8)"),
        (lambda x: x.T + 0.0, (1_031, 1_019), "squares(i0=32, lanes=8)"),
        (lambda x: x.T + 0.0, (16, 65_536), "squares(i0=8, lanes=8)"),
        (lambda x: x.T + 0.0, (1_023, 1_024), "squares(i0=16)"),  # few points do not pay for a longer compilation
        (lambda x: rnp.tanh(x.T), (1_024, 1_024), "squares(i0=16)"),
        (lambda x: rnp.astype(x.T, dtypes.f16), (1_024, 1_024), "squares(i0=16)"),
        (lambda x: (x.T, x.T + rnp.reshape(x, x.T.shape)), (1_024, 1_030), "squares(i0=16)"),
        (lambda x: x.T + rnp.ravel(x)[rnp.astype(x, int)], (1_024, 1_024), "squares(i0=16)"),
    ],
)
def test_large_transpositions_that_do_little_are_made_in_blocks(function: Any, shape: tuple[int, int], squares: str):
    kernels = kernelize(program_of(function, f32(*shape)), PROCESSOR)

    assert str(build_by_default(only_kernel(kernels), PROCESSOR).schedule) == squares


def test_columns_are_apart_where_threads_run_in_step():
    tile = tile_of(GPU, dot(AB), f32(512, 512), f32(512, 512))

    assert tile is not None
    assert tile.apart
    assert tile.rows * tile.columns >= 64


def test_whole_tiles_alone_need_no_condition():
    assert not any(isinstance(s, If) for s in walk(code_of(dot(AB), f32(64, 8), f32(8, 64), device=PROCESSOR).body))
    assert any(isinstance(s, If) for s in walk(code_of(dot(AB), f32(67, 8), f32(8, 61), device=PROCESSOR).body))


def test_processors_that_would_be_idle_want_smaller_tiles():
    counts = [8, 32, 128]
    tiles = [tile_of(replace(GPU, cores=n), dot(AB), f32(256, 256), f32(256, 256)) for n in counts]

    assert [1 if t is None else t.rows * t.columns for t in tiles] == [64, 16, 4]


def test_the_rows_of_a_convolution_are_its_channels_and_not_a_side_of_the_image():
    tile = tile_of(GPU, lambda x, w: lax.conv(x, w, (1, 1), "VALID"), f32(8, 32, 30, 30), f32(32, 32, 3, 3))

    assert tile is not None
    assert tile.row_axis == "i1"


def test_a_long_epilogue_makes_the_tile_smaller():
    short = tile_of(PROCESSOR, dot(AB), f32(512, 512), f32(512, 512))
    long = tile_of(
        PROCESSOR, lambda x, w, b: models.gelu_tanh(models.linear(x, w, b)), f32(512, 512), f32(512, 512), f32(512)
    )

    assert short is not None
    assert long is not None
    assert 1 < long.rows * long.columns < short.rows * short.columns


def test_the_loads_of_a_product_with_a_vector_are_not_shared():
    assert (
        tile_of(
            GPU, lambda a, x: ops.dot_general(a, x, dimension_numbers=(((1,), (0,)), ((), ()))), f32(64, 64), f32(64)
        )
        is None
    )
