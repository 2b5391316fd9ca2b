"""Settings of the current context. They are part of every cache key, so none goes stale.

All but two: `symbolic` says which traces are made, `cache_dir` where compiled code is kept, and
what is in a trace does not depend on them.

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
from typing import Any

from rune import profiling


@dataclass(frozen=True, slots=True, eq=False)
class Config:
    """All settings. Equal settings are one object, so comparing and hashing are free."""

    x64: bool = False  # 64-bit defaults for Python and NumPy values without an explicit dtype
    # Programs report the first operation that does so: rune.debug.checks.
    check_bounds: bool = False  # an index leaves its array
    check_nans: bool = False  # a NaN is made
    check_infs: bool = False  # an infinity is made
    check_leaks: bool = False  # raise where a traced value is kept after its transformation
    check_stages: bool = False  # check every stage of the lowering after every pass
    profile: bool = profiling.is_of_process()  # programs tell the time of each step
    check_keys: bool = False  # raise KeyReuseError where a random key is used twice
    promotion: str = "standard"  # "strict": operands of different dtypes do not combine
    device: str | None = None  # where new arrays and jitted calls without arrays go
    symbolic: str = "declared"  # "auto": in jit, an axis that changed twice becomes symbolic
    cache_dir: str | None = None  # of kernels; None: RUNE_CACHE_DIR or the user's; "": none

    def __post_init__(self) -> None:
        for name, known in (("promotion", PROMOTIONS), ("symbolic", SYMBOLIC)):
            if getattr(self, name) not in known:
                raise ValueError(f"configure: cannot use {name}={getattr(self, name)!r} {known}")


PROMOTIONS = ("standard", "strict")
SYMBOLIC = ("declared", "auto")
_current: ContextVar[Config | None] = ContextVar("rune_config", default=None)


@functools.cache
def _interned(**settings: bool | str | None) -> Config:
    return Config(**settings)  # type: ignore[arg-type]


_DEFAULT = _interned(**asdict(Config()))


def current() -> Config:
    """The settings in force."""
    return _current.get() or _DEFAULT


def variable() -> tuple[ContextVar[Config | None], Config]:
    """Where the settings stand, and those where it holds none: for native code."""
    return _current, _DEFAULT


@functools.cache
def for_traces(settings: Config) -> Config:
    """The settings without those that traces do not depend on: a part of the key of every trace."""
    ignored = {"symbolic": _DEFAULT.symbolic, "cache_dir": _DEFAULT.cache_dir}
    return _interned(**{**asdict(settings), **ignored})


_used_keys: ContextVar[dict[Any, Any] | None] = ContextVar("rune_used_keys", default=None)


def used_keys() -> dict[Any, Any]:
    """The keys that were used since `check_keys` was switched on, and where."""
    found = _used_keys.get()
    return {} if found is None else found


@contextmanager
def configure(**changes: bool | str | None) -> Iterator[Config]:
    """Change settings inside the block.

    Errors: TypeError for a setting that does not exist.

    >>> import rune, rune.numpy as rnp
    >>> with rune.configure(device="reference:0"):
    ...     print(rnp.ones(2).device)
    reference:0 (NumPy interpreter of kernel code, every check on)
    """
    settings = asdict(current())
    for name in changes.keys() - settings.keys():
        raise TypeError(f"configure: cannot set {name} (settings: {', '.join(settings)})")
    changed = _interned(**{**settings, **changes})
    token = _current.set(changed)
    keys = _used_keys.get()
    keys_token = _used_keys.set({} if changed.check_keys and keys is None else keys)
    try:
        yield changed
    finally:
        _used_keys.reset(keys_token)
        _current.reset(token)


def enable_x64(enabled: bool = True):
    """64-bit defaults inside the block: `with rune.enable_x64(): ...`.

    Errors: none.

    >>> import rune, rune.numpy as rnp
    >>> with rune.enable_x64():
    ...     print(rnp.ones(2).dtype)
    float64
    """
    return configure(x64=enabled)


def numpy_dtype_promotion(mode: str):
    """How operands of different dtypes combine inside the block: "standard" or "strict".

    Strict: they do not; only Python scalars adapt, to a dtype of their own kind or a higher one.

    Errors: ValueError for another mode.

    >>> import rune, rune.numpy as rnp
    >>> with rune.numpy_dtype_promotion("strict"):
    ...     rnp.float16(1) + 2
    Array(3., f16[], cpu:0)
    """
    if mode not in PROMOTIONS:
        raise ValueError(f"numpy_dtype_promotion: cannot use {mode!r} (one of {PROMOTIONS})")
    return configure(promotion=mode)
