"""dLux: optical systems, their images, and gradients by their parameters."""

import dLux as dl
import dLux.utils as dlu
import jax
import jax.numpy as jnp


def _telescope():
    coordinates = dlu.pixel_coords(32, 1.0)
    aperture = dlu.circle(coordinates, 0.5) - dlu.circle(coordinates, 0.15)
    basis = dlu.zernike_basis([2, 3, 4], coordinates, 1.0)
    layers = [("aperture", dl.layers.BasisOptic(basis, aperture, jnp.array([2e-8, -3e-8, 5e-8]), normalise=True))]
    return dl.AngularOpticalSystem(32, 1.0, layers, 17, 0.1)


def image_of_a_star():
    return _telescope().propagate(jnp.array([0.9e-6, 1.1e-6]))


def image_of_two_stars():
    stars = dl.BinarySource(jnp.array([1e-6]), position=jnp.zeros(2), separation=1.5e-6, mean_flux=100.0, contrast=3.0)
    return dl.Telescope(_telescope(), ("stars", stars)).model()


def slope_by_aberrations():
    telescope = _telescope()
    image = telescope.propagate(jnp.array([1e-6]))

    def distance(coefficients):
        return jnp.sum((telescope.set("aperture.coefficients", coefficients).propagate(jnp.array([1e-6])) - image) ** 2)

    return jax.grad(distance)(jnp.array([1e-8, 1e-8, 1e-8]))
