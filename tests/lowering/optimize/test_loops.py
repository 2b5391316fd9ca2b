"""Passes that change loops: unroll, sum-in-blocks, vectorize; where they apply and where not."""

from __future__ import annotations

import pytest

from rune.backends.reference import TARGET
from rune.lowering.kernel.check import check
from rune.lowering.kernel.text import parse, to_text
from rune.lowering.optimize import short_rows, sum_in_blocks, unroll
from rune.lowering.optimize.vectorize import vectorize
from tests.lowering.optimize.bodies import CPU, after

# --- unroll -----------------------------------------------------------------------------------


def test_an_unrolled_loop_becomes_copies_with_names_of_their_own(expect):
    expect(
        after(
            unroll.PASS,
            """for i in 2 unrolled {
                 t: f32 = x[i]
                 for j in i + 1 serial { store y[2*i + j] = t }
               }""",
        ),
        """
        t: f32 = x[0]
        for j in 1 serial {
          store y[j] = t
        }
        t_2: f32 = x[1]
        for j_2 in 2 serial {
          store y[j_2 + 2] = t_2
        }""",
    )


def test_a_loop_too_long_to_unroll_becomes_serial():
    assert "serial" in after(unroll.PASS, "for i in 4000 unrolled { store y[i % 64] = x[0] }")
    assert "serial" in after(unroll.PASS, "for i in n unrolled { store y[i] = x[0] }")


def test_a_short_loop_that_uses_its_variable_is_unrolled(expect):
    expect(
        after(
            unroll.PASS,
            """for i in 2 vector {
                 c: bool = index(i) < 1_i64
                 store y[i] = select(c, x[i], x[i + 5])
               }""",
        ),
        """
        c: bool = index(0) < 1_i64
        store y[0] = select(c, x[0], x[5])
        c_2: bool = index(1) < 1_i64
        store y[1] = select(c_2, x[1], x[6])""",
    )


# --- short rows -------------------------------------------------------------------------------


def test_a_row_of_a_few_elements_becomes_scalars(expect):
    expect(
        after(
            short_rows.PASS,
            """alloc row: f32[2] local
               for j in 2 vector { store row[j] = x[j] * x[5] }
               var s: f32 = 0.0_f32
               for m in 2 vector { s add= row[m] * row[0] }
               store y[0] = s""",
        ),
        """
        row_0: f32 = x[0] * x[5]
        row_1: f32 = x[1] * x[5]
        var s: f32 = 0.0_f32
        s add= row_0 * row_0
        s add= row_1 * row_0
        store y[0] = s""",
    )


@pytest.mark.parametrize(
    "body",
    [
        "alloc row: f32[5] local\n for j in 5 serial { store row[j] = x[j] }\n store y[0] = row[1]",  # long
        "alloc row: f32[2] local\n for j in 2 serial { store row[j] = x[j] }\n"
        "for i in 9 serial { store y[i] = row[i % 2] }",  # read where the run decides
        "alloc row: f32[2] local\n for j in 2 serial { store row[j] = x[j] }\n"
        "store row[0] = x[7]\n store y[0] = row[0]",  # written twice
        "alloc row: f32[2] local\n store row[0] = x[7]\n store y[0] = row[0]",  # written in part
    ],
)
def test_a_row_that_scalars_cannot_replace_is_not_changed(body: str):
    assert "alloc row" in after(short_rows.PASS, body)


@pytest.mark.parametrize(
    "loop",
    [
        "for i in 2 vector { store y[i] = x[i] }",
        "for i in 5 vector { store y[i] = select(index(i) < 1_i64, x[i], x[i + 5]) }",
        "for i in 4 grid { store y[i] = select(index(i) < 1_i64, x[i], x[i + 5]) }",
    ],
    ids=["asks nothing", "long", "parallel"],
)
def test_other_loops_stay(loop: str):
    assert "for i in" in after(unroll.PASS, loop)


# --- sum in blocks ----------------------------------------------------------------------------

OPEN = "code f(x: read f32[m], y: write f32[1]) sizes m in 0.. "


