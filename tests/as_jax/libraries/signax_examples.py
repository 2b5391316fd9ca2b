"""Signax: signatures and log-signatures of paths."""

import jax
import jax.numpy as jnp
import signax

PATHS = jax.random.normal(jax.random.key(0), (3, 11, 3))


def signatures():
    return jax.vmap(lambda path: signax.signature(path, 3))(PATHS)


def log_signatures():
    return jax.vmap(lambda path: signax.logsignature(path, 3))(PATHS)


def streams():
    return signax.signature(PATHS[0], 2, stream=True)


def slopes():
    return jax.grad(lambda path: jnp.sum(signax.signature(path, 3) ** 2))(PATHS[0])


def joined_paths():
    first, second = signax.signature(PATHS[0, :6], 3, flatten=False), signax.signature(PATHS[0, 5:], 3, flatten=False)
    return signax.signature_combine(first, second)
