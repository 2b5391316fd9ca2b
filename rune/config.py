"""Settings of the current context. They are part of every cache key, so none goes stale.

>>> with configure(check_nans=True):
...     current().check_nans
True
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Config:
    """All settings. Equal settings are one object, so comparing and hashing are free."""

    x64: bool = False  # 64-bit defaults for Python and NumPy values without an explicit dtype
    check_nans: bool = False  # raise NaNError at the first operation that makes a NaN
    check_stages: bool = False  # check every stage of the lowering after every pass
    device: str | None = None  # where new arrays and jitted calls without arrays go


_current: ContextVar[Config | None] = ContextVar("rune_config", default=None)


@functools.cache
def _interned(**settings: bool | str | None) -> Config:
    return Config(**settings)  # type: ignore[arg-type]


_DEFAULT = _interned(**asdict(Config()))


def current() -> Config:
    """The settings in force."""
    return _current.get() or _DEFAULT


@contextmanager
def configure(**changes: bool | str | None) -> Iterator[Config]:
    """Change settings inside the block.

    Errors: TypeError for a setting that does not exist.
    """
    changed = _interned(**{**asdict(current()), **changes})
    token = _current.set(changed)
    try:
        yield changed
    finally:
        _current.reset(token)


def enable_x64(enabled: bool = True):
    """64-bit defaults inside the block: `with rune.enable_x64(): ...`."""
    return configure(x64=enabled)
