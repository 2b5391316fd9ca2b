"""Jaxtyping: annotations of dtype and shape, checked where a function is called."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import (
    Array,
    ArrayLike,
    Bool,
    Complex,
    Float,
    Float32,
    Inexact,
    Int,
    Key,
    Num,
    PRNGKeyArray,
    PyTree,
    PyTreeDef,
    Real,
    Scalar,
    ScalarLike,
    Shaped,
    UInt,
    UInt8,
    jaxtyped,
)


def _checked(function):
    """Check annotations by isinstance, as a type checker at run time does."""

    def call(*arguments):
        hints = list(function.__annotations__.items())
        for (name, hint), value in zip(hints, arguments):
            if not isinstance(value, hint):
                raise TypeError(name)
        return function(*arguments)

    return jaxtyped(call, typechecker=None)


def dtypes_by_kind():
    values = {
        "f32": jnp.ones(2),
        "bf16": jnp.ones(2, jnp.bfloat16),
        "i32": jnp.ones(2, jnp.int32),
        "u8": jnp.ones(2, jnp.uint8),
        "bool": jnp.ones(2, bool),
        "c64": jnp.ones(2, jnp.complex64),
        "key": jax.random.split(jax.random.key(0), 2),
    }
    kinds = (Float, Float32, Int, UInt, UInt8, Bool, Complex, Num, Real, Inexact, Shaped, Key)
    return {name: [isinstance(value, kind[Array, "n"]) for kind in kinds] for name, value in values.items()}


def shapes_by_pattern():
    x = jnp.ones((2, 3, 4))
    patterns = ("2 3 4", "a b c", "a b", "a a c", "... 4", "*batch d", "2 _ 4", "#a b c", "", "...")
    return [isinstance(x, Float[Array, pattern]) for pattern in patterns]


def sizes_are_bound_within_a_call():
    @jaxtyped(typechecker=None)
    def both(x, y):
        return isinstance(x, Float[Array, "n m"]) and isinstance(y, Float[Array, "m k"])

    return [both(jnp.ones((2, 3)), jnp.ones((3, 5))), both(jnp.ones((2, 3)), jnp.ones((2, 5)))]


def sizes_by_arithmetic():
    @jaxtyped(typechecker=None)
    def longer(x, y):
        return isinstance(x, Float[Array, "n"]) and isinstance(y, Float[Array, "n+1"])

    return [longer(jnp.ones(2), jnp.ones(3)), longer(jnp.ones(2), jnp.ones(2))]


def numpy_arrays_and_others():
    return {
        "numpy": isinstance(np.ones(3, np.float32), Float[np.ndarray, "3"]),
        "not jax": isinstance(np.ones(3, np.float32), Float[Array, "3"]),
        "either": [isinstance(x, Float[ArrayLike, "..."]) for x in (1.0, np.ones(2), jnp.ones(2))],
        "scalars": [isinstance(x, ScalarLike) for x in (1.0, 2, True, jnp.array(1.0), jnp.ones(2))],
        "array scalars": [isinstance(x, Scalar) for x in (1.0, jnp.array(1.0), jnp.ones(2))],
    }


def keys_new_and_old():
    values = (jax.random.key(0), jax.random.PRNGKey(0), jnp.ones(2))
    return [isinstance(value, PRNGKeyArray) for value in values]


def traced_values_have_types():
    answers = {}

    def function(x):
        answers["float"] = isinstance(x, Float[Array, "a b"])
        answers["integer"] = isinstance(x, Int[Array, "a b"])
        return x

    jax.jit(jax.vmap(jax.grad(lambda x: function(x).sum())))(jnp.ones((2, 3, 4)))
    return answers


def trees_of_arrays():
    tree = {"a": jnp.ones(2), "b": [jnp.ones(3), jnp.ones(())]}
    return {
        "floats": isinstance(tree, PyTree[Float[Array, "..."]]),
        "integers": isinstance(tree, PyTree[Int[Array, "..."]]),
        "vectors": isinstance(tree, PyTree[Float[Array, "_"]]),
        "structure": isinstance(jax.tree_util.tree_structure(tree), PyTreeDef),
    }


def structures_are_bound_within_a_call():
    @jaxtyped(typechecker=None)
    def same(x, y):
        return isinstance(x, PyTree[Shaped[Array, "..."], "T"]) and isinstance(y, PyTree[Shaped[Array, "..."], "T"])

    tree = {"a": jnp.ones(2), "b": (jnp.ones(3),)}
    return [same(tree, tree), same(tree, [jnp.ones(2)])]


def checked_matrix_product():
    @_checked
    def product(x: Float[Array, "n m"], y: Float[Array, "m k"]):
        return x @ y

    answer = jax.jit(product)(jnp.ones((2, 3)), jnp.arange(12.0).reshape(3, 4))
    try:
        product(jnp.ones((2, 3)), jnp.ones((4, 4)))
    except TypeError as error:
        return {"answer": answer, "refuses": str(error)}


def types_without_values():
    return {
        "shape": isinstance(jax.ShapeDtypeStruct((2, 3), jnp.float32), Float[jax.ShapeDtypeStruct, "2 3"]),
        "result": isinstance(jax.eval_shape(lambda x: x @ x.T, jnp.ones((2, 3))), Float[jax.ShapeDtypeStruct, "n n"]),
    }
