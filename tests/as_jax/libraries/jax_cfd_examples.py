"""JAX-CFD: incompressible flow by finite volumes and by Fourier series."""

import jax
import jax.numpy as jnp
import jax_cfd.base as cfd
from jax_cfd import spectral

GRID = cfd.grids.Grid((24, 24), domain=((0, 2 * jnp.pi), (0, 2 * jnp.pi)))
TOLERANCES = {
    "slopes_of_a_step": (1e-3, "the pressure solve's sums, in another order"),
    "decaying_turbulence": (1e-3, "the pressure solve's sums, in another order"),
}


def _velocity():
    return cfd.initial_conditions.filtered_velocity_field(jax.random.PRNGKey(0), GRID, 1.0, 3)


def _step():
    return cfd.equations.semi_implicit_navier_stokes(density=1.0, viscosity=1e-2, dt=0.01, grid=GRID)


def fields_to_begin_with():
    velocity = _velocity()
    divergence = cfd.finite_differences.divergence(velocity).data
    return [v.data for v in velocity], jnp.max(jnp.abs(divergence)) < 1e-5


def decaying_turbulence():
    rollout = jax.jit(cfd.funcutils.trajectory(cfd.funcutils.repeated(_step(), 5), 3))
    _, trajectory = rollout(_velocity())
    return [v.data for v in trajectory]


def slopes_of_a_step():
    gradient = jax.grad(lambda v: sum(jnp.sum(u.data**2) for u in _step()(v)))(_velocity())
    return [g.data for g in gradient]


def advection_of_a_scalar():
    velocity = _velocity()
    scalar = cfd.finite_differences.curl_2d(velocity).data
    array = cfd.grids.GridArray(scalar, GRID.cell_center, GRID)
    field = cfd.grids.GridVariable(array, velocity[0].bc)
    return {
        "van Leer": cfd.advection.advect_van_leer(field, velocity, 0.01).data,
        "upwind": cfd.advection.advect_upwind(field, velocity, 0.01).data,
        "linear": cfd.advection.advect_linear(field, velocity, 0.01).data,
    }


def vorticity_by_series():
    vorticity = cfd.finite_differences.curl_2d(_velocity()).data
    equation = spectral.equations.ForcedNavierStokes2D(1e-2, GRID, smooth=True)
    step = spectral.time_stepping.crank_nicolson_rk4(equation, 0.01)
    _, spectra = cfd.funcutils.trajectory(cfd.funcutils.repeated(step, 3), 4)(jnp.fft.rfftn(vorticity))
    return jnp.fft.irfftn(spectra, axes=(1, 2))
