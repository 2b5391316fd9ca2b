"""`jax.experimental.custom_partitioning`: refused, because it configures XLA's partitioner."""

from __future__ import annotations

from typing import NoReturn

from rune.errors import ArgumentError


def custom_partitioning(*_: object, **__: object) -> NoReturn:
    """Errors: ArgumentError, always."""
    raise ArgumentError(
        "custom_partitioning: cannot set rules of XLA's partitioner",
        hint="rune.shard_map defines what each device computes",
    )
