"""quadax: integrals by adaptive, fixed and tanh-sinh rules, of samples, and their slopes."""

import jax
import jax.numpy as jnp
import quadax


def _peak(x):
    return jnp.exp(-(x**2)) * (1 + jnp.cos(3 * x))


def quick_start_an_adaptive_integral():
    value, info = quadax.quadgk(_peak, [0.0, 2.0], epsabs=1e-5, epsrel=1e-5)
    return {"value": value, "status": info.status}


def rules_that_adapt():
    rules = {"gk": quadax.quadgk, "cc": quadax.quadcc, "ts": quadax.quadts}
    return {name: rule(_peak, [0.0, 0.7, 2.0], epsabs=1e-4, epsrel=1e-4)[0] for name, rule in rules.items()}


def integrals_to_infinity():
    return {
        "half": quadax.quadgk(lambda x: jnp.exp(-x) * x, [0.0, jnp.inf], epsabs=1e-5, epsrel=1e-5)[0],
        "whole": quadax.quadgk(lambda x: jnp.exp(-(x**2)), [-jnp.inf, jnp.inf], epsabs=1e-5, epsrel=1e-5)[0],
    }


def rules_of_fixed_order():
    return {
        "gk": quadax.GaussKronrodRule(15).integrate(_peak, 0.0, 2.0, ())[:2],
        "cc": quadax.ClenshawCurtisRule(16).integrate(_peak, 0.0, 2.0, ())[:2],
        "ts": quadax.TanhSinhRule(21).integrate(_peak, 0.0, 2.0, ())[:2],
    }


def extrapolation_by_romberg():
    return quadax.romberg(_peak, [0.0, 2.0], epsabs=1e-4, epsrel=1e-4)[0]


def integrals_of_samples():
    x = jnp.linspace(0.0, 2.0, 17) ** 1.5
    y = _peak(x)
    return {
        "trapezoid": quadax.trapezoid(y, x=x),
        "simpson": quadax.simpson(y, x=x),
        "along": quadax.cumulative_trapezoid(y, x=x, initial=0),
        "simpson_along": quadax.cumulative_simpson(y, x=x),
    }


def slopes_of_an_integral():
    def integral(p):
        return quadax.quadgk(lambda x, a: jnp.exp(-a * x**2), [0.0, p[1]], args=(p[0],), epsabs=1e-5, epsrel=1e-5)[0]

    return jax.jit(jax.value_and_grad(integral))(jnp.array([0.8, 1.5]))


def many_integrals_at_once():
    integral = lambda a: quadax.quadgk(lambda x: jnp.cos(a * x), [0.0, 1.0], epsabs=1e-5, epsrel=1e-5)[0]  # noqa: E731
    return jax.jit(jax.vmap(integral))(jnp.array([0.5, 2.0, 9.0]))
