"""Which loops run in vector lanes: what may, what may not, and which of several is chosen."""

from __future__ import annotations

import pytest

from rune.lowering.kernel.nodes import For, KernelCode
from rune.lowering.kernel.rewrite import walk
from rune.lowering.kernel.text import parse
from rune.lowering.lanes.choose import choose, is_vectorisable


def loops(code: KernelCode) -> dict[str, For]:
    return {s.var: s for s in walk(code.body) if isinstance(s, For)}


def chosen(text: str) -> set[str]:
    code = parse(text)
    picked = choose(code.body, 16).loops
    return {name for name, loop in loops(code).items() if id(loop) in picked}


def serial(*statements: str) -> For:
    """A serial loop j over these statements, with x, y, k, a scratch e, and a Var s around."""
    lines = "\n".join(statements)
    code = parse(f"""
        code f(x: read f32[64], k: read i32[64], y: readwrite f32[64]) {{
          alloc e: f32[64] local
          var s: f32 = 0.0_f32
          for j in 64 serial {{
            {lines}
          }}
        }}""")
    return loops(code)["j"]


@pytest.mark.parametrize(
    "statements",
    [
        ["store y[j] = x[j]"],
        ["store y[j] = y[j] + 1.0_f32"],
        ["update y[j] add= x[j]"],
        ["s add= x[j]"],
        ["s max= x[-j + 63]"],
        ["var t: f32 = x[j]", "t = t + 1.0_f32", "store y[j] = t"],
        ["if x[j] > 0.0_f32 {", "s add= x[j]", "}"],
    ],
    ids=str,
)
def test_independent_iterations_may_run_side_by_side(statements):
    assert is_vectorisable(serial(*statements))


@pytest.mark.parametrize(
    "statements",
    [
        ["s = s + x[j]"],
        ["s add= x[j]", "store y[j] = s"],
        ["s add= x[j]", "s max= x[j]"],
        ["store y[0] = x[j]"],
        ["store e[j] = x[j]", "store y[j] = e[-j + 63]"],
        ["store y[j] = x[j]", "store y[-j + 63] = x[j]"],
        ["store y[j//2] = x[j]"],
        ["r: i32 in 0..63 = k[j]", "store y[r] = x[j]"],
        ["r: i32 in 0..7 = k[j] & 7_i32", "store y[j + r] = x[j]"],
        ["if x[j] > 0.0_f32 {", "store y[j] = 1.0_f32", "}"],
        ["alloc t: f32[4] local", "store t[0] = x[j]", "store y[j] = t[0]"],
        ["r: i32 in 0..9 = k[j]", "for i in r serial {", "s add= x[i]", "}"],
    ],
    ids=str,
)
def test_iterations_that_may_meet_run_one_by_one(statements):
    assert not is_vectorisable(serial(*statements))


def test_a_store_and_a_load_of_one_alias_are_compared():
    loop = serial("store y[j] = x[-j + 63]")

    assert is_vectorisable(loop)
    assert not is_vectorisable(loop, aliases=frozenset({"x", "y"}))


def test_the_contiguous_loop_is_chosen():
    rows = """
        code f(x: read f32[65536], y: write f32[256]) {{
          for i in 256 grid {{
            var s: f32 = 0.0_f32
            for j in 256 serial {{
              s add= x[{index}]
            }}
            store y[i] = s
          }}
        }}"""

    assert chosen(rows.format(index="256*i + j")) == {"j"}
    assert chosen(rows.format(index="i + 256*j")) == {"i"}


def test_a_short_inner_loop_leaves_the_lanes_to_the_outer_one():
    assert chosen("""
        code f(x: read f32[4096], y: write f32[1024]) {
          for i in 1024 grid {
            var s: f32 = 0.0_f32
            for j in 4 serial {
              s add= x[4*i + j]
            }
            store y[i] = s
          }
        }""") == {"i"}


def test_independent_loops_of_one_body_are_all_chosen():
    assert chosen("""
        code f(x: read f32[512], y: write f32[512]) {
          for i in 2 grid {
            alloc e: f32[256] local
            for j in 256 serial {
              store e[j] = exp(x[256*i + j])
            }
            for k in 256 serial {
              store y[256*i + k] = e[k]
            }
          }
        }""") == {"j", "k"}


def test_a_loop_of_gathers_is_still_vectorised_for_its_arithmetic():
    assert chosen("""
        code f(x: read f32[2048], y: write f32[1024]) {
          for i in 1024 grid {
            store y[i] = exp(x[2*i])
          }
        }""") == {"i"}


def test_of_a_grid_the_last_loop_alone_runs_in_lanes():
    """The renderer walks those outside it row by row, so that they would run one by one."""
    text = """
        code f(x: read f32[4096], y: write f32[4096]) {
          for i in 64 grid { for j in 64 grid { store y[i + 64*j] = x[i + 64*j] * x[i] } }
        }"""

    assert chosen(text) == {"j"}
