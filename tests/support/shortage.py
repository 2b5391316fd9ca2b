"""Devices that run short of memory."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import rune


def pool_of(device: str) -> Any:
    """The pool of a device."""
    backend: Any = rune.backends.device_named(device).backend
    return backend.session().memory.pool if device.startswith("vulkan") else backend.pool


def leave(room: int, device: str, patch: pytest.MonkeyPatch) -> None:
    """Let the device grant `room` bytes more than it has in use.

    Memory that other tests left to the collector or to the pool's cache is freed first: it would be
    extra room.
    """
    pool = pool_of(device)
    gc.collect()
    pool.trim()
    patch.setattr(pool, "limit_bytes", pool.stats().live_bytes + room)