SUMS = [f"s{i}" for i in range(9)]
TILE = f"""{" ".join(f"var {s}: f32 = 0_f32" for s in SUMS)} for j in 65536 serial {{
    {" ".join(f"{s} add= x[3*j + {i}]" for i, s in enumerate(SUMS))} }}"""


def in_blocks(body: str) -> str:
    """The code of the body, with sums over the open size m in blocks."""
    code = sum_in_blocks.PASS.run(parse(f"{OPEN}{{ {body} }}"))
    check(code)
    return to_text(code)


def test_a_loop_of_any_number_of_rounds_sums_each_block_apart(expect):
    expect(
        in_blocks("var s: f32 = 1_f32 for j in m vector { s add= x[j] } store y[0] = s"),
        """
        code f(x: read f32[m], y: write f32[1]) sizes m in 0.. {
          var s: f32 = 1.0_f32
          for j_block in (m + 8191)//8192 serial {
            j_rounds: i64 in 1..8192 = min(8192_i64, index(-8192*j_block + m))
            var s_block: f32 = 0.0_f32
            for j in j_rounds vector {
              s_block add= x[j + 8192*j_block]
            }
            s add= s_block
          }
          store y[0] = s
        }""",
    )


def test_no_accumulator_of_a_nest_of_open_loops_takes_more_than_the_block(expect):
    expect(
        in_blocks("var s: f32 = 1_f32 for i in m serial { for j in m vector { s add= x[j] } }"),
        """
        code f(x: read f32[m], y: write f32[1]) sizes m in 0.. {
          var s: f32 = 1.0_f32
          for i_block_block in (m + 511)//512 serial {
            i_block_rounds: i64 in 1..128 = min(128_i64, index(-128*i_block_block + (m + 3)//4))
            var s_block_3: f32 = 0.0_f32
            for i_block in i_block_rounds serial {
              i_rounds: i64 in 1..4 = min(4_i64, index(-4*i_block - 512*i_block_block + m))
              var s_block_2: f32 = 0.0_f32
              for i in i_rounds serial {
                for j_block in (m + 8191)//8192 serial {
                  j_rounds: i64 in 1..8192 = min(8192_i64, index(-8192*j_block + m))
                  var s_block: f32 = 0.0_f32
                  for j in j_rounds vector {
                    s_block add= x[j + 8192*j_block]
                  }
                  s_block_2 add= s_block
                }
              }
              s_block_3 add= s_block_2
            }
            s add= s_block_3
          }
        }""",
    )


def test_a_loop_over_neighbours_has_larger_blocks_than_one_over_a_column(expect):
    expect(
        in_blocks("var s: f32 = 0_f32 for j in 513 serial { s add= x[3*j] } for j in 32769 vector { s add= x[j] }"),
        """
        code f(x: read f32[m], y: write f32[1]) sizes m in 0.. {
          var s: f32 = 0.0_f32
          for j_block in 5 serial {
            j_rounds: i64 in 1..128 = min(128_i64, index(-128*j_block + 513))
            var s_block: f32 = 0.0_f32
            for j in j_rounds serial {
              s_block add= x[3*j + 384*j_block]
            }
            s add= s_block
          }
          for j_2_block in 5 serial {
            j_2_rounds: i64 in 1..8192 = min(8192_i64, index(-8192*j_2_block + 32769))
            var s_block_2: f32 = 0.0_f32
            for j_2 in j_2_rounds vector {
              s_block_2 add= x[j_2 + 8192*j_2_block]
            }
            s add= s_block_2
          }
        }""",
    )


def test_blocks_of_a_very_long_sum_are_summed_in_blocks(expect):
    expect(
        in_blocks("var s: f32 = 0_f32 for j in 1000003 serial { s add= x[3*j] }"),
        """
        code f(x: read f32[m], y: write f32[1]) sizes m in 0.. {
          var s: f32 = 0.0_f32
          for j_block_block in 62 serial {
            j_block_rounds: i64 in 1..128 = min(128_i64, index(-128*j_block_block + 7813))
            var s_block_2: f32 = 0.0_f32
            for j_block in j_block_rounds serial {
              j_rounds: i64 in 1..128 = min(128_i64, index(-128*j_block - 16384*j_block_block + 1000003))
              var s_block: f32 = 0.0_f32
              for j in j_rounds serial {
                s_block add= x[3*j + 384*j_block + 49152*j_block_block]
              }
              s_block_2 add= s_block
            }
            s add= s_block_2
          }
        }""",
    )


