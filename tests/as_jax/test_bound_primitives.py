"""Primitives are bound, and equations read, by JAX's names of their parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import primitives as p

X, V = np.arange(6, dtype=np.float32).reshape(2, 3) + 1, np.arange(5, dtype=np.float32) - 2
S = np.asarray([[3, 1], [1, 2]], np.float32)
W = np.asarray([300, 300, 1], np.float16)
AT, NEW = np.asarray([[0], [3], [11]], "int32"), np.asarray([9, 8, 7], np.float32)
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
SCATTERED: dict[str, Any] = {
    "dimension_numbers": lax.ScatterDimensionNumbers((), (0,), (0,)),
    "indices_are_sorted": False,
    "unique_indices": False,
    "mode": lax.GatherScatterMode.FILL_OR_DROP,
}
SOLVED: dict[str, Any] = {"left_side": False, "conjugate_a": False, "unit_diagonal": False}
IMAGE = np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1)
KERNEL = np.arange(8, dtype=np.float32).reshape(2, 2, 1, 2)
CALLS: dict[str, tuple[Callable[[], Any], Any]] = {
    "argmax": (lambda: p.argmax_p.bind(X, axes=(1,), index_dtype=np.dtype("int32")), X.argmax(1)),
    "argmin": (lambda: p.argmin_p.bind(X, axes=(0,), index_dtype=np.dtype("int32")), X.argmin(0)),
    "bitcast": (lambda: p.bitcast_convert_type_p.bind(V, new_dtype=np.dtype("int32")), V.view("int32")),
    "broadcast": (
        lambda: p.broadcast_in_dim_p.bind(V, shape=(2, 5), broadcast_dimensions=(1,), sharding=None),
        np.stack([V, V]),
    ),
    "clamp": (lambda: p.clamp_p.bind(np.float32(-1), V, np.float32(1)), V.clip(-1, 1)),
    "concatenate": (lambda: p.concatenate_p.bind(X, 2 * X, dimension=1), np.hstack([X, 2 * X])),
    "convert": (
        lambda: p.convert_element_type_p.bind(V, new_dtype=jnp.int32, weak_type=False, sharding=None),
        V.astype("int32"),
    ),
    "copy": (lambda: p.copy_p.bind(X), X),
    "dot_general": (
        lambda: p.dot_general_p.bind(
            X,
            X,
            dimension_numbers=(((1,), (1,)), ((), ())),
            precision=None,
            preferred_element_type=None,
            out_sharding=None,
        ),
        X @ X.T,
    ),
    "dynamic_slice": (lambda: p.dynamic_slice_p.bind(V, np.int32(2), slice_sizes=(2,)), V[2:4]),
    "integer_pow": (lambda: p.integer_pow_p.bind(X, y=3), X**3),
    "iota": (
        lambda: p.iota_p.bind(dtype=np.dtype("int32"), shape=(2, 3), dimension=1, sharding=None),
        np.indices((2, 3))[1],
    ),
    "negative": (lambda: p.neg_p.bind(X), -X),
    "pad": (lambda: p.pad_p.bind(V, np.float32(9), padding_config=((1, 2, 0),)), np.pad(V, (1, 2), constant_values=9)),
    "reduce_sum": (lambda: p.reduce_sum_p.bind(X, axes=(0,), out_sharding=None), X.sum(0)),
    "reshape": (lambda: p.reshape_p.bind(X, new_sizes=(3, 2), dimensions=None, sharding=None), X.reshape(3, 2)),
    "rev": (lambda: p.rev_p.bind(X, dimensions=(1,)), X[:, ::-1]),
    "select_n": (lambda: p.select_n_p.bind(X > 2, X, -X), np.where(X > 2, -X, X)),
    "slice": (lambda: p.slice_p.bind(X, start_indices=(0, 1), limit_indices=(2, 3), strides=None), X[:, 1:3]),
    "slice in steps": (lambda: p.slice_p.bind(V, start_indices=(0,), limit_indices=(5,), strides=(2,)), V[::2]),
    "sqrt": (lambda: p.sqrt_p.bind(X, accuracy=None), np.sqrt(X)),
    "conv_general_dilated": (
        lambda: p.conv_general_dilated_p.bind(
            IMAGE,
            KERNEL,
            window_strides=(1, 2),
            padding=((1, 0), (0, 1)),
            lhs_dilation=(1, 1),
            rhs_dilation=(2, 1),
            dimension_numbers=lax.ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 1, 2, 3)),
            feature_group_count=1,
            batch_group_count=1,
            precision=None,
            preferred_element_type=np.dtype("float32"),
            out_sharding=None,
        ),
        # By scipy.signal.correlate2d of the padded image with each dilated kernel, in steps of 2.
        np.asarray([[[[36, 20], [68, 32]], [[43, 25], [82, 42]]]], np.float32),
    ),
    "dot_general of a preferred type": (
        lambda: p.dot_general_p.bind(
            W,
            W,
            dimension_numbers=(((0,), (0,)), ((), ())),
            precision=lax.Precision.HIGHEST,
            preferred_element_type=np.dtype("float32"),
            out_sharding=None,
        ),
        np.float32(2 * 300.0**2 + 1),
    ),
    "eigh": (
        lambda: p.eigh_p.bind(S, lower=True, sort_eigenvalues=True, subset_by_index=None, algorithm=None)[1],
        np.linalg.eigvalsh(S),
    ),
    "gather": (
        lambda: p.gather_p.bind(
            X,
            np.asarray([[1], [0], [5]], "int32"),
            dimension_numbers=ROWS,
            slice_sizes=(1, 3),
            unique_indices=False,
            indices_are_sorted=False,
            mode=lax.GatherScatterMode.FILL_OR_DROP,
            fill_value=7,
        ),
        np.stack([X[1], X[0], np.full(3, 7, np.float32)]),
    ),
    "qr": (lambda: p.qr_p.bind(X, pivoting=False, full_matrices=False, use_magma=None)[0], np.linalg.qr(X)[0]),
    "scatter": (
        lambda: p.scatter_p.bind(V, AT, NEW, update_jaxpr=None, update_consts=(), **SCATTERED),
        np.asarray([9, -1, 0, 8, 2], np.float32),
    ),
    "scatter_add": (
        lambda: p.scatter_add_p.bind(V, AT, NEW, update_jaxpr=None, update_consts=(), **SCATTERED),
        np.asarray([7, -1, 0, 9, 2], np.float32),
    ),
    "sort": (lambda: p.sort_p.bind(-X, X, dimension=0, is_stable=True, num_keys=1)[1], X[::-1]),
    "svd": (
        lambda: p.svd_p.bind(X, full_matrices=False, compute_uv=True, subset_by_index=None, algorithm=None)[0],
        np.linalg.svd(X, compute_uv=False),
    ),
    "top_k": (lambda: p.top_k_p.bind(X, k=1, axis=0)[0], X[1:]),
    "triangular_solve": (
        lambda: p.triangular_solve_p.bind(S, X[:1, :2], **SOLVED, transpose_a=False, lower=False),
        np.linalg.solve(np.triu(S).T, X[0, :2])[None],
    ),
    "triangular_solve, transposed": (
        lambda: p.triangular_solve_p.bind(S, X[:1, :2], **SOLVED, transpose_a=True, lower=True),
        np.linalg.solve(np.tril(S), X[0, :2])[None],
    ),
    "squeeze": (lambda: p.squeeze_p.bind(X[:1], dimensions=(0,)), X[0]),
    "transpose": (lambda: p.transpose_p.bind(X, permutation=(1, 0)), X.T),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_primitive_is_bound_with_the_names_of_jax(name: str):
    call, expected = CALLS[name]

    np.testing.assert_allclose(call(), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda: call())(), expected, rtol=1e-6)


OVER_PAIRS: dict[str, Any] = {
    "window_dimensions": (2,),
    "window_strides": (1,),
    "padding": ((1, 0),),
    "base_dilation": (1,),
    "window_dilation": (1,),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "uint32"])
def test_windows_begin_with_the_identity_of_their_reduction(dtype: str):
    x = jnp.asarray([1, 3, 0, 2], dtype)

    for primitive, expected in (
        (p.reduce_window_max_p, [1, 3, 3, 2]),
        (p.reduce_window_min_p, [1, 1, 0, 0]),
        (p.reduce_window_sum_p, [1, 4, 3, 2]),
    ):
        result = primitive.bind(x, **OVER_PAIRS)
        assert (result.dtype, result.astype(float).tolist()) == (x.dtype, expected)


READ: dict[str, tuple[Callable[[Any], Any], Any, dict[str, Any]]] = {
    "argmax": (lambda x: lax.argmax(x, 1, jnp.int32), X, {"axes": (1,), "index_dtype": np.dtype("int32")}),
    "broadcast": (lambda x: lax.broadcast_in_dim(x, (2, 5), (1,)), V, {"broadcast_dimensions": (1,), "shape": (2, 5)}),
    "concatenate": (lambda x: lax.concatenate([x, x], 1), X, {"dimension": 1}),
    "convert": (
        lambda x: lax.convert_element_type(x, "int32"),
        V,
        {"new_dtype": np.dtype("int32"), "weak_type": False},
    ),
    "integer_pow": (lambda x: lax.integer_pow(x, 3), X, {"y": 3}),
    "pad": (lambda x: lax.pad(x, np.float32(0), ((1, 2, 0),)), V, {"padding_config": ((1, 2, 0),)}),
    "convolution": (
        lambda x: lax.conv_general_dilated(x, KERNEL, (1, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NCHW")),
        IMAGE,
        {
            "window_strides": (1, 2),
            "padding": ((0, 0), (0, 0)),
            "dimension_numbers": lax.ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 1, 2, 3)),
            "feature_group_count": 1,
            "batch_group_count": 1,
            "precision": None,
        },
    ),
    "gather": (
        lambda x: lax.gather(
            x, AT[:1], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 3), mode="fill", fill_value=7
        ),
        X,
        {
            "dimension_numbers": ROWS,
            "slice_sizes": (1, 3),
            "mode": lax.GatherScatterMode.FILL_OR_DROP,
            "fill_value": 7,
            "unique_indices": False,
        },
    ),
    "reshape": (lambda x: lax.reshape(x, (3, 2)), X, {"new_sizes": (3, 2), "dimensions": None}),
    "scatter": (
        lambda x: lax.scatter(x, AT, NEW, SCATTERED["dimension_numbers"], mode="clip"),
        V,
        {**SCATTERED, "mode": lax.GatherScatterMode.CLIP, "update_consts": ()},
    ),
    "sort": (
        lambda x: lax.sort((x, x), dimension=1, num_keys=2),
        X,
        {"dimension": 1, "num_keys": 2, "is_stable": True},
    ),
    "sum": (lambda x: lax.reduce_sum(x, (1,)), X, {"axes": (1,), "out_sharding": None}),
    "top_k": (lambda x: lax.top_k(x, 2), X, {"k": 2, "axis": 1}),
    "triangular_solve": (
        lambda x: lax.linalg.triangular_solve(x, x, left_side=True, lower=True),
        S,
        {"left_side": True, "lower": True, "transpose_a": False, "conjugate_a": False, "unit_diagonal": False},
    ),
    "rev": (lambda x: lax.rev(x, (0,)), X, {"dimensions": (0,)}),
    "slice": (
        lambda x: lax.slice(x, (0, 1), (2, 3)),
        X,
        {"start_indices": (0, 1), "limit_indices": (2, 3), "strides": (1, 1)},
    ),
}


@pytest.mark.parametrize("name", READ)
def test_an_equation_lists_its_parameters_by_the_names_of_jax(name: str):
    function, x, expected = READ[name]

    (equation,) = jax.make_jaxpr(function)(x).eqns

    assert {parameter: equation.params[parameter] for parameter in expected} == expected


def test_a_program_is_evaluated_by_binding_its_primitives():
    def f(x: Any) -> Any:
        total, _ = lax.scan(lambda c, a: (c + a, None), 0.0, x)
        return jnp.pad(jnp.concatenate([x, x[::-1]]), 1) ** 3 + total

    program = jax.make_jaxpr(f)(V)
    values = dict(zip(program.jaxpr.invars, [V], strict=True)) | dict(
        zip(program.jaxpr.constvars, program.consts, strict=True)
    )
    read = lambda atom: atom.val if hasattr(atom, "val") else values[atom]  # noqa: E731
    for equation in program.jaxpr.eqns:
        outs = equation.primitive.bind(
            *map(read, equation.invars), **equation.primitive.get_bind_params(equation.params)
        )
        values.update(zip(equation.outvars, outs if equation.primitive.multiple_results else [outs], strict=True))

    np.testing.assert_allclose(read(program.jaxpr.outvars[0]), f(V), rtol=1e-6)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a layout": (lambda: p.reshape_p.bind(X, new_sizes=(6,), dimensions=None, sharding="i"), "cannot say 'i'"),
    "a part of the eigenvalues": (
        lambda: p.eigh_p.bind(S, lower=True, sort_eigenvalues=True, subset_by_index=(0, 1), algorithm=None),
        "subset_by_index",
    ),
    "columns in another order": (
        lambda: p.qr_p.bind(X, pivoting=True, full_matrices=False, use_magma=None),
        "pivoting=True",
    ),
    "lanes that are the same": (
        lambda: jax.vmap(lambda x: lax.all_gather(x, "i", to="reduced"), axis_name="i")(X),
        "cannot give a result that is 'reduced'",
    ),
    "another class of arrays": (
        lambda: jnp.asarray(X).view(type=cast(Any, np.ndarray)),
        "there is one class of arrays",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_parameter_that_would_change_the_result_is_refused(name: str):
    call, message = REFUSED[name]

    with pytest.raises(ValueError, match=message):
        call()
