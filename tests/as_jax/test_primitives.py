"""Primitives defined in JAX's way: every transformation applies their rules.

The values are those of jax 0.10.2 for the same definitions, one of each kind: a cube, a rotation
with two results, an operation that is linear in both of its operands.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive, mapped_aval, primitives, unmapped_aval
from jax.extend.linear_util import transformation, transformation2, transformation_with_aux, wrap_init
from jax.interpreters import ad, batching, mlir, partial_eval, xla

import rune
from rune.errors import ArgumentError, MissingRule, TransformError

X = np.array([1.0, -2.0, 3.0], np.float32)


def test_a_square_is_the_operation_that_it_is_in_jax():
    for square in (jnp.square, jax.lax.square):
        (equation,) = jax.make_jaxpr(square)(X).eqns
        assert equation.primitive is primitives.square_p
        assert equation.primitive.name == "square"
    assert [e.primitive.name for e in jax.make_jaxpr(lambda x: x**2)(X).eqns] == ["integer_pow"]


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64", "bfloat16"])
def test_a_square_of_a_program_is_that_of_numpy(dtype: str):
    x = jnp.array([3, -2, 0]).astype(dtype)
    n = np.asarray(x)

    for square in (primitives.square_p.bind, jax.jit(jnp.square), jax.vmap(jnp.square)):
        np.testing.assert_array_equal(square(x), n * n)


def test_derivatives_of_a_square():
    assert jax.grad(jnp.square)(3.0) == 6.0
    assert jax.grad(jax.grad(jnp.square))(3.0) == 2.0
    assert jax.jvp(jnp.square, (3.0,), (2.0,)) == (9.0, 12.0)
    assert jax.jvp(jnp.square, (1.0 + 2.0j,), (1.0 + 0.0j,))[1] == 2.0 + 4.0j


def cube_primitive() -> Primitive:
    cube_p = Primitive("cube")
    cube_p.def_impl(lambda x: x * x * x)
    cube_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(cube_p, mlir.lower_fun(lambda x: x * x * x, multiple_results=False))
    ad.defjvp(cube_p, lambda t, x: 3 * x**2 * t)
    batching.defvectorized(cube_p)
    return cube_p


def rotation_primitive() -> Primitive:
    """(x, y) rotated by an angle, a parameter; linear, with two results."""

    def rotated(x, y, *, angle):
        c, s = np.cos(angle).astype("f"), np.sin(angle).astype("f")
        return [c * x - s * y, s * x + c * y]

    def transpose(cts, x, y, *, angle):
        cotangents = [ad.instantiate_zeros(ct) for ct in cts]
        outs = rotate_p.bind(*cotangents, angle=-angle)
        return [o if ad.is_undefined_primal(v) else None for o, v in zip(outs, (x, y), strict=True)]

    def batch(values, dims, *, angle):
        size = next(v.shape[d] for v, d in zip(values, dims, strict=True) if d is not None)
        front = [batching.bdim_at_front(v, d, size) for v, d in zip(values, dims, strict=True)]
        return rotate_p.bind(*front, angle=angle), (0, 0)

    rotate_p: Any = Primitive("rotate")
    rotate_p.multiple_results = True
    rotate_p.def_impl(rotated)
    rotate_p.def_abstract_eval(lambda x, y, *, angle: [x, x])
    mlir.register_lowering(rotate_p, mlir.lower_fun(rotated))
    ad.deflinear2(rotate_p, transpose)
    batching.primitive_batchers[rotate_p] = batch
    return rotate_p


cube_p, rotate_p = cube_primitive(), rotation_primitive()


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_primitive_of_the_user_has_its_meaning_derivatives_and_lanes(wrap):
    np.testing.assert_array_equal(wrap(cube_p.bind)(X), X**3)
    np.testing.assert_array_equal(wrap(jax.vmap(jax.grad(cube_p.bind)))(X), 3 * X**2)
    np.testing.assert_array_equal(wrap(jax.vmap(jax.grad(jax.grad(cube_p.bind))))(X), 6 * X)
    np.testing.assert_array_equal(wrap(lambda x: jax.jvp(cube_p.bind, (x,), (x,))[1])(X), 3 * X**3)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_several_results_are_transposed_together(wrap):
    def first(x, y):
        return rotate_p.bind(x, y, angle=0.5)[0]

    np.testing.assert_allclose(wrap(first)(1.0, 2.0), np.cos(0.5) - 2 * np.sin(0.5), rtol=1e-6)
    np.testing.assert_allclose(wrap(jax.grad(first, (0, 1)))(1.0, 2.0), (np.cos(0.5), -np.sin(0.5)), rtol=1e-6)
    lanes = wrap(jax.vmap(first, in_axes=(0, None)))(X, 2.0)
    np.testing.assert_allclose(lanes, np.cos(0.5) * X - 2 * np.sin(0.5), rtol=1e-6)


def test_it_appears_in_programs_and_in_loops():
    program = jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: cube_p.bind(c), x))(1.1)

    assert "cube" in str(program)
    loop = jax.jit(jax.grad(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: cube_p.bind(c), x)))
    np.testing.assert_allclose(loop(1.1), 27 * 1.1**26, rtol=1e-5)


def test_rules_may_come_after_the_first_use():
    late_p = Primitive("late")
    late_p.def_impl(lambda x: 2 * x)
    late_p.def_abstract_eval(lambda x: x)
    with pytest.raises(MissingRule, match=r"jvp: cannot differentiate late \(it has no rule in ad.primitive_jvps"):
        jax.grad(late_p.bind)(1.0)
    with pytest.raises(MissingRule, match=r"jit: cannot compile late \(mlir.register_lowering"):
        jax.jit(late_p.bind)(1.0)

    ad.deflinear(late_p, lambda ct: [2 * ct])
    mlir.register_lowering(late_p, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))

    assert jax.grad(late_p.bind)(1.0) == 2
    assert jax.jit(late_p.bind)(1.0) == 2


def test_zeros_and_unknown_inputs_are_symbolic():
    kinds: list[object] = []

    def jvp(primals, tangents):
        kinds.extend(type(t) for t in tangents)
        return times_p.bind(*primals), times_p.bind(tangents[0], primals[1])

    def transpose(ct, x, y):
        kinds.append((ad.is_undefined_primal(x), x.aval.shape, ad.is_undefined_primal(y)))
        return ct * y, None

    times_p = Primitive("times")
    times_p.def_impl(lambda x, y: x * y)
    times_p.def_abstract_eval(lambda x, y: x)
    ad.primitive_jvps[times_p], ad.primitive_transposes[times_p] = jvp, transpose

    grads = jax.grad(lambda x: times_p.bind(x, jnp.asarray(X)).sum())(X)

    np.testing.assert_array_equal(grads, X)
    assert kinds[1:] == [ad.Zero, (True, (3,), False)]


def test_an_array_that_a_lowering_closes_over_is_compiled_in():
    matrix, angle = jnp.arange(6.0).reshape(3, 2), jnp.ones(2) * 1j
    apply_p = Primitive("apply")

    def applied(x):
        return jnp.imag((x @ matrix) @ angle) * np.array([2.0, 3.0], np.float32)[0]

    apply_p.def_impl(applied)
    apply_p.def_abstract_eval(lambda x: jax.core.ShapedArray((), x.dtype))
    mlir.register_lowering(apply_p, mlir.lower_fun(applied, multiple_results=False))

    def repeated(x):
        return jax.lax.fori_loop(0, 2, lambda i, c: c + 0.5 * apply_p.bind(c), x)

    np.testing.assert_allclose(jax.jit(repeated)(X), repeated(X), rtol=1e-6)


def test_parameters_need_no_hash_and_no_equality():
    boxed_p = Primitive("boxed")
    boxed_p.def_impl(lambda x, *, box: x * box[0])
    boxed_p.def_abstract_eval(lambda x, *, box: x)
    mlir.register_lowering(boxed_p, mlir.lower_fun(lambda x, *, box: x * box[0], multiple_results=False))

    def repeated(x):
        return jax.lax.fori_loop(0, 3, lambda i, c: boxed_p.bind(c, box=[np.float32(2)]), x)

    np.testing.assert_array_equal(jax.jit(repeated)(X), 8 * X)


def test_a_primitive_that_writes_mlir_is_refused():
    mlir_p = Primitive("mlir")
    mlir_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(mlir_p, lambda ctx, x: ctx.tokens_in)

    with pytest.raises(ArgumentError, match="it belongs to MLIR, which rune lacks"):
        jax.jit(mlir_p.bind)(1.0)
    with pytest.raises(AttributeError, match=r"hint: It belongs to MLIR.*lower_fun"):
        _ = mlir.ir


def test_a_lowering_for_one_platform_is_refused_where_it_would_be_used():
    device_p = Primitive("device")
    device_p.def_impl(lambda x: 2 * x)
    device_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(device_p, mlir.lower_fun(abs, multiple_results=False), platform="cuda")

    assert device_p.bind(1.0) == 2
    with pytest.raises(MissingRule, match=r"cannot compile device \(its lowering is for 'cuda' alone"):
        jax.jit(device_p.bind)(1.0)

    mlir.register_lowering(device_p, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))
    mlir.register_lowering(device_p, mlir.lower_fun(abs, multiple_results=False), platform="cuda")
    assert jax.jit(device_p.bind)(1.0) == 2


@pytest.mark.parametrize("results", [1, 2])
def test_an_impl_may_compile_the_lowering(results):
    scale_p = Primitive("scale")
    scale_p.multiple_results = results > 1  # type: ignore[misc]
    scale_p.def_impl(partial(xla.apply_primitive, scale_p))
    scale_p.def_abstract_eval(lambda x, *, by: [x] * results if results > 1 else x)
    mlir.register_lowering(scale_p, lambda context, x, *, by: [by * x * n for n in range(1, results + 1)])

    out = scale_p.bind(X, by=3.0)

    np.testing.assert_array_equal(out, [3 * X, 6 * X] if results > 1 else 3 * X)
    np.testing.assert_array_equal(jax.jit(partial(scale_p.bind, by=3.0))(X), out)


def test_a_lowering_that_differs_from_its_type_is_refused():
    wrong_p = Primitive("wrong")
    wrong_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(wrong_p, mlir.lower_fun(lambda x: x[:1], multiple_results=False))

    with pytest.raises(TransformError, match=r"its lowering returns f32\[1\], its abstract_eval f32\[3\]"):
        jax.jit(wrong_p.bind)(X)


def test_rules_of_runes_own_operations_are_settled():
    sin_p: Any = primitives.sin_p

    with pytest.raises(ArgumentError, match="cannot set the rule of sin"):
        ad.primitive_jvps[sin_p] = lambda *args: args


def test_rules_broadcast_reduce_and_add_up_as_their_helpers_say():
    plus_p, sum_p = Primitive("plus"), Primitive("total")
    plus_p.def_impl(lambda x, y: x + y)
    batching.defbroadcasting(plus_p)
    sum_p.def_impl(lambda x, *, axes: jnp.sum(x, axes))
    batching.defreducer(sum_p)
    table = np.arange(6.0, dtype=np.float32).reshape(2, 3)

    lanes = jax.vmap(plus_p.bind, in_axes=(1, 0))(table, X)
    np.testing.assert_array_equal(lanes, table.T + X[:, None])
    np.testing.assert_array_equal(jax.vmap(lambda x: sum_p.bind(x, axes=(0,)), in_axes=1)(table), table.sum(0))
    assert ad.add_tangents(ad.Zero.from_primal_value(1.0), 2.0) == 2.0


def test_products_are_transposed_in_each_factor():
    times_p = Primitive("product")
    times_p.def_impl(lambda x, y: x * y)
    times_p.def_abstract_eval(lambda x, y: x)
    ad.defbilinear(times_p, lambda ct, x, y: ct * y, lambda ct, x, y: x * ct)

    assert jax.grad(times_p.bind, (0, 1))(2.0, 5.0) == (5.0, 2.0)


def test_names_of_primitives_are_records_of_rune():
    equations = rune.make_program(lambda x: jnp.sin(x) + 1)(1.0).equations

    assert [e.primitive for e in equations] == [primitives.sin_p, primitives.add_p]


FLOATS = np.array([7.5, -2.0, 0.5], np.float32), np.array([2.0, 3.0, -1.5], np.float32)
INTEGERS = np.array([7, -9, 100], np.int32), np.array([2, 3, 1], np.int32)
NOT_COMMUTING: dict[str, tuple[Any, tuple[np.ndarray, ...]]] = {
    "sub": (np.subtract, FLOATS),
    "div": (np.divide, FLOATS),
    "rem": (np.fmod, FLOATS),
    "pow": (np.power, (abs(FLOATS[0]), FLOATS[1])),
    "atan2": (np.arctan2, FLOATS),
    "nextafter": (np.nextafter, FLOATS),
    "complex": (lambda x, y: x + 1j * y, FLOATS),
    "lt": (np.less, FLOATS),
    "ge": (np.greater_equal, FLOATS),
    "shift_left": (np.left_shift, INTEGERS),
    "shift_right_arithmetic": (np.right_shift, INTEGERS),
    "select_n": (lambda which, x, y: np.where(which, y, x), (np.array([True, False, True]), *FLOATS)),
}


@pytest.mark.parametrize("name", NOT_COMMUTING)
def test_operands_of_a_primitive_have_the_order_of_jax(name: str):
    meaning, operands = NOT_COMMUTING[name]
    primitive = getattr(jax.lax, f"{name}_p")
    program = jax.make_jaxpr(primitive.bind)(*operands)
    (equation,) = program.eqns

    assert equation.invars == program.jaxpr.invars
    assert equation.replace(invars=equation.invars).operands == equation.operands
    for bind in (primitive.bind, jax.jit(primitive.bind), partial(jax.core.eval_jaxpr, program.jaxpr, program.consts)):
        (x,) = jax.tree.leaves(bind(*operands))
        np.testing.assert_allclose(x, meaning(*operands), rtol=1e-6)


def test_a_shift_without_sign_is_written_in_others():
    result = primitives.shift_right_logical_p.bind(*INTEGERS)
    names = {e.primitive.name for e in jax.make_jaxpr(primitives.shift_right_logical_p.bind)(*INTEGERS).eqns}

    np.testing.assert_array_equal(result, jax.lax.shift_right_logical(*INTEGERS))
    assert names
    assert "shift_right_logical" not in names


@pytest.mark.parametrize("name", ["reduce_p", "create_token_p", "ragged_all_to_all_p"])
def test_a_primitive_without_an_operation_in_rune_cannot_run(name: str):
    with pytest.raises(MissingRule, match=f"cannot run {name.removesuffix('_p')}"):
        getattr(primitives, name).bind(*INTEGERS)


def test_abstract_values_are_types():
    aval: Any = jax.core.ShapedArray((2, 3), "float32")

    assert aval is jnp.ones((2, 3)).type
    assert [isinstance(v, jax.core.ShapedArray) for v in (aval, X)] == [True, False]
    assert mapped_aval(3, 1, aval).shape == (2,)
    assert unmapped_aval(4, 1, aval).shape == (2, 4, 3)
    assert jax.core.ShapedArray((2,), "int32").to_tangent_aval().dtype == rune.float0


def test_functions_are_wrapped_around_functions():
    @transformation
    def doubled(*args):
        out = yield args, {}
        yield 2 * out

    @transformation_with_aux
    def counted(*args):
        out = yield args, {}
        yield out, len(args)

    @transformation2
    def shifted(f, by, *args):
        return f(*(a + by for a in args))

    f, count = counted(shifted(doubled(wrap_init(lambda x, y: x * y)), 1))

    assert f.call_wrapped(2, 3) == 2 * 12
    assert count() == 2


def test_known_values_are_computed_and_unknown_ones_traced():
    unknown = partial_eval.PartialVal.unknown(jax.core.ShapedArray((3,), "float32"))
    known = partial_eval.PartialVal.known(jnp.float32(2))

    program, (double, total), _ = partial_eval.trace_to_jaxpr_nounits(
        wrap_init(lambda x, y: (2 * y, x + y)), [unknown, known]
    )

    assert double.get_known() == 4
    assert not total.is_known()
    assert total.get_aval().shape == (3,)
    assert len(program.equations) == 1


def test_functions_are_traced_and_their_dead_code_is_dropped():
    weights = jnp.asarray(X)
    function = wrap_init(lambda x, y: (x * weights, jnp.sin(y), x))
    aval = jax.core.ShapedArray((3,), "float32")

    jaxpr, out_avals, consts = partial_eval.trace_to_jaxpr_dynamic(function, [aval, aval])
    smaller, uses = partial_eval.dce_jaxpr(jaxpr, [False, True, False])
    same_inputs, _ = partial_eval.dce_jaxpr(jaxpr, [False, True, False], instantiate=True)

    assert out_avals == [aval, aval, aval]
    np.testing.assert_array_equal(jax.core.eval_jaxpr(jaxpr, consts, X, X)[0], X * X)
    assert uses == [False, True]
    assert (len(smaller.constvars), len(smaller.invars), len(smaller.eqns)) == (0, 1, 1)
    assert len(same_inputs.invars) == 2


class Tag(Primitive):
    """A subclass whose rules are methods, under names that rune's class might have used."""

    multiple_results = True

    def __init__(self):
        super().__init__("tag")
        ad.primitive_jvps[self] = self._jvp
        batching.primitive_batchers[self] = self._batch
        mlir.register_lowering(self, mlir.lower_fun(self._run, multiple_results=True))

    def impl(self, *operands):  # type: ignore[override]
        return self._run(*operands)

    def abstract_eval(self, *types):  # type: ignore[override]
        return list(types), jax.core.no_effects

    def _run(self, *operands):
        return [2 * x for x in operands]

    def _jvp(self, primals, tangents):
        return self.bind(*primals), [2 * t for t in tangents]

    def _batch(self, operands, dims):
        return self.bind(*operands), dims


def test_rules_may_be_methods_of_a_subclass():
    tag = Tag()

    def doubled(x):
        return tag.bind(x)[0]

    assert float(doubled(3.0)) == float(jax.jit(doubled)(3.0)) == 6.0
    assert float(jax.grad(doubled)(3.0)) == float(jax.jit(jax.grad(doubled))(3.0)) == 2.0
    np.testing.assert_array_equal(jax.vmap(doubled)(jnp.arange(3.0)), [0, 2, 4])
