"""Results for names that jax 0.10.2 cannot answer on a CPU, or answers in its own words."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import hijax
from jax.extend import core, linear_util
from jax.interpreters import ad, batching, mlir, partial_eval

from rune.errors import ArgumentError

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, 7.0]], np.float32)


def test_a_scaled_product_is_that_of_scaled_operands():
    a, b = np.ones((1, 3, 4), np.float32), np.full((1, 2, 4), 2.0, np.float32)

    product = jax.nn.scaled_matmul(a, b, np.full((1, 3, 1), 3, np.float32), np.full((1, 2, 1), 5, np.float32))

    np.testing.assert_allclose(product, np.full((1, 3, 2), 4 * 2 * 3 * 5))


def test_numbers_are_read_from_iterators_and_from_files(tmp_path: Any):
    X.tofile(tmp_path / "raw")

    assert jnp.fromiter((2 * k for k in range(3)), "int32").tolist() == [0, 2, 4]
    assert jnp.fromfile(tmp_path / "raw", "float32", 4).tolist() == X.ravel()[:4].tolist()


def test_a_lane_is_given_to_all():
    lanes = jax.vmap(lambda x: jax.lax.pbroadcast(x, "i", 1), axis_name="i")(X)

    np.testing.assert_array_equal(lanes, X[[1, 1]])


def test_a_reference_of_a_type_holds_zeros_and_may_be_freed():
    for module in (jax, jax.ref):
        ref = module.empty_ref(jax.typeof(jnp.asarray(X)))

        assert ref[...].shape == X.shape
        assert module.free_ref(ref) is None


def test_a_ufunc_counts_its_results_among_its_arguments_as_numpys_does():
    assert jnp.add.nargs == np.add.nargs == 3
    assert jnp.frompyfunc(lambda x, y: x, 2, 1).nargs == 3


def test_a_rotation_has_its_quaternion():
    rotation = import_module("jax.scipy.spatial.transform").Rotation.from_quat(jnp.array([0.0, 3.0, 0.0, 4.0]))

    np.testing.assert_allclose(rotation.quat, [0, 0.6, 0, 0.8], rtol=1e-6)


def test_a_compiled_function_has_an_executable_of_the_executor():
    assert jax.jit(lambda x: 2 * x).lower(X).compile().runtime_executable() is not None


def test_the_flags_of_absl_are_not_registered():
    with pytest.raises(ArgumentError, match="cannot register options with absl"):
        jax.config.config_with_absl()


def test_classes_of_mutable_values_work_with_isinstance():
    kinds = (hijax.AvalMutableQDD, hijax.AvalQDD, hijax.HiPrimitive, hijax.MutableHiType)

    assert not any(isinstance(jnp.asarray(X), kind) for kind in kinds)
    assert callable(hijax.aval_method)
    assert callable(hijax.aval_property)
    hijax.control_flow_allowed_effects.add_type(int)


def test_a_call_is_that_of_the_wrapped_function():
    assert core.call_impl(linear_util.wrap_init(lambda x: x + 1, debug_info=None), 3) == 4


def test_traces_are_distinguished_by_tags_and_by_their_values():
    assert core.TraceTag() != core.TraceTag()
    assert core.find_top_trace([jnp.asarray(X)]) is not None


def test_a_joint_tangent_rule_receives_the_result():
    p = core.Primitive("square_of_test")
    p.def_impl(lambda x: x * x)
    p.def_abstract_eval(lambda x: x)
    ad.defjvp2(p, lambda t, answer, x: 2 * t * answer / x)

    np.testing.assert_allclose(jax.jvp(p.bind, (3.0,), (1.0,))[1], 6.0)


def test_lanes_are_repeated_along_a_new_axis():
    np.testing.assert_array_equal(batching.broadcast(jnp.asarray(X), 2, 1, None), np.stack([X, X], 1))


def test_a_traced_value_is_not_one_of_an_older_interpreter():
    classes = (partial_eval.DynamicJaxprTracer, partial_eval.JaxprTracer)
    outcomes: list[list[bool]] = []
    jax.jit(lambda x: outcomes.append([isinstance(x, c) for c in classes]) or x)(X)

    assert outcomes == [[True, False]]


def test_a_lowering_calls_python_by_a_callback():
    aval: Any = jax.typeof(jnp.asarray(X))
    context = mlir.LoweringRuleContext(core.Primitive("double_of_test"), (aval,), (aval,))
    results, *_ = mlir.emit_python_callback(
        context, lambda x: (2 * x,), None, [jnp.asarray(X)], [aval], [aval], has_side_effect=False
    )

    np.testing.assert_array_equal(results[0], 2 * X)
