"""paramax: constrained and fixed parameters of models."""

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from paramax.utils import inv_softplus


def positive_parameter_by_softplus():
    scale = paramax.Parameterize(jax.nn.softplus, inv_softplus(jnp.array([0.5, 2.0, 30.0])))
    return paramax.unwrap(("abc", 1, scale))[2]


def fixed_parameters_have_no_gradient():
    model = {"weight": jnp.arange(3.0), "bias": paramax.non_trainable(jnp.ones(3))}

    def loss(model):
        model = paramax.unwrap(model)
        return jnp.sum((model["weight"] * 2 + model["bias"]) ** 2)

    return jax.tree_util.tree_leaves(eqx.filter_grad(loss)(model))


def increasing_numbers_of_any_numbers():
    x = jnp.array([0.3, -1.0, 2.0, 0.0])
    return [
        paramax.unwrap(paramax.RealToIncreasingOnInterval(x, (-2.0, 5.0), min_width=0.01, include_endpoints=ends))
        for ends in ("both", "lower", "neither")
    ]


def weights_of_a_given_length():
    weight = paramax.WeightNormalization(jnp.arange(1.0, 13.0).reshape(3, 4))
    return paramax.unwrap(weight), paramax.contains_unwrappables({"w": weight})


def parameters_in_lanes():
    stacked = eqx.filter_vmap(lambda x: paramax.Parameterize(jnp.exp, x))(jnp.arange(6.0).reshape(2, 3) / 3)
    return paramax.unwrap(stacked)


def one_step_of_descent_on_a_constrained_model():
    model = paramax.Parameterize(lambda x: jnp.exp(x) + 0.1, jnp.zeros(4))

    @eqx.filter_jit
    def step(model):
        slopes = eqx.filter_grad(lambda m: jnp.sum((paramax.unwrap(m) - jnp.arange(4.0)) ** 2))(model)
        return eqx.apply_updates(model, jax.tree_util.tree_map(lambda g: -0.1 * g, slopes))

    return paramax.unwrap(step(step(model)))
