"""Modules of JAX that are not here: an import of one says why, and what to use instead.

A finder at the end of `sys.meta_path` is asked for modules that no other finder knows. For JAX's
own modules it raises the error that Python would, with the sentence of the table
rune/absent/of_as_jax.py.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from rune import absent


class MissingModules(MetaPathFinder):
    """Finds nothing, and says of modules of JAX why they are not there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for modules of others. Errors: ModuleNotFoundError for a module in the table."""
        reason = absent.of_import(fullname) if fullname.startswith(("jax.", "jaxlib.")) else None
        if reason is None:
            return None
        raise ModuleNotFoundError(f"No module named {fullname!r} under rune.as_jax\nhint: {reason}", name=fullname)


def install() -> None:
    """Install the finder behind all others. A second call does nothing."""
    if not any(isinstance(finder, MissingModules) for finder in sys.meta_path):
        sys.meta_path.append(MissingModules())
