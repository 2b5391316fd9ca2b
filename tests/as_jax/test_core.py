"""jax.core, jax.extend.core, jax.errors, jax.stages and devices, as programs use them."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.core
import jax.errors as jax_errors
import jax.extend.core as jex
import jax.numpy as jnp
import jax.stages as jax_stages
import numpy as np
import pytest
from jax.custom_batching import custom_vmap, sequential_vmap
from jax.custom_derivatives import SymbolicZero, custom_vjp_primal_tree_values, zero_from_primal

INVERSES = {"exp": jnp.log, "tanh": jnp.arctanh}


def inverse(function: Any) -> Any:
    """The inverse of a function, found by walking its jaxpr backwards."""

    def inverted(*args: Any) -> Any:
        closed_jaxpr = jax.make_jaxpr(function)(*args)
        jaxpr = closed_jaxpr.jaxpr
        values = dict(zip(jaxpr.outvars, args, strict=True))
        values.update(zip(jaxpr.constvars, closed_jaxpr.consts, strict=True))
        for equation in jaxpr.eqns[::-1]:
            operands = [v.val if type(v) is jex.Literal else values[v] for v in equation.outvars]
            values[equation.invars[0]] = INVERSES[equation.primitive.name](*operands)
        return values[jaxpr.invars[0]]

    return inverted


def test_an_interpreter_of_jaxprs_inverts_a_function_under_transformations():
    f = inverse(lambda x: jnp.exp(jnp.tanh(x)))
    y = np.exp(np.tanh(np.array([0.1, 0.3, 0.7], np.float32)))

    np.testing.assert_allclose(jax.jit(jax.vmap(f))(y), [0.1, 0.3, 0.7], rtol=1e-5)
    derivative = 1 / (y[0] * (1 - np.log(y[0]) ** 2))
    np.testing.assert_allclose(jax.grad(f)(y[0]), derivative, rtol=1e-5)


def test_isinstance_distinguishes_open_from_closed_jaxprs():
    closed_jaxpr: Any = jax.make_jaxpr(lambda x: jax.jit(jnp.sin)(x))(1.0)
    open_jaxpr: Any = closed_jaxpr.jaxpr

    assert [isinstance(p, jex.ClosedJaxpr) for p in (closed_jaxpr, open_jaxpr)] == [True, False]
    assert [isinstance(p, jex.Jaxpr) for p in (closed_jaxpr, open_jaxpr)] == [False, True]
    assert all(isinstance(e, jex.JaxprEqn) for e in open_jaxpr.eqns)
    (inner,) = jex.subjaxprs(open_jaxpr)
    assert inner.eqns[0].primitive.name == "sin"


def test_a_jaxpr_is_put_together_and_evaluated():
    closed_jaxpr = jax.make_jaxpr(lambda x: jnp.sin(x) + 1.0)(1.0)
    old = closed_jaxpr.jaxpr

    equations = [jex.new_jaxpr_eqn(e.invars, e.outvars, e.primitive, e.params, e.effects) for e in old.eqns]
    new = jex.Jaxpr(old.constvars, old.invars, old.outvars, equations)

    jex.check_jaxpr(new)
    (result,) = jax.core.eval_jaxpr(new, closed_jaxpr.consts, 0.0)
    assert result == 1
    assert jex.jaxpr_as_fun(jex.ClosedJaxpr(new, []))(0.0) == [1]


def test_traced_values_are_tracers_and_tell_their_type():
    @jax.jit
    def function(x: Any) -> Any:
        assert isinstance(x, jax.core.Tracer)
        assert isinstance(x, jax.Array)
        assert x.aval == jax.typeof(x) == jax.core.ShapedArray((2,), jnp.float32)
        assert isinstance(x.aval, jax.core.ShapedArray)
        assert jex.unsafe_am_i_under_a_jit_DO_NOT_USE()
        return x

    assert not isinstance(function(jnp.ones(2)), jax.core.Tracer)
    assert not jex.unsafe_am_i_under_a_jit_DO_NOT_USE()


def test_the_state_of_a_trace_is_equal_only_within_it():
    outside = jex.get_opaque_trace_state()
    states: list[Any] = []

    jax.vmap(lambda x: states.extend(jex.get_opaque_trace_state() for _ in range(2)))(jnp.ones(2))

    assert states[0] == states[1]
    assert states[0] != outside == jex.get_opaque_trace_state()


def keep(x: Any) -> None:
    STORED.append(x)


STORED: list[Any] = []
ERRORS = {
    "ConcretizationTypeError": [
        float,
        lambda x: bool(x > 0),
        jnp.arange,
        jnp.unique,
        lambda x: jnp.nonzero(x[None]),
        lambda x: x.tolist(),
    ],
    "TracerBoolConversionError": [lambda x: 1 if x > 0 else 0],
    "TracerArrayConversionError": [np.sin],
    "TracerIntegerConversionError": [lambda x: range(3)[x.astype(int)]],
    "NonConcreteBooleanIndexError": [lambda x: jnp.ones(3)[jnp.ones(3) > x]],
}


@pytest.mark.parametrize(("name", "function"), [(n, f) for n, fs in ERRORS.items() for f in fs])
def test_an_error_is_caught_by_the_class_that_jax_has_for_it(name: str, function: Any):
    with pytest.raises(getattr(jax_errors, name)) as error:
        jax.jit(function)(1.0)

    assert isinstance(error.value, jax_errors.JAXTypeError)
    assert isinstance(error.value, TypeError)


def test_classes_of_errors_have_the_bases_that_they_have_in_jax():
    errors = jax_errors

    assert issubclass(errors.TracerBoolConversionError, errors.ConcretizationTypeError)
    assert issubclass(errors.NonConcreteBooleanIndexError, IndexError)
    assert issubclass(errors.KeyReuseError, TypeError)
    assert issubclass(errors.JaxRuntimeError, RuntimeError)


def test_a_value_that_escaped_is_unexpected():
    jax.jit(keep)(1.0)

    with pytest.raises(jax_errors.UnexpectedTracerError) as error:
        _ = STORED.pop() + 1

    assert isinstance(error.value, TypeError)


def test_running_out_of_memory_is_an_error_of_the_run():
    assert issubclass(jax_errors.OutOfMemory, jax_errors.JaxRuntimeError)


def test_devices_are_those_of_the_default_platform():
    (device, *_) = jax.devices()

    assert jax.devices() == jax.local_devices() == jax.devices("cpu")
    assert jax.device_count() == jax.local_device_count() == len(jax.devices())
    assert (device.platform, device.id, device.process_index) == ("cpu", 0, 0)
    assert isinstance(device, jax.Device)
    assert set(device.memory_stats() or ()) == {"bytes_in_use", "peak_bytes_in_use"}
    assert (jax.default_backend(), jax.process_index(), jax.process_count()) == ("cpu", 0, 1)
    assert jax.devices("reference")[0].platform == "reference"
    with pytest.raises(RuntimeError):
        jax.devices("tpu")


def test_arrays_are_put_on_the_requested_device():
    x = jnp.ones(3)

    y = jax.device_put(x, jax.devices("reference")[0], donate=True)
    copy = jax.device_put(y, jax.devices("reference")[0], may_alias=False)

    assert x.is_deleted()
    np.testing.assert_array_equal(copy, [1, 1, 1])
    assert any(copy is y for y in jax.live_arrays("reference"))
    assert all(copy is not y for y in jax.live_arrays("cpu"))


def test_environment_and_effects_are_available_by_jaxs_names():
    assert "Python" in str(jax.print_environment_info(return_string=True))
    assert jax.effects_barrier() is None
    np.testing.assert_array_equal(jax.copy_to_host_async({"a": jnp.ones(2)})["a"], [1, 1])


def test_custom_rules_have_jax_modules():
    assert custom_vmap is jax.custom_batching.custom_vmap
    assert sequential_vmap(jnp.sin)(0.0) == 0
    assert isinstance(zero_from_primal(jnp.ones(2), symbolic_zeros=True), SymbolicZero)
    primal = jax.custom_derivatives.CustomVJPPrimal(2.0, True)
    assert custom_vjp_primal_tree_values({"a": primal}) == {"a": 2.0}


def test_a_stage_is_of_jaxs_classes():
    program = jax.jit(jnp.sin)

    assert isinstance(program, jax_stages.Wrapped)
    assert isinstance(program.trace(1.0), jax_stages.Traced)
    assert isinstance(program.lower(1.0), jax_stages.Lowered)
    assert isinstance(program.lower(1.0).compile(), jax_stages.Compiled)


def test_concrete_values_are_forced_and_traced_ones_refused():
    assert jex.concrete_or_error(int, 2.5) == 2
    with pytest.raises(jax_errors.ConcretizationTypeError, match="needed for a shape"):
        jax.jit(lambda x: jex.concrete_or_error(int, x, "needed for a shape"))(1.0)


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, lambda f: lambda x: jax.jvp(f, (x,), (x,))])
def test_a_function_for_tracers_is_preferred_to_one_for_arrays(transform: Any):
    kinds: list[str] = []

    @functools.singledispatch
    def kind(x: object) -> str:
        return "another"

    kind.register(jax.Array, lambda x: "array")
    kind.register(jax.core.Tracer, lambda x: "tracer")
    transform(lambda x: kinds.append(kind(x)) or x)(jnp.ones(2))

    assert kinds == ["tracer"]
    assert kind(jnp.ones(2)) == "array"
