"""Work in processor time, which a test compares with other work of the same run."""

from __future__ import annotations

import time
from collections.abc import Callable


def processor_time(call: Callable[[], object]) -> float:
    """The processor time that this process takes for a call, in all its threads. Units: s.

    A test may only compare two of them: a busy or slow machine stretches both.
    """
    start = time.process_time()
    call()
    return time.process_time() - start
