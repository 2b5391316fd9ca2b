"""Exponax: exponential time differencing by Fourier series, in one to three dimensions."""

import exponax as ex
import jax
import jax.numpy as jnp

TOLERANCES = {
    "slopes_of_a_step": (1e-3, "sums of a spectrum in another order"),
    "chaos_in_one_dimension": (1e-3, "a chaotic equation in f32"),
}


def _state(channels, dims, points):
    return 0.1 * jax.random.normal(jax.random.key(points), (channels, *[points] * dims))


def linear_equations():
    kinds = (ex.stepper.Advection, ex.stepper.Diffusion, ex.stepper.Dispersion, ex.stepper.HyperDiffusion)
    return {kind.__name__: kind(1, 1.0, 31, 0.01)(_state(1, 1, 31)) for kind in kinds}


def chaos_in_one_dimension():
    stepper = ex.stepper.KuramotoSivashinskyConservative(1, 60.0, 64, 0.1)
    state = ex.ic.RandomTruncatedFourierSeries(1, cutoff=5)(num_points=64, key=jax.random.key(0))
    return ex.rollout(stepper, 10, include_init=True)(state)


def shocks_in_two_dimensions():
    return jax.jit(ex.repeat(ex.stepper.Burgers(2, 1.0, 32, 0.01), 5))(_state(2, 2, 32))


def vorticity():
    return ex.repeat(ex.stepper.NavierStokesVorticity(2, 1.0, 32, 0.01), 4)(_state(1, 2, 32))


def reactions():
    kinds = ((ex.stepper.reaction.GrayScott, 24), (ex.stepper.reaction.FisherKPP, 21))
    steppers = {kind.__name__: kind(2, 10.0, n, 0.01) for kind, n in kinds}
    return {name: jax.jit(ex.repeat(s, 4))(_state(s.num_channels, 2, s.num_points)) for name, s in steppers.items()}


def waves():
    return jax.jit(ex.repeat(ex.stepper.KortewegDeVries(1, 10.0, 63, 0.01), 4))(_state(1, 1, 63))


def slopes_of_a_step():
    stepper = ex.stepper.Burgers(1, 1.0, 33, 0.01)
    return jax.grad(lambda state: jnp.sum(ex.repeat(stepper, 3)(state) ** 2))(_state(1, 1, 33))
