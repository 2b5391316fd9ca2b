"""Makes long routines of NumPy and LAPACK interruptible: a thread runs them, the main thread waits.

Python runs signal handlers in the main thread, between bytecodes, so never while a C routine
computes there. Waiting for a lock can be interrupted, and long routines release the interpreter's
lock. An interrupted routine cannot be stopped: it runs to its end in its thread, keeps its operands
alive, and its result is dropped. The process waits for it before it exits, because libraries are
unloaded then.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from contextvars import copy_context
from queue import SimpleQueue
from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")

LEAST_WORK = 1 << 31  # elements times the longest axis: about ten milliseconds and more
# Work per element grows with the axis for a factorisation, but hardly for a sort or a transform,
# whose axes may be longer than this.
DEEPEST = 1 << 13


def is_long(shapes: Iterable[tuple[int, ...]]) -> bool:
    """Whether a routine of such operands takes long enough for a user to want to interrupt it."""
    return any(math.prod(shape) * min(max(shape, default=0), DEEPEST) >= LEAST_WORK for shape in shapes)


def apart(call: Callable[[], T]) -> T:
    """Return the result of a call, or raise its error. Outside the main thread, a plain call.

    The operands must stay allocated: the call may still read them after an interrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    run = _Run(call)
    threading.Thread(target=copy_context().run, args=(run,), name="rune-long-call").start()
    run.end.get()
    if run.error is not None:
        raise run.error
    (result,) = run.results
    return result


class _Run(Generic[T]):
    """A call, then its result or its error."""

    def __init__(self, call: Callable[[], T]):
        self.call = call
        self.results: list[T] = []
        self.error: BaseException | None = None
        # Waits of Event and Thread.join are written in Python: an interrupt in one can leave the
        # event's lock held, or mark a running thread as ended. SimpleQueue waits in C.
        self.end = SimpleQueue[None]()

    def __call__(self) -> None:
        try:
            # NumPy before 2 keeps its error state per thread, where copy_context does not copy it.
            with np.errstate(all="ignore"):
                self.results.append(self.call())
        except BaseException as error:
            self.error = error
        finally:
            self.end.put(None)
