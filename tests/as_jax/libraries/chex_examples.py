"""Chex: dataclasses that are trees, assertions, variants and checks of shapes."""

import chex
import jax
import jax.numpy as jnp
import numpy as np


@chex.dataclass
class _Parameters:
    w: chex.Array
    b: chex.Array


@chex.dataclass(frozen=True, mappable_dataclass=True)
class _Settings:
    rate: float
    steps: int


def _parameters():
    return _Parameters(w=jnp.arange(6.0).reshape(2, 3), b=jnp.ones(3))


def _refuses(function, *arguments, **named):
    try:
        function(*arguments, **named)
    except AssertionError:
        return True
    return False


def dataclass_is_a_tree():
    doubled = jax.tree_util.tree_map(lambda x: 2 * x, _parameters())
    return {"w": doubled.w, "b": doubled.b, "leaves": len(jax.tree_util.tree_leaves(doubled))}


def dataclass_under_derivative_and_compilation():
    gradient = jax.jit(jax.grad(lambda p: jnp.sum(jnp.sin(p.w) @ p.b)))(_parameters())
    return {"w": gradient.w, "b": gradient.b}


def dataclass_with_another_field_value():
    changed = _parameters().replace(b=jnp.zeros(3))
    return {"b": changed.b, "tuple": changed.to_tuple()}


def mappable_dataclass_reads_as_a_mapping():
    settings = _Settings(rate=0.1, steps=3)
    return {"rate": settings["rate"], "sum": sum(settings.values()), "names": sorted(settings)}


def dataclass_in_a_scan():
    final, sums = jax.lax.scan(lambda p, x: (p.replace(b=p.b + x), p.b.sum()), _parameters(), jnp.arange(4.0))
    return {"b": final.b, "sums": sums}


def assertions_of_shape_and_rank():
    x = jnp.zeros((2, 3))
    chex.assert_shape(x, (2, None))
    chex.assert_shape([x, x + 1], (2, 3))
    chex.assert_rank([x, 1.0], [2, 0])
    chex.assert_equal_shape([x, x.T.T])
    chex.assert_axis_dimension(x, 1, 3)
    return {"shape": _refuses(chex.assert_shape, x, (3, 2)), "rank": _refuses(chex.assert_rank, x, 1)}


def assertions_of_type():
    chex.assert_type(jnp.zeros(2), float)
    chex.assert_type([jnp.zeros(2, jnp.int32), 3], int)
    chex.assert_type(jnp.zeros(2, jnp.bfloat16), jnp.bfloat16)
    return _refuses(chex.assert_type, jnp.zeros(2), int)


def assertions_of_trees():
    tree = {"a": jnp.ones(2), "b": [jnp.zeros(3)]}
    chex.assert_trees_all_close(tree, jax.tree_util.tree_map(lambda x: x * 1.0000001, tree))
    chex.assert_trees_all_equal_shapes(tree, tree)
    chex.assert_trees_all_equal_structs(tree, tree)
    chex.assert_tree_all_finite(tree)
    other = {"a": jnp.ones(2), "b": [jnp.ones(3)]}
    return {
        "close": _refuses(chex.assert_trees_all_close, tree, other),
        "finite": _refuses(chex.assert_tree_all_finite, {"x": jnp.array(jnp.nan)}),
        "structure": _refuses(chex.assert_trees_all_equal_structs, tree, {"a": jnp.ones(2)}),
    }


def assertions_in_compiled_code():
    @jax.jit
    def function(x):
        chex.assert_rank(x, 1)
        chex.assert_scalar_in(3, 1, 4)
        return x * 2

    return {"answer": function(jnp.arange(3.0)), "rank": _refuses(function, jnp.ones((2, 2)))}


def assertion_of_the_number_of_traces():
    @jax.jit
    @chex.assert_max_traces(n=1)
    def function(x):
        return x + 1

    function(jnp.ones(2))
    return {"again": function(jnp.ones(2) * 3), "another shape": _refuses(function, jnp.ones(3))}


def assertion_of_derivatives():
    chex.assert_numerical_grads(lambda x: jnp.sum(jnp.sin(x) * x), (jnp.array([0.3, 0.7, 1.2]),), order=1)
    return 1.0


def named_dimensions():
    x = jnp.ones((4, 5, 3))
    dims = chex.Dimensions(B=4, T=5, N=3)
    chex.assert_shape(x, dims["BTN"])
    chex.assert_shape(x.sum(1), dims["BN"])
    dims["XY"] = (2, 7)
    return {"sizes": dims["BXY"], "size": dims.size("BT")}


def tree_of_restored_leaves():
    tree = {"a": jnp.arange(3.0), "b": {"c": jnp.ones((2, 2))}}
    shapes = jax.tree_util.tree_map(jnp.shape, tree)
    chex.assert_tree_shape_prefix({"a": jnp.ones((2, 3)), "b": jnp.ones((2, 5))}, (2,))
    return {"a": shapes["a"], "c": shapes["b"]["c"]}


def variants_of_a_function():
    class Case(chex.TestCase):
        def runTest(self):
            pass

    case, results = Case(), {}

    @chex.variants(with_jit=True, without_jit=True, with_device=True)
    def test(self):
        @self.variant
        def function(x, y):
            return jnp.sin(x) @ y

        results[str(len(results))] = np.asarray(function(jnp.arange(3.0), jnp.ones(3)))

    for each in test:
        each(case)
    return results


def fake_jit_runs_step_by_step():
    calls = []
    with chex.fake_jit():
        function = jax.jit(lambda x: calls.append(1) or x * 2)
        function(jnp.ones(2))
        answer = function(jnp.ones(2))
    return {"answer": answer, "calls": len(calls)}
