"""SPIR-V of lines: a subgroup reads neighbours by addresses that all of its threads share.

First what such a read looks like, then where each thread reads separately. Values are tested on
devices, in tests/backends/vulkan/test_lines.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rune import dtypes
from rune.lowering.codegen.spirv.binary.text import to_text
from rune.lowering.codegen.spirv.render import render
from rune.lowering.codegen.target import Target, natively
from rune.lowering.kernel.parse import parse
from tests.lowering.codegen.spirv_run import TARGET, complaint, validated

LINES = replace(TARGET, subgroup_threads=8, is_processor=True, native=natively(shuffle=[dtypes.f32], line=[dtypes.f32]))
PAIRS = """
a: f32 = x[64*i + 2*t] b: f32 = x[64*i + 2*t + 1]
c: f32 = x[64*i + 2*t + 16] d: f32 = x[64*i + 2*t + 17]
store y[64*i + 2*t] = a + c store y[64*i + 2*t + 1] = b + d"""
SHARED = "Variable ptr f32[8] Workgroup"
SINGLES = "a: f32 = x[64*i + t] b: f32 = x[64*i + t + 8] store y[8*i + t] = a + b"
SUM = """
a: f32 = x[64*i + t] store s[t] = a barrier
b: f32 = s[0] c: f32 = s[1] if index(t) < 1_i64 { store y[i] = b + c }"""


def kernel(body: str, threads: int = 8, rows: int = 64) -> str:
    """Groups of threads, each with a row."""
    return f"""
