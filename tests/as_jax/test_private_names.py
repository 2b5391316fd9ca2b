"""Private modules of JAX have the names that libraries take from them, with their meaning."""

from __future__ import annotations

import inspect
import pickle
import sys
from typing import Any

import jax
import jax._src.dispatch
import jax._src.dtypes
import jax._src.traceback_util
import jax._src.tree_util
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax._src.core import is_constant_dim
from jax._src.public_test_util import check_close
from jax.api_util import flatten_axes
from jax.custom_derivatives import zero_from_primal
from jax.interpreters import ad, pxla

import rune
from rune.random.sampler import Sampler


def test_frames_of_a_file_may_be_excluded():
    names: dict[str, Any] = {"sys": sys}
    exec(compile("def frame(): return sys._getframe()", "layers.py", "exec"), names)
    frame = names["frame"]()

    assert jax._src.traceback_util.include_frame(frame)
    jax._src.traceback_util.register_exclusion("layers.py")
    assert not jax._src.traceback_util.include_frame(frame)


def test_dtypes_without_a_common_one_raise_its_error():
    with jax.numpy_dtype_promotion("strict"), pytest.raises(jax._src.dtypes.TypePromotionError):
        jnp.add(jnp.ones(2, jnp.float16), jnp.ones(2, jnp.int32))


def test_the_module_of_dtypes_has_the_public_names():
    names = "bfloat16 canonicalize_dtype extended finfo float0 iinfo issubdtype itemsize_bits prng_key result_type"

    for name in [*names.split(), "scalar_type_of"]:
        assert getattr(jax._src.dtypes, name) is getattr(jax.dtypes, name)


def test_axes_stand_for_all_leaves_below_them():
    structure = jax.tree.structure(({"a": 0, "b": (0, 0)}, 0, None))

    assert flatten_axes("f", structure, 1) == [1, 1, 1, 1]
    assert flatten_axes("f", structure, ({"a": None, "b": 2}, 0, None)) == [None, 2, 2, 0]
    assert flatten_axes("f", structure, ({"a": 0, "b": (1, None)}, 3, 0)) == [0, 1, None, 3]
    with pytest.raises(ValueError, match="f: cannot use"):
        flatten_axes("f", structure, ({"a": 0, "b": (1, 2, 3)}, 3, 0))


def test_waiting_for_tokens_waits_for_effects():
    assert jax._src.dispatch.wait_for_tokens is jax.effects_barrier


def test_an_array_of_rank_0_is_a_constant_of_a_jaxpr():
    scale = jnp.array(2.0)

    assert [np.asarray(c) for c in jax.make_jaxpr(lambda x: x * scale)(1.0).consts] == [2.0]
    assert len(jax.make_jaxpr(lambda x: x * 2.0)(1.0).consts) == 0


def test_a_symbolic_zero_is_a_tree_without_leaves():
    zero = ad.Zero(jnp.ones(3).aval)
    leaves, structure = jax.tree.flatten(zero)

    assert leaves == []
    assert jax.tree.unflatten(structure, []).aval == zero.aval


def test_the_zero_of_a_tree_is_a_tree_of_zeros():
    zeros = zero_from_primal({"x": jnp.ones(2), "n": jnp.array(3)})

    np.testing.assert_array_equal(zeros["x"], [0, 0])
    assert zeros["n"].dtype == jax.dtypes.float0


def test_a_dtype_is_numpys_class():
    assert jnp.dtype is np.dtype


@pytest.mark.parametrize("node", [{"a": 1, "b": 2}, [3, 4], (5,), jax.ShapeDtypeStruct])
def test_the_registry_flattens_and_rebuilds_nodes_by_their_class(node: Any):
    registry = jax._src.tree_util._registry
    if isinstance(node, type):
        with pytest.raises(KeyError):
            registry[node]
        return
    entry = registry[type(node)]
    children, data = entry.to_iter(node)

    assert entry.from_iter(data, jax.tree.map(lambda x: x * 2, list(children))) == jax.tree.map(lambda x: x * 2, node)


def test_a_sampler_is_a_function_that_can_be_pickled():
    samplers = [name for name, x in vars(rune.random).items() if isinstance(x, Sampler)]

    assert "normal" in samplers
    for name in samplers:
        sampler = getattr(jax.random, name)

        assert inspect.isfunction(sampler), name
        assert pickle.loads(pickle.dumps(sampler)) is sampler
        assert next(iter(inspect.signature(sampler).parameters)) == "key"


@pytest.mark.parametrize(
    ("dtype", "inexact", "complex_dtype"),
    [
        ("bool", "float32", "complex64"),
        ("int16", "float32", "complex64"),
        ("int64", "float64", "complex128"),
        ("float16", "float16", "complex64"),
        ("float64", "float64", "complex128"),
        ("complex64", "complex64", "complex64"),
        ("complex128", "complex128", "complex128"),
    ],
)
def test_each_dtype_has_an_inexact_and_a_complex_one(dtype: str, inexact: str, complex_dtype: str):
    assert jax._src.dtypes.to_inexact_dtype(dtype) == inexact
    assert jax._src.dtypes.to_complex_dtype(dtype) == complex_dtype


@pytest.mark.parametrize(
    ("dtype", "bound"), [("float16", 1e-3), ("bfloat16", 1e-2), ("float32", 1e-6), ("complex64", 1e-6)]
)
def test_trees_are_close_within_the_bound_of_their_dtype(dtype: str, bound: float):
    ones = {"x": jnp.ones((2, 3), dtype)}  # a bound grows with the size

    check_close(ones, jax.tree.map(lambda x: x + 3 * bound, ones), atol=0.0)
    with pytest.raises(AssertionError, match="as expected"):
        check_close(ones, jax.tree.map(lambda x: x + 20 * bound, ones), atol=0.0, err_msg="as expected")


def test_bounds_of_close_trees_may_be_a_number_or_one_for_each_dtype():
    check_close(jnp.ones(3), jnp.full(3, 1.25), rtol=0.1)
    check_close(jnp.ones(3), jnp.full(3, 1.25), rtol={"float32": 0.1, "float64": 0.0})
    with pytest.raises(AssertionError):
        check_close(jnp.ones(3), jnp.full(3, 1.25), rtol={"float64": 0.1})


def test_integers_are_close_if_they_are_equal_and_shapes_have_to_agree():
    check_close(jnp.arange(3), np.arange(3))
    with pytest.raises(AssertionError):
        check_close(jnp.arange(3), np.array([0, 1, 3]))
    with pytest.raises(AssertionError, match="shapes"):
        check_close(jnp.ones(3), jnp.ones((1, 3)))


def test_a_size_is_constant_if_it_is_a_number():
    (n,) = export.symbolic_shape("n")
    answers: list[bool] = []
    jax.jit(lambda x: answers.append(is_constant_dim(x)))(3)

    assert [is_constant_dim(d) for d in (7, np.int32(7), jnp.int32(7), n - n + 7)] == [True] * 4
    assert [is_constant_dim(d) for d in (n, 7.0, None, np.ones(2, int), jnp.ones(2, int))] == [False] * 5
    assert answers == [False]


def test_the_mesh_of_a_block_is_a_resource_of_the_thread():
    mesh = jax.make_mesh((1,), ("x",))

    with mesh:
        within = pxla.thread_resources.env.physical_mesh

    assert within == mesh
    assert not within.empty
    assert pxla.thread_resources.env.physical_mesh.empty
    assert pxla.thread_resources.env.physical_mesh.axis_names == ()
