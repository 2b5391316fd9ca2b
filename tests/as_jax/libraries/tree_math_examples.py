"""Tree-math: trees as vectors."""

import jax
import jax.numpy as jnp
import tree_math
import tree_math.numpy as tnp


@tree_math.struct
class _Point:
    x: float
    y: float


def _vector():
    return tree_math.Vector({"a": jnp.arange(3.0), "b": jnp.ones((2, 2))})


def sum_and_multiple_of_vectors():
    v = _vector()
    return (v + 2 * v).tree


def inner_product_of_vectors():
    v = _vector()
    return {"inner": v @ v, "size": len(v)}


def comparison_is_elementwise():
    v = _vector()
    return (v > 0.5).tree


def structs_are_vectors_and_trees():
    sum_ = _Point(1.0, 2.0) + _Point(3.0, 4.0) / 2
    return {"x": sum_.x, "y": sum_.y, "leaves": jax.tree_util.tree_leaves(sum_)}


def numpy_functions_of_vectors():
    v = _vector()
    return {"where": tnp.where(v > 0.5, v, -v).tree, "max": tnp.maximum(v, 0.3).tree, "zeros": tnp.zeros_like(v).tree}


def wrapped_function_takes_and_gives_trees():
    @tree_math.wrap
    def norm(v):
        return (v @ v) ** 0.5

    return norm({"a": jnp.arange(4.0), "b": 2.0})


def conjugate_gradients_in_four_lines():
    matrix = {"a": jnp.array([[4.0, 1.0], [1.0, 3.0]]), "b": jnp.array(2.0)}

    def product(v):
        return tree_math.Vector({"a": matrix["a"] @ v.tree["a"], "b": matrix["b"] * v.tree["b"]})

    right = tree_math.Vector({"a": jnp.array([1.0, 2.0]), "b": jnp.array(3.0)})
    x, residual = right * 0, right
    direction = residual
    for _ in range(3):
        step = (residual @ residual) / (direction @ product(direction))
        x, before = x + step * direction, residual
        residual = residual - step * product(direction)
        direction = residual + (residual @ residual) / (before @ before) * direction
    return x.tree


def derivative_with_respect_to_a_vector():
    return jax.grad(lambda v: tnp.where(v > 0.5, v, 2 * v) @ v)(_vector()).tree


def compiled_function_of_vectors():
    return jax.jit(lambda v: v * v - 1)(_vector()).tree


def loop_carries_a_vector():
    v = jax.lax.fori_loop(0, 5, lambda i, v: v / 2 + 1, _vector())
    return v.tree