@pytest.mark.parametrize(
    "body",
    [
        "var s: f64 = 0_f64 for j in m vector { s add= f64(x[j]) }",  # counts to 2**53
        "var s: i32 = 0_i32 for j in m vector { s add= i32(x[j]) }",
        "var s: f32 = 0_f32 for j in m vector { s max= x[j] }",
        "var s: f32 = 0_f32 for j in m serial { s add= x[j] store y[0] = s }",  # is read
        "var s: f32 = 0_f32 for j in 512 vector { s add= x[3*j] }",  # is not that long
        "var s: f32 = 0_f32 for j in 32768 vector { s add= x[j] }",  # nor is this, in 64 lanes
        "for j in m vector { var s: f32 = 0_f32 s add= x[j] }",  # is one for each round
        TILE,  # is one of many, whose blocks would have no registers
    ],
)
def test_a_sum_that_loses_no_digits_stays_unchanged(body: str):
    original = parse(f"{OPEN}{{ {body} }}")

    assert sum_in_blocks.PASS.run(original) is original


# --- vectorize --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "fires"),
    [
        ("for j in 64 serial { store y[j] = x[j] * 2.0_f32 }", True),
        ("var s: f32 = 0.0_f32 for j in 64 serial { s add= x[j] }", True),
        ("for i in n grid { for j in n serial { store y[n*i + j] = x[j] } }", True),
        ("for j in 64 serial { store y[j] = 1.0_f32 store y[j] = y[j] + x[j] }", True),
        ("for j in 32 serial { store y[j] = x[2*j] }", False),  # strided
        ("for j in 64 serial { store y[-j + 63] = x[j] }", False),  # backwards
        ("for j in 64 serial { store y[j//2] = x[j] }", False),  # two iterations, one element
        ("store y[0] = x[0] for j in 63 serial { store y[j + 1] = y[j] + x[j] }", False),
        ("var v: f32 = x[0] for j in 64 serial { v = v + x[j] store y[j] = v }", False),
        ("var s: f32 = x[0] for j in 64 serial { s add= x[j] store y[j] = s }", False),
        ("for j in 2 serial { store y[j] = x[j] }", False),  # shorter than a register
        ("for j in 64 serial { if x[j] > 0.0_f32 { store y[j] = x[j] } }", False),
    ],
)
def test_loops_become_vectors_where_that_is_legal_and_pays(body, fires):
    assert ("vector" in after(vectorize(TARGET), body)) is fires


def test_on_a_cpu_the_innermost_of_several_grid_axes_becomes_a_vector():
    body = "for i in 8 grid { for j in 8 grid { store y[8*i + j] = x[8*i + j] } }"

    assert "for j in 8 vector" in after(vectorize(CPU), body)
    assert "vector" not in after(vectorize(TARGET), body)


def test_a_loop_that_reads_an_alias_elsewhere_is_not_vectorised():
    text = "code f(x: read f32[64], y: write f32[64]) aliases x = y { for j in 63 serial { store y[j] = x[j + 1] } }"
    original = parse(text)

    assert vectorize(TARGET).run(original) is original


@pytest.mark.parametrize("body", ["x[j + 1] + z[j]", "x[j] + z[j + 1]"])
def test_a_loop_that_reads_either_of_two_aliases_elsewhere_is_not_vectorised(body: str):
    head = "code f(x: read f32[64], z: read f32[64], y: write f32[64]) aliases x = y, z = y"
    original = parse(f"{head} {{ for j in 63 serial {{ store y[j] = {body} }} }}")

    assert vectorize(TARGET).run(original) is original
