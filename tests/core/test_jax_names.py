"""Programs are read by JAX's names: equations, variables, constants, effects, lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.core.program import Literal, Program

ROW = rnp.arange(3.0) * 2
PROGRAM = rune.make_jaxpr(lambda x, y: (rnp.sin(x) * ROW, y + 1.0))(rnp.ones(3), 2)


def walked(program: Program, consts: list, *args: object) -> list:
    """The outputs, as a user's interpreter computes them."""
    jaxpr = program.jaxpr
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def read(atom: Any) -> object:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        params = equation.primitive.get_bind_params(equation.params)
        out = equation.primitive.bind(*map(read, equation.invars), **params)
        outs = out if equation.primitive.multiple_results else [out]
        values.update(zip(equation.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def test_an_interpreter_of_the_users_walks_a_program():
    x = np.array([0.1, 0.2, 0.3], np.float32)

    first, second = walked(PROGRAM, PROGRAM.consts, rnp.array(x), rnp.array(2))

    np.testing.assert_allclose(first, np.sin(x) * np.arange(3) * 2, rtol=1e-6)
    assert second == 3


def test_an_interpreter_runs_what_is_jitted_and_loops():
    def function(x: rune.Array) -> rune.Array:
        return rune.lax.fori_loop(0, 3, lambda i, v: v + i, rune.jit(rnp.cos)(x))

    (result,) = walked(rune.make_jaxpr(function)(0.0), [], rnp.array(0.0))

    assert result == 4


def test_an_open_program_is_one_object_and_has_no_constants():
    jaxpr = PROGRAM.jaxpr

    assert jaxpr is PROGRAM.jaxpr
    assert len(jaxpr.constvars) == len(PROGRAM.consts) == 1
    assert jaxpr.invars == PROGRAM.invars
    assert jaxpr.with_constants(PROGRAM.consts).consts == PROGRAM.consts


def test_types_are_read_off():
    assert list(map(str, PROGRAM.in_avals)) == ["f32[3]", "i32*[]"]
    assert list(map(str, PROGRAM.out_avals)) == ["f32[3]", "f32*[]"]
    aval = PROGRAM.eqns[0].outvars[0].aval
    assert (aval.shape, aval.dtype, aval.weak_type, aval.size, aval.ndim) == ((3,), np.float32, False, 3, 1)


def test_a_type_is_updated_by_jax_names():
    aval = rnp.ones((2, 3)).aval

    changed = aval.update(shape=(5,), dtype="int8", weak_type=True)

    assert changed is rune.ArrayType((5,), np.dtype("int8"), weak=True)
    assert (aval.str_short(), aval.str_short(short_dtypes=True)) == ("float32[2,3]", "f32[2,3]")
    with pytest.raises(TypeError, match="cannot update memory_space"):
        aval.update(memory_space=1)


def test_an_equation_is_replaced_in_part():
    equation = PROGRAM.eqns[0]

    changed = equation.replace(params={"a": 1}, outvars=[])

    assert (changed.primitive, changed.params, changed.outvars) == (equation.primitive, {"a": 1}, ())
    assert changed.invars == equation.invars


def test_effects_are_those_of_the_equations_and_of_programs_in_them():
    def function(x: float) -> None:
        rune.jit(lambda v: rune.debug.print("{}", v))(x)

    assert PROGRAM.effects == frozenset()
    assert len(rune.make_jaxpr(function)(1.0).effects) == 1


def test_a_text_shows_lines_if_asked():
    assert "test_jax_names.py" in PROGRAM.pretty_print(source_info=True)
    assert "test_jax_names.py" not in PROGRAM.pretty_print(use_color=False)
    assert "test_jax_names.py" in str(PROGRAM.eqns[0].source_info)
