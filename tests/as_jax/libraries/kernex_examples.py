"""Kernex: stencils as functions of a window, mapped or scanned."""

import jax
import jax.numpy as jnp
import kernex as kex

X = jnp.arange(35.0).reshape(5, 7) ** 1.5


@kex.kmap(kernel_size=(3, 3), padding="same", relative=True)
def _laplacian(x):
    return -4 * x[0, 0] + x[1, 0] + x[-1, 0] + x[0, 1] + x[0, -1]


def sums_of_windows():
    return kex.kmap(kernel_size=(3,), padding="valid")(jnp.sum)(jnp.arange(1.0, 10.0))


def strides_and_borders():
    return kex.kmap(kernel_size=(3,), strides=(2,), padding=((1, 1),))(jnp.max)(jnp.arange(1.0, 10.0))


def means_that_read_what_is_written():
    return kex.kscan(kernel_size=(3,), padding=((1, 1),))(jnp.mean)(jnp.arange(1.0, 10.0))


def laplacian():
    return {"value": _laplacian(X), "gradient": jax.grad(lambda x: jnp.sum(_laplacian(x) ** 2))(X)}


def equations_at_the_border():
    stencil = kex.kmap(kernel_size=(3,), padding="valid", relative=True)(lambda x: x[1] - 2 * x[0] + x[-1])
    return jax.jit(stencil)(jnp.sin(jnp.arange(11.0)))
