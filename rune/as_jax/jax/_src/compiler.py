"""`jax._src.compiler`: Chex tries to replace its function, to forbid backends; refused."""

from __future__ import annotations

from rune.errors import ArgumentError


def __getattr__(name: str) -> object:
    if name in ("backend_compile", "backend_compile_and_load"):
        raise ArgumentError(
            f"jax._src.compiler: cannot give {name} (rune compiles without XLA)",
            hint="set RUNE_DEVICE, or pass jit(device=), to choose the device to compile for",
        )
    raise AttributeError(f"module 'jax._src.compiler' has no attribute {name!r}")
