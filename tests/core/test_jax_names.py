"""Programs have JAX's attributes: equations, variables, constants, effects, lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.core.jax_names import ProgramNames
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

    result = aval.update(shape=(5,), dtype="int8", weak_type=True)

    assert result is rune.ArrayType((5,), np.dtype("int8"), weak=True)
    assert (aval.str_short(), aval.str_short(short_dtypes=True)) == ("float32[2,3]", "f32[2,3]")
    assert aval.memory_space is None
    with pytest.raises(TypeError, match="cannot update memory_space"):
        aval.update(memory_space=1)


def test_an_equation_is_replaced_in_part():
    equation = PROGRAM.eqns[0]

    result = equation.replace(params={"a": 1}, outvars=[])

    assert (result.primitive, result.params, result.outvars) == (equation.primitive, {"a": 1}, ())
    assert result.invars == equation.invars


def test_effects_are_those_of_the_equations_and_of_programs_in_them():
    def function(x: float) -> None:
        rune.jit(lambda v: rune.debug.print("{}", v))(x)

    assert PROGRAM.effects == frozenset()
    assert len(rune.make_jaxpr(function)(1.0).effects) == 1


def test_a_text_shows_source_lines_on_request():
    assert "test_jax_names.py" in PROGRAM.pretty_print(source_info=True)
    assert "test_jax_names.py" not in PROGRAM.pretty_print(use_color=False)
    assert "test_jax_names.py" in str(PROGRAM.eqns[0].source_info)


def _nested() -> Program:
    square = rune.custom_jvp(lambda x: x * x)
    square.defjvp(lambda primals, tangents: (primals[0] ** 2, 2 * primals[0] * tangents[0]))
    cube = rune.custom_vjp(lambda x: x**3)
    cube.defvjp(lambda x: (x**3, x), lambda x, g: (3 * x * x * g,))

    def function(x: rune.Array) -> rune.Array:
        x = rune.jit(rnp.sin)(x)
        x = rune.lax.scan(lambda c, row: (c + row, row), x, rnp.arange(3.0))[0]
        x = rune.lax.while_loop(lambda c: c < 3, lambda c: c + 1, x)
        return rune.lax.cond(x > 1, rnp.cos, rune.checkpoint(rnp.exp), cube(square(x)))

    return rune.make_jaxpr(function)(1.0)


@pytest.mark.parametrize(
    ("primitive", "names"),
    [
        ("jit", ("jaxpr",)),
        ("scan", ("jaxpr",)),
        ("while", ("cond_jaxpr", "body_jaxpr")),
        ("custom_jvp", ("call_jaxpr",)),
        ("custom_vjp", ("call_jaxpr",)),
    ],
)
def test_programs_of_equations_have_jaxs_names(primitive: str, names: tuple[str, ...]):
    (equation,) = (e for e in _nested().eqns if e.primitive.name == primitive)

    assert all(isinstance(equation.params[name], Program) for name in names)
    assert all(name in equation.params and equation.params.get(name) for name in names)


def test_counts_of_operands_have_jaxs_names():
    params = {e.primitive.name: e.params for e in _nested().eqns}

    assert [params["scan"][name] for name in ("num_consts", "num_carry", "length")] == [0, 1, 3]
    assert [params["while"][name] for name in ("cond_nconsts", "body_nconsts")] == [0, 0]
    assert params["jit"]["name"] == "sin"


def test_keys_of_parameters_are_those_that_bind_takes():
    equations = _nested().eqns

    assert all(set(e.params) == set(plain.params) for e, plain in zip(equations, _nested().equations, strict=True))
    assert equations[0].params.get("nobody", 7) == 7
    with pytest.raises(KeyError, match="nobody"):
        equations[0].params["nobody"]


def test_equations_are_the_same_objects_each_time():
    program = _nested()

    assert program.eqns is program.eqns is program.jaxpr.eqns


def test_a_copy_of_parameters_is_changed_by_jax_names():
    """Libraries bind an equation again with another program: Distrax inverts functions so."""
    (equation,) = rune.make_jaxpr(rune.jit(lambda x: x * 2.0))(1.0).eqns
    params: Any = equation.params
    params = params.copy()

    before = params.pop("jaxpr")
    params["jaxpr"] = rune.make_jaxpr(lambda x: x / 2.0)(1.0)

    assert before is equation.params["jaxpr"]
    assert params.keys() == equation.params.keys()
    assert float(equation.primitive.bind(3.0, **params)[0]) == 1.5
    assert float(equation.primitive.bind(3.0, **equation.params)[0]) == 6.0


def test_a_class_with_the_names_of_a_program_must_define_its_text():
    with pytest.raises(NotImplementedError):
        ProgramNames().pretty_print()
