"""Long routines of NumPy and LAPACK hear Ctrl-C: a thread runs them, and the main thread waits.

Handlers of signals run in the main thread between steps of the interpreter, and while a routine
computes there are none. A wait for a lock hears them, and routines that take long let go of the
interpreter. What was interrupted goes on to its end, unseen: nobody can stop it; its operands live
as long as it does, its results are dropped, and a process that ends waits for it, since libraries
are taken apart then.
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

LEAST_WORK = 1 << 31  # elements times the longest axis: from some ten milliseconds on
DEEPEST = 1 << 13  # a sort or a transform of a longer axis does not take so much longer


def is_long(shapes: Iterable[tuple[int, ...]]) -> bool:
    """Whether a routine of such operands takes so long that somebody may want to stop it."""
    return any(math.prod(shape) * min(max(shape, default=0), DEEPEST) >= LEAST_WORK for shape in shapes)


def apart(call: Callable[[], T]) -> T:
    """The result of a call, or its error. In another thread than the main one it is a plain call.

    The operands must be arrays that nobody frees: they may be read after an interrupt.
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
    """A call, then what became of it."""

    def __init__(self, call: Callable[[], T]):
        self.call = call
        self.results: list[T] = []
        self.error: BaseException | None = None
        # An interrupted wait for an event can leave the event's lock taken, one for a thread can
        # take the thread for ended; this queue waits in C.
        self.end = SimpleQueue[None]()

    def __call__(self) -> None:
        try:
            # Settings of NumPy are of a thread where they are not of a context.
            with np.errstate(all="ignore"):
                self.results.append(self.call())
        except BaseException as error:
            self.error = error
        finally:
            self.end.put(None)
