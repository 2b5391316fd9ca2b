"""sepes: dataclasses that are trees, with masks and updates of leaves."""

import jax
import jax.numpy as jnp
import sepes


@sepes.autoinit
class _Linear(sepes.TreeClass):
    weight: jax.Array
    bias: jax.Array
    name: str = sepes.field(default="linear", on_setattr=[sepes.tree_mask], on_getattr=[sepes.tree_unmask])

    def __call__(self, x):
        return x @ self.weight + self.bias


def _model():
    return _Linear(jnp.linspace(-1.0, 1.0, 6).reshape(3, 2), jnp.asarray([0.5, -0.5]))


def a_masked_field_is_no_leaf():
    return _model(), jax.jit(lambda model, x: model(x))(_model(), jnp.ones((4, 3)))


def gradient_steps_on_a_tree():
    x, y = jnp.arange(12.0).reshape(4, 3) / 10, jnp.ones((4, 2))

    @jax.jit
    def step(model):
        slopes = jax.grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
        return jax.tree.map(lambda p, g: p - 0.1 * g, model, slopes)

    model = _model()
    for _ in range(5):
        model = step(model)
    return model


def leaves_at_names_and_at_a_mask():
    model = _model()
    at = sepes.at(model)
    positive = jax.tree.map(lambda x: x > 0, model)
    return (
        at["bias"].set(jnp.zeros(2)),
        at[positive].apply(jnp.log1p),
        at[...].reduce(lambda a, b: a + b.sum(), initializer=0.0),
    )


def constants_are_frozen_by_a_mask():
    tree = {"frozen": 2, "free": jnp.asarray(3.0)}
    masked = sepes.tree_mask(tree)
    return jax.grad(lambda t: sepes.tree_unmask(t)["free"] ** sepes.tree_unmask(t)["frozen"])(masked)


def a_function_over_the_leaves_of_trees():
    model = _model()
    return sepes.bcmap(jnp.add)(model, 1.0), sepes.value_and_tree(lambda m: m.weight.sum())(model)
