"""The types that a checker infers of a user's program: pyright checks each `assert_type`.

`./scripts/test` checks this file with all others before the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple, assert_type

import pytest

import rune
import rune.numpy as rnp
import rune.scipy.optimize
import rune.scipy.stats
from rune import Array, lax, nn, random
from rune.optim.transforms import global_norm


@pytest.mark.skipif("RUNE_TEST_TYPES_CHECKED" in os.environ, reason="pyright has checked all files")
def test_pyright_infers_the_types_that_this_file_asserts():
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, __file__]

    process = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)

    assert process.returncode == 0, process.stdout


def test_elementwise_functions_give_arrays():
    x = rnp.sin(1.0)

    assert_type(x, Array)
    assert_type(rnp.floor(x), Array)
    assert_type(rnp.logical_not(x), Array)
    assert isinstance(x, Array)


def squares(x: Array, scale: float = 1.0) -> Array:
    return rnp.sum(x * x) * scale


class Model(NamedTuple):
    w: Array
    b: Array


def loss(model: Model, x: Array) -> Array:
    return rnp.sum(model.w * x + model.b)


def with_aux(x: Array) -> tuple[Array, int]:
    return rnp.sum(x), 3


def vector() -> Array:
    return rnp.ones(3)


def test_creation_movement_and_sums_give_arrays():
    x = rnp.ones((2, 3))

    assert_type(x, Array)
    assert_type(rnp.arange(3), Array)
    assert_type(rnp.reshape(x, (6,)), Array)
    assert_type(rnp.transpose(x), Array)
    assert_type(rnp.sum(x, axis=0), Array)
    assert_type(rnp.dot(x, x.T), Array)
    assert isinstance(rnp.sum(x), Array)


def test_lambdas_of_loops_get_arrays_where_the_carry_is_one():
    x = vector()

    assert_type(rune.cond(x.sum() > 0, lambda a: a + 1, lambda a: -a, x), Array)
    assert_type(rune.switch(0, [lambda a: a + 1, lambda a: -a], x), Array)
    assert_type(rune.scan(lambda c, row: (c + row, c.sum()), x, rnp.ones((2, 3))), tuple[Array, Array])
    assert_type(rune.scan(lambda c, _: (c + 1, None), x, None, 5), tuple[Array, None])
    assert_type(rune.while_loop(lambda c: c.sum() < 5, lambda c: c.at[0].add(1.0), x), Array)
    assert_type(rune.fori_loop(0, 5, lambda i, c: c + i.astype(c.dtype), x), Array)
    assert_type(rune.map(lambda row: row.sum(), x), Array)
    # A number in a carry is an array inside the function, whatever its type in the tree.
    assert rune.scan(lambda c, row: (c + row.sum(), row), 0.0, x)[0].shape == ()
    assert rune.fori_loop(0, 3, lambda i, c: (c[0] + i.astype("f4"), c[1].sum()), (0.0, 1.0))[1].shape == ()


def test_operators_give_arrays():
    x = vector()

    assert_type(x + 1, Array)
    assert_type(2.0 * x, Array)
    assert_type(1 - x / x**2, Array)
    assert_type(x @ x, Array)
    assert_type(-abs(x), Array)
    assert_type(x < 2, Array)
    assert_type(x == x, Array)
    assert_type(divmod(x, 2), tuple[Array, Array])
    assert_type(x[0], Array)
    assert_type(x[None].T.mT.real, Array)
    assert_type(x.sum(), Array)
    assert isinstance(1 - x, Array)


def test_updates_give_arrays():
    x = vector().at[1].set(2.0)

    assert_type(x, Array)
    assert_type(x.at[:2].add(1), Array)
    assert_type(x.at[0].get(mode="fill"), Array)
    assert isinstance(x, Array)


def test_a_gradient_has_the_type_of_the_argument():
    x = vector()
    model = Model(x, x)

    assert_type(rune.grad(squares)(x), Array)
    assert_type(rune.grad(squares)(x, scale=2.0), Array)
    assert_type(rune.grad(loss)(model, x), Model)
    assert_type(rune.grad(lambda x: (x * x).sum())(x), Array)
    assert_type(rune.grad(rune.grad(lambda x: x * x))(x[0]), Array)
    assert isinstance(rune.grad(loss)(model, x), Model)


def test_a_gradient_by_several_arguments_is_a_tuple():
    x = vector()
    gradients = rune.grad(loss, argnums=(0, 1))(Model(x, x), x)

    assert_type(gradients, tuple[Model, Array])
    assert isinstance(gradients, tuple)


def test_a_gradient_with_aux_is_a_pair():
    gradient, aux = rune.grad(with_aux, has_aux=True)(vector())

    assert_type(gradient, Array)
    assert_type(aux, int)
    assert isinstance(gradient, Array)


def test_value_and_grad_gives_value_and_gradient():
    x = vector()
    both = rune.value_and_grad(loss)(Model(x, x), x)

    assert_type(both, tuple[Array, Model])
    assert_type(rune.value_and_grad(with_aux, has_aux=True)(x), tuple[tuple[Array, int], Array])
    assert_type(rune.value_and_grad(loss, (0, 1))(Model(x, x), x)[0], Array)
    assert isinstance(both[1], Model)


def test_directional_derivatives_have_the_type_of_the_result():
    x = vector()

    assert_type(rune.jvp(squares, (x,), (x,)), tuple[Array, Array])
    assert_type(rune.jvp(with_aux, (x,), (x,), has_aux=True), tuple[Array, Array, int])
    assert_type(rune.linearize(squares, x)[1](x), Array)
    assert_type(rune.linearize(with_aux, x, has_aux=True)[2], int)
    assert_type(rune.jvp(rune.grad(squares), (x,), (x,)), tuple[Any, Any])
    assert isinstance(rune.jvp(squares, (x,), (x,))[1], Array)


def test_vjp_gives_the_result_and_its_pullback():
    value, pull = rune.vjp(loss, Model(vector(), vector()), vector())

    assert_type(value, Array)
    assert_type(pull(value), tuple[Model, Array])
    assert_type(rune.vjp(with_aux, vector(), has_aux=True)[2], int)
    assert isinstance(pull(value), tuple)


@rune.jit
def doubled(x: Array, times: int = 1) -> Array:
    return x * 2 * times


@rune.jit(static_argnames=["times"])
def repeated(x: Array, times: int = 1) -> Array:
    return x * times


class Layer:
    def __init__(self, w: Array):
        self.w = w

    @rune.jit(static_argnums=0)
    def apply(self, x: Array) -> Array:
        return x * self.w


def test_a_jitted_function_has_the_signature_of_the_function():
    x = vector()

    assert_type(doubled(x, times=2), Array)
    assert_type(repeated(x, times=2), Array)
    assert_type(Layer(x).apply(x), Array)
    assert_type(rune.jit(squares)(x, scale=2.0), Array)
    assert_type(rune.jit(rune.grad(squares))(x), Array)
    assert_type(rune.grad(rune.jit(squares))(x), Array)
    assert_type(rune.jit(rune.value_and_grad(loss))(Model(x, x), x), tuple[Array, Model])
    assert isinstance(doubled(x), Array)


def test_a_vectorised_function_has_the_parameters_of_the_function():
    x = vector()[:, None]

    assert_type(rune.vmap(squares)(x), Array)
    assert_type(rune.jit(rune.vmap(rune.grad(squares), in_axes=(0,)))(x), Array)
    assert isinstance(rune.vmap(squares)(x), Array)


def test_samplers_give_arrays():
    key = random.key(0)

    assert_type(random.normal(key, (3,)), Array)
    assert_type(random.gamma(key, 2.0, dtype="float32"), Array)
    assert_type(random.permutation(key, 3), Array)
    assert_type(nn.initializers.he_normal()(key, (3, 3)), Array)
    assert isinstance(random.normal(key, (3,)), Array)


def test_layers_and_losses_give_arrays():
    x = vector()[None]

    assert_type(nn.layer_norm(x), Array)
    assert_type(nn.softmax_cross_entropy(x, x), Array)
    assert isinstance(nn.layer_norm(x), Array)


def test_functions_of_lax_and_linalg_give_arrays():
    x = vector()

    assert_type(lax.full_like(x, 2.0), Array)
    assert_type(lax.clamp(0.0, x, 1.0), Array)
    assert_type(lax.top_k(x, 2), tuple[Array, Array])
    assert_type(rnp.linalg.eigh(rnp.eye(2)).eigenvalues, Array)
    assert_type(rnp.unique_counts(x).counts, Array)
    assert isinstance(lax.clamp(0.0, x, 1.0), Array)


def test_functions_of_optim_and_scipy_give_arrays():
    x = vector()
    result = rune.scipy.optimize.minimize(lambda v: rnp.sum(v * v), x, method="BFGS")

    assert_type(global_norm({"w": x}), Array)
    assert_type(result.x, Array)
    assert_type(rune.scipy.stats.norm.pdf(x), Array)
    assert isinstance(result.x, Array)


def test_a_checkpointed_function_keeps_its_signature():
    checkpoint = rune.checkpoint(squares)

    assert_type(checkpoint(rnp.ones(3), scale=2.0), Array)
    assert float(checkpoint(rnp.ones(3), scale=2.0)) == 6.0


def test_a_choice_gives_an_array_and_positions_are_a_tuple():
    x = rnp.arange(3.0)

    assert_type(rnp.where(x > 1, x, 0.0), Array)
    assert_type(rnp.where(x > 1), tuple[Array, ...])
    assert len(rnp.where(x > 1)) == 1


def test_transforms_running_extrema_and_products_give_arrays():
    x = rnp.arange(4.0)

    assert_type(rnp.fft.fft(x), Array)
    assert_type(rnp.fft.irfft(x), Array)
    assert_type(rnp.nanmax(x), Array)
    assert_type(lax.cummax(x), Array)
    assert_type(lax.concatenate([x, x], 0), Array)
    assert_type(nn.gelu(x), Array)
    assert nn.gelu(x).shape == (4,)
