"""`jax.export` under rune.as_jax, as programs written for JAX use it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

X = jnp.arange(12.0).reshape(3, 4)


def function(x: Any) -> dict[str, Any]:
    return {"a": jnp.sin(x), "n": jnp.argmax(x)}


def test_a_function_is_restored_from_its_bytes():
    program = export.export(jax.jit(function))(jax.ShapeDtypeStruct((3, 4), "float32"))

    copy = export.deserialize(program.serialize(vjp_order=1))

    assert (copy.fun_name, copy.nr_devices, len(copy.platforms)) == ("function", 1, 1)
    assert (copy.in_tree, copy.out_tree, copy.in_avals) == (program.in_tree, program.out_tree, program.in_avals)
    np.testing.assert_array_equal(copy.call(X)["a"], jax.jit(function)(X)["a"])
    gradient = jax.grad(lambda x: copy.call(x)["a"].sum())(X)
    np.testing.assert_allclose(gradient, np.cos(X), rtol=1e-6)
    assert copy.has_vjp()
    assert not copy.vjp().has_vjp()


def test_a_symbolic_shape_covers_every_size_in_its_range():
    shape = export.symbolic_shape("b, 2*c, _", constraints=("b >= 2", "b <= 9", "c <= b"), like=(None, None, 4))
    program = export.export(jax.jit(lambda x, y: jnp.sum(x, 0)[: y.shape[0]] + 1))(
        jax.ShapeDtypeStruct(shape, "float32"), jax.ShapeDtypeStruct((shape[1],), "float32")
    )

    assert [str(s) for s in shape] == ["b", "2*c", "4"]
    assert [export.is_symbolic_dim(s) for s in shape] == [True, True, False]
    assert program.call(jnp.ones((5, 6, 4)), jnp.ones(6)).shape == (6, 4)
    with pytest.raises(ValueError, match=r"b = 1 .b in 2..9"):
        program.call(jnp.ones((1, 2, 4)), jnp.ones(2))


def test_specifications_are_a_prefix_of_the_arguments():
    specs = export.symbolic_args_specs((X, {"k": X[0]}), ("b, ...", "c"), constraints=["b >= 3"])

    assert str(specs[0].shape) == "(b, 4)"
    assert str(specs[1]["k"].shape) == "(c,)"


class Pair(NamedTuple):
    """A class of trees."""

    x: Any
    y: Any


@jax.tree_util.register_pytree_node_class
class Scaled:
    """A class of trees with static data."""

    def __init__(self, x: Any, by: int):
        self.x, self.by = x, by

    def tree_flatten(self) -> tuple[Any, int]:
        return (self.x,), self.by

    @classmethod
    def tree_unflatten(cls, by: int, children: Any) -> Scaled:
        (x,) = children
        return cls(x, by)


def test_classes_of_trees_have_names_in_files():
    export.register_namedtuple_serialization(Pair, serialized_name="tests.Pair")
    export.register_pytree_node_serialization(
        Scaled,
        serialized_name="tests.Scaled",
        serialize_auxdata=lambda by: str(by).encode(),
        deserialize_auxdata=lambda data: int(data),
    )
    program = export.export(jax.jit(lambda p: Scaled(p.x + p.y, 7)))(Pair(X, X))

    result = export.deserialize(program.serialize()).call(Pair(X, X))

    assert (type(result), result.by) == (Scaled, 7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: export.export(jnp.sin), "export: cannot export"),
        (lambda: export.symbolic_shape("a, _"), "symbolic_shape: cannot infer the size of axis 1"),
        (lambda: export.symbolic_shape("a", constraints=["a ? 2"]), "symbolic_shape: cannot read 'a . 2'"),
        (lambda: export.export(jax.jit(jnp.sin))(1.0).vjp().call(1.0), "argument.0..1. is missing"),
    ],
)
def test_what_does_not_fit_is_refused_as_jax_refuses_it(call: Any, message: str):
    with pytest.raises(ValueError, match=message):
        call()
