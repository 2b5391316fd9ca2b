"""JAX MD: spaces, energies, minimisation, simulations, neighbor lists."""

import jax
import jax.numpy as jnp
from jax_md import elasticity, energy, interpolate, minimize, partition, quantity, rigid_body, simulate, smap, space
from jax_md._energy import electrostatics

BOX = 5.0


def _positions(count=16, dimension=2):
    side = round(count ** (1 / dimension))
    grid = jnp.stack(jnp.meshgrid(*[jnp.arange(side)] * dimension, indexing="ij"), -1).reshape(-1, dimension)
    noise = jax.random.uniform(jax.random.PRNGKey(0), grid.shape, minval=-0.1, maxval=0.1)
    return (grid + 0.5) * (BOX / side) + noise


def free_and_periodic_spaces():
    displacement, shift = space.periodic(BOX)
    free, free_shift = space.free()
    a, b = jnp.array([0.5, 0.5]), jnp.array([4.5, 2.0])
    return {
        "periodic": displacement(a, b),
        "shift": shift(b, jnp.array([1.0, 4.0])),
        "free": free(a, b),
        "free_shift": free_shift(a, b),
    }


def spaces_of_general_boxes():
    displacement, shift = space.periodic_general(jnp.array([[3.0, 0.5], [0.0, 2.0]]))
    metric = space.metric(displacement)
    a, b = jnp.array([0.1, 0.2]), jnp.array([0.9, 0.6])
    return {"displacement": displacement(a, b), "metric": metric(a, b), "shift": shift(a, b)}


def distances_of_all_pairs():
    displacement, _ = space.periodic(BOX)
    return space.map_product(space.metric(displacement))(_positions(9), _positions(9))


def energies_of_pairs():
    displacement, _ = space.periodic(BOX)
    r = _positions()
    return {
        "soft": energy.soft_sphere_pair(displacement)(r),
        "lennard_jones": energy.lennard_jones_pair(displacement)(r),
        "morse": energy.morse_pair(displacement)(r),
        "per_particle": energy.lennard_jones_pair(displacement, per_particle=True)(r),
    }


def forces_of_a_fluid():
    displacement, _ = space.periodic(BOX)
    return quantity.force(energy.lennard_jones_pair(displacement))(_positions())


def species_and_their_parameters():
    displacement, _ = space.periodic(BOX)
    species = jnp.arange(16) % 2
    sigma = jnp.array([[1.0, 1.2], [1.2, 1.4]])
    return energy.soft_sphere_pair(displacement, species=species, sigma=sigma)(_positions())


def minimisation_by_descent_and_fire():
    displacement, shift = space.periodic(BOX)
    potential = energy.soft_sphere_pair(displacement, sigma=1.4)
    results = {}
    for name, method in {
        "descent": minimize.gradient_descent(potential, shift, step_size=1e-2),
        "fire": minimize.fire_descent(potential, shift),
    }.items():
        init, apply = method
        state = jax.lax.fori_loop(0, 20, lambda i, s, apply=apply: apply(s), init(_positions()))
        results[name] = potential(state if name == "descent" else state.position)
    return results


def constant_energy():
    displacement, shift = space.periodic(BOX)
    potential = energy.soft_sphere_pair(displacement, sigma=1.3)
    init, apply = simulate.nve(potential, shift, 1e-2)
    state = init(jax.random.PRNGKey(0), _positions(), kT=0.1)
    state = jax.lax.fori_loop(0, 30, lambda i, s: apply(s), state)
    return {
        "position": state.position,
        "momentum": state.momentum,
        "kinetic": quantity.kinetic_energy(momentum=state.momentum, mass=state.mass),
    }


def constant_temperature_by_nose_hoover():
    displacement, shift = space.periodic(BOX)
    potential = energy.soft_sphere_pair(displacement, sigma=1.3)
    init, apply = simulate.nvt_nose_hoover(potential, shift, 5e-3, kT=0.2)
    state = init(jax.random.PRNGKey(0), _positions())
    step = jax.jit(apply)
    for _ in range(10):
        state = step(state, kT=0.2)
    return {"position": state.position, "temperature": quantity.temperature(momentum=state.momentum, mass=state.mass)}


def langevin_and_brownian_dynamics():
    displacement, shift = space.periodic(BOX)
    potential = energy.soft_sphere_pair(displacement, sigma=1.3)
    results = {}
    for name, simulation in {
        "langevin": simulate.nvt_langevin(potential, shift, 1e-2, 0.1, gamma=0.5),
        "brownian": simulate.brownian(potential, shift, 1e-3, 0.1),
    }.items():
        init, apply = simulation
        state = init(jax.random.PRNGKey(0), _positions())
        results[name] = jax.lax.fori_loop(0, 10, lambda i, s, apply=apply: apply(s), state).position
    return results


