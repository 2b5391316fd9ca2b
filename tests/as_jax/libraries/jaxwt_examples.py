"""jaxwt: wavelet transforms in one and two dimensions, with slopes."""

import jax
import jax.numpy as jnp
import jaxwt
import numpy as np

SIGNAL = jnp.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0])


def _batch():
    return jnp.sin(jnp.arange(2 * 37.0)).reshape(2, 37)


def levels_of_the_documentation():
    return jaxwt.wavedec(SIGNAL, wavelet="haar", level=2)


def a_signal_of_odd_length_and_back():
    return {
        mode: jaxwt.waverec(jaxwt.wavedec(_batch(), "db3", mode=mode, level=2), "db3")
        for mode in ("reflect", "symmetric", "zero")
    }


def details_of_an_image_and_back():
    image = jnp.cos(jnp.arange(3 * 20 * 17.0)).reshape(3, 20, 17)
    levels = jaxwt.wavedec2(image, "db2", level=2)
    return levels, jaxwt.waverec2(levels, "db2")


def a_transform_that_keeps_the_length():
    levels = jaxwt.swt(jnp.tile(SIGNAL, (1, 4)), "db2", level=2)
    return levels, jaxwt.iswt(levels, "db2")


def scales_of_a_chirp():
    time = jnp.linspace(-1.0, 1.0, 61)
    return jaxwt.cwt(jnp.sin(20 * time**2), np.arange(1, 6), "mexh")


def slopes_of_a_threshold_under_jit():
    @jax.jit
    def smoothed(x):
        rough, *fine = jaxwt.wavedec(x, "db2", level=2)
        shrunk = [jnp.sign(c) * jnp.maximum(jnp.abs(c) - 0.1, 0) for c in fine]
        return jaxwt.waverec([rough, *shrunk], "db2")

    return smoothed(_batch()), jax.grad(lambda x: jnp.sum(smoothed(x) ** 2))(_batch())
