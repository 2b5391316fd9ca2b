"""Runs programs and libraries written for JAX on rune, after one line.

Once a program has executed `import rune.as_jax`, `import jax` imports rune under JAX's names. To
run a script without changing it, use `python -m rune.as_jax script.py`, or set RUNE_AS_JAX=1.

The folder `jax` next to this file holds the modules, which are loaded under JAX's own names and map
each name to a function of rune. A private module of JAX exists here if some library imports it, and
holds the names which that library uses. Of rune itself, only the SETTINGS below change.

>>> import rune.as_jax
>>> import jax, jax.numpy as jnp
>>> jax.jit(jax.grad(lambda x: jnp.sum(x**3)))(jnp.arange(3.0))
Array([ 0.,  3., 12.], f32[3], cpu:0)
"""

from __future__ import annotations

import sys
from importlib import util
from pathlib import Path
from types import ModuleType

from rune import config
from rune.as_jax import flags, missing_modules, stand_ins
from rune.errors import ArgumentError

# The settings in which JAX differs, for the process; `with SETTINGS:` confines them to a block.
SETTINGS = config.setting(
    wide_dtypes="truncated",
    python_integers="wrapped",
    bools_select=True,
    complex_to_real="warned",
    callback_errors="quoted",
    xla_flags=True,
    array_namespace="jax.numpy",
)
_PACKAGES = ("jaxlib", "jax")
_HERE = Path(__file__).parent


def install() -> None:
    """Make `import jax` import rune. A second call does nothing.

    Errors: ArgumentError if this process has already imported JAX itself.
    """
    for name in _PACKAGES:
        known = sys.modules.get(name)
        if known is None:
            _load(name)
        elif not _is_from_here(known):
            raise ArgumentError(
                f"as_jax: cannot stand in for {name} (this process has imported {name} from {_folder(known)})",
                hint="import rune.as_jax first; JAX and its stand-in need separate processes",
            )


def _load(name: str) -> None:
    """Load a package of this folder under JAX's name for it; its modules are found through it."""
    folder = _HERE / name
    spec = util.spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    _put_rooms_in_place(name)


def _put_rooms_in_place(package: str) -> None:
    """Bind names such as `jax.numpy` to JAX's modules: `from rune import *` bound rune's."""
    for full_name, module in [*sys.modules.items()]:
        outer, _, inner = full_name.rpartition(".")
        if outer == package or outer.startswith(f"{package}."):
            setattr(sys.modules[outer], inner, module)


def _is_from_here(module: ModuleType) -> bool:
    return Path(_folder(module)) == _HERE / module.__name__


def _folder(module: ModuleType) -> str:
    return next(iter(getattr(module, "__path__", ())), "an unknown place")


install()
stand_ins.install()
missing_modules.install()
SETTINGS.act()
flags.begin()