def constant_pressure():
    displacement, shift = space.periodic_general(BOX)
    potential = energy.soft_sphere_pair(displacement, sigma=1.3)
    init, apply = simulate.npt_nose_hoover(potential, shift, 1e-3, pressure=0.05, kT=0.1)
    state = init(jax.random.PRNGKey(0), _positions() / BOX, box=jnp.array(BOX))
    step = jax.jit(apply)
    for _ in range(4):
        state = step(state)
    return {"position": state.position, "box": simulate.npt_box(state)}


def neighbor_list_of_a_fluid():
    displacement, _ = space.periodic(BOX)
    neighbor_fn, potential = energy.lennard_jones_neighbor_list(
        displacement, BOX, r_cutoff=1.5, r_onset=1.2, dr_threshold=0.2
    )
    r = _positions()
    neighbors = neighbor_fn.allocate(r)
    displaced = r + 0.01
    neighbors = neighbors.update(displaced)
    return {
        "energy": potential(displaced, neighbor=neighbors),
        "overflow": neighbors.did_buffer_overflow,
        "counts": (neighbors.idx < 16).sum(1),
    }


def sparse_neighbor_list():
    displacement, _ = space.periodic(BOX)
    neighbor_fn = partition.neighbor_list(displacement, BOX, 1.5, 0.2, format=partition.Sparse)
    neighbors = neighbor_fn.allocate(_positions())
    return {"edges": (neighbors.idx[0] < 16).sum(), "shape": jnp.array(neighbors.idx.shape)}


def maps_over_pairs_and_bonds():
    displacement, _ = space.free()
    metric = space.metric(displacement)
    pair = smap.pair(lambda dr, **kwargs: jnp.exp(-(dr**2)), metric)
    bond = smap.bond(lambda dr, **kwargs: 0.5 * (dr - 1.0) ** 2, metric, jnp.array([[0, 1], [1, 2]]))
    r = _positions(9)
    return {"pair": pair(r), "bond": bond(r)}


def structure_of_a_fluid():
    displacement, _ = space.periodic(BOX)
    g = quantity.pair_correlation(displacement, jnp.linspace(0.5, 2.5, 9), 0.1)
    return {
        "g": g(_positions()),
        "pressure": quantity.pressure(energy.soft_sphere_pair(displacement), _positions(), BOX),
    }


def quaternions_of_rigid_bodies():
    angle = rigid_body.Quaternion(jnp.array([0.5, 0.5, 0.5, 0.5]))
    turned = rigid_body.quaternion_rotate(angle, jnp.array([1.0, 2.0, 3.0]))
    return {"turned": turned, "random": rigid_body.random_quaternion(jax.random.PRNGKey(0), jnp.float32).vec}


def potential_of_three_bodies():
    displacement, _ = space.periodic(2 * BOX)
    potential = energy.stillinger_weber(displacement)
    r = 2 * _positions(27, 3) / 1.4
    return {"energy": potential(r), "forces": quantity.force(potential)(r)}


def embedded_atoms():
    displacement, _ = space.periodic(BOX)
    potential = energy.eam(
        displacement,
        charge_fn=lambda dr: jnp.exp(-dr),
        embedding_fn=lambda rho: -jnp.sqrt(rho),
        pairwise_fn=lambda dr: jnp.exp(-2 * dr) / (dr + 0.5),
    )
    return {"energy": potential(_positions()), "forces": quantity.force(potential)(_positions())}


def potential_that_is_learnt_by_symmetry_functions():
    displacement, _ = space.periodic(BOX)
    potential = energy.behler_parrinello(displacement, key=jax.random.key(1))
    r = _positions(27, 3) * 0.7
    return {"energy": potential(r), "forces": jax.jit(quantity.force(potential))(r)}


def potential_that_is_learnt_by_a_graph_network():
    displacement, _ = space.periodic(BOX)
    potential = energy.graph_network(displacement, 1.8, key=jax.random.key(0), spatial_dimension=2, mlp_sizes=(8, 8))
    return {"energy": potential(_positions()), "forces": jax.jit(quantity.force(potential))(_positions())}


def charges_by_ewald():
    displacement, _ = space.periodic(2 * BOX)
    charges = jnp.where(jnp.arange(27) % 2 == 0, 1.0, -1.0).at[0].set(0.0)
    r = 2 * _positions(27, 3) / 1.4
    reciprocal = electrostatics.coulomb_recip_ewald(charges, 2 * BOX, 0.34, 3.0)
    direct = electrostatics.coulomb_direct_pair(displacement, charges)
    return {"reciprocal": reciprocal(r), "direct": direct(r)}


