"""Passes that rewrite values: what each docstring promises, and what the pass must leave alone."""

from __future__ import annotations

import pytest

from rune.lowering.kernel.text import parse, to_text
from rune.lowering.optimize import eliminate_common, eliminate_dead, hoist_invariant, simplify_index
from tests.lowering.optimize.bodies import after, code

# --- simplify-index ---------------------------------------------------------------------------


def test_a_guard_that_always_holds_is_removed(expect):
    expect(
        after(simplify_index.PASS, "for i in 8 serial { store y[i] = x[i + 2 if (index(i) + 2_i64) < 10_i64] }"),
        """
        for i in 8 serial {
          store y[i] = x[i + 2]
        }""",
    )


def test_a_guard_that_never_holds_gives_zero(expect):
    expect(
        after(simplify_index.PASS, "for i in 8 serial { store y[i] = x[i if index(i) < 0_i64] }"),
        """
        for i in 8 serial {
          store y[i] = 0.0_f32
        }""",
    )


def test_a_guard_that_depends_on_the_point_stays():
    original = code("for i in 8 serial { store y[i] = x[i if index(i) < index(n)] }")

    assert simplify_index.PASS.run(original) is original


def test_a_branch_on_bounds_gives_way_to_its_side(expect):
    expect(
        after(
            simplify_index.PASS,
            """for i in n serial {
                 if (index(i) < 8_i64) & (i32(index(i)) >= 0_i32) { store y[i] = 1.0_f32 }
                 else { store y[i] = 2.0_f32 }
               }""",
        ),
        """
        for i in n serial {
          store y[i] = 1.0_f32
        }""",
    )


def test_loops_of_one_and_of_no_iteration_go(expect):
    expect(
        after(
            simplify_index.PASS,
            """for i in 1 serial { store y[i] = x[4*i + 3] }
               for j in 0 serial { store y[j] = 1.0_f32 }""",
        ),
        """
        store y[0] = x[3]""",
    )


def test_an_integer_constant_reaches_the_indices(expect):
    expect(
        after(simplify_index.PASS, "k2: i32 in 0..9 = 3_i32 store y[k2 + 1] = x[2*k2]"),
        """
        k2: i32 = 3_i32
        store y[4] = x[6]""",
    )


def test_arithmetic_that_may_overflow_stays():
    body = "for i in 8 serial { store y[i] = f32(i8(index(i)) * 100_i8) }"

    assert "i8(index(i)) * 100_i8" in after(simplify_index.PASS, body)


# --- hoist-invariant --------------------------------------------------------------------------


def test_invariant_lets_and_parts_move_in_front_of_the_loop(expect):
    expect(
        after(
            hoist_invariant.PASS,
            """s: f32 = x[0]
               for j in 8 serial {
                 t: f32 = exp(s)
                 store y[j] = x[j] * (1.0_f32 / t)
               }""",
        ),
        """
        s: f32 = x[0]
        t: f32 = exp(s)
        invariant: f32 = 1.0_f32 / t
        for j in 8 serial {
          store y[j] = x[j] * invariant
        }""",
    )


def test_a_value_moves_out_of_every_loop_it_does_not_depend_on(expect):
    expect(
        after(
            hoist_invariant.PASS, "for i in 4 serial { for j in 4 serial { store y[4*i + j] = exp(x[i]) + sin(x[0]) } }"
        ),
        """
        invariant_2: f32 = sin(x[0])
        for i in 4 serial {
          invariant: f32 = exp(x[i]) + invariant_2
          for j in 4 serial {
            store y[4*i + j] = invariant
          }
        }""",
    )


@pytest.mark.parametrize(
    "body",
    [
        # the branch may be there to protect the load
        "for j in 8 serial { if index(j) < index(n) { store y[j] = x[n] } }",
        # the loop may not run at all, and n may be out of bounds
        "for i in n serial { for j in i serial { store y[j] = x[100*n] } }",
        # the loop writes what it reads
        "store y[0] = 1.0_f32 for j in 8 serial { store y[j] = y[0] }",
        # a var of the loop
        "var v: f32 = x[0] for j in 8 serial { v = v * 2.0_f32 store y[j] = v }",
        # points of the grid keep their own values
        "for i in 8 grid { store y[i] = x[0] }",
    ],
)
def test_a_value_that_varies_or_might_fault_is_not_hoisted(body):
    original = code(body)

    assert hoist_invariant.PASS.run(original) is original


