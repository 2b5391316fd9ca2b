"""make_jaxpr takes JAX's arguments; what it gives is evaluated with constants of the caller's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp


def test_static_arguments_are_values_of_pythons():
    program = rune.make_jaxpr(lambda x, n, y: x[:n] * y, static_argnums=(1,))(rnp.ones(5), 2, 3.0)

    assert list(map(str, program.in_avals)) == ["f32[5]", "f32*[]"]
    assert str(program.out_avals[0]) == "f32[2]"


def test_a_static_argument_counts_from_the_end():
    program = rune.make_jaxpr(lambda x, n: [x] * n, static_argnums=-1)(1.0, 3)

    assert len(program.outvars) == 3


def test_the_shapes_of_the_results_are_given_as_a_tree():
    _, shapes = rune.make_jaxpr(lambda x: {"a": x, "b": (x + 1, None)}, return_shape=True)(rnp.ones(3, "i4"))

    struct = rune.ShapeDtypeStruct((3,), "i4")
    assert shapes == {"a": struct, "b": (struct, None)}


def test_an_axis_may_be_named_from_outside():
    program = rune.make_jaxpr(lambda x: rune.lax.psum(x, "i") / rune.lax.psum(1, "i"), axis_env=[("i", 5)])(2.0)

    assert [e.primitive.name for e in program.eqns] == ["psum", "div"]
    lanes = rune.vmap(lambda x: rune.eval_jaxpr(program.jaxpr, [], x)[0], axis_name="i")(rnp.arange(5.0))
    np.testing.assert_array_equal(lanes, [2.0] * 5)


def test_without_its_name_an_axis_is_unbound():
    with pytest.raises(NameError, match="'i'"):
        rune.make_jaxpr(lambda x: rune.lax.psum(x, "i"), axis_env=[("j", 5)])(2.0)


@pytest.mark.parametrize("transform", [rune.jit, rune.vmap, lambda f: rune.jit(rune.vmap(f))])
def test_a_program_closes_over_values_of_the_outer_trace(transform: Any):
    def around(x: Any) -> Any:
        program = rune.make_jaxpr(lambda y: y * x)(1.0)
        return rune.eval_jaxpr(program.jaxpr, program.consts, 3.0)[0]

    np.testing.assert_array_equal(transform(around)(rnp.arange(3.0)), [0, 3, 6])


def test_a_program_is_differentiated_through_its_constants():
    def around(x: Any) -> Any:
        program = rune.make_jaxpr(lambda y: y * rnp.sin(x))(1.0)
        return rune.jaxpr_as_fun(program)(2.0)[0]

    np.testing.assert_allclose(rune.grad(around)(0.3), 2 * np.cos(0.3), rtol=1e-6)


def test_other_constants_may_be_given():
    row = rnp.arange(3.0) + 1
    program = rune.make_jaxpr(lambda x: x * row)(1.0)

    (result,) = rune.eval_jaxpr(program.jaxpr, [rnp.array([5.0, 6.0, 7.0])], 2.0)

    np.testing.assert_array_equal(result, [10, 12, 14])


@pytest.mark.parametrize(("consts", "args"), [([], [1.0]), ([1.0], []), ([1.0, 2.0], [1.0])])
def test_the_number_of_values_has_to_be_that_of_the_program(consts: list, args: list):
    row = rnp.arange(3.0) + 1
    program = rune.make_jaxpr(lambda x: x * row)(1.0)

    with pytest.raises(TypeError, match="eval_jaxpr: cannot evaluate"):
        rune.eval_jaxpr(program.jaxpr, consts, *args)


@pytest.mark.parametrize(
    ("value", "type"),
    [(2.0, "f32*[]"), (True, "bool[]"), (np.ones(3), "f32[3]"), (np.float64(1), "f32[]"), (np.int8(1), "i8[]")],
)
def test_the_type_of_a_value_is_that_of_the_array_it_becomes(value: object, type: str):
    assert str(rune.typeof(value)) == type
    assert str(rune.typeof(rnp.asarray(value))) == type


def test_traced_values_tell_their_type():
    types: list[object] = []

    rune.vmap(lambda x: types.extend((rune.typeof(x), x.aval)))(rnp.ones((2, 3)))

    assert list(map(str, types)) == ["f32[3]", "f32[3]"]
    with pytest.raises(TypeError, match="typeof: cannot take str"):
        rune.typeof("x")
