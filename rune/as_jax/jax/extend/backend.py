"""`jax.extend.backend`: which kind of device is used (JAX MD asks for its platform)."""

from __future__ import annotations

from rune import absent
from rune.as_jax.devices import devices
from rune.backends import Device


def get_backend(platform: str | None = None) -> Device:
    """The first device of a platform; the default one without a name. It knows its `platform`."""
    return devices(platform)[0]


__getattr__ = absent.of("jax.extend.backend")
