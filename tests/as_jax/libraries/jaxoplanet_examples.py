"""jaxoplanet: orbits of planets, limb darkening, light curves and surfaces of stars."""

import jax
import jax.numpy as jnp
from jaxoplanet.core.kepler import kepler
from jaxoplanet.light_curves import limb_dark_light_curve
from jaxoplanet.orbits import TransitOrbit
from jaxoplanet.orbits.keplerian import Body, Central, System
from jaxoplanet.starry.light_curves import surface_light_curve
from jaxoplanet.starry.surface import Surface
from jaxoplanet.starry.ylm import Ylm

TIME = jnp.linspace(-0.1, 0.1, 61)
TOLERANCES = {"slopes_of_a_light_curve": (1e-3, "sums that cancel, in f32")}


def _orbit(ratio=0.1, impact=0.1):
    return TransitOrbit(period=3.456, duration=0.12, time_transit=0.0, impact_param=impact, radius_ratio=ratio)


def quick_start_transit():
    return limb_dark_light_curve(_orbit(), [0.1, 0.06])(TIME)


def slopes_of_a_light_curve():
    light = lambda ratio, impact: limb_dark_light_curve(_orbit(ratio, impact), [0.1, 0.06])(TIME)  # noqa: E731
    return jax.jacfwd(light, argnums=(0, 1))(0.1, 0.3)


def keplers_equation():
    anomalies = jnp.linspace(-3.0, 3.0, 21)
    return kepler(anomalies, 0.3), jax.vmap(jax.jacfwd(kepler, argnums=(0, 1)), in_axes=(0, None))(anomalies, 0.3)


def a_system_of_two_planets():
    system = System(Central(mass=0.9, radius=0.9))
    system = system.add_body(Body(period=3.0, radius=0.05, eccentricity=0.2, omega_peri=0.4))
    system = system.add_body(Body(period=7.1, radius=0.08, time_transit=0.03))
    light = limb_dark_light_curve(system, [0.3, 0.2])
    return light(TIME), system.radial_velocity(TIME), system.position(TIME)


def a_spotted_surface():
    ylm = Ylm.from_dense(jnp.array([1.0, 0.1, -0.2, 0.3, 0.05, 0.0, 0.1, -0.1, 0.2]))
    surface = Surface(y=ylm, inc=1.1, obl=0.2, u=(0.1, 0.05), period=0.3)
    return jax.vmap(lambda theta: surface_light_curve(surface, theta=theta))(jnp.linspace(0.0, 6.0, 9))
