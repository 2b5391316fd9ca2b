"""jax-dataclasses: dataclasses that are trees, static fields, and copies that are changed."""

from typing import Annotated

import jax
import jax.numpy as jnp
import jax_dataclasses as jdc


@jdc.pytree_dataclass
class _Layer:
    weight: jax.Array
    bias: jax.Array
    power: jdc.Static[int] = 1

    def __call__(self, x):
        return (x @ self.weight + self.bias) ** self.power


@jdc.pytree_dataclass
class _Model:
    first: _Layer
    second: _Layer
    name: jdc.Static[str] = "model"


def _model():
    keys = jax.random.split(jax.random.key(0))
    return _Model(
        _Layer(jax.random.normal(keys[0], (3, 4)), jnp.zeros(4), power=2),
        _Layer(jax.random.normal(keys[1], (4, 1)), jnp.ones(1)),
    )


X = jax.random.normal(jax.random.key(1), (5, 3))


def a_dataclass_is_a_tree():
    model = _model()
    leaves, treedef = jax.tree_util.tree_flatten(model)
    shifted = jax.tree_util.tree_map(lambda x: x + 1.0, model)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(model)[0]]
    same = treedef == jax.tree_util.tree_structure(shifted)
    return {"leaves": leaves, "out": shifted.second(shifted.first(X)), "same": same, "paths": paths}


def static_fields_are_read_while_tracing():
    calls = []

    @jax.jit
    def apply(layer, x):
        calls.append(layer.power)
        return layer(x)

    layer = _model().first
    with jdc.copy_and_mutate(layer) as cubed:
        cubed.power = 3
    return {"square": apply(layer, X), "again": apply(layer, X), "cube": apply(cubed, X), "traces": calls}


def static_arguments_of_a_jitted_function():
    @jdc.jit
    def power(x: jax.Array, n: jdc.Static[int]):
        return sum(x**i for i in range(n))

    return {"three": power(X, 3), "two": power(X, n=2)}


def a_copy_is_changed_and_the_model_is_not():
    model = _model()
    with jdc.copy_and_mutate(model) as other:
        other.first.bias = jnp.full(4, 0.5)
    return {"model": model.first.bias, "other": other.first(X)}


def steps_of_descent_on_a_model():
    def loss(model):
        return jnp.mean((model.second(model.first(X))[:, 0] - X[:, 0]) ** 2)

    model = _model()
    for _ in range(4):
        slope = jax.jit(jax.grad(loss))(model)
        model = jax.tree_util.tree_map(lambda x, g: x - 0.01 * g, model, slope)
    return {"model": model, "loss": loss(model)}


def shapes_in_annotations():
    @jdc.pytree_dataclass
    class Batch(jdc.EnforcedAnnotationsMixin):
        x: Annotated[jax.Array, (3,), jnp.floating]
        n: Annotated[jax.Array, (), jnp.integer]

    batch = Batch(X, jnp.arange(5))
    return {"axes": batch.get_batch_axes(), "mapped": jax.vmap(lambda b: b.x.sum() * b.n)(batch)}
