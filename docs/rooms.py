"""The rooms that users import, and what is public in each: what the reference lists."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

ROOMS = (
    "rune",
    "rune.numpy",
    "rune.numpy.linalg",
    "rune.numpy.fft",
    "rune.lax",
    "rune.lax.linalg",
    "rune.scipy",
    "rune.scipy.cluster.vq",
    "rune.scipy.fft",
    "rune.scipy.integrate",
    "rune.scipy.interpolate",
    "rune.scipy.linalg",
    "rune.scipy.ndimage",
    "rune.scipy.optimize",
    "rune.scipy.signal",
    "rune.scipy.signal.windows",
    "rune.scipy.sparse.linalg",
    "rune.scipy.spatial.distance",
    "rune.scipy.spatial.transform",
    "rune.scipy.special",
    "rune.scipy.stats",
    "rune.nn",
    "rune.nn.initializers",
    "rune.extend",
    "rune.optim",
    "rune.random",
    "rune.data",
    "rune.tree",
    "rune.files",
    "rune.checkpoints",
    "rune.tree_util",
    "rune.debug",
    "rune.checkify",
    "rune.image",
    "rune.ref",
    "rune.sparse",
    "rune.flatten_util",
    "rune.test_util",
    "rune.profiler",
    "rune.errors",
    "rune.checkpoint_policies",
    "rune.sharding",
    "rune.viz",
)


def room(name: str) -> ModuleType:
    """The module that users know by this name."""
    parent, _, last = name.rpartition(".")
    if not parent:
        return importlib.import_module(name)
    member = getattr(room(parent), last, None)
    return member if member is not None else importlib.import_module(name)


def public_names(module: ModuleType) -> list[str]:
    """`__all__`, or what the module itself defines and re-exports; modules are rooms, not names."""
    declared = getattr(module, "__all__", None)
    if declared is not None:
        return sorted(n for n in declared if not inspect.ismodule(getattr(module, n)))
    return sorted(name for name, value in vars(module).items() if _is_public(name, value))


def _is_public(name: str, value: Any) -> bool:
    if name.startswith("_") or inspect.ismodule(value) or name == "annotations":
        return False
    return (getattr(value, "__module__", None) or "rune").startswith("rune")


def members() -> Iterator[tuple[str, str, Any]]:
    """(room, name, object) of everything public."""
    for name in ROOMS:
        module = room(name)
        for member in public_names(module):
            yield name, member, getattr(module, member)
