"""`jax.extend.backend`: the kind of device in use (JAX MD reads its platform)."""

from __future__ import annotations

from rune import absent
from rune.as_jax.devices import devices
from rune.backends import Device


def get_backend(platform: str | None = None) -> Device:
    """The first device of a platform, by default of the default one; it has a `platform`."""
    return devices(platform)[0]


__getattr__ = absent.of("jax.extend.backend")