code f(x: read f32[{64 * rows}], k: read i32[64], y: write f32[{64 * rows}]) {{
  for i in {rows} grid {{
    alloc s: f32[8] shared
    for t in {threads} workgroup {{ {body} }}
  }}
}}"""


def module(text: str, target: Target = LINES) -> str:
    return to_text(render(parse(text), target).words)


def look_ups(text: str) -> int:
    """How many digits of addresses are looked up; 15 is for the condition of stores."""
    places = [line for line in text.splitlines() if "AccessChain ptr i32 %arguments 2" in line]
    return sum(not line.endswith(" 15") for line in places)


def test_a_line_of_pairs_is_four_loads_of_four_and_a_permutation():
    text = module(kernel(PAIRS))

    assert text.count("Load f32x4") == 2 * 4
    assert text.count("GroupNonUniformShuffle f32") == 2 * 4


def test_a_pair_is_stored_as_a_sum_of_its_halves_which_a_condition_chooses():
    lines = module(kernel(PAIRS)).splitlines()
    (store,) = (number for number, line in enumerate(lines) if "Aligned 8" in line and "Store" in line)

    assert [" ".join(line.split()[2:4]) for line in lines[store - 10 : store]] == [
        *["Select f32"] * 2,
        "AccessChain ptr",
        "Bitcast ptr",
        *["Bitcast i32"] * 2,
        *["UConvert i64"] * 2,
        "ShiftLeftLogical i64",
        "BitwiseOr i64",
    ]


def test_a_pair_that_is_stored_twice_is_two_integers():
    write = "store y[64*i + 2*t + {}] = a store y[64*i + 2*t + {}] = a "
    once = "a: f32 = x[3] " + write.format(0, 1)
    twice = once + write.format(16, 17)

    assert module(kernel(once)).count("BitwiseOr i64") == 1
    assert module(kernel(twice)).count("BitwiseOr i64") == 2


SUMS = """
var s: f32 = 0.0_f32 var u: f32 = 0.0_f32 for j in 5 serial {{ a: f32 = x[64*i + j] s add= a u add= a {} }}
store y[64*i + 2*t] = s store y[64*i + 2*t + 1] = u"""


@pytest.mark.parametrize(
    ("inside", "joined"), [("", 0), ("store y[64*i + 2*t + 16] = s store y[64*i + 2*t + 17] = u", 2)]
)
def test_pairs_of_sums_are_vectors_where_loops_store_nothing(inside: str, joined: int):
    assert module(kernel(SUMS.format(inside))).count("BitwiseOr i64") == joined


def test_an_index_that_recurs_is_another_value_for_each_access():
    text = module(kernel("a: f32 = x[64*i + 3*t] store y[64*i + 3*t] = a b: f32 = x[64*i + 5*t] store y[t] = b"))
    choices = [line.split()[-1] for line in text.splitlines() if "Select i32" in line]

    assert choices == ["2"]


def test_a_constant_index_and_places_that_threads_share_are_never_chosen():
    body = "a: f32 = x[3] store s[t] = a barrier b: f32 = s[0] store y[3] = b c: f32 = s[0] store y[3] = c"

    assert "Select i32" not in module(kernel(body))


def test_a_line_of_single_elements_is_two_loads_of_four():
    assert module(kernel(SINGLES)).count("Load f32x4") == 2 * 2


def test_lines_of_one_array_share_an_address_of_twelve_digits():
    assert look_ups(module(kernel(PAIRS))) == 12


def test_all_threads_are_known_to_be_at_work():
    assert "BranchConditional" not in module(kernel(PAIRS))


def test_the_threads_of_a_subgroup_wait_for_no_others():
    assert "ControlBarrier 3 3" in module(kernel(SUM))
    assert "ControlBarrier 2 2" in module(kernel(SUM), TARGET)


@pytest.mark.parametrize(
    "body",
    [
        "if index(i) < 5_i64 { a: f32 = x[64*i + t] store y[64*i + t] = a }",
        "for j in 5 serial { a: f32 = x[64*i + 8*j + t] store y[64*i + 8*j + t] = a }",
        "a: f32 = x[64*i + 3*t] store y[64*i + t] = a",
        "a: f32 = x[i] store y[64*i + t] = a",
        "a: f32 = x[64*i + 7 - t] store y[64*i + t] = a",
        "m: i32 in 0..63 = k[t % 2] a: f32 = x[m + t] store y[64*i + t] = a",
        "a: f32 = x[64*i + t if index(t) < 5_i64] store y[64*i + t] = a",
    ],
)
def test_reads_of_other_places_or_of_some_threads_are_made_by_each_thread(body: str):
    assert "Load f32x4" not in module(kernel(body))


def columns(count: int, rows: int = 64) -> str:
    """Threads that are neighbours read neighbours, and each writes a part of a row."""
    reads = "\n".join(f"a{k}: f32 = x[i + 64*j + {64 * k}]" for k in range(count))
    writes = "\n".join(f"store y[{count}*i + j + {k}] = a{k}" for k in range(count))
    return f"""
code f(x: read f32[65536], y: write f32[65536]) {{
  for j in 4 grid {{ for i in {rows} grid {{ {reads} {writes} }} }}
}}"""


def test_points_of_the_grid_that_read_many_lines_are_groups_of_their_own():
    assert render(parse(columns(16)), LINES).threads == 8
    assert module(columns(16)).count("Load f32x4") == 2 * 16


def rows_apart(count: int, distance: int = 64) -> str:
    """Threads that are neighbours read elements so far apart, and write neighbours."""
    reads = "\n".join(f"a{k}: f32 = x[{distance}*i + {count}*j + {k}]" for k in range(count))
    writes = "\n".join(f"store y[{64 * count}*j + i + {64 * k}] = a{k}" for k in range(count))
    return f"""
