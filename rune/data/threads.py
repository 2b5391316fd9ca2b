"""Work done by threads: a function of each task, in order and some tasks ahead; and a source that
another thread reads ahead.

Whoever iterates gives tasks and takes results. Ended early, the iterators here wait for what their
threads are just doing, and no thread of theirs is left.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from itertools import count
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from rune.errors import DataError

T = TypeVar("T")  # a task
R = TypeVar("R")  # a result

AHEAD = 2  # tasks under way or done for each worker
_numbers = count()


def in_threads(workers: int, function: Callable[[T], R], tasks: Iterable[T]) -> Generator[R, None, None]:
    """`function(task)` of each task, in order. Tasks are asked for in the thread that iterates."""
    name = f"rune-data-{next(_numbers)}-"
    pool = ThreadPoolExecutor(workers, name)
    pending: deque[Future[R]] = deque()
    try:
        for task in tasks:
            pending.append(pool.submit(copy_context().run, function, task))
            if len(pending) == AHEAD * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        # A collector may run this in a thread of the pool, which cannot wait for itself.
        pool.shutdown(not threading.current_thread().name.startswith(name), cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Item(Generic[R]):
    value: R


@dataclass(frozen=True, slots=True)
class _End:
    """Behind the last item; with the error that ended them."""

    error: BaseException | None = None


class _Reader(Generic[R]):
    """A thread that reads ahead, and the two queues between it and whoever takes the items.

    Both queues may be written by finalisers, whatever the thread below them is doing: a lock of our
    own might be held by it. `room` has a True for each item that may be read, and a False to end.
    """

    def __init__(self, read: Callable[[], Iterator[R]], depth: int, drop: Callable[[R], object]):
        self.ready: SimpleQueue[_Item[R] | _End] = SimpleQueue()
        self.room: SimpleQueue[bool] = SimpleQueue()
        ended = threading.Event()
        arguments = (copy_context().run, _read, read, self.ready, self.room, ended)
        self.thread = threading.Thread(target=arguments[0], args=arguments[1:], name="rune-data-reader", daemon=True)
        # Also when the interpreter ends: a thread must not run on while it is taken down.
        self.stop = weakref.finalize(self, _stop, self.thread, self.ready, self.room, ended, drop)
        for _ in range(depth):
            self.room.put(True)
        self.thread.start()

    def take(self) -> _Item[R] | _End:
        """The next item, and room for one more. Errors: DataError in a forked process."""
        if not self.thread.is_alive() and self.ready.empty():
            raise DataError(
                "prefetch: cannot go on in a forked process (the thread that reads is in its parent)",
                hint="begin to iterate in the process that uses the elements",
            )
        item = self.ready.get()
        self.room.put(True)
        return item


def read_ahead(read: Callable[[], Iterator[R]], depth: int, drop: Callable[[R], object]) -> Generator[R, None, None]:
    """What `read()` gives, read by another thread, up to `depth` items ahead.

    drop: is called with each item that was read and will not be used
    """
    reader = _Reader(read, depth, drop)
    try:
        while isinstance(item := reader.take(), _Item):
            yield item.value
        if item.error is not None:
            raise item.error
    finally:
        reader.stop()


def _read(
    read: Callable[[], Iterator[R]],
    ready: SimpleQueue[_Item[R] | _End],
    room: SimpleQueue[bool],
    ended: threading.Event,
) -> None:
    """What the thread does: items as long as there is room, then the end."""
    end = _End()
    try:
        items = read()
        try:
            while room.get() and not ended.is_set():
                ready.put(_Item(next(items)))
        finally:
            getattr(items, "close", lambda: None)()
    except StopIteration:
        pass
    except BaseException as error:
        end = _End(error)
    finally:
        ready.put(end)


def _stop(
    thread: threading.Thread,
    ready: SimpleQueue[_Item[R] | _End],
    room: SimpleQueue[bool],
    ended: threading.Event,
    drop: Callable[[R], object],
) -> None:
    ended.set()
    room.put(False)
    if thread is not threading.current_thread():
        thread.join()
    try:
        while True:
            item = ready.get_nowait()
            if isinstance(item, _Item):
                drop(item.value)
    except Empty:
        pass
