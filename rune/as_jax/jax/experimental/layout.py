"""`jax.experimental.layout`: how a device stores an array (Flax and Orbax import the classes)."""

from __future__ import annotations

from rune import absent
from rune.sharding.layouts import Format, Layout

__all__ = ["Format", "Layout"]

__getattr__ = absent.of(__name__)
