"""Passes that change loops: unroll and vectorize, where they fire and where they must not."""

from __future__ import annotations

import pytest

from rune.backends.reference import TARGET
from rune.lowering.kernel.text import parse
from rune.lowering.optimize import unroll
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


def test_a_loop_with_an_alias_that_it_reads_elsewhere_is_no_vector():
    text = (
        "code f(x: read f32[64], y: write f32[64]) aliases x = y "
        "{ for j in 63 serial { store y[j] = x[j + 1] } }"
    )
    unchanged = parse(text)

    assert vectorize(TARGET).run(unchanged) is unchanged
