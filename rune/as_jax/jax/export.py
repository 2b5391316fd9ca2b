"""`jax.export`: refused, as it writes XLA's programs."""

from __future__ import annotations

from typing import NoReturn

from rune.errors import ArgumentError


def _refuse(name: str) -> NoReturn:
    raise ArgumentError(
        f"export.{name}: cannot write programs of XLA's", hint="str(rune.make_program(f)(x)) parses back"
    )


def export(*_: object, **__: object) -> NoReturn:
    """Refused."""
    _refuse("export")


def deserialize(*_: object, **__: object) -> NoReturn:
    """Refused."""
    _refuse("deserialize")


def is_symbolic_dim(p: object) -> bool:
    """Whether a size is symbolic."""
    return not isinstance(p, int)
