"""Functions that worker processes import: at the top of a module, so that pickle can send them."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np


def square(x: Any) -> Any:
    return x * x


def wide(n: Any) -> np.ndarray:
    """Enough bytes for shared memory, of another number for each n."""
    return np.full(20_000 + 1_000 * int(n), n, np.float32)


def refuse_five(n: Any) -> Any:
    if n == 5:
        raise ValueError("five is refused")
    return n


class Unsendable(Exception):
    """An error that pickle sends, and cannot make again."""

    def __init__(self, number: int, reason: str):
        super().__init__(f"{number} for {reason}")


def raise_unsendable(n: Any) -> Any:
    raise Unsendable(n, "a reason")


def die_at_five(n: Any) -> Any:
    if n == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


def leave(n: Any) -> Any:
    os._exit(3)


def process_of(n: Any) -> int:
    return os.getpid()