def dimers_are_rigid_bodies():
    displacement, shift = space.periodic(BOX)
    shape = rigid_body.point_union_shape(jnp.array([[0.25, 0.0], [-0.25, 0.0]]), jnp.array([1.0, 1.0]))
    body = rigid_body.RigidBody(_positions(9), jnp.linspace(0.0, 2.0, 9))
    potential = rigid_body.point_energy(energy.soft_sphere_pair(displacement, sigma=1.2), shape)
    init, apply = simulate.nve(potential, shift, 5e-3)
    state = init(jax.random.PRNGKey(0), body, 1e-2, mass=shape.mass())
    state = jax.lax.fori_loop(0, 10, lambda i, s: apply(s), state)
    return {
        "energy": potential(body),
        "position": state.position,
        "kinetic": rigid_body.kinetic_energy(state.position, state.momentum, state.mass),
    }


def thermostats_by_rescaling():
    displacement, shift = space.periodic(BOX)
    potential = energy.soft_sphere_pair(displacement, sigma=1.3)
    results = {}
    for name, simulation in {
        "rescale": simulate.temp_rescale(potential, shift, 5e-3, 0.2, window=0.01, fraction=0.8),
        "berendsen": simulate.temp_berendsen(potential, shift, 5e-3, 0.2, tau=0.1),
        "isokinetic": simulate.nvk(potential, shift, 5e-3, 0.2),
    }.items():
        init, apply = simulation
        state = init(jax.random.PRNGKey(0), _positions(), 0.1)
        state = jax.lax.fori_loop(0, 10, lambda i, s, apply=apply: apply(s), state)
        results[name] = {"position": state.position, "temperature": simulate.temperature(state)}
    return results


def stress_and_pressure_of_a_box():
    displacement, _ = space.periodic_general(BOX, fractional_coordinates=True)
    potential = energy.lennard_jones_pair(displacement)
    r, box = _positions() / BOX, BOX * jnp.array([[1.0, 0.1], [0.0, 1.0]])
    return {"stress": quantity.stress(potential, r, box), "pressure": quantity.pressure(potential, r, box)}


def elastic_moduli_of_a_packing():
    displacement, shift = space.periodic_general(jnp.eye(2) * 4.2, fractional_coordinates=False)
    potential = energy.soft_sphere_pair(displacement, sigma=1.4)
    init, apply = minimize.fire_descent(potential, shift)
    r = jax.lax.fori_loop(0, 200, lambda i, s: apply(s), init(_positions() * 0.84)).position
    moduli = elasticity.athermal_moduli(potential, check_convergence=False)
    return {"moduli": elasticity.extract_isotropic_moduli(moduli(r, jnp.eye(2) * 4.2))}


def derivative_through_a_minimisation():
    displacement, shift = space.periodic(BOX)

    def relaxed(sigma):
        potential = energy.soft_sphere_pair(displacement, sigma=sigma)
        init, apply = minimize.gradient_descent(potential, shift, 1e-2)
        r, _ = jax.lax.scan(lambda r, _: (apply(r), None), init(_positions()), None, length=12)
        return potential(r)

    return {"value": relaxed(1.5), "slope": jax.grad(relaxed)(1.5)}


def ensemble_of_simulations_by_vmap():
    displacement, shift = space.periodic(BOX)
    init, apply = simulate.nve(energy.soft_sphere_pair(displacement, sigma=1.3), shift, 1e-2)

    def simulation(key, temperature):
        state = init(key, _positions(), kT=temperature)
        return jax.lax.fori_loop(0, 10, lambda i, s: apply(s), state).position

    return jax.vmap(simulation)(jax.random.split(jax.random.PRNGKey(0), 3), jnp.array([0.05, 0.1, 0.2]))


def angles_bonds_and_splines():
    displacement, _ = space.free()
    r = _positions(9)
    angle = smap.angle(lambda a, b, **kwargs: jnp.sum(a * b, -1) ** 2, displacement, jnp.array([[0, 1, 4], [1, 4, 8]]))
    spring = energy.simple_spring_bond(displacement, jnp.array([[0, 1], [1, 4], [4, 8]]), length=1.5)
    cosines = quantity.cosine_angles(space.map_product(displacement)(r[:3], r[:3]) + 0.3)
    curve = interpolate.spline(jnp.array([0.0, 1.0, 0.5, 2.0, 1.5]), 0.5)
    return {"angle": angle(r), "spring": spring(r), "cosines": cosines, "curve": curve(jnp.array([0.1, 0.7, 1.3]))}


def cells_and_graphs_of_neighbors():
    displacement, _ = space.periodic(BOX)
    r = _positions()
    cells = partition.cell_list(BOX, 1.25).allocate(r, mass=jnp.arange(16.0))
    neighbors = partition.neighbor_list(displacement, BOX, 1.5, 0.2, format=partition.Sparse).allocate(r)
    graph = partition.to_jraph(neighbors, nodes=r)
    return {
        "cells": cells.position_buffer.sum((-2, -3)),
        "mass": cells.kwarg_buffers["mass"].sum(),
        "edges": graph.n_edge,
        "dense": (partition.to_dense(neighbors) < 16).sum(1),
    }
