"""`jax.experimental.ode`."""

from rune.scipy.integrate import odeint

__all__ = ["odeint"]
