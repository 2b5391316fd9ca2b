"""checkpoint: the same derivatives with fewer residuals, by the policy.

First that values and derivatives are those without it, then which residuals are kept (the lists
are those of jax.ad_checkpoint.print_saved_residuals, jax 0.10.2), then what is computed again and
what memory that saves in compiled code, last what is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import checkpoint_policies as policies
from rune.backends import device_named
from rune.core.higher import subprograms
from rune.core.interpreter import type_of
from rune.core.program import Program
from rune.errors import TracerBoolConversionError, TransformError
from rune.lowering.stages import stages
from rune.transforms.derivatives.linearize import linearize_flat
from tests.support.arrays import array
from tests.support.close import near

X = array(np.linspace(-1.0, 2.0, 20).reshape(4, 5).astype(np.float32))
W = array(np.linspace(0.5, -0.5, 30).reshape(5, 6).astype(np.float32))
F32 = "f32, other order of operations"


def model(x: Any, w: Any) -> Any:
    y = rune.checkpoint_name(rnp.sin(x), "a")
    z = y @ w
    u = rune.checkpoint_name(rnp.cos(z), "b")
    return rnp.sin(u).sum()


def sines(x: Any) -> Any:
    return rnp.sin(rnp.sin(rnp.sin(x))).sum()


# --- the same values ----------------------------------------------------------------------------

ORDERS: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f,
    "grad": lambda f: rune.grad(f),
    "jit grad": lambda f: rune.jit(rune.grad(f)),
    "grad jit": lambda f: rune.grad(rune.jit(f)),
    "jvp": lambda f: lambda x: rune.jvp(f, (x,), (x,))[1],
    "vmap grad": lambda f: rune.vmap(rune.grad(f)),
    "grad vmap": lambda f: rune.grad(lambda x: rune.vmap(f)(x).sum()),
    "hessian": lambda f: lambda x: rune.hessian(f)(x[0]),
    "jit hessian": lambda f: lambda x: rune.jit(rune.hessian(f))(x[0]),
    "grad grad": lambda f: rune.grad(lambda x: rune.grad(f)(x).sum()),
    "hvp": lambda f: lambda x: rune.hvp(f, (x,), (x,)),
}


@pytest.mark.parametrize("name", ORDERS)
def test_a_checkpoint_changes_no_value_in_any_order(name: str):
    transform = ORDERS[name]

    near(transform(sines)(X), transform(rune.checkpoint(sines))(X), relative=1e-5, why=F32)


POLICIES: dict[str, Any] = {
    "none": None,
    "nothing": policies.nothing_saveable,
    "everything": policies.everything_saveable,
    "dots": policies.dots_saveable,
    "plain dots": policies.dots_with_no_batch_dims_saveable,
    "only a": policies.save_only_these_names("a"),
    "any but a": policies.save_any_names_but_these("a"),
    "all except a": policies.save_anything_except_these_names("a"),
    "dots or a": policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("a")),
}


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_gives_the_same_gradient(name: str):
    checkpoint = rune.checkpoint(model, policy=POLICIES[name])
    expected = rune.grad(model, argnums=(0, 1))(X, W)

    for f in (rune.grad(checkpoint, (0, 1)), rune.jit(rune.grad(checkpoint, (0, 1)))):
        near(expected, f(X, W), relative=1e-5, why=F32)


def test_closed_over_values_are_differentiated():
    gradient = rune.grad(lambda y: rune.checkpoint(lambda x: rnp.sin(x * y))(2.0))(3.0)

    near(2 * np.cos(6.0), gradient, relative=1e-6, why=F32)


def test_static_arguments_are_python_values():
    power = rune.checkpoint(lambda x, n: x**n if n else x, static_argnums=(1,))

    assert float(rune.grad(power)(2.0, 3)) == 12.0
    assert float(rune.jit(rune.grad(power), static_argnums=1)(2.0, 0)) == 1.0


def test_a_checkpointed_body_in_a_scan_and_a_checkpointed_scan():
    def step(c: Any, t: Any) -> Any:
        return rnp.sin(rnp.sin(c)) * t, None

    def run(body: Any) -> Any:
        return lambda x: rune.scan(body, x, rnp.arange(1.0, 4.0))[0].sum()

    expected = rune.grad(run(step))(X)
    for f in (run(rune.checkpoint(step)), rune.checkpoint(run(step))):
        near(expected, rune.grad(f)(X), relative=1e-5, why=F32)
        near(expected, rune.jit(rune.grad(f))(X), relative=1e-5, why=F32)


def test_custom_rules_work_within():
    function = rune.custom_vjp(rnp.sin)
    function.defvjp(lambda x: (rnp.sin(x), x), lambda x, ct: (ct * 10.0 * rnp.cos(x),))

    gradient = rune.grad(rune.checkpoint(lambda x: function(x) * 2.0))(1.0)

    near(20 * np.cos(1.0), gradient, relative=1e-6, why=F32)


# --- residuals ----------------------------------------------------------------------------------

# By jax.ad_checkpoint.print_saved_residuals of the same function, jax 0.10.2.
KEPT: dict[str, list[str]] = {
    "none": ["f32[4,5]", "f32[5,6]"],
    "nothing": ["f32[4,5]", "f32[5,6]"],
    "everything": ["f32[5,6]", "f32[4,5]", "f32[4,5]", "f32[4,6]", "f32[4,6]"],
    "dots": ["f32[4,5]", "f32[5,6]", "f32[4,6]"],
    "plain dots": ["f32[4,5]", "f32[5,6]", "f32[4,6]"],
    "only a": ["f32[4,5]", "f32[5,6]", "f32[4,5]"],
    "any but a": ["f32[4,5]", "f32[5,6]", "f32[4,6]"],
    "all except a": ["f32[5,6]", "f32[4,5]", "f32[4,5]", "f32[4,6]", "f32[4,6]"],
    "dots or a": ["f32[4,5]", "f32[5,6]", "f32[4,5]", "f32[4,6]"],
}


def residuals(function: Any, *args: Any) -> list[str]:
    """The types of the residuals of a gradient."""
    _, linear = linearize_flat(lambda *xs: [function(*xs)], args, [True] * len(args))
    return [str(type_of(r)) for r in linear.residuals]


@pytest.mark.parametrize("name", KEPT)
def test_the_policy_decides_the_residuals(name: str):
    assert residuals(rune.checkpoint(model, policy=POLICIES[name]), X, W) == KEPT[name]


def test_a_policy_sees_into_jitted_functions():
    inner = rune.jit(lambda x, w: rnp.sin(x @ w))
    function = rune.checkpoint(lambda x, w: inner(x, w).sum(), policy=policies.dots_saveable)

    assert residuals(function, X, W) == ["f32[4,5]", "f32[5,6]", "f32[4,6]"]


def test_batched_dots_differ_from_plain_dots():
    batch = array(np.ones((3, 4, 5), np.float32))
    lanes = rune.vmap(lambda x, w: rnp.sin(x @ w).sum(), in_axes=(0, None))
    both = rune.vmap(lambda x, w: rnp.sin(x @ w).sum())
    policy = policies.dots_with_no_batch_dims_saveable

    plain = rune.checkpoint(lambda x, w: lanes(x, w).sum(), policy=policy)
    with_batch_dims = rune.checkpoint(lambda x, w: both(x, rnp.stack([w, w, w])).sum(), policy=policy)

    assert residuals(plain, batch, W) == ["f32[3,4,5]", "f32[5,6]", "f32[3,4,6]"]
    assert residuals(with_batch_dims, batch, W) == ["f32[3,4,5]", "f32[5,6]"]


def test_any_function_of_primitive_types_and_parameters_is_a_policy():
    calls: list[tuple[str, tuple[str, ...]]] = []

    def policy(primitive: Any, *types: Any, **params: Any) -> bool:
        calls.append((primitive.name, tuple(map(str, types))))
        return primitive.name == "sin"

    residual_types = residuals(rune.checkpoint(lambda x: rnp.exp(rnp.sin(x)).sum(), policy=policy), X)

    assert residual_types == ["f32[4,5]", "f32[4,5]"]
    assert ("sin", ("f32[4,5]",)) in calls


def test_the_transpose_is_one_equation_of_the_inputs_and_the_cotangent():
    function = rune.checkpoint(lambda x: rnp.sin(rnp.sin(x)))

    program = rune.make_program(lambda x, ct: rune.vjp(function, x)[1](ct)[0])(0.5, 1.0)

    backward = program.equations[-1]
    assert [e.primitive.name for e in program.equations] == ["sin", "sin", "checkpoint"]
    assert backward.operands == program.inputs
    assert count(backward.params["program"], "sin") == 1
    assert count(backward.params["program"], "cos") == 2


# --- what is computed again ---------------------------------------------------------------------


def layers(x: Any, ws: Any, layer: Any) -> Any:
    """Eight layers, whose activations a gradient would save."""
    for i in range(8):
        x = layer(x, ws[i])
    return (x * x).sum()


def layer(x: Any, w: Any) -> Any:
    return rnp.tanh(rnp.tanh(rnp.tanh(x @ w) @ w) @ w)


def lowered(layer: Any) -> Any:
    """All stages of the gradient of eight layers."""
    ws, x = rnp.ones((8, 16, 16)), rnp.ones((128, 16))
    gradient = rune.jit(rune.grad(lambda ws, x: layers(x, ws, layer)))
    return stages(gradient.program(ws, x), device_named("cpu:0").target, check=True)


def count(program: Program, name: str) -> int:
    """How often a primitive occurs in a program and in the programs that it holds."""
    own_count = sum(e.primitive.name == name for e in program.equations)
    return own_count + sum(count(p, name) for e in program.equations for p in subprograms(e))


def test_compiled_code_does_the_forward_pass_again_and_needs_less_memory():
    plain, checkpoint = lowered(layer), lowered(rune.checkpoint(layer))

    assert count(plain.simplified, "tanh") == 24
    assert count(checkpoint.simplified, "tanh") == 48
    assert checkpoint.plan.arena_bytes < 0.6 * plain.plan.arena_bytes


def test_without_prevent_cse_equal_values_are_computed_once():
    assert count(lowered(rune.checkpoint(layer, prevent_cse=False)).simplified, "tanh") == 24


def test_saved_values_are_not_recomputed():
    checkpoint = lowered(rune.checkpoint(layer, policy=policies.dots_saveable))
    plain = lowered(layer)

    assert count(checkpoint.simplified, "tanh") == 48
    assert count(checkpoint.simplified, "dot_general") == count(plain.simplified, "dot_general")


def test_a_policy_that_keeps_everything_costs_nothing():
    plain = lowered(layer)
    checkpoint = lowered(rune.checkpoint(layer, policy=policies.everything_saveable))

    assert checkpoint.plan.arena_bytes == plain.plan.arena_bytes


def test_the_forward_pass_runs_once_in_eager_code(capsys: pytest.CaptureFixture[str]):
    def function(x: Any) -> Any:
        rune.debug.print("x = {}", x)
        return rnp.sin(rnp.sin(x))

    rune.grad(rune.checkpoint(function))(1.0)

    assert capsys.readouterr().out == "x = 1.0\n"


def test_a_result_of_a_side_effect_is_saved_and_not_computed_again():
    arguments: list[float] = []

    def measured(x: Any) -> Any:
        arguments.append(float(x))
        return np.float32(2.0)

    def function(x: Any) -> Any:
        scale = rune.io_callback(measured, rune.ShapeDtypeStruct((), "f32"), rune.numpy.asarray(3.0))
        return rnp.sin(x) * scale

    for f in (rune.grad(rune.checkpoint(function)), rune.jit(rune.grad(rune.checkpoint(function)))):
        near(2 * np.cos(1.0), f(1.0), relative=1e-6, why=F32)
    assert arguments == [3.0, 3.0]


# --- what is refused ----------------------------------------------------------------------------


def test_residuals_are_not_offloaded():
    with pytest.raises(TransformError, match="cannot offload residuals"):
        policies.save_and_offload_only_these_names(names_which_can_be_saved=["a"])
    with pytest.raises(TransformError, match="cannot offload residuals"):
        policies.offload_dot_with_no_batch_dims("device", "pinned_host")


def test_a_policy_must_be_a_function():
    with pytest.raises(TransformError, match="cannot use 'dots' as a policy"):
        rune.checkpoint(lambda x: x, policy="dots")  # type: ignore[arg-type]


def test_a_checkpoint_that_needs_a_number_is_refused_with_and_without_a_derivative():
    function = rune.checkpoint(lambda x: x if x > 0 else -x)

    for call in (function, rune.grad(function), rune.jit(function)):
        with pytest.raises(TracerBoolConversionError):
            call(1.0)


def test_a_static_argument_must_be_passed():
    with pytest.raises(TransformError, match="cannot find static argument 2"):
        rune.grad(rune.checkpoint(lambda x: x, static_argnums=(2,)))(1.0)
    with pytest.raises(TransformError, match="cannot find static argument -2"):
        rune.checkpoint(lambda x: x, static_argnums=(-2,))(1.0)


def test_equal_policies_compare_and_hash_equal():
    def both(name: str) -> Any:
        return policies.save_from_both_policies(policies.save_only_these_names(name), policies.dots_saveable)

    assert both("a") == both("a") != both("b")
    assert hash(both("a")) == hash(both("a"))


def test_remat_is_another_name():
    assert rune.remat is rune.checkpoint


def test_a_constant_result_keeps_its_dtype():
    wide = rnp.asarray(3.0, dtype="f64")
    function = rune.checkpoint(lambda x: (x * 2.0, wide))

    for outs in (
        rune.vjp(function, 1.0)[0],
        rune.jvp(function, (1.0,), (1.0,))[0],
        rune.vmap(function, out_axes=(0, None))(rnp.ones(2)),
    ):
        assert (outs[1] * 2.0).dtype == np.float64
