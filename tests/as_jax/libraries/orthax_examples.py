"""Orthax: orthogonal polynomials, their calculus, roots, fits and quadrature."""

import jax.numpy as jnp
import orthax

SERIES = jnp.array([1.0, 2.0, 3.0, -0.5])
X = jnp.linspace(-0.9, 0.9, 7)
FAMILIES = {"chebyshev": "cheb", "legendre": "leg", "hermite": "herm", "hermite_e": "herme", "laguerre": "lag"}
TOLERANCES = {
    "least_squares": (1e-3, "the matrix of seven points and four functions is solved in f32"),
    "roots": (1e-3, "eigenvalues of an f32 matrix that is not symmetric"),
}


def _of_each(name, *args):
    return {family: getattr(getattr(orthax, family), prefix + name)(*args) for family, prefix in FAMILIES.items()}


def values():
    return _of_each("val", X, SERIES)


def derivatives():
    return _of_each("der", SERIES)


def integrals():
    return _of_each("int", SERIES)


def products():
    return _of_each("mul", SERIES, SERIES[:3])


def roots():
    return {family: jnp.sort(jnp.real(r)) for family, r in _of_each("roots", SERIES).items()}


def least_squares():
    return _of_each("fit", X, jnp.exp(X), 3)


def quadrature():
    return _of_each("gauss", 6)


def plain_powers():
    p = orthax.polynomial
    return [p.polyval(X, SERIES), p.polyder(SERIES), p.polyint(SERIES), p.polymul(SERIES, SERIES)]
