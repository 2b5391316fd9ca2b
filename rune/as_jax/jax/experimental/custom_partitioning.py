"""`jax.experimental.custom_partitioning`: refused, as it speaks to XLA's partitioner."""

from __future__ import annotations

from typing import NoReturn

from rune.errors import ArgumentError


def custom_partitioning(*_: object, **__: object) -> NoReturn:
    """Refused."""
    raise ArgumentError(
        "custom_partitioning: cannot give rules to a partitioner of XLA's",
        hint="rune.shard_map says what each device does",
    )
