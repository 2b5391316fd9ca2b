"""interpax: interpolation in one, two and three dimensions, splines and by Fourier series."""

import interpax
import jax
import jax.numpy as jnp

X = jnp.linspace(0, 2 * jnp.pi, 23)
QUERIES = jnp.linspace(0.1, 6, 17)
METHODS = ("nearest", "linear", "cubic", "cubic2", "catmull-rom", "cardinal", "monotonic", "monotonic-0", "akima")


def every_method():
    return {m: interpax.interp1d(QUERIES, X, jnp.sin(X), method=m) for m in METHODS}


def slopes_by_grad():
    def slope(method):
        return jax.vmap(jax.grad(lambda q: interpax.interp1d(q, X, jnp.sin(X), method=method)))(QUERIES)

    return {m: slope(m) for m in METHODS if m != "nearest"}


def derivatives_by_argument():
    return [interpax.interp1d(QUERIES, X, jnp.exp(jnp.sin(X)), method="cubic", derivative=k) for k in (0, 1, 2)]


def periods():
    methods = ("linear", "cubic", "monotonic")
    return {m: interpax.interp1d(QUERIES + 10, X, jnp.sin(X), method=m, period=2 * jnp.pi) for m in methods}


def beyond_the_ends():
    queries = jnp.array([-1.0, 0.5, 7.0])
    return [interpax.interp1d(queries, X, jnp.cos(X), extrap=extrap) for extrap in (True, False, (0.0, 9.0))]


def planes():
    z = jnp.sin(X)[:, None] * jnp.cos(X)
    methods = ("nearest", "linear", "cubic", "cardinal")
    return {m: interpax.interp2d(QUERIES, QUERIES[::-1], X, X, z, method=m) for m in methods}


def spaces():
    x = jnp.linspace(0, 1, 7)
    f = jnp.sin(x)[:, None, None] + x[:, None] ** 2 + jnp.exp(x)
    q = jnp.linspace(0.05, 0.9, 5)
    return {m: interpax.interp3d(q, q[::-1], q**2, x, x, x, f, method=m) for m in ("linear", "cubic")}


def fourier_series():
    y = jnp.exp(jnp.sin(X[:-1]))
    return {"up": interpax.fft_interp1d(y, 41), "down": interpax.fft_interp1d(y, 9)}


def splines_as_objects():
    y = jnp.sin(X)
    kinds = (interpax.CubicSpline, interpax.Akima1DInterpolator, interpax.PchipInterpolator)
    return {k.__name__: [k(X, y)(QUERIES), k(X, y)(QUERIES, 1)] for k in kinds}
