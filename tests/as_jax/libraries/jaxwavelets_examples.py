"""jaxwavelets: wavelet transforms, stationary ones, packets and thresholds."""

import functools

import jax
import jax.numpy as jnp
import jaxwavelets as wt


def _signal(*shape):
    return jax.random.normal(jax.random.key(0), shape)


def decomposition_and_reconstruction_of_the_readme():
    coefficients = wt.wavedecn(_signal(16, 16), "db4", level=2)
    return coefficients, wt.waverecn(coefficients, "db4")


def lanes():
    return jax.vmap(functools.partial(wt.wavedecn, wavelet="db2", level=2))(_signal(3, 16, 16))


def slopes_of_a_round_trip():
    return jax.grad(lambda x: jnp.sum(wt.waverecn(wt.wavedecn(x, "db4"), "db4") ** 3))(_signal(40))


def jitted_with_static_names():
    fast = jax.jit(wt.wavedecn, static_argnames=["wavelet", "mode", "level"])
    return fast(_signal(32), wavelet="sym4", level=3)


def stationary_and_continuous():
    scales = jnp.array([1.0, 2.0, 4.0])
    return wt.swt(_signal(32), "haar", level=2), wt.cwt(_signal(32), scales, "morl")


def thresholds():
    x = _signal(33)
    return {f.__name__: f(x, 0.7) for f in (wt.soft_threshold, wt.hard_threshold, wt.garrote_threshold)}
