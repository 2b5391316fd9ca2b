"""jaxkd: trees of points, their neighbours, and clusters."""

import jax
import jax.numpy as jnp
import jaxkd as jk
from jaxkd import extras


def _cloud(n, dims=3, seed=83):
    points, queries = jax.random.split(jax.random.key(seed))
    return jax.random.normal(points, (n, dims)), jax.random.normal(queries, (13, dims))


def first_page_neighbours_and_counts():
    points, queries = _cloud(211)
    tree = jk.build_tree(points)
    return {"counts": jk.count_neighbors(tree, queries, r=0.5), "near": jk.query_neighbors(tree, queries, k=5)}


def counts_within_several_radii():
    points, queries = _cloud(97, 2)
    return jk.count_neighbors(jk.build_tree(points), queries, r=jnp.array([0.1, 0.3, 1.0]))


def build_and_query_in_one():
    points, queries = _cloud(64)
    return jax.jit(lambda p, q: jk.build_and_query(p, q, k=3))(points, queries)


def slopes_of_distances():
    points, queries = _cloud(31, 2)

    def total(points):
        _, distances = jk.query_neighbors(jk.build_tree(points), queries, k=2)
        return jnp.sum(distances**2)

    return jax.grad(total)(points)


def brute_force_agrees():
    points, queries = _cloud(53)
    return {
        "near": extras.query_neighbors_pairwise(points, queries, k=4),
        "counts": extras.count_neighbors_pairwise(points, queries, r=0.7),
    }


def clusters():
    points, _ = _cloud(120, 2)
    return extras.k_means(jax.random.key(0), points + 4.0 * jnp.sign(points), k=4, steps=5)
