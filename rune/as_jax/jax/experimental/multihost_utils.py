"""`jax.experimental.multihost_utils`: collective calls of several processes."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune import absent, tree
from rune.distributed import broadcast_one_to_all, process_allgather, sync_global_devices

__all__ = ["assert_equal", "broadcast_one_to_all", "process_allgather", "reached_preemption_sync_point"]
__all__ += ["sync_global_devices"]

__getattr__ = absent.of(__name__)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Errors: AssertionError unless all processes have equal trees."""
    source_leaves = tree.leaves(broadcast_one_to_all(in_tree))
    if not all(np.array_equal(x, y) for x, y in zip(source_leaves, tree.leaves(in_tree), strict=True)):
        raise AssertionError(f"{fail_message} Expected: {source_leaves}; got: {in_tree}.")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the processes must save at this step. No scheduler's notice reaches rune: False."""
    return False