code f(x: read f32[65536], y: write f32[65536]) {{
  for j in 4 grid {{ for i in 64 grid {{ {reads} {writes} }} }}
}}"""


@pytest.mark.parametrize("distance", [3, 64, 67])
@pytest.mark.parametrize("count", [16, 20])
def test_columns_are_read_as_squares_of_lines_that_are_turned_and_other_columns_by_elements(distance: int, count: int):
    text = module(rows_apart(count, distance))

    assert render(parse(rows_apart(count, distance)), LINES).threads == 8
    assert look_ups(text) == 12
    assert text.count("Load f32x4") == 2 * 8 * 2  # two squares of eight lines
    assert text.count("GroupNonUniformShuffle f32") == 2 * 3 * 8
    assert text.count("Load f32 ") == (count - 16) * 8


def test_columns_that_are_not_neighbours_share_one_address_and_load_every_element_by_it():
    text = module(rows_apart(16).replace("+ 3]", "+ 16]").replace("+ 11]", "+ 17]"))

    assert look_ups(text) == 12
    assert text.count("Load f32 ") == 16 * 8


@pytest.mark.parametrize("around", ["{}", "if index(i) < 9_i64 {{ {} }}", "for k in 2 serial {{ {} }}"])
def test_columns_are_read_again_after_a_write(around: str):
    reads = " ".join(f"{{}}{k}: f32 = x[64*i + 16*j + {k}]" for k in range(16))
    writes = " ".join(f"store x[64*i + 16*j + {k}] = a{15 - k}" for k in range(16))
    results = " ".join(f"store y[1024*j + i + {64 * k}] = b{k}" for k in range(16))
    first, again = reads.replace("{}", "a"), reads.replace("{}", "b")
    text = f"""
code f(x: readwrite f32[65536], y: write f32[65536]) {{
  for j in 4 grid {{ for i in 64 grid {{ {first} {around.format(writes)} {again} {results} }} }}
}}"""

    assert module(text).count("Load f32x4") == 2 * (2 * 8 * 2)


@pytest.mark.parametrize("text", [rows_apart(15), rows_apart(16).replace("64*i + 16*j", "(i*i) % 64 + 16*j")])
def test_few_columns_and_elements_at_unknown_distances_are_read_by_each_thread(text: str):
    assert look_ups(module(text)) == 0


@pytest.mark.parametrize("text", [columns(15), columns(16, rows=60)])
def test_points_with_few_lines_or_partial_subgroups_do_not_share_reads(text: str):
    assert "Load f32x4" not in module(text)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (kernel(SINGLES), TARGET),
        (kernel(SINGLES), replace(LINES, native=natively(shuffle=[dtypes.f32]))),
        (kernel(SINGLES, threads=16), LINES),
        (kernel(SINGLES, rows=70_000), LINES),  # groups beyond one dimension of a launch
        (kernel(SINGLES).replace("f32", "f64"), LINES),
    ],
)
def test_other_devices_groups_and_elements_have_no_lines(text: str, target: Target):
    assert look_ups(module(text, target)) == 0


def test_threads_of_a_subgroup_exchange_their_parts_of_a_sum_without_memory():
    text = module(kernel(SUM))

    assert text.count("GroupNonUniformShuffle f32") == 2
    assert SHARED not in text
    assert SHARED in module(kernel(SUM), TARGET)


@pytest.mark.parametrize(
    "body",
    [
        "a: f32 = x[64*i + t] store s[7 - t] = a barrier b: f32 = s[0] store y[8*i + t] = b",
        "a: f32 = x[64*i + t] store s[t] = a barrier b: f32 = s[7 - t] store y[8*i + t] = b",
        "a: f32 = x[64*i + t] store s[t] = a barrier store s[t] = 1.0_f32 barrier b: f32 = s[0] store y[8*i + t] = b",
        "if index(t) < 5_i64 { store s[t] = x[64*i + t] } barrier b: f32 = s[0] store y[8*i + t] = b",
        "store s[t] = x[64*i + t] barrier for j in 3 serial { b: f32 = s[0] store y[8*i + t] = b }",
    ],
)
def test_what_is_written_or_read_in_another_way_is_shared_memory(body: str):
    assert SHARED in module(kernel(body))


def test_stores_choose_their_value_by_a_condition_that_the_driver_does_not_know():
    assert module(kernel(SINGLES)).count("Select f32") == 2 * 7 + 1
    assert "Select f32" not in module(kernel(SINGLES), TARGET)


@validated
@pytest.mark.parametrize("text", [*map(kernel, (PAIRS, SINGLES, SUM)), columns(16), rows_apart(16)])
def test_modules_are_valid(text: str, tmp_path: Path):
    assert not complaint(render(parse(text), LINES).words, tmp_path)
