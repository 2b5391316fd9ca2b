"""`jax._src.xla_bridge`: Chex asks whether the CPU is in use before it splits it into devices."""

from __future__ import annotations

from rune import absent
from rune.backends.cpu import threads

_missing = absent.of(__name__)


def __getattr__(name: str) -> object:
    if name == "_backends":
        return {"cpu": "rune"} if threads.is_counted() else {}
    return _missing(name)
