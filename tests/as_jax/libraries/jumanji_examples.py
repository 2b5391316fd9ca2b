"""Jumanji: puzzles, packing and routes as environments."""

import jax
import jax.numpy as jnp
import jumanji


def _episode(name, steps=5, actions=2):
    """Rewards, discounts and sums of the observations of an episode of random actions."""
    env = jumanji.make(name)
    state, timestep = jax.jit(env.reset)(jax.random.key(0))
    step = jax.jit(env.step)
    rewards, discounts = [], []
    for key in jax.random.split(jax.random.key(1), steps):
        action = jax.tree.map(
            lambda spec, key=key: jax.random.randint(key, jnp.shape(spec), 0, actions).astype(jnp.asarray(spec).dtype),
            env.action_spec.generate_value(),
        )
        state, timestep = step(state, action)
        rewards.append(timestep.reward)
        discounts.append(timestep.discount)
    sums = [jnp.sum(jnp.asarray(x, jnp.float32)) for x in jax.tree.leaves(timestep.observation)]
    return {"rewards": jnp.stack(rewards), "discounts": jnp.stack(discounts), "observation": sums}


def grids():
    return {name: _episode(name, 6, 4) for name in ("Snake-v1", "Game2048-v1", "Maze-v0", "SlidingTilePuzzle-v0")}


def routes():
    return {name: _episode(name) for name in ("TSP-v1", "CVRP-v1", "MultiCVRP-v0")}


def packing():
    return {name: _episode(name) for name in ("Knapsack-v1", "BinPack-v2", "FlatPack-v0", "Tetris-v0")}


def puzzles():
    return {name: _episode(name) for name in ("Minesweeper-v0", "RubiksCube-v0", "Sudoku-v0", "GraphColoring-v1")}


def several_agents():
    return {name: _episode(name) for name in ("RobotWarehouse-v0", "LevelBasedForaging-v0", "Cleaner-v0")}


def schedules_and_chases():
    return {name: _episode(name) for name in ("JobShop-v0", "PacMan-v1", "MMST-v0")}
