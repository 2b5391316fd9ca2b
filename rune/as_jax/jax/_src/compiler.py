"""`jax._src.compiler`: Chex replaces its function to forbid backends, and is told that it can't."""

from __future__ import annotations

from rune.errors import ArgumentError


def __getattr__(name: str) -> object:
    if name in ("backend_compile", "backend_compile_and_load"):
        raise ArgumentError(
            f"jax._src.compiler: cannot give {name} (rune has a compiler of its own)",
            hint="RUNE_DEVICE, or jit(device=), names the device that programs are compiled for",
        )
    raise AttributeError(f"module 'jax._src.compiler' has no attribute {name!r}")
