"""`jax._src.xla_bridge`: the backend of a platform (Keras), and whether the CPU is in use (Chex).

Chex asks before it splits the CPU into devices.
"""

from __future__ import annotations

from rune import absent
from rune.as_jax.devices import devices
from rune.backends import Client
from rune.backends.cpu import threads

_missing = absent.of(__name__)


def get_backend(platform: str | None = None) -> Client:
    """The backend of a platform, by default that of the default device."""
    return devices(platform)[0].client


def __getattr__(name: str) -> object:
    if name == "_backends":
        return {"cpu": "rune"} if threads.is_counted() else {}
    return _missing(name)
