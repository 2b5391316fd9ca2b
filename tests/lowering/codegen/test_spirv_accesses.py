"""SPIR-V of neighbours: two are one access, and the threads of a subgroup share reads.

First what one access does, and for which neighbours; then the reads that threads share, and where
they must not. Values are tested on devices, in tests/backends/vulkan/test_accesses.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rune import dtypes
from rune.lowering.codegen.spirv.binary.text import to_text
from rune.lowering.codegen.spirv.render import render
from rune.lowering.codegen.subgroups import Alike, loops_alike, with_alike
from rune.lowering.codegen.target import Target, natively
from rune.lowering.kernel.nodes import For, Kind
from rune.lowering.kernel.parse import parse
from rune.lowering.kernel.rewrite import perfect_nest
from tests.lowering.codegen.spirv_run import TARGET, complaint, validated

EIGHT = replace(TARGET, subgroup_threads=8, is_processor=True, native=natively(shuffle=[dtypes.f32]))
TWO_COLUMNS = """
code f(x: read f32[4096], y: write f32[4096]) {
  for i in 64 grid {
    a: f32 = x[2*i]
    b: f32 = x[2*i + 1]
    store y[2*i] = b
    store y[2*i + 1] = a
  }
}"""


def products(rows: int, length: int, stride: int, reads: Sequence[str] = ()) -> str:
    """Sums over what all columns read: some rows of neighbours."""
    places = [stride * row + k for row in range(rows) for k in range(length)]
    reads = reads or [f"a{k}: f32 = x[{stride * rows}*i + {place}]" for k, place in enumerate(places)]
    body = [*reads, "var s: f32 = 0.0_f32", *(f"s add= a{k}" for k in range(len(reads)))]
    return f"""
code f(x: read f32[4096], y: write f32[32]) {{
  for i in 2 grid {{
    for j in 16 grid {{
      {chr(10).join(body)}
      store y[16*i + j] = s
    }}
  }}
}}"""


def module(text: str, target: Target = TARGET) -> str:
    return to_text(render(parse(text), target).words)


def product(columns: int, row: str = "a{k}: f32 = x[16*i + {k}]", rounds: int = 16, extra: str = "") -> str:
    """Sums of products of a row, which is one for all columns, with a column."""
    reads = "\n".join(row.format(k=k) for k in range(rounds))
    sums = "\n".join(f"s add= contract a{k} * z[{columns * k} + j]" for k in range(rounds))
    return f"""
code f(x: read f32[4096], z: read f32[4096], y: write f32[4096]) {{
  for i in 32 grid {{
    for j in {columns} grid {{
      {reads}
      var s: f32 = 0.0_f32
      {sums}
      {extra}
      store y[{columns}*i + j] = s
    }}
  }}
}}"""


def test_two_neighbours_are_one_integer():
    lines = [line for line in module(TWO_COLUMNS).splitlines() if any(word in line for word in ("i64", "x2"))]

    assert [line.split(" = ")[-1].split(" %")[0] for line in lines if "Aligned 8" not in line][-4:] == [
        "Bitcast f32x2",
        "CompositeConstruct f32x2",
        "Bitcast ptr i64",
        "Bitcast i64",
    ]
    assert sum("Load i64" in line and "Aligned 8" in line for line in lines) == 1
    assert module(TWO_COLUMNS).count("Store") == 3  # two hold the addresses of x and y


@pytest.mark.parametrize("dtype", ["f64", "f16", "i8"])
def test_elements_of_other_sizes_have_accesses_of_their_own(dtype: str):
    assert "CompositeExtract" not in module(TWO_COLUMNS.replace("f32", dtype))


def test_neighbours_that_begin_at_an_odd_place_are_accessed_separately():
    text = module(TWO_COLUMNS.replace("2*i", "3*i"))

    assert "CompositeExtract" not in text
    assert "CompositeConstruct" not in text


def test_elements_that_barriers_protect_are_written_one_by_one():
    text = module(
        """
