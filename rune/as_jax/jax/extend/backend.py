"""`jax.extend.backend`: the kinds of devices (JAX MD and MJX ask)."""

from __future__ import annotations

import rune
from rune import absent
from rune.as_jax.devices import devices
from rune.backends import Client, Device


def get_backend(platform: str | None = None) -> Device:
    """The first device of a platform, by default of the default one; it has a `platform`."""
    return devices(platform)[0]


def backends() -> dict[str, Client]:
    """The backends that have devices, by their names: "cpu", "cuda", "opencl", ..."""
    return {device.target.backend: device.client for device in rune.devices()}


__getattr__ = absent.of("jax.extend.backend")
