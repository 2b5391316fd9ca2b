"""sparsejac: Jacobians of a known sparsity by few products."""

import jax
import jax.numpy as jnp
import numpy as np
import sparsejac
from jax.experimental import sparse


def _pattern(matrix):
    return sparse.BCOO.fromdense(jnp.asarray(matrix, jnp.float32))


def _tridiagonal(n):
    return np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)


def _differences(x):
    return jnp.sin(x) * x + jnp.roll(x, 1).at[0].set(0.0) ** 2 - jnp.roll(x, -1).at[-1].set(0.0)


def diagonal_of_the_readme_by_reverse_mode():
    jacobian = sparsejac.jacrev(lambda x: x**2, sparsity=_pattern(np.eye(7)))
    return jax.jit(lambda x: jacobian(x).todense())(jnp.arange(7.0))


def tridiagonal_jacobian_by_both_modes():
    x, pattern = jnp.linspace(-1.0, 2.0, 9), _pattern(_tridiagonal(9))
    return [mode(_differences, sparsity=pattern)(x).todense() for mode in (sparsejac.jacrev, sparsejac.jacfwd)]


def wide_jacobian_with_an_auxiliary_result():
    pattern = _pattern(np.kron(np.eye(3), np.ones((1, 2))))

    def sums(x):
        return jnp.sum(x.reshape(3, 2) ** 3, axis=1), {"largest": x.max()}

    matrix, extra = sparsejac.jacfwd(sums, sparsity=pattern, has_aux=True)(jnp.arange(6.0))
    return matrix.todense(), extra


def second_argument():
    pattern = _pattern(np.eye(5))
    matrix = sparsejac.jacrev(lambda a, x: a * jnp.exp(x), sparsity=pattern, argnums=1)
    return matrix(2.0, jnp.linspace(0.0, 1.0, 5)).todense()