code f(x: read f32[4096], y: readwrite f32[4096]) {
  for i in 64 grid {
    for t in 32 workgroup {
      a: f32 = x[64*i + 2*t]
      b: f32 = x[64*i + 2*t + 1]
      store y[64*i + 2*t] = b
      store y[64*i + 2*t + 1] = a
      barrier
      c: f32 = y[64*i - 2*t + 62]
      d: f32 = y[64*i - 2*t + 63]
      store y[64*i + 2*t] = c + d
    }
  }
}"""
    )

    assert text.count("Bitcast f32x2") == 1
    assert "CompositeConstruct" not in text


# --- subgroups --------------------------------------------------------------------------------


def alike(text: str, threads: int = 8) -> list[tuple[int, bool]]:
    """How many neighbours are read together, and whether in pairs."""
    grid, body = perfect_nest(parse(text).body, Kind.GRID)
    items = with_alike(body, loops_alike(grid, threads), {"x", "z"}, threads)
    return [(len(item.lets), item.size == 2) for item in items if isinstance(item, Alike)]


@pytest.mark.parametrize(
    ("sizes", "threads", "names"),
    [((32, 16), 8, "i"), ((32, 12), 8, ""), ((32, 12, 2), 8, "i"), ((4, 12, 16), 8, "ij"), ((64,), 8, "")],
)
def test_a_loop_is_uniform_if_all_points_of_a_subgroup_are_in_one_round(
    sizes: tuple[int, ...], threads: int, names: str
):
    grid = [For(name, size, Kind.GRID, ()) for name, size in zip("ijk", sizes)]

    assert loops_alike(grid, threads) == set(names)


def test_neighbours_that_all_read_are_read_in_pieces():
    assert alike(product(16)) == [(16, True)]
    assert alike(product(16, "a{k}: f32 = x[17*i + {k}]")) == [(8, False), (8, False)]
    assert alike(product(16, rounds=5)) == [(5, False)]
    assert alike(product(16, rounds=19)) == [(16, True), (3, False)]


@pytest.mark.parametrize(
    ("rows", "length", "stride", "reads"),
    [
        (8, 2, 64, [(16, True)]),
        (32, 4, 64, [(16, True)] * 8),
        (3, 4, 64, [(12, True)]),
        (16, 4, 65, [(8, False)] * 8),
        (5, 3, 64, [(6, False), (6, False), (3, False)]),
        (8, 1, 64, [(8, False)]),
    ],
)
def test_rows_of_few_neighbours_are_read_together(rows: int, length: int, stride: int, reads: list[tuple[int, bool]]):
    assert alike(products(rows, length, stride)) == reads


def test_unevenly_spaced_rows_are_accessed_separately():
    places = [*range(4), *range(64, 68), *range(130, 134)]
    row = [f"a{k}: f32 = x[512*i + {place}]" for k, place in enumerate(places)]

    assert alike(products(1, 0, 0, row)) == [(8, False), (4, False)]


def test_a_thread_reads_the_piece_of_its_row():
    text = module(products(4, 4, 64), EIGHT)

    assert text.count("Load i64") == 1
    assert text.count("UMod ") == 1


def test_every_thread_reads_two_neighbours_separately():
    assert alike(product(16, rounds=2)) == []


def test_loads_that_differ_between_threads_are_not_merged():
    assert alike(product(16, "a{k}: f32 = x[16*j + {k}]")) == []
    assert alike(product(12)) == []


def test_a_row_is_one_access_for_sixteen_of_its_elements():
    text = module(product(16), EIGHT)

    assert text.count("GroupNonUniformShuffle ") == 16
    assert "SubgroupLocalInvocationId" in text
    assert text.count("Load i64") == 1


def test_other_devices_read_by_themselves():
    for target in (TARGET, replace(EIGHT, native=frozenset())):
        assert "GroupNonUniform" not in module(product(16), target)


def test_threads_read_for_each_other_before_they_part():
    text = module(product(16, extra="if index(j) < 5_i64 { s add= a3 } else { s add= a4 }"), EIGHT)
    first = text.index("GroupNonUniformShuffle ")

    assert text.count("GroupNonUniformShuffle ") == 16
    assert "BranchConditional" not in text[first : text.rindex("GroupNonUniformShuffle ")]


def test_threads_that_have_parted_read_by_themselves():
    inside = "if index(j) < 5_i64 { b0: f32 = x[0] b1: f32 = x[1] b2: f32 = x[2] b3: f32 = x[3] s add= b0 * b3 }"

    assert module(product(16, extra=inside), EIGHT).count("GroupNonUniformShuffle ") == 16


def test_threads_in_different_iterations_read_separately():
    inside = """for k in j + 1 serial {
      b0: f32 = x[4*k] b1: f32 = x[4*k + 1] b2: f32 = x[4*k + 2] b3: f32 = x[4*k + 3]
      s add= (b0 * b3) + (b1 * b2)
    }"""

    assert module(product(16, extra=inside), EIGHT).count("GroupNonUniformShuffle ") == 16


@validated
@pytest.mark.parametrize(
    "text",
    [
        TWO_COLUMNS,
        product(16),
        product(24, "a{k}: f32 = x[17*i + {k}]", rounds=11),
        product(16, extra="for k in 3 serial { b: f32 = x[8*k] c: f32 = x[8*k + 1] d: f32 = x[8*k + 2] s add= b * c }"),
        product(16, extra="if index(j) < 5_i64 { s add= a3 } else { s add= a4 } s add= a5"),
    ],
)
def test_modules_are_valid(text: str, tmp_path: Path):
    assert not complaint(render(parse(text), EIGHT).words, tmp_path)
