"""The memory that a request of 32 threads touches: sectors of 32 bytes, and shared banks.

The figures follow from the layout alone: 32 elements of f32 that lie side by side are 128 bytes.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering.costs.kernels import copy, on_h100
from tests.support.close import near


def sectors(read: str, dtype: str = "f32") -> float:
    """Sectors of a load, where the store is coalesced."""
    of_stores = {"f16": 2, "f32": 4, "f64": 8}[dtype]
    return 2 * copy(read, dtype=dtype).sectors - of_stores


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("i", 4),
        ("i + 8", 4),
        ("i + 1", 5),  # begins within a sector, and so ends within another
        ("2*i", 8),
        ("8*i", 32),
        ("33*i", 32),
        ("7", 1),
        ("i // 32", 1),
        ("i % 16", 2),
        ("16777215 - i", 4),
    ],
)
def test_sectors_follow_from_the_distance_of_neighbours(index: str, expected: float):
    assert sectors(index) == expected


@pytest.mark.parametrize(("dtype", "expected"), [("f16", 2), ("f32", 4), ("f64", 8)])
def test_narrow_elements_occupy_fewer_sectors(dtype: str, expected: float):
    assert sectors("i", dtype) == expected


def test_a_transposed_read_touches_a_sector_for_each_thread():
    body = "for i in 512 grid { for j in 512 grid { store y[512*i + j] = x[i + 512*j] } }"
    result = on_h100(body, "x: read f32[262144], y: write f32[262144]")

    assert result.sectors == (32 + 4) / 2


def test_rows_of_an_odd_length_are_not_aligned():
    body = "for i in 512 grid { for j in 999 grid { store y[999*i + j] = x[999*i + j] } }"
    result = on_h100(body, "x: read f32[511488], y: write f32[511488]")

    # A subgroup may span rows: its points continue in the next row.
    assert result.sectors == 4


def test_numbers_from_memory_are_indices_at_random():
    body = "for i in 1048576 grid { k: i64 in 0..1048575 = i64(z[i]) store y[i] = x[k] }"
    result = on_h100(body, "x: read f32[1048576], z: read i32[1048576], y: write f32[1048576]")

    near(np.float64(4 + 32 + 4), np.float64(3 * result.sectors), relative=2e-2, why="two may meet in a sector")


def test_a_number_that_all_threads_read_is_one_index():
    body = "for i in 1048576 grid { k: i64 in 0..7 = i64(z[0]) store y[i] = x[1048576*k + i] }"
    result = on_h100(body, "x: read f32[8388608], z: read i32[1], y: write f32[1048576]")

    assert 3 * result.sectors == 4 + 1 + 4


def test_lanes_that_do_not_run_touch_nothing():
    body = "if index(t) < 8_i64 { store y[8*i + t] = 1.0_f32 }"
    result = on_h100(f"for i in 4096 grid {{ for t in 128 workgroup {{ {body} }} }}", "y: write f32[32768]")

    assert result.sectors == 1


def test_subgroups_that_do_not_run_make_no_requests():
    body = "if index(t) < 8_i64 { store y[8*i + t] = 1.0_f32 }"
    result = on_h100(f"for i in 4096 grid {{ for t in 128 workgroup {{ {body} }} }}", "y: write f32[32768]")

    assert result.requests == 4096


def shared_cycles(index: str) -> float:
    """Cycles of the load units for 4,096 loads from shared memory by a subgroup."""
    inner = f"for k in 4096 serial {{ s add= part[{index}] }} store y[32*i + t] = s"
    threads = f"for t in 32 workgroup {{ var s: f32 = 0.0_f32 {inner} }}"
    alloc = "alloc part: f32[8192] shared"
    result = on_h100(f"for i in 132 grid {{ {alloc} {threads} }}", "y: write f32[4224]")
    return result.parts["requests"] * 1.755e9 / 4096


@pytest.mark.parametrize(("index", "expected"), [("t", 1), ("0", 1), ("2*t", 2), ("32*t", 32), ("33*t", 1)])
def test_threads_wait_for_each_other_where_they_ask_one_bank(index: str, expected: float):
    near(np.float64(expected), np.float64(shared_cycles(index)), relative=1e-2, why="the store at the end counts too")


def neighbours(buffer: str, count: int) -> str:
    """Reads of this many neighbours by each thread, side by side, and a store."""
    lets = " ".join(f"a{k}: f32 = {buffer}[{count}*t + {k}]" for k in range(count))
    return lets + " " + " ".join(f"store y[{32 * count}*i + {count}*t + {k}] = a{k}" for k in range(count))


def test_neighbours_that_stand_side_by_side_are_one_request_in_cuda_c():
    body = f"for i in 132 grid {{ for t in 32 workgroup {{ {neighbours('x', 4)} }} }}"
    result = on_h100(body, "x: read f32[128], y: write f32[16896]")

    assert (result.requests, result.sectors) == (2 * 132, 16)


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (2, 2), (4, 4)])
def test_wide_loads_from_shared_memory_take_a_cycle_for_each_row_of_banks(count: int, expected: float):
    lets = " ".join(f"a{k}: f32 = part[{count}*t + {k}]" for k in range(count))
    threads = f"for t in 32 workgroup {{ for k in 4096 serial {{ {lets} }} store y[32*i + t] = 0.0_f32 }}"
    result = on_h100(f"for i in 132 grid {{ alloc part: f32[128] shared {threads} }}", "y: write f32[4224]")

    cycles = result.parts["requests"] * 1.755e9 / 4096
    near(np.float64(expected), np.float64(cycles), relative=1e-2, why="the store at the end counts too")
