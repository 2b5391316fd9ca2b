"""`jax._src`: modules of the inside of JAX that libraries import, with what they take from them.

A module is loaded when it is asked for by attribute alone: JAX has loaded all of them by then.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from rune import absent

_missing = absent.of(__name__)


def __getattr__(name: str) -> ModuleType:
    full_name = f"{__name__}.{name}"
    try:
        return import_module(full_name)
    except ModuleNotFoundError as error:
        if error.name != full_name:
            raise
    return _missing(name)
