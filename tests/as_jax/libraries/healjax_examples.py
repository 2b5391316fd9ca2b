"""healjax: pixels of the sphere (HEALPix), their neighbours and interpolation between them."""

import healjax
import jax
import jax.numpy as jnp

NSIDE = 4
PIXELS = 12 * NSIDE**2


def _directions():
    theta, phi = jnp.linspace(0.05, 3.1, 37), jnp.linspace(0.0, 6.2, 37)
    return theta, phi


def pixels_of_directions_in_three_schemes():
    theta, phi = _directions()
    return {
        scheme: jax.vmap(lambda t, p, s=scheme: healjax.ang2pix(s, NSIDE, t, p))(theta, phi)
        for scheme in ("ring", "nest", "xy")
    }


def centres_of_all_pixels():
    pixels = jnp.arange(PIXELS)
    return {
        scheme: jax.jit(jax.vmap(lambda p, s=scheme: healjax.pix2vec(s, NSIDE, p)))(pixels)
        for scheme in ("ring", "nest")
    }


def pixels_are_those_of_their_centres():
    def there_and_back(pixel):
        return healjax.vec2pix("ring", NSIDE, *healjax.pix2vec("ring", NSIDE, pixel))

    return jax.vmap(there_and_back)(jnp.arange(PIXELS))


def neighbours_and_patches():
    pixels = jnp.arange(0, PIXELS, 5)
    neighbours = jax.vmap(lambda p: healjax.get_neighbours("nest", NSIDE, p))(pixels)
    return neighbours, jax.vmap(lambda p: healjax.get_patch("ring", NSIDE, p))(pixels)


def a_map_in_another_order_and_back():
    values = jnp.sin(jnp.arange(PIXELS, dtype=jnp.float32))
    nested = healjax.convert_map("ring", "nest", values)
    return nested, healjax.convert_map("nest", "ring", nested)


def a_map_between_its_pixels_and_its_gradient():
    theta, phi = _directions()

    def power(values):
        return jnp.sum(healjax.interpolate_map(NSIDE, values, theta, phi) ** 2)

    values = jnp.cos(jnp.arange(PIXELS, dtype=jnp.float32))
    return healjax.interpolate_map(NSIDE, values, theta, phi), jax.grad(power)(values)
