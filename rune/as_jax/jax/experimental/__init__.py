"""`jax.experimental`."""

from jax.experimental import shard_map

from rune import io_callback
from rune.as_jax.flags import Block, in_block


def enable_x64(new_val: bool = True) -> Block:
    """64-bit defaults in a block."""
    return in_block("jax_enable_x64", new_val)


def disable_x64() -> Block:
    """32-bit defaults in a block."""
    return in_block("jax_enable_x64", False)
