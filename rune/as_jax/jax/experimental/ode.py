"""`jax.experimental.ode`."""

from rune.scipy.integrate import odeint
