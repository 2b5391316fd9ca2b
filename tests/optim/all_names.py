"""rune.optim with its deprecated names, for claims about Optax's whole namespace."""

from __future__ import annotations

from typing import Any

from rune import optim
from rune.optim import deprecated


class AllNames:
    """Each name from rune.optim, or a deprecated one without its warning."""

    def __getattr__(self, name: str) -> Any:
        return getattr(optim if name in vars(optim) else deprecated, name)


ALL_NAMES = AllNames()
