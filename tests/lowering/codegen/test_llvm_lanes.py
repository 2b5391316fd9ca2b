"""Which loops run in vector lanes, and how: steps in memory, rounds of a loop, shares of a grid."""

from __future__ import annotations

import pytest

from rune.dims import symbol
from rune.lowering.kernel.nodes import For, KernelCode
from rune.lowering.kernel.rewrite import walk
from rune.lowering.kernel.text import parse
from rune.lowering.lanes.choose import choose, is_vectorisable, step_of
from rune.lowering.lanes.layout import Division, Unit, layout
from rune.lowering.lanes.rounds import rounds_of


def loops(code: KernelCode) -> dict[str, For]:
    return {s.var: s for s in walk(code.body) if isinstance(s, For)}


def chosen(text: str) -> set[str]:
    code = parse(text)
    vector_loops = choose(code.body, 16).loops
    return {name for name, loop in loops(code).items() if id(loop) in vector_loops}


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


@pytest.mark.parametrize(
    ("elements", "place", "in_lanes"), [(9, "j", True), (64, "j", True), (65, "j", False), (9, "(i + j) % 9", False)]
)
def test_points_with_a_short_row_each_run_in_lanes_if_all_access_the_same_element(
    elements: int, place: str, in_lanes: bool
):
    text = f"""
        code f(x: read f32[{elements << 12}], y: write f32[{elements << 12}], z: write f32[4096]) {{
          for i in 4096 grid {{
            alloc row: f32[{elements}] local
            for j in {elements} vector {{
              store row[{place}] = x[i + 4096*j]
              store y[i + 4096*j] = row[{place}]
            }}
            store z[i] = row[0]
          }}
        }}"""

    assert ("i" in chosen(text)) == in_lanes


@pytest.mark.parametrize(("count", "in_lanes"), [(16, True), (17, False)])
def test_points_with_many_rows_do_not_run_in_lanes_whose_copies_would_fill_the_stack(count: int, in_lanes: bool):
    allocs = "\n".join(f"            alloc row{k}: f32[64] local" for k in range(count))
    text = f"""
        code f(x: read f32[{64 << 12}], z: write f32[4096]) {{
          for i in 4096 grid {{
{allocs}
            for j in 64 vector {{
              store row0[j] = x[i + 4096*j]
            }}
            store z[i] = row0[0]
          }}
        }}"""

    assert ("i" in chosen(text)) == in_lanes


@pytest.mark.parametrize("columns", [2, 3, 4, 5, 6, 7, 8, 16])
def test_rows_at_given_places_are_copied_along_the_row(columns: int):
    text = f"""
        code f(x: read f32[{100 * columns}], k: read i32[2000], y: write f32[{2000 * columns}]) {{
          for i in 2000 grid {{
            r: i32 in 0..99 = min(max(select(k[i] < 0_i32, k[i] + 100_i32, k[i]), 0_i32), 99_i32)
            for j in {columns} serial {{
              store y[{columns}*i + j] = x[{columns}*r + j]
            }}
          }}
        }}"""

    assert chosen(text) == {"j"}


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


def test_only_the_last_loop_of_a_grid_is_vectorised():
    """The renderer walks those outside it row by row, so that they would run one by one."""
    text = """
        code f(x: read f32[4096], y: write f32[4096]) {
          for i in 64 grid { for j in 64 grid { store y[i + 64*j] = x[i + 64*j] * x[i] } }
        }"""

    assert chosen(text) == {"j"}


LANE, OTHER, SIZE = symbol("i", 0, 63), symbol("p", 0, 63), symbol("n")


@pytest.mark.parametrize(
    ("index", "step"),
    [
        (SIZE + 3, 0),
        (LANE + SIZE, 1),
        (2 * LANE + SIZE, 2),
        (4 * LANE, 4),
        (5 * LANE, None),
        (-LANE, None),
        (SIZE * LANE, None),
        (LANE // 2, None),
    ],
    ids=str,
)
def test_the_step_between_lanes_is_that_of_the_variable_that_counts_them(index, step):
    assert step_of(index, "i", frozenset({"i"})) == step


def test_an_index_with_another_symbol_that_differs_between_lanes_has_no_step():
    assert step_of(LANE + OTHER, "i", frozenset({"i", "p"})) is None
    assert step_of(LANE + OTHER, "i", frozenset({"i"})) == 1


@pytest.mark.parametrize(
    ("statements", "names", "vectors"),
    [
        (["s add= x[j]"], ["s"], 4),
        (["s add= exp(x[j])"], ["s"], 1),
        (["store y[j] = x[j]"], [], 1),
        (["var t: f32 = x[j]", "t add= 1.0_f32", "store y[j] = t"], [], 1),
    ],
    ids=str,
)
def test_short_sums_of_vars_from_outside_are_held_in_several_vectors(statements, names, vectors):
    rounds = rounds_of(serial(*statements))

    assert [s.name for s in rounds.sums] == names
    assert rounds.vectors == vectors


def test_long_bodies_without_branches_are_heavy():
    assert rounds_of(serial("store y[j] = exp(exp(x[j]))")).is_heavy
    assert not rounds_of(serial("store y[j] = x[j]")).is_heavy
    assert not rounds_of(serial("if x[j] > 0.0_f32 {", "store y[j] = exp(exp(x[j]))", "}")).is_heavy


@pytest.mark.parametrize(
    ("extents", "expected"),
    [
        ((), Division(Unit.GRID, 1, 1)),
        ((100,), Division(Unit.LINE, 100, 100, 16)),
        ((3, 100), Division(Unit.ROW, 3, 3)),
        ((3, 5, 2047), Division(Unit.ROW, 15, 15)),
        ((3, 2048), Division(Unit.POINT, 6144, 6144, 16)),
    ],
    ids=str,
)
def test_cores_share_rows_unless_these_are_long(extents, expected):
    names = "ijk"[: len(extents)]
    heads = "".join(f"for {v} in {n} grid {{ " for v, n in zip(names, extents, strict=True))
    index = "0"
    for v, n in zip(names, extents, strict=True):
        index = f"({index})*{n} + {v}" if index != "0" else v
    code = parse(f"code f(y: write f32[40000]) {{ {heads} store y[{index}] = 1.0_f32 {'} ' * len(extents)} }}")

    assert layout(code, 64).division == expected


def test_cores_share_rows_of_tiles_where_an_array_is_transposed():
    code = parse("""
        code f(x: read f32[4000], y: write f32[4000]) {
          for i in 40 grid { for j in 100 grid { store y[100*i + j] = x[40*j + i] } }
        }""")

    # 40 rows are three times 16, the last of them partly; no axis comes before them.
    assert layout(code, 64).division == Division(Unit.TILES, 3, 1)
