"""`jax.experimental.multihost_utils`: several processes; one alone has nothing to wait for."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune import tree
from rune.distributed import process_count
from rune.errors import ArgumentError


def _require_one(name: str) -> None:
    if process_count() > 1:
        raise ArgumentError(
            f"multihost_utils.{name}: cannot serve {process_count()} processes (one required)",
            hint="rune.distributed has what processes exchange",
        )


def sync_global_devices(name: str) -> None:
    """Wait for all processes."""
    _require_one("sync_global_devices")


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The tree of the first process, as NumPy data."""
    _require_one("broadcast_one_to_all")
    return tree.map(np.asarray, in_tree)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The trees of all processes, stacked, or with `tiled` side by side; as NumPy data."""
    _require_one("process_allgather")
    return tree.map(lambda x: np.asarray(x) if tiled else np.asarray(x)[None], in_tree)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raise AssertionError unless the tree is the same in all processes."""
    _require_one("assert_equal")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes were told to stop: never, with one."""
    _require_one("reached_preemption_sync_point")
    return False
