"""evosax: evolution strategies, populations, and a network that is evolved."""

import jax
import jax.numpy as jnp
from evosax.algorithms import algorithms
from evosax.problems import BBOBProblem

KEY = jax.random.key(0)
# Why rune answers differently.
SIGNS = "draws follow eigenvectors, whose signs are free; by JAX's they are equal"
DIFFERENCES = {"covariance_matrix_adaptation": SIGNS, "generations_in_one_scan": SIGNS}


def _sphere(population):
    return jnp.sum((population - 0.5) ** 2, axis=-1)


def _search(name, steps=6, **options):
    """The mean and the fitness after some generations of a strategy that moves a distribution."""
    strategy = algorithms[name](population_size=12, solution=jnp.zeros(4), **options)
    params = strategy.default_params
    state = strategy.init(KEY, jnp.ones(4), params)
    for i in range(steps):
        key = jax.random.fold_in(KEY, i)
        population, state = strategy.ask(key, state, params)
        state, metrics = strategy.tell(key, population, _sphere(population), state, params)
    return {"mean": state.mean, "best": metrics["best_fitness"]}


def _evolve(name, steps=5):
    """The fitness and the last population of an algorithm with a population."""
    algorithm = algorithms[name](population_size=12, solution=jnp.zeros(4))
    params = algorithm.default_params
    population = jax.random.normal(KEY, (12, 4))
    state = algorithm.init(KEY, population, _sphere(population), params)
    for i in range(steps):
        key = jax.random.fold_in(KEY, i)
        population, state = algorithm.ask(key, state, params)
        state, metrics = algorithm.tell(key, population, _sphere(population), state, params)
    return {"population": population, "best": metrics["best_fitness"]}


def covariance_matrix_adaptation():
    return _search("CMA_ES")


def covariance_of_a_diagonal_and_of_low_rank():
    return {name: _search(name) for name in ("Sep_CMA_ES", "MA_ES", "Rm_ES")}


def strategies_of_gradients_by_differences():
    return {name: _search(name) for name in ("Open_ES", "PGPE", "ARS")}


def natural_gradients():
    return {name: _search(name) for name in ("SNES", "xNES")}


def populations_that_cross_and_mutate():
    return {name: _evolve(name) for name in ("SimpleGA", "DifferentialEvolution", "PSO")}


def generations_in_one_scan():
    strategy = algorithms["CMA_ES"](population_size=8, solution={"a": jnp.zeros(2), "b": jnp.zeros(())})
    params = strategy.default_params

    def generation(state, key):
        ask, tell = jax.random.split(key)
        population, state = strategy.ask(ask, state, params)
        fitness = jnp.sum(population["a"] ** 2, axis=-1) + (population["b"] - 1.0) ** 2
        state, metrics = strategy.tell(tell, population, fitness, state, params)
        return state, metrics["best_fitness"]

    state = strategy.init(KEY, {"a": jnp.ones(2), "b": jnp.zeros(())}, params)
    state, best = jax.lax.scan(generation, state, jax.random.split(KEY, 7))
    return {"best": best, "mean": strategy.get_mean(state)}


def functions_of_the_benchmark():
    x = jax.random.normal(KEY, (5, 2))

    def fitness(name):
        problem = BBOBProblem(name, num_dims=2, seed=3)
        values, _, _ = problem.eval(KEY, x, problem.init(KEY))
        return values

    return {name: fitness(name) for name in ("sphere", "rosenbrock", "rastrigin", "ellipsoidal")}
