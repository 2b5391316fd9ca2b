"""JAX modules that rune lacks: importing one raises an error that says what to use instead.

Python asks a finder at the end of `sys.meta_path` only for modules that no other finder knows. For
JAX's modules this one raises ModuleNotFoundError, as Python would, with the reason from the table
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
    """A finder that finds nothing, and for modules of JAX says why they are missing."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for other modules. Errors: ModuleNotFoundError for a module in the table."""
        reason = absent.of_import(fullname) if fullname.startswith(("jax.", "jaxlib.")) else None
        if reason is None:
            return None
        raise ModuleNotFoundError(f"No module named {fullname!r} under rune.as_jax\nhint: {reason}", name=fullname)


def install() -> None:
    """Install the finder after all others. A second call does nothing."""
    if not any(isinstance(finder, MissingModules) for finder in sys.meta_path):
        sys.meta_path.append(MissingModules())
