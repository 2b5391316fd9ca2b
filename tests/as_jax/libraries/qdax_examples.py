"""QDax: quality and diversity by MAP-Elites and evolution strategies."""

import functools

import jax
from qdax.core.containers.mapelites_repertoire import compute_euclidean_centroids
from qdax.core.emitters.mutation_operators import isoline_variation, polynomial_mutation
from qdax.core.emitters.standard_emitters import MixingEmitter
from qdax.core.map_elites import MAPElites
from qdax.tasks.arm import arm_scoring_function
from qdax.utils.metrics import default_qd_metrics

VARIATION = functools.partial(isoline_variation, iso_sigma=0.05, line_sigma=0.1, minval=0.0, maxval=1.0)
GENOTYPES = jax.random.uniform(jax.random.key(1), (20, 12))


def variations():
    mutate = functools.partial(polynomial_mutation, proportion_to_mutate=0.5, eta=0.05, minval=0.0, maxval=1.0)
    return VARIATION(GENOTYPES, GENOTYPES[::-1], jax.random.key(2)), mutate(GENOTYPES, jax.random.key(3))


def scores_of_arms():
    return arm_scoring_function(GENOTYPES, jax.random.key(0))


def map_elites():
    emitter = MixingEmitter(lambda x, key: x, VARIATION, variation_percentage=1.0, batch_size=32)
    metrics = functools.partial(default_qd_metrics, qd_offset=0.0)
    search = MAPElites(arm_scoring_function, emitter, metrics)
    centroids = compute_euclidean_centroids(grid_shape=(10, 10), minval=0.0, maxval=1.0)
    repertoire, state, _ = search.init(GENOTYPES, centroids, jax.random.key(4))
    carry, measures = jax.lax.scan(search.scan_update, (repertoire, state, jax.random.key(5)), (), length=10)
    return {"metrics": measures, "fitnesses": carry[0].fitnesses}
