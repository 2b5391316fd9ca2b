"""Transposing kernels: recognised where they occur, others left alone, right at every edge."""

from __future__ import annotations

import numpy as np
import pytest

from rune.lowering.kernel.nodes import For, KernelCode, Kind
from rune.lowering.kernel.text import parse
from rune.lowering.lanes.transposed import find_transposed
from tests.lowering.codegen.llvm_run import MACHINES, run

TRANSPOSE = """
code f(x: read f32[n*m], w: read f32[n], y: write f32[n*m]) sizes n in 1..999, m in 1..999 {
  for i in n grid {
    for j in m grid {
      store y[m*i + j] = x[i + n*j] * w[i]
    }
  }
}"""


def nest(code: KernelCode):
    loops, body = [], code.body
    while len(body) == 1 and isinstance(body[0], For) and body[0].kind is Kind.GRID:
        loops.append(body[0])
        body = body[0].body
    return code, loops, body


def transposed(text: str) -> tuple[str, int] | None:
    match = find_transposed(*nest(parse(text)))
    return None if match is None else (match.axis.var, len(match.loads))


def kernel(value: str, grid: str = "for i in 64 grid { for j in 64 grid {", head: str = "") -> str:
    return f"""
        code f(x: read f32[4096], z: read f32[4096], y: write f32[4096]) {head} {{
          {grid}
            store y[64*i + j] = {value}
          }} }}
        }}"""


def test_a_load_across_the_lanes_is_found_with_its_axis():
    assert transposed(kernel("x[i + 64*j]")) == ("i", 1)


def test_one_element_loaded_twice_is_copied_once():
    assert transposed(kernel("(x[i + 64*j] * x[i + 64*j]) + z[i + 64*j]")) == ("i", 2)


@pytest.mark.parametrize("value", ["x[64*i + j]", "x[i]", "x[2*i + 64*j]", "x[i + 64*j if index(i) < 9_i64]"])
def test_a_load_that_is_not_a_transposition_stays_unchanged(value):
    assert transposed(kernel(value)) is None


def test_a_load_from_memory_that_the_result_shares_is_not_transposed():
    assert transposed(kernel("x[i + 64*j]", head="aliases x = y")) is None


STEP = "for i in 64 grid { for j in 64 grid { g: i64 in 0..8 ="


def test_an_index_may_have_a_number_that_is_one_for_the_grid():
    step = f"{STEP} i64(z[0])"
    assert transposed(kernel("x[i + 64*j + g]", step)) == ("i", 1)


@pytest.mark.parametrize("number", ["i64(z[i])", "i64(z[j])"])
def test_a_load_at_a_position_read_for_each_point_is_not_transposed(number):
    assert transposed(kernel("x[i + 64*j + g]", f"{STEP} {number}")) is None


def test_a_number_that_the_result_may_change_is_read_for_each_point():
    assert transposed(kernel("x[i + 64*j + g]", f"{STEP} i64(z[0])", head="aliases z = y")) is None


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("n", [1, 16, 31, 33, 64])
@pytest.mark.parametrize("m", [1, 15, 32, 50])
def test_a_transposition_of_any_size_moves_every_element(n, m, on):
    code = parse(TRANSPOSE)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(m, n)).astype(np.float32), rng.normal(size=n).astype(np.float32)
    y = np.full((n, m), np.nan, np.float32)

    run(code, [x, w, y], MACHINES[on], n=n, m=m)

    assert (y == (x * w).T).all()


@pytest.mark.parametrize("dtype", ["bool", "u8", "f16", "f64"])
def test_elements_of_any_size_are_moved(dtype):
    code = parse(f"""
        code f(x: read {dtype}[6000], y: write {dtype}[6000]) {{
          for a in 3 grid {{
            for b in 40 grid {{
              for c in 50 grid {{
                store y[2000*a + 50*b + c] = x[40*c + b + 2000*a]
              }}
            }}
          }}
        }}""")
    numpy = {"u8": np.uint8, "f16": np.float16, "f64": np.float64, "bool": np.bool_}[dtype]
    x = np.random.default_rng(0).integers(0, 2, (3, 50, 40)).astype(numpy)
    y = np.zeros((3, 40, 50), numpy)

    run(code, [x, y])

    assert (y == x.swapaxes(1, 2)).all()


@pytest.mark.parametrize("span", [(0, 1), (1, 3), (2, 6)])
def test_a_part_of_the_range_writes_its_tiles_only(span):
    code = parse(TRANSPOSE)
    x, w, y = np.ones(96 * 40, np.float32), np.ones(96, np.float32), np.zeros((96, 40), np.float32)

    run(code, [x, w, y], MACHINES["wide"], span=span, n=96, m=40)

    rows = np.flatnonzero(y.any(1))
    assert rows.tolist() == list(range(16 * span[0], 16 * span[1]))
