"""Custom interpreters, as in JAX's page "Writing custom Jaxpr interpreters".

Three are written here: one binds each equation again unchanged, one only with the parameters of
JAX's equations, and one descends into the programs that equations hold, by JAX's names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend import core
from jax.extend.core import primitives as p

X = np.linspace(0.25, 1.75, 12, dtype=np.float32).reshape(3, 4)
A = np.asarray([[4, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 2]], np.float32)
IMAGE = np.sin(np.arange(50, dtype=np.float32)).reshape(1, 2, 5, 5)
KERNEL = np.cos(np.arange(54, dtype=np.float32)).reshape(3, 2, 3, 3)
AT = np.asarray([2, 0], "int32")


@jax.custom_jvp
def softened(x: Any) -> Any:
    return jnp.log1p(jnp.exp(x))


softened.defjvp(lambda primals, tangents: (softened(*primals), tangents[0] * jax.nn.sigmoid(primals[0])))


@jax.custom_vjp
def clipped(x: Any) -> Any:
    return 2 * x


clipped.defvjp(lambda x: (2 * x, x), lambda x, ct: (jnp.clip(ct, -1, 1),))

FUNCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "abs": (jnp.abs, X),
    "all": (lambda x: (x > 1).all(0), X),
    "any": (lambda x: (x > 1).any(1), X),
    "arctan2": (lambda x: jnp.arctan2(x, x[::-1]), X),
    "argmax": (lambda x: x.argmax(0), X),
    "argmin": (lambda x: x.argmin(1), X),
    "argsort": (lambda x: jnp.argsort(x, axis=0), X),
    "astype": (lambda x: x.astype(int), X),
    "bits": (lambda x: lax.bitcast_convert_type(x, jnp.int32), X),
    "broadcast": (lambda x: jnp.broadcast_to(x, (2, 3, 4)), X),
    "checkpoint": (jax.checkpoint(jnp.sin), X),
    "cholesky": (jnp.linalg.cholesky, A),
    "clamp": (lambda x: lax.clamp(0.5, x, 1.0), X),
    "concatenate": (lambda x: jnp.concatenate([x, 2 * x], 1), X),
    "cond": (lambda x: lax.cond(x[0, 0] > 1, jnp.sin, jnp.cos, x), X),
    "convolution": (lambda x: lax.conv_general_dilated(x, KERNEL, (1, 2), "SAME"), IMAGE),
    "convolution in groups": (
        lambda x: lax.conv_general_dilated(x, KERNEL[:2, :1], (1, 1), "VALID", feature_group_count=2),
        IMAGE,
    ),
    "cumprod": (lambda x: jnp.cumprod(x, 1), X),
    "cumsum": (lambda x: lax.cumsum(x, 1, reverse=True), X),
    "custom_jvp": (softened, X),
    "custom_vjp": (clipped, X),
    "det": (jnp.linalg.det, A),
    "diagonal": (jnp.diagonal, A),
    "dot": (lambda x: x @ x.T, X),
    "dot in batches": (lambda x: jnp.einsum("bi,bi->b", x, x), X),
    "dynamic_slice": (lambda x: lax.dynamic_slice(x, (1, 2), (2, 2)), X),
    "dynamic_update_slice": (lambda x: lax.dynamic_update_slice(x, x[:2, :2], (1, 2)), X),
    "eigh": (lambda x: jnp.linalg.eigh(x)[0], A),
    "erf": (jax.scipy.special.erf, X),
    "fft": (lambda x: jnp.fft.fft(x), X),
    "gather": (lambda x: x[AT], X),
    "gelu": (jax.nn.gelu, X),
    "grad": (jax.grad(lambda x: (jnp.sin(x) * x).sum()), X),
    "iota": (lambda x: x + jnp.arange(4), X),
    "jit": (jax.jit(lambda x: jnp.sin(x) + 1), X),
    "layer norm": (lambda x: (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5), X),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, 1), X),
    "lu": (lambda x: jax.scipy.linalg.lu_factor(x)[0], A),
    "max": (lambda x: x.max(0), X),
    "min": (lambda x: x.min((0, 1)), X),
    "pad": (lambda x: lax.pad(x, np.float32(0), ((1, -1, 0), (0, 0, 1))), X),
    "pool": (lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "SAME"), IMAGE),
    "power": (lambda x: x**3 + x**0.5, X),
    "prod": (lambda x: x.prod(1), X),
    "qr": (lambda x: jnp.linalg.qr(x)[1], A),
    "random": (lambda x: x + jax.random.normal(jax.random.key(3), (3, 4)), X),
    "relu": (jax.nn.relu, X),
    "reshape": (lambda x: x.reshape(2, 6), X),
    "reverse": (lambda x: lax.rev(x, (0, 1)), X),
    "round": (lambda x: jnp.round(x) + jnp.floor(x), X),
    "scan": (lambda x: lax.scan(lambda c, row: (c + row, c * row), x[0], x), X),
    "scatter": (lambda x: x.at[AT].set(1.0), X),
    "scatter_add": (lambda x: x.at[:, AT].add(1.0), X),
    "scatter_max": (lambda x: x.at[AT].max(1.0), X),
    "softmax": (lambda x: jax.nn.softmax(x, 0), X),
    "solve": (lambda x: jnp.linalg.solve(x, x[0]), A),
    "solve of a triangle": (lambda x: lax.linalg.triangular_solve(x, x, lower=True), A),
    "sort": (lambda x: jnp.sort(x, axis=0), -X),
    "sort of pairs": (lambda x: lax.sort((jnp.round(x), x), dimension=0, num_keys=2), -X),
    "split": (lambda x: jnp.split(x, 2, 1), X),
    "squeeze": (lambda x: lax.squeeze(x[None], (0,)), X),
    "steps": (lambda x: x[::2, 3:0:-1], X),
    "svd": (lambda x: jnp.linalg.svd(x, compute_uv=False), A),
    "switch": (lambda x: lax.switch(jnp.argmax(x[0]), [jnp.sin, jnp.cos, jnp.tan], x), X),
    "take": (lambda x: jnp.take(x, jnp.asarray([5, 1]), axis=0), X),
    "take_along_axis": (lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1), -X),
    "top_k": (lambda x: lax.top_k(x, 2), X),
    "transpose": (lambda x: x.T, X),
    "vmap": (jax.vmap(lambda row: jnp.outer(row, row).sum(0)), X),
    "where": (lambda x: jnp.where(x > 1, x, -x), X),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 90, lambda c: c + x, x), X),
}
Rule = Callable[..., Any]


def interpreted(function: Callable[..., Any], bind: Rule, x: Any) -> list[Any]:
    """The leaves of function(x), each equation of its program computed by `bind`."""
    program = jax.make_jaxpr(function)(x)
    return evaluated(program.jaxpr, program.consts, [x], bind)


def evaluated(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], bind: Rule) -> list[Any]:
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    read = lambda atom: atom.val if isinstance(atom, core.Literal) else values[atom]  # noqa: E731
    for equation in jaxpr.eqns:
        outs = bind(equation, [read(atom) for atom in equation.invars])
        values.update(zip(equation.outvars, outs if equation.primitive.multiple_results else [outs], strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def again(equation: Any, operands: Sequence[Any]) -> Any:
    return equation.primitive.bind(*operands, **equation.params)


# The parameters of JAX's equations, and of how many operands.
SAID: Mapping[Any, str] = {
    p.argmax_p: "axes index_dtype",
    p.argmin_p: "axes index_dtype",
    p.bitcast_convert_type_p: "new_dtype",
    p.broadcast_in_dim_p: "shape broadcast_dimensions sharding",
    p.concatenate_p: "dimension",
    p.conv_general_dilated_p: "window_strides padding lhs_dilation rhs_dilation dimension_numbers "
    "feature_group_count batch_group_count precision preferred_element_type out_sharding",
    p.convert_element_type_p: "new_dtype weak_type",
    p.dot_general_p: "dimension_numbers precision preferred_element_type out_sharding",
    p.dynamic_slice_p: "slice_sizes",
    p.gather_p: "dimension_numbers slice_sizes unique_indices indices_are_sorted mode fill_value",
    p.integer_pow_p: "y",
    p.iota_p: "dtype shape dimension sharding",
    p.jit_p: "jaxpr name inline keep_unused",
    p.pad_p: "padding_config",
    p.reduce_sum_p: "axes out_sharding",
    p.reshape_p: "new_sizes dimensions sharding",
    p.rev_p: "dimensions",
    p.scan_p: "reverse length jaxpr num_consts num_carry unroll",
    p.scatter_add_p: "update_consts dimension_numbers indices_are_sorted unique_indices mode",
    p.scatter_max_p: "update_consts dimension_numbers indices_are_sorted unique_indices mode",
    p.scatter_p: "update_consts dimension_numbers indices_are_sorted unique_indices mode",
    p.slice_p: "start_indices limit_indices strides",
    p.sort_p: "dimension is_stable num_keys",
    p.top_k_p: "k axis",
    p.transpose_p: "permutation",
    p.triangular_solve_p: "left_side lower transpose_a conjugate_a unit_diagonal",
}


def by_names(equation: Any, operands: Sequence[Any]) -> Any:
    """The equation, bound only with the parameters of JAX's equations."""
    if equation.primitive not in SAID:
        return again(equation, operands)
    params = {name: equation.params[name] for name in SAID[equation.primitive].split()}
    return equation.primitive.bind(*(operands[:2] if equation.primitive is p.gather_p else operands), **params)


