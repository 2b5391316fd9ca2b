"""JAX's smaller modules under as_jax: each name is the corresponding function of rune."""

from __future__ import annotations

from typing import Any

import jax
import jax.ad_checkpoint
import jax.dlpack
import jax.export
import jax.flatten_util
import jax.image
import jax.monitoring
import jax.numpy as jnp
import jax.profiler
import jax.ref
import jax.scipy.sparse.linalg
import jax.test_util
import numpy as np
import pytest
from jax.experimental import checkify, multihost_utils, sparse
from jax.experimental.custom_partitioning import custom_partitioning
from jax.experimental.ode import odeint
from jax.experimental.pjit import pjit
from jax.experimental.shard_map import shard_map

import rune


def test_modules_that_rune_has_under_these_names():
    assert jax.flatten_util.ravel_pytree is rune.flatten_util.ravel_pytree
    assert jax.test_util.check_grads is rune.test_util.check_grads
    assert jax.ad_checkpoint.print_saved_residuals is rune.debug.print_saved_residuals
    assert jax.ad_checkpoint.checkpoint_policies is rune.checkpoint_policies
    assert jax.image.resize is rune.image.resize
    assert jax.scipy.sparse.linalg.cg is rune.scipy.sparse.linalg.cg
    assert jax.profiler.trace is rune.profiler.trace


def test_dlpack_takes_what_has_the_protocol_and_no_capsules():
    x = np.arange(3, dtype=np.float32)

    np.testing.assert_array_equal(jax.dlpack.from_dlpack(x), x)
    with pytest.raises(TypeError, match="__dlpack__"):
        jax.dlpack.from_dlpack(jnp.arange(3).__dlpack__())


@pytest.mark.parametrize(("dtype", "answer"), [("bfloat16", True), (bool, True), ("int64", True), (jnp.int4, False)])
def test_dlpack_supports_its_dtypes(dtype: Any, answer: bool):
    assert jax.dlpack.is_supported_dtype(jnp.dtype(dtype)) is answer


def test_the_older_shard_map_checks_by_its_older_name():
    mesh, spec = jax.make_mesh((1,), ("x",)), jax.P("x")
    x = jnp.arange(3.0)

    np.testing.assert_array_equal(shard_map(lambda x: jax.lax.psum(x, "x"), mesh, spec, jax.P())(x), x)
    np.testing.assert_array_equal(shard_map(jnp.negative, mesh, spec, jax.P(), check_rep=False)(x), -x)
    with pytest.raises(ValueError, match="out_specs"):
        shard_map(jnp.negative, mesh, spec, jax.P())(x)


def test_modules_of_experiments():
    assert sparse.BCOO is rune.sparse.BCOO
    assert checkify.checkify is rune.checkify.checkify
    assert odeint is rune.scipy.integrate.odeint
    assert pjit is jax.jit
    assert jax.new_ref is rune.new_ref
    assert jax.ref.swap is rune.ref.swap


def test_one_process_has_nothing_to_wait_for():
    multihost_utils.sync_global_devices("here")
    multihost_utils.assert_equal(jnp.ones(2))

    assert multihost_utils.process_allgather(jnp.ones(2)).shape == (1, 2)
    assert multihost_utils.process_allgather(jnp.ones(2), tiled=True).shape == (2,)
    assert multihost_utils.broadcast_one_to_all({"a": 1})["a"] == 1


def test_the_part_of_one_process_is_the_array():
    mesh, x = jax.make_mesh((1,), ("x",)), {"a": jnp.arange(4.0), "b": (jnp.ones(2),)}
    specs = {"a": jax.P("x"), "b": jax.P()}

    parts = multihost_utils.host_local_array_to_global_array(x, mesh, specs)
    back = multihost_utils.global_array_to_host_local_array(parts, mesh, jax.P())

    assert [a.sharding.spec for a in jax.tree.leaves(parts)] == [jax.P("x"), jax.P()]
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), x, back))
    with pytest.raises(ValueError, match="cannot lay out by None"):
        multihost_utils.host_local_array_to_global_array(x, mesh, None)


REFUSED = {
    "mlir_module": lambda: jax.export.export(jax.jit(jnp.sin))(1.0).mlir_module(),
    "custom_partitioning": lambda: custom_partitioning(jnp.sin),
    "rbg": lambda: jax.random.key(0, impl="rbg"),
    "unsafe_rbg": lambda: jax.random.PRNGKey(0, impl="unsafe_rbg"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_features_of_xla_are_refused_by_name(name: str):
    with pytest.raises(ValueError, match=name):
        REFUSED[name]()


def test_events_that_a_library_records_reach_the_listeners():
    events: list[Any] = []

    def listen(*event: Any, **details: Any) -> None:
        events.append((event, details))

    jax.monitoring.register_event_listener(listen)
    jax.monitoring.register_scalar_listener(listen)
    jax.monitoring.record_event("/a", kind=1)
    jax.monitoring.record_scalar("/b", 2.0)
    jax.monitoring.record_event_duration_secs("/c", 3.0)
    jax.monitoring.unregister_event_listener(listen)
    jax.monitoring.record_event("/d")
    jax.monitoring.clear_event_listeners()

    assert events == [(("/a",), {"kind": 1}), (("/b", 2.0), {})]
    with pytest.raises(ValueError, match="cannot unregister"):
        jax.monitoring.unregister_scalar_listener(listen)


@pytest.mark.parametrize("value", [None, [1.0, 2.0], [[1], [2]], ()])
def test_sizes_of_lists_and_none_are_those_of_numpy_with_a_warning(value: Any):
    with pytest.warns(DeprecationWarning, match="requires ndarray or scalar"):
        answers = jnp.shape(value), jnp.ndim(value), jnp.size(value)

    assert answers == (np.shape(value), np.ndim(value), np.size(value))


@pytest.mark.parametrize("value", ["", "abc", b"abc", np.array(["a", "bc"]), np.array([None, 3], object)])
def test_sizes_of_texts_and_objects_are_those_of_numpy(value: Any):
    assert (jnp.shape(value), jnp.ndim(value), jnp.size(value)) == (np.shape(value), np.ndim(value), np.size(value))


def test_a_reshape_of_an_array_of_numpy_is_one_within_jit_too():
    def is_in_support(x: Any) -> Any:
        host = jnp.reshape(np.arange(6.0), (2, -1), order="F")
        assert isinstance(host, np.ndarray)
        assert isinstance(jnp.reshape(x, (2, 3)), jax.Array)
        return x if host.all() else -x

    assert jax.jit(is_in_support)(jnp.ones(6))[0] == -1.0
    assert jnp.reshape(np.arange(6.0), (2, 3), copy=True).dtype == np.float64


def test_a_reshape_that_would_lose_the_mask_of_a_masked_array_is_refused():
    with pytest.raises(TypeError, match="cannot take MaskedArray as an array"):
        jnp.reshape(np.ma.masked_array([1.0, 2.0], mask=[False, True]), (2, 1))


def test_ndarray_is_the_class_array():
    assert jnp.ndarray is jax.Array
    assert jax.jit(lambda x: isinstance(x, jnp.ndarray))(1.0)
    assert isinstance(jax.random.key(0), jnp.ndarray)
    assert not isinstance(np.ones(2), jnp.ndarray)
