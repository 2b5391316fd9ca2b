"""Names that other libraries have and rune lacks, with what to use instead.

The modules of this package hold tables of reasons, each with the names that it applies to in one
string; a name may be a pattern. The pages docs/guide/missing*.md are made from these tables, and so
are the errors for missing names. A table is loaded only when such an error is shown, so that
neither `import rune` nor `hasattr` pays for it.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import NoReturn

from rune import locks

Table = Mapping[str, str]
# Modules that may have a name that was looked up in another one.
_ROOMS = ("rune", *(f"rune.{room}" for room in "numpy lax nn random debug tree".split()))
_ROOMS += ("rune.numpy.linalg", "rune.scipy.special", "rune.scipy.linalg", "rune.optim")


class MissingName(AttributeError):
    """A module lacks a name. The hint is looked up only when the error is shown."""

    def __str__(self) -> str:
        module, name = self.args
        advice = hint(module, name)
        message = f"module {module!r} has no attribute {name!r}"
        return f"{message}\nhint: {advice}" if advice else message


def of(module: str) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a module, which raises MissingName."""

    def missing(name: str) -> NoReturn:
        raise MissingName(module, name)

    return missing


def hint(module: str, name: str) -> str | None:
    """What to use for a missing name: from a table, another module, or a similar name.

    >>> hint("rune", "debug_key_reuse")
    'use rune.configure(check_keys=True)'
    >>> hint("rune.numpy", "softmax"), hint("rune.numpy", "cumsm")
    ('use rune.nn.softmax', 'did you mean rune.numpy.cumsum?')
    """
    for table in _tables(module):
        for reason, names in table.items():
            if any(_covers(pattern, name) for pattern in names.split()):
                return _sentence(reason)
    if _is_of_jax(module) and (reason := of_module(module)):
        return reason
    if not name.startswith("_"):
        for room in _rooms(module):
            if room != module and name in _public(room):
                return f"use {room}.{name}"
        for close in difflib.get_close_matches(name, _public(module), 1, cutoff=0.7):
            return f"did you mean {module}.{close}?"
    return None


def _covers(pattern: str, name: str) -> bool:
    """Whether a pattern of a table covers a name; `losses.*` also covers the module `losses`."""
    return fnmatchcase(name, pattern) or pattern == f"{name}.*"


def of_module(module: str) -> str | None:
    """Why `rune.as_jax` lacks a module of JAX's; None if its table has no reason.

    >>> of_module("jax.experimental.host_callback")
    'use jax.pure_callback and jax.experimental.io_callback'
    """
    for reason, patterns in locks.load("rune.absent.of_as_jax").MODULES.items():
        if any(fnmatchcase(module, pattern) for pattern in patterns.split()):
            return _sentence(reason)
    return None


def of_import(module: str) -> str | None:
    """Why a module cannot be imported: its own reason, or that of its names.

    >>> of_import("jax.experimental.shard_alike")
    'use jax.lax.with_sharding_constraint'
    """
    names = locks.load("rune.absent.of_as_jax").NAMES.get(module, ())
    return of_module(module) or next(map(_sentence, names), None)


def _rooms(module: str) -> list[str]:
    """Other modules that may have a name: those of rune, or of its stand-in for JAX."""
    if not _is_of_jax(module):
        return [*_ROOMS]
    names = [f"jax{room.removeprefix('rune')}" for room in _ROOMS]
    return [name for name in names if name in sys.modules]


def _is_of_jax(module: str) -> bool:
    return module.partition(".")[0] == "jax"


def _tables(module: str) -> Iterator[Table]:
    """The tables with names of this module."""
    if _is_of_jax(module):
        yield locks.load("rune.absent.of_as_jax").NAMES.get(module, {})
        module = f"rune{module.removeprefix('jax')}"
    room, _, inner = module.removeprefix("rune.").partition(".")
    if module in ("rune", "rune.lax", "rune.config"):
        tables = locks.load("rune.absent.of_jax")
        yield {"rune": tables.MISSING, "lax": tables.LAX, "config": tables.CONFIG}[room]
    elif module == "rune.numpy":
        tables = locks.load("rune.absent.of_numpy")
        yield from (tables.MISSING, tables.OF_JAX)
    elif module in ("rune.optim", "rune.nn"):
        yield locks.load("rune.absent.of_optax").MISSING
    elif room == "scipy":
        tables = locks.load("rune.absent.of_scipy")
        yield tables.MISSING.get(inner, {}) if inner else tables.MODULES


def _sentence(reason: str) -> str:
    """A reason as the end of an error message, without Markdown."""
    plain = reason.replace("`", "").removesuffix(".")
    return f"use{plain[3:]}" if plain.startswith("Use ") else plain


def _public(module: str) -> list[str]:
    """The public names of a module."""
    room = sys.modules.get(module) or locks.load(module)
    return [n for n in getattr(room, "__all__", dir(room)) if not n.startswith("_")]
