"""`jax.experimental`."""

from contextlib import AbstractContextManager
from typing import Any

from rune import io_callback
from rune.as_jax.flags import in_block


def enable_x64(new_val: bool = True) -> AbstractContextManager[Any]:
    """64-bit defaults in a block."""
    return in_block("jax_enable_x64", new_val)


def disable_x64() -> AbstractContextManager[Any]:
    """32-bit defaults in a block."""
    return in_block("jax_enable_x64", False)
