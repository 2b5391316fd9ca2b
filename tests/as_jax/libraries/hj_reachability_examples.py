"""hj_reachability: sets that a system can reach, by the equation of Hamilton, Jacobi and Isaacs."""

import hj_reachability as hj
import jax
import jax.numpy as jnp
import numpy as np


def _grid(shape):
    box = hj.sets.Box(np.array([-6.0, -10.0, 0.0]), np.array([20.0, 10.0, 2 * np.pi]))
    return hj.Grid.from_lattice_parameters_and_boundary_conditions(box, shape, periodic_dims=2)


def tube_of_two_aircraft():
    grid = _grid((13, 10, 12))
    values = jnp.linalg.norm(grid.states[..., :2], axis=-1) - 5
    settings = hj.SolverSettings.with_accuracy("low", hamiltonian_postprocessor=hj.solver.backwards_reachable_tube)
    return hj.step(settings, hj.systems.Air3d(), grid, 0.0, values, -0.3, progress_bar=False)


def a_sequence_of_times():
    grid = _grid((11, 9, 8))
    values = jnp.linalg.norm(grid.states[..., :2], axis=-1) - 5
    settings = hj.SolverSettings.with_accuracy("medium")
    return hj.solve(settings, hj.systems.Air3d(), grid, jnp.linspace(0, -0.2, 3), values, progress_bar=False)


def slopes_of_a_value():
    grid = _grid((11, 9, 8))
    values = jnp.linalg.norm(grid.states[..., :2], axis=-1) - 5
    return grid.grad_values(values), jax.vmap(lambda s: grid.interpolate(values, s))(grid.states[::3, 2, 1] + 0.1)
