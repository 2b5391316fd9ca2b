"""Messages of `log_compiles` to the logger "rune": each trace, and each compilation."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rune.core.types import ArrayType

_LOGGER = logging.getLogger("rune")


def tell_trace(name: str, types: Sequence[ArrayType]) -> None:
    """A function is traced for arguments of these types."""
    _LOGGER.warning("jit: traces %s for (%s)", name, ", ".join(map(str, types)))


def tell_compilation(name: str, device: str) -> None:
    """A program is compiled for a device."""
    _LOGGER.warning("jit: compiles %s for %s", name, device)