def closed(program: Any) -> Callable[..., list[Any]]:
    return lambda *args: evaluated(program.jaxpr, program.consts, args, inside)


def _scan(*args: Any, params: Any) -> list[Any]:
    consts, carries = params["num_consts"], params["num_consts"] + params["num_carry"]
    body, count = closed(params["jaxpr"]), params["num_carry"]

    def step(carry: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        outs = body(*args[:consts], *carry, *row)
        return outs[:count], outs[count:]

    carry, rows = lax.scan(step, [*args[consts:carries]], [*args[carries:]], params["length"], params["reverse"])
    return [*carry, *rows]


def _while(*args: Any, params: Any) -> list[Any]:
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    condition, body = closed(params["cond_jaxpr"]), closed(params["body_jaxpr"])
    return lax.while_loop(
        lambda carry: condition(*args[:first], *carry)[0],
        lambda carry: body(*args[first:second], *carry),
        [*args[second:]],
    )


HELD: Mapping[Any, Callable[..., list[Any]]] = {
    p.cond_p: lambda i, *args, params: lax.switch(i, [closed(b) for b in params["branches"]], *args),
    p.custom_jvp_call_p: lambda *args, params: closed(params["call_jaxpr"])(*args),
    p.custom_vjp_call_p: lambda *args, params: closed(params["call_jaxpr"])(*args),
    p.jit_p: lambda *args, params: closed(params["jaxpr"])(*args),
    p.remat_p: lambda *args, params: evaluated(params["jaxpr"], (), args, inside),
    p.scan_p: _scan,
    p.while_p: _while,
}


def inside(equation: Any, operands: Sequence[Any]) -> Any:
    """The programs that an equation holds are interpreted, too."""
    if equation.primitive in HELD:
        return HELD[equation.primitive](*operands, params=equation.params)
    return again(equation, operands)


@pytest.mark.parametrize("bind", [again, by_names, inside])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_program_that_is_interpreted_answers_as_its_function(name: str, bind: Rule):
    function, x = FUNCTIONS[name]
    expected = jax.tree.leaves(function(jnp.asarray(x)))

    for one in (interpreted(function, bind, x), jax.jit(lambda x: interpreted(function, bind, x))(x)):
        assert [(y.shape, y.dtype) for y in one] == [(y.shape, y.dtype) for y in expected]
        for y, z in zip(one, expected, strict=True):
            np.testing.assert_allclose(y, z, rtol=2e-5, atol=1e-6)


def test_many_kinds_of_equations_are_interpreted():
    kinds = {e.primitive for f, x in FUNCTIONS.values() for e in jax.make_jaxpr(f)(x).eqns}

    assert len(FUNCTIONS) >= 60
    assert set(HELD) <= kinds
    assert set(SAID) <= kinds


def test_a_jaxpr_with_other_equations_computes_by_them():
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) + AT.sum())(1.5)
    opposite = [e.replace(primitive=p.cos_p) if e.primitive is p.sin_p else e for e in closed.jaxpr.eqns]

    changed = closed.replace(jaxpr=closed.jaxpr.replace(eqns=opposite))

    np.testing.assert_allclose(core.jaxpr_as_fun(changed)(1.5)[0], np.cos(1.5) + 2, rtol=1e-6)
    np.testing.assert_allclose(core.jaxpr_as_fun(closed)(1.5)[0], np.sin(1.5) + 2, rtol=1e-6)


