"""sympy2jax: symbolic expressions as modules whose numbers are trained."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import sympy
import sympy2jax

X, Y = sympy.symbols("x y")
AT = {"x": jnp.linspace(0.1, 2.0, 7), "y": jnp.linspace(-1.0, 1.0, 7)}


def an_expression_of_two_symbols():
    module = sympy2jax.SymbolicModule([sympy.sin(X) * Y**2 + sympy.exp(-X), X / (1 + Y**2)])
    return eqx.filter_jit(module)(**AT)


def trees_of_expressions():
    module = sympy2jax.SymbolicModule({"sum": X + Y, "parts": [X * Y, sympy.sqrt(X)]})
    return module(**AT)


def numbers_are_trained():
    module = sympy2jax.SymbolicModule([1.0 * X**2 + 0.5 * sympy.cos(2.0 * Y)])
    target = 2.0 * AT["x"] ** 2 - 1.0
    optimizer = optax.adam(0.1)
    state = optimizer.init(eqx.filter(module, eqx.is_inexact_array))

    @eqx.filter_value_and_grad
    def loss(module):
        return jnp.mean((module(**AT)[0] - target) ** 2)

    values = []
    for _ in range(5):
        value, slopes = loss(module)
        updates, state = optimizer.update(slopes, state)
        module = eqx.apply_updates(module, updates)
        values.append(value)
    return {"values": values, "constants": jax.tree_util.tree_leaves(eqx.filter(module, eqx.is_inexact_array))}


def slopes_of_an_expression():
    module = sympy2jax.SymbolicModule(sympy.log(1 + X**2) * sympy.tanh(Y))
    return jax.vmap(jax.grad(lambda x, y: module(x=x, y=y), argnums=(0, 1)))(AT["x"], AT["y"])


def derivatives_that_sympy_takes():
    return sympy2jax.SymbolicModule([sympy.diff(sympy.sin(X * Y), X), sympy.Max(X, Y), sympy.Abs(Y)])(**AT)


def functions_of_ones_own():
    norm = sympy.Function("norm")
    module = sympy2jax.SymbolicModule(norm(X, Y), extra_funcs={norm: jnp.hypot})
    return module(**AT)
