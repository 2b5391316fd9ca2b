"""Waiting for what other threads and processes will do, however slow the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

HANG_S = 240.0  # what takes longer hangs, on any machine


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether the condition holds, now or before a time in which only a fault would keep it from
    doing so.

    A test that passes waits no longer than it must.
    """
    end = time.monotonic() + HANG_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