def test_a_jaxpr_may_have_other_inputs_outputs_and_constants():
    scale = jnp.array([2.0, 3.0])
    closed = jax.make_jaxpr(lambda x, y: (x * scale, y))(jnp.ones(2), 1.0)
    (x, y), (product, _) = closed.jaxpr.invars, closed.jaxpr.outvars

    swapped = closed.replace(jaxpr=closed.jaxpr.replace(invars=[y, x], outvars=[y, product]), consts=[scale * 10])
    first, second = core.jaxpr_as_fun(swapped)(5.0, jnp.ones(2))

    assert (float(first), second.tolist()) == (5.0, [20.0, 30.0])


def test_a_program_without_changes_is_equal_to_itself():
    closed = jax.make_jaxpr(lambda x: x * jnp.array([2.0, 3.0]))(1.0)

    assert str(closed.replace()) == str(closed)
    assert str(closed.jaxpr.replace(effects=closed.effects, debug_info=None)) == str(closed.jaxpr)


def test_a_jaxpr_says_which_function_was_traced():
    info = jax.make_jaxpr(softened_twice)(1.0, 2.0).jaxpr.debug_info

    assert info.func_src_info == "softened_twice"
    assert (len(info.arg_names), len(info.result_paths)) == (2, 1)


def softened_twice(x: Any, y: Any) -> Any:
    return jnp.log1p(jnp.exp(x + y))
