"""Functions of CUDA C for matrices: an emulated warp follows the PTX manual.

Each thread of a warp gives the address of one row, and gets its part of every matrix; the layouts
are those of the manual ("Matrix fragments for mma.m16n8k16", "ldmatrix")."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rune.errors import CompileError
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.c.cuda_units import UNITS
from rune.lowering.codegen.c.hip import HIP
from rune.lowering.codegen.c.opencl import OPENCL_C
from rune.lowering.codegen.c.render import render
from rune.lowering.kernel.text import parse
from tests.lowering.kernel.test_matrices import kernel

WARP = range(32)


def read(function: str, memory: np.ndarray, stride: int) -> list[list[tuple[float, float]]]:
    """The registers of each thread after a function: two elements of each matrix."""
    text = UNITS[function]
    place = re.search(r"shared\(at \+ (.*)\);", text)
    count = re.search(r"m8n8\.x(\d)", text)
    assert place is not None
    assert count is not None
    starts = [eval(place[1].replace("/", "//"), {"lane": lane, "stride": stride}) for lane in WARP]
    matrices = [[memory[starts[8 * m + row] :][:8] for row in range(8)] for m in range(int(count[1]))]
    assert all(start % 8 == 0 for start in starts)
    tables = [np.array(m).T if ".trans" in text else np.array(m) for m in matrices]
    return [[tuple(table[t // 4, 2 * (t % 4) :][:2]) for table in tables] for t in WARP]


def rows_of(registers: list[list[tuple[float, float]]]) -> np.ndarray:
    """A [16, 16]: thread t has rows t // 4 and 8 more, columns 2 (t % 4), + 1, and 8 more."""
    a = np.zeros((16, 16))
    for t, parts in zip(WARP, registers, strict=True):
        for i, (low, high) in enumerate(parts):
            row, column = t // 4 + 8 * (i % 2), 2 * (t % 4) + 8 * (i // 2)
            a[row, column : column + 2] = low, high
    return a


def columns_of(registers: list[list[tuple[float, float]]]) -> np.ndarray:
    """B [16, 8 n]: thread t has rows 2 (t % 4), + 1, and 8 more, of column t // 4."""
    b = np.zeros((16, 4 * len(registers[0])))
    for t, parts in zip(WARP, registers, strict=True):
        for i, pair in enumerate(parts):
            row, column = 2 * (t % 4) + 8 * (i % 2), t // 4 + 8 * (i // 2)
            b[row : row + 2, column] = pair
    return b


@pytest.mark.parametrize("stride", [24, 40])
def test_threads_get_the_rows_of_a_product(stride: int):
    memory = np.arange(16.0 * stride)
    matrix = memory.reshape(16, stride)[:, :16]

    np.testing.assert_array_equal(rows_of(read("rune_rows", memory, stride)), matrix)
    np.testing.assert_array_equal(rows_of(read("rune_rows_turned", memory, stride)), matrix.T)


@pytest.mark.parametrize("stride", [24, 40])
@pytest.mark.parametrize(("suffix", "count"), [("", 16), ("_8", 8)])
def test_threads_get_the_columns_of_a_product(stride: int, suffix: str, count: int):
    memory = np.arange(16.0 * stride)
    along, across = memory.reshape(16, stride)[:count, :16], memory.reshape(16, stride)[:, :count]

    np.testing.assert_array_equal(columns_of(read(f"rune_columns{suffix}", memory, stride)), along.T)
    np.testing.assert_array_equal(columns_of(read(f"rune_columns{suffix}_turned", memory, stride)), across)


def test_a_product_is_a_block_of_three_calls():
    text = render(parse(kernel()), CUDA_C).text

    assert "const auto _a_0 = rune_rows(&a[(t / 32) * 384], 24);" in text.replace("384 * (t / 32)", "(t / 32) * 384")
    assert "const auto _b_0 = rune_columns_turned(&b[0], 16);" in text
    assert "rune_multiply_bf16(s_0_0, s_0_1, s_1_0, s_1_1, s_0_2, s_0_3, s_1_2, s_1_3, _a_0, _b_0);" in text


def test_a_barrier_waits_for_pending_fetches():
    assert "rune_fetched();\n  __syncthreads();" in render(parse(kernel()), CUDA_C).text
    assert "rune_fetched" not in render(parse(kernel(fetches="", multiply="")), CUDA_C).text


@pytest.mark.parametrize("dialect", [HIP, OPENCL_C])
@pytest.mark.parametrize(("changes", "instruction"), [({}, "a fetch"), ({"fetches": ""}, "a product of matrices")])
def test_languages_without_the_instructions_refuse_them(dialect, changes: dict[str, str], instruction: str):
    with pytest.raises(CompileError, match=f"cannot render {instruction}"):
        render(parse(kernel(**changes)), dialect)  # type: ignore[arg-type]
