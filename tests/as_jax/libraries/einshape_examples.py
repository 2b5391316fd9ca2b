"""einshape: reshapes written as equations."""

import jax
import jax.numpy as jnp
from einshape import jax_einshape as einshape


def _grid():
    return jnp.arange(24.0).reshape(4, 6)


def axes_are_joined_and_parted():
    return einshape("ij->(ij)", _grid()), einshape("(ab)(cd)->acbd", _grid(), a=2, c=3)


def transposed_and_repeated():
    return einshape("ij->ji", _grid()), einshape("ij->inj", _grid(), n=3)


def axes_of_one_element():
    return einshape("1ij->ji", _grid()[None]), einshape("ij->i1j1", _grid())


def leading_axes_by_dots():
    return einshape("...ij->...(ji)", jnp.arange(24.0).reshape(2, 3, 4))


def patches_of_an_image_under_jit_and_grad():
    def patches(image):
        return einshape("(hp)(wq)->(hw)(pq)", image, p=2, q=3)

    weights = jnp.linspace(0.0, 1.0, 24).reshape(4, 6)
    return jax.jit(patches)(_grid()), jax.grad(lambda x: jnp.sum(patches(x) ** 2 * weights))(_grid())