def test_a_load_in_bounds_moves_out_of_a_loop_that_may_not_run():
    text = after(hoist_invariant.PASS, "for i in n serial { for j in i serial { store y[j] = x[n] } }")

    assert text.splitlines()[0] == "invariant: f32 = x[n]"


def test_no_load_crosses_a_barrier():
    body = """
    alloc e: f32[8] shared
    for t in 8 workgroup {
      store e[t] = x[t]
      for j in 4 serial { barrier store y[8*j + t] = e[-t + 7] barrier }
    }"""

    assert after(hoist_invariant.PASS, body).count("invariant") == 0


# --- eliminate-common -------------------------------------------------------------------------


def test_a_repeated_expression_gets_a_local(expect):
    expect(
        after(eliminate_common.PASS, "for i in 8 grid { store y[i] = exp(x[i]) / (1.0_f32 + exp(x[i])) }"),
        """
        for i in 8 grid {
          common: f32 = exp(x[i])
          store y[i] = common / (1.0_f32 + common)
        }""",
    )


def test_a_let_equal_to_an_earlier_one_is_replaced_in_indices_too(expect):
    expect(
        after(
            eliminate_common.PASS,
            """a: i32 in 0..9 = max(0_i32, min(9_i32, k[0]))
               for j in 4 serial {
                 b: i32 in 0..9 = max(0_i32, min(9_i32, k[0]))
                 store y[j + b] = x[a]
               }""",
        ),
        """
        a: i32 in 0..9 = max(0_i32, min(9_i32, k[0]))
        for j in 4 serial {
          store y[a + j] = x[a]
        }""",
    )


def test_index_symbols_of_different_bounds_stay_apart():
    text = after(eliminate_common.PASS, "a: i32 in 0..9 = k[0] b: i32 in 0..5 = k[0] store y[a] = x[b]")

    assert "b: i32 in 0..5 = a" in text


@pytest.mark.parametrize(
    "between",
    [
        "store y[0] = 1.0_f32",
        "if true { store y[3] = 1.0_f32 }",
        "for j in 2 serial { store y[j] = 1.0_f32 }",
        "v = 3.0_f32",
    ],
)
def test_a_load_after_a_store_and_a_read_after_an_assign_are_other_values(between):
    body = f"""
    store y[1] = 0.0_f32
    var v: f32 = 1.0_f32
    a: f32 = y[1] + v
    {between}
    b: f32 = y[1] + v
    store y[2] = a - b"""

    second_read = after(eliminate_common.PASS, body).split("b: f32 = ")[1]
    assert second_read.startswith("common + v" if between.startswith("v") else "y[1] + v")


def test_a_value_computed_in_a_branch_is_not_reused_after_it():
    body = "if x[0] > 0.0_f32 { store y[0] = exp(x[1]) } store y[1] = exp(x[1])"

    assert after(eliminate_common.PASS, body).count("exp") == 2


def test_a_store_through_an_alias_is_a_change():
    text = (
        "code f(x: read f32[8], y: write f32[8]) aliases x = y "
        "{ a: f32 = x[0] store y[0] = a * 2.0_f32 b: f32 = x[0] store y[1] = a + b }"
    )

    assert to_text(eliminate_common.PASS.run(parse(text))).count("x[0]") == 2


# --- eliminate-dead ---------------------------------------------------------------------------


def test_an_unread_value_is_removed_with_everything_that_only_it_reads(expect):
    expect(
        after(
            eliminate_dead.PASS,
            """a: f32 = x[0]
               b: f32 = a * 2.0_f32
               alloc e: f32[8] local
               for j in 8 serial { store e[j] = b }
               var v: f32 = 0.0_f32
               for j in 8 serial { v add= x[j] }
               if x[0] > 1.0_f32 { c: f32 = x[2] }
               store y[0] = x[1]""",
        ),
        """
        store y[0] = x[1]""",
    )


def test_a_var_read_in_the_next_iteration_stays():
    body = "var v: f32 = 1.0_f32 for j in 8 serial { store y[j] = v v = x[j] }"
    original = code(body)

    assert eliminate_dead.PASS.run(original) is original
